//! The real binary, on ticks of the schedule.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::{Job, RowKey};
use collie_core::issue::table::Edit;
use collie_engine::ports::{Clock as _, TrackingRows as _, Written};
use collie_system::SystemClock;
use lambda_support::{Answer, Fault, TRACKED, World, sample};
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
    let function = world.function(WAKE);

    world.aws.set_waiting(2_000);
    assert_eq!(world.runtime.invoke(sample("wake.json"), TIMEOUT).await, Answer::Response(json!({"woken": 0, "rung": 0})));
    assert!(world.aws.take_sent().is_empty());

    world.aws.set_waiting(1_999);
    assert_eq!(
        world.runtime.invoke(sample("wake.json"), TIMEOUT).await.response()["woken"].as_u64().filter(|n| *n <= 1),
        Some(world.aws.take_sent().len() as u64)
    );

    world.aws.set_waiting(0);
    assert_eq!(world.runtime.invoke(sample("wake.json"), TIMEOUT).await, Answer::Response(json!({"woken": 3, "rung": 0})));
    due.sort();
    assert_eq!(world.aws.take_rung(), due);

    let log = function.log();
    let lags = lines(&log, r#""Metrics":[{"Name":"DueLag","Unit":"Milliseconds"}]"#);
    assert_eq!((lags.len(), lines(&log, "collie::metric").len()), (3, 0), "one a tick, as a metric and not as a log line: {log}");
}

/// A job that was last looked at this many seconds ago.
async fn job(world: &World, request: u64, seconds: u64) {
    let seen = SystemClock.now().before(Duration::from_secs(seconds));
    let job = Job::new(RequestId::new(request).unwrap(), seen);
    let written = world.table.tracking.write(&QueueName::new(TRACKED), &[Edit::create(RowKey::job(job.request), job)]).await;
    assert_eq!(written, Ok(Written::Yes));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_oldest_job_nobody_looks_at_is_rung_for_again_each_time() {
    let world = World::start().await;
    job(&world, 7, 60).await;
    job(&world, 8, 600).await;
    let _function = world.function(WAKE);
    let tick = || async { world.runtime.invoke(sample("wake.json"), TIMEOUT).await.response() };
    assert_eq!((tick().await, world.aws.take_sent()), (json!({"woken": 0, "rung": 0}), vec![]), "the oldest job counts");
    job(&world, 6, 121).await;
    assert_eq!(tick().await, json!({"woken": 0, "rung": 1}));
    assert_eq!(tick().await, json!({"woken": 0, "rung": 1}));
    let sent = world.aws.take_sent();
    let said: Vec<_> = sent.iter().map(|sent| (sent.queue.as_str(), sent.group.as_deref(), sent.body.clone())).collect();
    let expected = ("collie-jobs.fifo", Some(TRACKED), json!({"queue": TRACKED, "request": 6}));
    assert_eq!(said, [expected.clone(), expected]);
    assert_ne!(sent[0].deduplication_id, sent[1].deduplication_id, "the same id within minutes would be swallowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_rung_for_also_where_jobs_cannot_be_looked_at() {
    let world = World::start().await;
    let id = world.submit("bot/due").await;
    world.table.fail("queue#app-main", Fault::Refuse);
    let function = world.function(WAKE);
    assert!(matches!(world.runtime.invoke(sample("wake.json"), TIMEOUT).await, Answer::Error(_)));
    assert_eq!(world.aws.take_rung(), [id.to_string()]);
    assert!(function.log().contains("not all stale jobs are rung for"), "{}", function.log());
}

const OBJECT: &str = "/config-bucket/collie/prod.yaml";
const FROM_S3: [(&str, &str); 2] = [("COLLIE_CONFIG_FILE", "s3://config-bucket/collie/prod.yaml"), ("COLLIE_CONFIG_LOOK_SECONDS", "0")];

/// The lines of a log that hold a text.
fn lines<'l>(log: &'l str, text: &str) -> Vec<&'l str> {
    log.lines().filter(|line| line.contains(text)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_on_s3_is_followed_and_a_bad_version_never_taken() {
    let world = World::start().await;
    let tick = || world.runtime.invoke(sample("wake.json"), TIMEOUT);
    let none = Answer::Response(json!({"woken": 0, "rung": 0}));
    world.aws.put_version(OBJECT, &world.configuration());
    let function = world.function_with(WAKE, &FROM_S3);
    assert_eq!(tick().await, none);

    world.aws.put_version(OBJECT, "projects: [{path: app, colour: red}]");
    assert_eq!((tick().await, tick().await), (none.clone(), none.clone()));
    let log = function.log();
    let refused = lines(&log, "configuration_refused");
    assert!(refused.len() == 1 && refused[0].contains("ERROR"), "{log}");
    assert!(refused[0].contains("projects[0].path: a path is written as") && refused[0].contains("projects[0].colour"), "{log}");
    assert!(lines(&log, "the configuration has changed").is_empty(), "{log}");

    world.aws.put_version(OBJECT, &format!("{}limits: {{max_attempts: 3}}\n", world.configuration()));
    assert_eq!(tick().await, none);
    assert_eq!(lines(&function.log(), "the configuration has changed").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_starts_takes_the_newest_version_that_can_be_used() {
    let world = World::start().await;
    for text in [&world.configuration(), "projects: 1", "colour: red"] {
        world.aws.put_version(OBJECT, text);
    }
    let function = world.function_with(WAKE, &FROM_S3);
    assert_eq!(world.runtime.invoke(sample("wake.json"), TIMEOUT).await, Answer::Response(json!({"woken": 0, "rung": 0})));
    let log = function.log();
    assert_eq!((lines(&log, "configuration_refused").len(), lines(&log, "an earlier version").len()), (1, 1), "{log}");
    assert!(lines(&log, "configuration_refused")[0].contains("colour: is no key"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_version_that_can_be_used_nothing_starts() {
    let world = World::start().await;
    world.aws.put_version(OBJECT, "colour: red");
    let mut function = world.function_with(WAKE, &FROM_S3);
    assert!(!function.ended().await.success());
    assert!(function.log().contains("the function cannot start") && function.log().contains("colour: is no key"), "{}", function.log());
}
