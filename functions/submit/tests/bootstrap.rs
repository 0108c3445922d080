//! The real binary, on calls of the HTTP API.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::id::ItemId;
use lambda_support::{Sent, World, sample};
use serde_json::{Value, json};
use std::time::Duration;

const SUBMIT: &str = env!("CARGO_BIN_EXE_submit");
const TIMEOUT: Duration = Duration::from_secs(29);

/// A sample with a good token.
fn authorised(world: &World, name: &str) -> Value {
    let mut event = sample(name);
    event["headers"]["authorization"] = json!(format!("Bearer {}", world.token()));
    event
}

/// Status, and the body as JSON.
async fn answer(world: &World, event: Value) -> (u64, Value) {
    let answer = world.runtime.invoke(event, TIMEOUT).await.response();
    let status = answer["statusCode"].as_u64().expect("a status");
    let body = answer["body"].as_str().expect("a body");
    (status, serde_json::from_str(body).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_stored_and_its_item_rung_for() {
    let world = World::start().await;
    let function = world.function(SUBMIT);

    let (status, body) = answer(&world, authorised(&world, "submit.json")).await;

    assert_eq!((status, body["outcome"].as_str()), (201, Some("created")), "{body}");
    let id = ItemId::new(body["work_item"]["id"].as_str().unwrap());
    assert_eq!(world.item(&id).await.branch.source_branch, "bot/greet");
    let rung = Sent { queue: "collie-wakes".into(), group: None, deduplication_id: None, body: json!({"item_id": id}), delay_seconds: 0 };
    assert_eq!(world.aws.take_sent(), [rung]);
    let content: Vec<_> =
        world.aws.objects().into_keys().filter(|key| key.starts_with(&format!("/content-bucket/content/{id}/"))).collect();
    assert_eq!(content.len(), 2);

    let (status, body) = answer(&world, authorised(&world, "submit-base64.json")).await;
    assert_eq!((status, body["outcome"].as_str()), (200, Some("unchanged")), "the same, encoded: {body}");
    world.assert_no_secret(&function.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admitted_request_is_rung_for_in_its_queues_line_once() {
    let world = World::start().await;
    let _function = world.function(SUBMIT);
    let mut event = sample("submit.json");
    let path = "/v1/queues/app-main/requests";
    event["headers"]["authorization"] = json!(format!("Bearer {}", world.admin_token()));
    (event["rawPath"], event["requestContext"]["http"]["path"]) = (json!(path), json!(path));
    event["body"] = json!(json!({"uri": "git@example.com/app@0af1"}).to_string());

    assert_eq!(answer(&world, event.clone()).await.0, 201);
    assert_eq!(answer(&world, event).await.0, 200, "the same uri is the same request");

    let sent = world.aws.take_sent();
    assert_eq!((sent.len(), sent[0].queue.as_str(), sent[0].group.as_deref()), (1, "collie-jobs.fifo", Some("app-main")));
    assert_eq!(sent[0].body, json!({"queue": "app-main", "request": 1}));
}

#[tokio::test(flavor = "multi_thread")]
/// WHK-13: a gateway may hand a body over in base64, broken base64, or none.
async fn bodies_are_decoded_first_and_broken_ones_refused() {
    let world = World::start().await;
    let _function = world.function(SUBMIT);
    let event = |encoded: Option<bool>, body: Value| {
        let mut event = authorised(&world, "submit.json");
        event["body"] = body;
        match encoded {
            Some(encoded) => event["isBase64Encoded"] = json!(encoded),
            None => drop(event.as_object_mut().unwrap().remove("isBase64Encoded")),
        }
        event
    };
    let text = sample("submit.json")["body"].clone();
    let cases = [
        (event(Some(true), json!("%%% not base64")), 400, "unreadable_body"),
        (event(Some(true), json!("eyJvYmplY3Rfa2luZCI6Im1lcmdlX3JlcXVlc3QifQ==")), 400, "invalid_request"),
        (event(Some(true), Value::Null), 400, "invalid_json"),
        (event(Some(false), Value::Null), 400, "invalid_json"),
        (event(None, json!("{")), 400, "invalid_json"),
    ];
    for (event, status, code) in cases {
        let shown = event["body"].clone();
        let (got, body) = answer(&world, event).await;
        assert_eq!((got, body["code"].as_str()), (status, Some(code)), "{shown}: {body}");
    }
    assert_eq!(answer(&world, event(None, text)).await.0, 201, "absent means not encoded");
}

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_token_and_all_else_does() {
    let world = World::start().await;
    let _function = world.function(SUBMIT);
    assert_eq!(answer(&world, sample("health.json")).await.0, 200);
    assert_eq!(answer(&world, sample("submit.json")).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_issuer_nobody_comes_in() {
    let world = World::start().await;
    let _function = world.function_with(SUBMIT, &[("COLLIE_ISSUER_DIR", "")]);
    assert_eq!(answer(&world, authorised(&world, "submit.json")).await.0, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_function_is_a_door_for_hooks_only_where_it_was_told_so() {
    let mut hook = sample("submit.json");
    (hook["rawPath"], hook["body"]) = (json!("/v1/hooks/gitlab/main"), json!(r#"{"object_kind":"wiki_page"}"#));
    hook["requestContext"]["http"]["path"] = json!("/v1/hooks/gitlab/main");
    hook["headers"]["x-gitlab-token"] = json!("canary-hook-secret");

    for (told, status) in [("false", 401), ("true", 200)] {
        let world = World::start().await;
        let _function = world.function_with(SUBMIT, &[("COLLIE_TAKES_HOOKS", told)]);
        assert_eq!(answer(&world, hook.clone()).await.0, status, "COLLIE_TAKES_HOOKS={told}");
    }
}
