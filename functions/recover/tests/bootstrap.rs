//! The real binary, on dead letters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::issue::call::Coverage;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::Outcome;
use lambda_support::{Fault, Hidden, TRACKED, World, failed, fifo_message, message, queue_event, sample};
use serde_json::{Value, json};
use std::time::Duration;

const RECOVER: &str = env!("CARGO_BIN_EXE_recover");
const TIMEOUT: Duration = Duration::from_secs(60);

fn letter(queue: &str, request: u64) -> Value {
    let body = json!({"queue": queue, "request": request, "attempt": 10, "reason": "failures"});
    queue_event(vec![fifo_message(queue, &body.to_string())])
}

/// What is known of a request's issues, and the oldest job.
async fn standing(world: &World, request: RequestId) -> (Coverage, Option<RequestId>) {
    let (tracking, queue) = (world.tracking(), QueueName::new(TRACKED));
    let history = tracking.request_history(&queue, request).await.unwrap();
    let oldest = tracking.standing(&queue).await.unwrap().oldest.map(|job| job.request);
    (Coverage::of(history.iter().map(|entry| &entry.milestone)), oldest)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_no_worker_can_end_is_abandoned_once_and_the_next_has_its_turn() {
    let world = World::start().await;
    let (tracking, queue) = (world.tracking(), QueueName::new(TRACKED));
    let request = tracking.admit(&queue, "git@example.com/app@1").await.unwrap().id;
    tracking.conclude(&queue, request, Outcome::Cancelled).await.unwrap();
    let next = world.build("b2", &[]).await;
    let _function = world.function(RECOVER);
    for _ in 0..2 {
        assert_eq!(world.runtime.invoke(letter(TRACKED, 1), TIMEOUT).await, failed(&[]));
        assert_eq!(standing(&world, request).await, (Coverage::None, Some(next)));
    }
    assert_eq!((world.aws.take_events(), world.aws.take_sent()), (vec![], vec![]), "recovery tells nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_waits_where_an_older_job_comes_first_or_the_store_fails() {
    let world = World::start().await;
    world.build("b1", &[]).await;
    world.build("b2", &[]).await;
    let function = world.function(RECOVER);
    let hidden = |seconds| Hidden { queue: "collie-jobs-dead.fifo".into(), receipt_handle: "fifo".into(), seconds };

    assert_eq!(world.runtime.invoke(letter(TRACKED, 2), TIMEOUT).await, failed(&["fifo"]));
    assert_eq!(world.aws.take_hidden(), [hidden(1)]);
    assert!(!function.log().contains("message failed"), "{}", function.log());

    world.table.fail("queue#app-main", Fault::Refuse);
    assert_eq!(world.runtime.invoke(letter(TRACKED, 1), TIMEOUT).await, failed(&["fifo"]));
    assert_eq!(world.aws.take_hidden(), [hidden(30)]);
    assert!(function.log().contains("message failed"), "{}", function.log());
    world.table.heal();
    assert_eq!(world.runtime.invoke(letter(TRACKED, 1), TIMEOUT).await, failed(&[]));
    let first = RequestId::new(1).unwrap();
    assert_eq!(standing(&world, first).await, (Coverage::Abandoned, RequestId::new(2)));
}

/// Its rows are there, configured or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_not_configured_is_recovered_too() {
    let world = World::start().await;
    let (tracking, queue) = (world.tracking(), QueueName::new("lib-main"));
    let request = tracking.admit(&queue, "git@example.com/lib@1").await.unwrap().id;
    let _function = world.function(RECOVER);
    assert_eq!(world.runtime.invoke(letter("lib-main", 1), TIMEOUT).await, failed(&[]));
    let history = tracking.request_history(&queue, request).await.unwrap();
    assert_eq!(Coverage::of(history.iter().map(|entry| &entry.milestone)), Coverage::None);
}

#[tokio::test(flavor = "multi_thread")]
async fn repairs_are_told_of_and_go_and_what_is_not_understood_stays() {
    let world = World::start().await;
    let function = world.function(RECOVER);
    let offer = json!({"queue": TRACKED, "build_id": "b1", "request_id": 1, "pass_id": 1}).to_string();
    let messages = vec![
        message("m1", &offer),
        message("m2", &sample("issue-closed.json").to_string()),
        message("m3", r#"{"secret":"canary"}"#),
        fifo_message(TRACKED, r#"{"secret":"canary"}"#),
    ];
    assert_eq!(world.runtime.invoke(queue_event(messages), TIMEOUT).await, failed(&["m3"]));
    let log = function.log();
    let count = |text: &str| log.lines().filter(|line| line.contains("ERROR") && line.contains(text)).count();
    assert_eq!((count("repair_given_up"), count("malformed_dead_letter")), (2, 2), "{log}");
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_understood() {
    let world = World::start().await;
    let _function = world.function(RECOVER);
    assert_eq!(world.runtime.invoke(sample("recover.json"), TIMEOUT).await, failed(&[]));
}
