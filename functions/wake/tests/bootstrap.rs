//! The real binary, on ticks of the schedule.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use lambda_support::{Answer, World, sample};
use serde_json::json;
use std::time::Duration;

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn due_items_are_rung_for_as_far_as_the_queue_has_room() {
    let world = World::start().await;
    let mut due = Vec::new();
    for n in 1..=3 {
        due.push(world.submit(&format!("bot/due-{n}")).await.to_string());
    }
    let _function = world.function(WAKE);

    world.aws.set_waiting(2_000);
    assert_eq!(world.runtime.invoke(sample("wake.json"), TIMEOUT).await, Answer::Response(json!({"woken": 0})));
    assert!(world.aws.take_sent().is_empty());

    world.aws.set_waiting(1_999);
    assert_eq!(
        world.runtime.invoke(sample("wake.json"), TIMEOUT).await.response()["woken"].as_u64().filter(|n| *n <= 1),
        Some(world.aws.take_sent().len() as u64)
    );

    world.aws.set_waiting(0);
    assert_eq!(world.runtime.invoke(sample("wake.json"), TIMEOUT).await, Answer::Response(json!({"woken": 3})));
    due.sort();
    assert_eq!(world.aws.take_rung(), due);
}
