//! Who is let in, and what every answer has.

use crate::support::World;
use axum::body::Body;
use axum::http::Request;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

/// Method and path of every call in the document.
fn calls(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(|(method, op)| (method.to_uppercase(), path.clone(), op.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

#[tokio::test]
async fn every_call_of_the_document_exists_and_asks_who_calls_unless_it_is_open() {
    let world = World::new();
    let calls = calls(&world.get("", "/v1/openapi.json").await.json());
    assert_eq!(calls.len(), 31);
    for (method, path, operation) in calls {
        let uri = path.replace("{id}", "1").replace("{queue}", "app-main").replace("{webhook_id}", "main").replace("{code}", "policy");
        let request = Request::builder().method(method.as_str()).uri(&uri).body(Body::empty()).unwrap();
        let answer = world.send(request).await;
        let open = operation["security"].is_null();
        assert_eq!(answer.status, if open { 200 } else { 401 }, "{method} {path}");
        assert_eq!(open, matches!(path.as_str(), "/v1/health" | "/v1/openapi.json" | "/errors/{code}"), "{path}");
        assert_eq!(answer.header("www-authenticate"), if open { None } else { Some("Bearer") }, "{path}");
    }
}

#[tokio::test]
async fn a_refused_token_is_a_problem_that_says_why() {
    let world = World::new();
    assert_json_snapshot!("no_token", world.send(Request::builder().uri("/v1/me").body(Body::empty()).unwrap()).await.shown());
    let details = [
        ("", "send a token as Authorization: Bearer …"),
        ("canary-token", "the token is not valid: its signature is not this issuer's"),
        ("stale", "the token has expired"),
    ];
    for (token, detail) in details {
        let answer = world.get(token, "/v1/me").await;
        assert_eq!((answer.refusal(), answer.json()["detail"].as_str()), ((401, "unauthenticated".into()), Some(detail)));
    }
    let outage = world.get("outage", "/v1/me").await;
    assert_eq!((outage.refusal(), outage.header("retry-after")), ((503, "unavailable".into()), Some("5")));
}

#[tokio::test]
async fn other_schemes_are_no_tokens_and_the_scheme_has_no_case() {
    let world = World::new();
    for (value, status) in [("Basic alice", 401), ("alice", 401), ("bearer alice", 200), ("BEARER alice", 200)] {
        let request = Request::builder().uri("/v1/me").header("authorization", value).body(Body::empty()).unwrap();
        assert_eq!(world.send(request).await.status, status, "{value}");
    }
}

#[tokio::test]
async fn everyone_learns_who_they_are_and_what_they_may() {
    let world = World::new();
    assert_json_snapshot!("me", world.get("alice", "/v1/me").await.shown());
    let root = world.get("root", "/v1/me").await.json();
    assert_eq!(root, json!({"identity": "local|root", "grants": [{"admin": true}]}));
}

#[tokio::test]
async fn health_is_open_and_every_answer_has_an_id() {
    let world = World::new();
    let health = world.get("", "/v1/health").await;
    assert_eq!((health.status, health.json()), (200, json!({"status": "ok"})));
    assert_eq!(health.header("x-request-id"), Some("token-1"));
    let refused = world.get("", "/v1/me").await;
    assert_eq!((refused.header("x-request-id"), refused.json()["request_id"].as_str()), (Some("token-2"), Some("token-2")));
}

#[tokio::test]
async fn unknown_routes_methods_and_paths_are_problems_too() {
    let world = World::new();
    assert_eq!(world.get("alice", "/v1/nothing").await.refusal(), (404, "route_not_found".into()));
    assert_eq!(world.get("alice", "/").await.refusal(), (404, "route_not_found".into()));
    assert_eq!(world.post("alice", "/v1/me", &json!({})).await.refusal(), (405, "method_not_allowed".into()));
    assert_eq!(world.get("alice", "/v1/work-items/%ff").await.refusal(), (400, "invalid_request".into()));
}

#[tokio::test]
async fn the_document_is_what_was_agreed() {
    assert_json_snapshot!("openapi", World::new().get("", "/v1/openapi.json").await.json());
}
