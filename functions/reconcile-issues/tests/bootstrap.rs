//! The real binary, on messages of the jobs queue.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::issue::id::{QueueName, RequestId};
use lambda_support::{Fault, Hidden, TRACKED, World, assert_matches, failed, fifo_message, queue_event, sample};
use serde_json::{Value, json};
use std::time::Duration;

const RECONCILE: &str = env!("CARGO_BIN_EXE_reconcile-issues");
const TIMEOUT: Duration = Duration::from_secs(60);
const JOBS: &str = "collie-jobs.fifo";

fn rang(queue: &str, request: u64) -> Value {
    queue_event(vec![fifo_message(queue, &json!({"queue": queue, "request": request}).to_string())])
}

fn hidden(seconds: i64) -> Hidden {
    Hidden { queue: JOBS.into(), receipt_handle: "fifo".into(), seconds }
}

async fn oldest(world: &World) -> Option<RequestId> {
    world.tracking().standing(&QueueName::new(TRACKED)).await.unwrap().oldest.map(|job| job.request)
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_are_tracked_to_their_end_and_those_who_listen_are_told() {
    let world = World::start().await;
    world.build("b1", &[("unit tests", "a::b"), ("lint", "x")]).await;
    world.build("b2", &[("lint", "x")]).await;
    let function = world.function(RECONCILE);

    assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&[]));

    let events = world.aws.take_events();
    for event in &events {
        let schema = sample(&format!("schemas/{}.json", event.detail_type));
        assert_matches(&schema, &event.detail);
        assert_eq!((event.bus.as_str(), event.source.as_str()), ("collie-bus", "collie"));
    }
    let told: Vec<_> = events.iter().map(|event| (event.detail_type.as_str(), event.detail["payload"].clone())).collect();
    let about =
        |task: &str, unit: &str, which: &str, build: &str| json!({"queue": TRACKED, "task_id": task, "unit_id": unit, which: build});
    let opened = ["lint x", "unit tests a::b"].map(|key| {
        let (task, unit) = key.rsplit_once(' ').unwrap();
        ("issue.opened", about(task, unit, "opening_build_id", "b1"))
    });
    assert_eq!(told, opened);
    let sent: Vec<_> = world.aws.take_sent().into_iter().map(|sent| (sent.queue, sent.body)).collect();
    assert_eq!(sent, [("collie-repairs".to_owned(), json!({"queue": TRACKED, "build_id": "b1", "request_id": 1, "pass_id": 1}))]);
    assert_eq!((oldest(&world).await, world.aws.take_hidden()), (RequestId::new(2), vec![]), "each job has a message of its own");

    assert_eq!(world.runtime.invoke(rang(TRACKED, 2), TIMEOUT).await, failed(&[]));
    let closed = world.aws.take_events();
    assert_matches(&sample("schemas/issue.closed.json"), &closed[0].detail);
    assert_eq!(closed[0].detail["payload"], about("unit tests", "a::b", "closing_build_id", "b2"));
    assert_eq!((closed.len(), oldest(&world).await), (1, None));
    world.assert_no_secret(&function.log());
}

/// A hold is no failure: nobody is to be alarmed by it, and the message must not be acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_is_held_and_its_message_stays() {
    let world = World::start().await;
    let queue = QueueName::new(TRACKED);
    world.tracking().admit(&queue, "git@example.com/app@1").await.unwrap();
    let function = world.function(RECONCILE);
    for _ in 0..12 {
        assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&["fifo"]));
    }
    assert_eq!(world.aws.take_hidden(), vec![hidden(30); 12]);
    assert_eq!(oldest(&world).await, RequestId::new(1));
    let log = function.log();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_jobs_message_waits_for_the_older_job() {
    let world = World::start().await;
    world.tracking().admit(&QueueName::new(TRACKED), "git@example.com/app@1").await.unwrap();
    let newer = world.build("b2", &[("lint", "x")]).await;
    let _function = world.function(RECONCILE);
    assert_eq!(world.runtime.invoke(rang(TRACKED, newer.number()), TIMEOUT).await, failed(&["fifo"]));
    assert_eq!((world.aws.take_hidden(), world.aws.take_events()), (vec![hidden(30)], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_too_often_goes_to_recovery_and_its_message_stays_until_then() {
    let world = World::start().await;
    world.build("b1", &[("lint", "x")]).await;
    world.aws.set_bus_refuses(Some("NotAuthorizedForSourceException"));
    let function = world.function(RECONCILE);
    for _ in 0..10 {
        assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&["fifo"]));
    }
    let waits: Vec<_> = world.aws.take_hidden().iter().map(|hidden| hidden.seconds).collect();
    assert_eq!((waits, world.aws.take_sent()), (vec![1, 2, 4, 8, 16, 30, 30, 30, 30, 30], vec![]));

    assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&["fifo"]));
    let letters = world.aws.take_sent();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].queue.as_str(), letters[0].group.as_deref()), ("collie-jobs-dead.fifo", Some(TRACKED)));
    assert_eq!(letters[0].body, json!({"queue": TRACKED, "request": 1, "attempt": 10, "reason": "failures"}));
    assert_eq!((oldest(&world).await, world.aws.take_hidden()), (RequestId::new(1), vec![hidden(30)]));
    assert!(function.log().contains("EventBridge refused an event: NotAuthorizedForSourceException"));

    world.tracking().recover(&QueueName::new(TRACKED), RequestId::new(1).unwrap()).await.unwrap();
    assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&[]));
}

/// The bus takes the event at a later try: the pass goes on where it was, and nothing is told but what was not.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_the_bus_was_too_busy_for_is_put_later() {
    let world = World::start().await;
    world.build("b1", &[("lint", "x")]).await;
    let _function = world.function(RECONCILE);
    world.aws.set_bus_refuses(Some("ThrottlingException"));
    assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&["fifo"]));
    world.aws.set_bus_refuses(None);
    assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&[]));
    assert_eq!(world.aws.take_events().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_refuses_holds_the_message_and_says_so() {
    let world = World::start().await;
    world.build("b1", &[("lint", "x")]).await;
    world.table.fail("queue#app-main", Fault::Refuse);
    let function = world.function(RECONCILE);
    assert_eq!(world.runtime.invoke(rang(TRACKED, 1), TIMEOUT).await, failed(&["fifo"]));
    assert_eq!(world.aws.take_hidden(), [hidden(1)]);
    assert!(function.log().contains("message failed"), "{}", function.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_not_configured_waits_and_what_is_no_job_is_dropped() {
    let world = World::start().await;
    let function = world.function(RECONCILE);
    assert_eq!(world.runtime.invoke(rang("lib-main", 1), TIMEOUT).await, failed(&["fifo"]));
    assert_eq!(world.aws.take_hidden(), [hidden(600)]);
    let malformed = fifo_message(TRACKED, r#"{"queue":"app-main","request":"canary"}"#);
    assert_eq!(world.runtime.invoke(queue_event(vec![malformed]), TIMEOUT).await, failed(&[]));
    let log = function.log();
    assert!(log.contains("malformed_job") && !log.contains("canary"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_understood() {
    let world = World::start().await;
    let _function = world.function(RECONCILE);
    assert_eq!(world.runtime.invoke(sample("reconcile-issues.json"), TIMEOUT).await, failed(&[]));
}

#[test]
fn samples_of_events_are_what_the_schemas_say() {
    for (name, schema) in [("issue-opened.json", "schemas/issue.opened.json"), ("issue-closed.json", "schemas/issue.closed.json")] {
        assert_matches(&sample(schema), &sample(name)["detail"]);
    }
}
