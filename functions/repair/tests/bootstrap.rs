//! The real binary, on messages of the repair queue.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::id::ItemId;
use lambda_support::{TRACKED, World, failed, message, queue_event, sample};
use serde_json::{Value, json};
use std::time::Duration;

const REPAIR: &str = env!("CARGO_BIN_EXE_repair");
const TIMEOUT: Duration = Duration::from_secs(30);

fn offer(queue: &str, build: &str, request: u64) -> Value {
    let body = json!({"queue": queue, "build_id": build, "request_id": request, "pass_id": 1});
    queue_event(vec![message("m1", &body.to_string())])
}

fn closed(task: &str) -> Value {
    let payload = json!({"queue": TRACKED, "task_id": task, "unit_id": "a::b", "closing_build_id": "b2"});
    queue_event(vec![message(
        "m1",
        &json!({"detail-type": "issue.closed", "source": "collie", "detail": {"payload": payload}}).to_string(),
    )])
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failing_task_becomes_one_item_once() {
    let world = World::start().await;
    world.build("b1", &[("unit tests", "a::b"), ("unit tests", "c"), ("lint", "")]).await;
    world.track().await;
    let function = world.function(REPAIR);

    assert_eq!(world.runtime.invoke(offer(TRACKED, "b1", 1), TIMEOUT).await, failed(&[]));
    let rung = world.aws.take_rung();
    assert_eq!(rung.len(), 2, "one for each task");
    for id in &rung {
        assert_eq!(world.item(&ItemId::new(id.clone())).await.item_type, "issue");
    }

    assert_eq!(world.runtime.invoke(offer(TRACKED, "b1", 1), TIMEOUT).await, failed(&[]));
    assert_eq!(world.aws.take_rung(), Vec::<String>::new(), "what was taken is not offered again");
    assert!(function.log().contains("\"taken\":3") && function.log().contains("\"taken\":0"), "{}", function.log());

    assert_eq!(world.runtime.invoke(closed("unit tests"), TIMEOUT).await, failed(&[]));
    let again = world.aws.take_rung();
    assert!(again.len() == 1 && rung.contains(&again[0]), "{again:?} of {rung:?}");
    assert_eq!(world.runtime.invoke(closed("never seen"), TIMEOUT).await, failed(&[]));
    assert_eq!(world.aws.take_rung(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_reported_alone_and_a_queue_that_is_not_configured_repairs_nothing() {
    let world = World::start().await;
    let _function = world.function(REPAIR);
    let unknown = json!({"queue": "lib-main", "build_id": "b1", "request_id": 1, "pass_id": 1}).to_string();
    let messages = vec![message("m1", &unknown), message("m2", "not json"), message("m3", "{}")];
    let answer = world.runtime.invoke(queue_event(messages), TIMEOUT).await.response();
    assert_eq!(answer, json!({"batchItemFailures": [{"itemIdentifier": "m2"}, {"itemIdentifier": "m3"}]}));
    assert_eq!(world.aws.take_sent(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_understood() {
    let world = World::start().await;
    let _function = world.function(REPAIR);
    assert_eq!(world.runtime.invoke(sample("repair.json"), TIMEOUT).await, failed(&[]));
}
