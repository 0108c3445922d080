//! Refused callers: what they are told, and what the audit trail keeps of it.

use crate::support::{World, submission};
use axum::body::Body;
use axum::http::Request;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use std::io::Read as _;

/// The entries of the audit trail, by the object that holds them.
fn trail(world: &World) -> Vec<(String, Value)> {
    let objects = world.drawer.objects.lock().unwrap().clone();
    let audit = objects.into_iter().filter(|(key, _)| key.ends_with(".ndjson.gz"));
    let read = |(key, bytes): (String, Vec<u8>)| {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        (key, serde_json::from_str(&text).unwrap())
    };
    audit.map(read).collect()
}

#[tokio::test]
async fn jwt_10_a_good_token_that_no_rule_knows_is_told_who_it_is_and_which_claims_do_not_fit() {
    let world = World::new();
    assert_json_snapshot!("no_rule", world.get("fork", "/v1/me").await.shown());
    let stranger = world.get("stranger", "/v1/work-items").await;
    assert_eq!(
        (stranger.refusal(), stranger.json()["detail"].as_str()),
        ((403, "no_rule".into()), Some("no rule gives prod|stranger anything"))
    );
}

#[tokio::test]
async fn every_refusal_is_in_the_audit_trail_once_a_minute() {
    let world = World::new();
    for _ in 0..3 {
        world.get("canary-token", "/v1/me").await;
        world.get("other-canary", "/v1/me").await;
        world.get("fork", "/v1/me").await;
        world.submit("reader", &submission("bot/x")).await;
    }
    world.get("stale", "/v1/work-items/canary-id").await;
    let trail = trail(&world);
    assert!(trail.iter().all(|(key, _)| key.starts_with("2026/01/31/18/04/auth-")), "{trail:?}");
    let mut shown: Vec<_> = trail.iter().map(|(_, entry)| entry.clone()).collect();
    shown.sort_by_key(|entry| entry["actor"].to_string() + &entry["trigger"].to_string());
    assert_json_snapshot!("trail", shown);
    assert!(!json!(shown).to_string().contains("canary"));
}

#[tokio::test]
async fn hooks_with_a_wrong_secret_are_in_the_trail_and_answers_of_other_kinds_are_not() {
    let world = World::new();
    let hook = Request::post("/v1/hooks/gitlab/main").header("x-gitlab-token", "canary").body(Body::from("{}")).unwrap();
    assert_eq!(world.send(hook).await.status, 401);
    assert_eq!(world.get("alice", "/v1/work-items/none").await.status, 404);
    assert_eq!(world.get("outage", "/v1/me").await.status, 503);
    let calls: Vec<_> = trail(&world).into_iter().map(|(_, entry)| entry["trigger"]["action"].clone()).collect();
    assert_eq!(calls, ["POST /v1/hooks/gitlab/{webhook_id}"]);
}

#[tokio::test]
async fn an_item_that_a_caller_may_not_see_looks_like_none_and_the_trail_knows_better() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let (hidden, none) = (format!("/v1/work-items/{id}"), "/v1/work-items/00000000-0000-7000-8000-000000000099");
    let (mut of_hidden, mut of_none) = (world.get("bob", &hidden).await.json(), world.get("bob", none).await.json());
    assert_ne!(of_hidden["request_id"].take(), of_none["request_id"].take());
    assert_eq!((&of_hidden, &of_hidden["code"]), (&of_none, &json!("not_found")));
    let cancel = world.post("bob", &format!("{hidden}/cancel"), &json!({})).await;
    assert_eq!(cancel.refusal(), (404, "not_found".into()));
    let mut entries: Vec<_> = trail(&world).into_iter().map(|(_, entry)| (entry["actor"].clone(), entry["trigger"].clone())).collect();
    entries.retain(|(actor, _)| actor == "local|bob");
    entries.sort_by_key(|(_, trigger)| trigger.to_string());
    let entry = |call: &str| {
        let why = "it is there, and this caller may not see it";
        (json!("local|bob"), json!({"source": "api", "action": call, "reason": why, "error": "not_found"}))
    };
    assert_eq!(entries, [entry("GET /v1/work-items/{id}"), entry("POST /v1/work-items/{id}/cancel")]);
}

#[tokio::test]
async fn a_trail_that_cannot_be_written_to_changes_no_answer() {
    let world = World::new();
    *world.drawer.failure.lock().unwrap() = Some(collie_core::error::Failure::bug("stored nothing"));
    assert_eq!(world.get("stale", "/v1/me").await.status, 401);
}

async fn me(world: &World, headers: &[(&str, &str)]) -> (u16, Value) {
    let request = headers.iter().fold(Request::get("/v1/me"), |request, (name, value)| request.header(*name, *value));
    let answer = world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    (answer.status, answer.json())
}

#[tokio::test]
async fn behind_an_oauth_proxy_the_caller_gets_the_token_that_the_proxy_brought() {
    let world = World::behind_proxy();
    let (status, body) = me(&world, &[("x-forwarded-access-token", "root"), ("x-forwarded-user", "mallory")]).await;
    assert_eq!((status, body), (200, json!({"identity": "local|root", "grants": [{"admin": true}], "token": "root"})));
    assert_eq!(me(&world, &[("authorization", "Bearer root")]).await.0, 401, "the proxy takes that header for its own");
    assert_eq!(me(&world, &[("x-forwarded-user", "root")]).await.0, 401, "a user's name is no token");
    assert_eq!(me(&world, &[("x-forwarded-access-token", "canary-token")]).await.0, 401);
    assert_eq!(world.get("root", "/v1/work-items").await.status, 200, "all other routes go past the proxy");
    let forwarded = Request::get("/v1/work-items").header("x-forwarded-access-token", "root").body(Body::empty()).unwrap();
    assert_eq!(world.send(forwarded).await.status, 401, "only the protected route takes the header");
}

#[tokio::test]
async fn without_an_oauth_proxy_its_headers_mean_nothing() {
    let world = World::new();
    assert_eq!(me(&world, &[("x-forwarded-access-token", "root")]).await.0, 401);
    let (status, body) = me(&world, &[("authorization", "Bearer alice"), ("x-forwarded-access-token", "root")]).await;
    assert_eq!((status, &body["identity"], &body["token"]), (200, &json!("local|alice"), &Value::Null));
}

#[tokio::test]
async fn uploading_is_for_those_who_may_submit() {
    let body = json!({"sha256": "0".repeat(64), "size": 1});
    let world = World::new();
    assert_eq!(world.post("reader", "/v1/blobs", &body).await.refusal(), (403, "forbidden".into()));
    assert_eq!(world.post("deps", "/v1/blobs", &body).await.status, 200);
}
