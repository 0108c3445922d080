//! The real binary, on deliveries.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use gitlab_sim::DEMO_PROJECT_ID;
use lambda_support::{Answer, World, failed, message, queue_event, sample};
use serde_json::{Value, json};
use std::time::Duration;

const INGEST: &str = env!("CARGO_BIN_EXE_ingest");
const TIMEOUT: Duration = Duration::from_secs(30);
const BRANCH: &str = "bot/hooked";

fn pipeline(world: &World, id: u64) -> Value {
    json!({
        "object_kind": "pipeline",
        "object_attributes": {"id": id, "ref": BRANCH, "sha": "1149", "status": "success", "finished_at": "2026-01-31 18:06:44 UTC"},
        "project": {"id": DEMO_PROJECT_ID, "web_url": format!("{}/demo/app", world.gitlab())},
    })
}

fn notification(hook: &Value, attributes: &[(&str, &str)]) -> String {
    let attributes: serde_json::Map<_, _> =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), json!({"Type": "String", "Value": value}))).collect();
    json!({"Type": "Notification", "MessageId": "n", "Message": hook.to_string(), "MessageAttributes": attributes}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_reach_their_items_inbox_however_they_come() {
    let world = World::start().await;
    let id = world.submit(BRANCH).await;
    let _function = world.function(INGEST);
    let wrapped = notification(&pipeline(&world, 1), &[("host", world.host()), ("delivery_id", "d-1")]);
    let mut raw = message("m2", &pipeline(&world, 2).to_string());
    raw["messageAttributes"] =
        json!({"host": {"stringValue": world.host(), "dataType": "String"}, "delivery_id": {"stringValue": "d-2", "dataType": "String"}});
    let bare = message("m3", &pipeline(&world, 3).to_string());

    let answer = world.runtime.invoke(queue_event(vec![message("m1", &wrapped), raw, bare]), TIMEOUT).await;

    assert_eq!(answer, failed(&[]));
    assert_eq!(world.item(&id).await.inbox.len(), 3);
    assert_eq!(world.aws.take_rung(), vec![id.to_string(); 3]);
    let archived: Vec<_> =
        world.aws.objects().into_keys().filter(|key| key.starts_with(&format!("/content-bucket/deliveries/{id}/"))).collect();
    assert_eq!(archived.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_delivery_is_stored_once_and_rings_again() {
    let world = World::start().await;
    let id = world.submit(BRANCH).await;
    let _function = world.function(INGEST);
    for _ in 0..2 {
        let again = queue_event(vec![message("m1", &notification(&pipeline(&world, 1), &[("delivery_id", "d-1")]))]);
        assert_eq!(world.runtime.invoke(again, TIMEOUT).await, failed(&[]));
    }
    assert_eq!((world.item(&id).await.inbox.len(), world.aws.take_rung().len()), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_reported_alone_and_what_is_of_no_use_is_acknowledged() {
    let world = World::start().await;
    let id = world.submit(BRANCH).await;
    let function = world.function(INGEST);
    let unknown = json!({"object_kind": "wiki_page", "project": {"web_url": "https://elsewhere.example.com/a/b"}});
    let elsewhere = pipeline(&world, 8).to_string().replace(world.gitlab(), "https://elsewhere.example.com");
    let bodies = [
        notification(&pipeline(&world, 7), &[("host", world.host())]),
        "not json".to_owned(),
        json!({"Records": [{"eventName": "s3:TestEvent"}]}).to_string(),
        unknown.to_string(),
        notification(&json!({"object_kind": "pipeline"}), &[("host", world.host())]),
        elsewhere,
    ];
    let messages = bodies.iter().enumerate().map(|(n, body)| message(&format!("m{}", n + 1), body)).collect();

    let Answer::Response(answer) = world.runtime.invoke(queue_event(messages), TIMEOUT).await else { panic!("the batch is taken") };

    let mut reported: Vec<_> =
        answer["batchItemFailures"].as_array().unwrap().iter().map(|f| f["itemIdentifier"].as_str().unwrap()).collect();
    reported.sort_unstable();
    assert_eq!(reported, ["m2", "m5"]);
    assert_eq!(world.item(&id).await.inbox.len(), 1);
    assert!(function.log().contains("malformed_hook"));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_deliveries_of_an_unknown_kind_cost_nothing() {
    let world = World::start().await;
    let _function = world.function(INGEST);
    let unknown = |n: usize| message(&format!("m{n}"), &json!({"object_kind": "feature_flag", "n": n}).to_string());
    assert_eq!(world.runtime.invoke(queue_event((0..50).map(unknown).collect()), TIMEOUT).await, failed(&[]));
    assert!(world.aws.objects().is_empty() && world.aws.take_sent().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_events_are_understood() {
    let world = World::start().await;
    let _function = world.function(INGEST);
    for name in ["ingest-sns.json", "ingest-raw.json"] {
        assert_eq!(world.runtime.invoke(sample(name), TIMEOUT).await, failed(&[]), "{name}");
    }
}
