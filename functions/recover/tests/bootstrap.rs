//! The real binary, on dead letters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::issue::call::Coverage;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::Outcome;
use collie_core::letter::{Origin, State};
use collie_engine::ports::Letters as _;
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
async fn every_other_letter_is_kept_for_an_operator_and_its_work_is_not_done() {
    let world = World::start().await;
    let function = world.function(RECOVER);
    let offer = json!({"queue": TRACKED, "build_id": "b1", "request_id": 1, "pass_id": 1}).to_string();
    let closing = sample("issue-closed.json").to_string();
    let bodies = [("m1", offer.as_str()), ("m2", r#"{"item_id":"0198-item"}"#), ("m3", r#"{"secret":"canary"}"#), ("m4", closing.as_str())];
    let unreadable = || fifo_message(TRACKED, r#"{"secret":"canary"}"#);
    let messages = || queue_event(bodies.iter().map(|(id, body)| message(id, body)).chain([unreadable()]).collect());
    for _ in 0..2 {
        assert_eq!(world.runtime.invoke(messages(), TIMEOUT).await, failed(&[]), "the same letters again change nothing");
    }
    let kept = world.table.items.letters(None, None, 9).await.unwrap().items;
    let told: Vec<_> = kept.iter().map(|letter| (letter.id.as_str(), letter.origin, letter.about.as_deref(), letter.state)).collect();
    let want = [
        ("m1", Origin::Repairs, Some("app-main: build b1"), State::Waiting),
        ("m2", Origin::Wakes, Some("0198-item"), State::Waiting),
        ("m3", Origin::Hooks, None, State::Waiting),
        ("m4", Origin::Repairs, Some("app-main: unit tests / a::b"), State::Waiting),
    ];
    assert_eq!(told, want);
    assert!(world.aws.take_sent().is_empty() && world.aws.take_events().is_empty(), "nothing is done again");
    let log = function.log();
    assert_eq!(log.lines().filter(|line| line.contains("a queue gave a message up")).count(), 8, "{log}");
    assert_eq!(log.lines().filter(|line| line.contains("malformed_dead_letter")).count(), 2, "{log}");
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_understood() {
    let world = World::start().await;
    let _function = world.function(RECOVER);
    assert_eq!(world.runtime.invoke(sample("recover.json"), TIMEOUT).await, failed(&[]));
}
