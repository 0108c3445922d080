//! The access log: one line for every request, and nothing in it that a caller may choose freely.

use crate::support::{HOOK_SECRET, Log, World, submission};
use axum::http::Request;
use serde_json::{Value, json};

/// The lines of the access log, without what all of them have.
fn lines(log: &Log) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let mut lines: Vec<_> = log.text().lines().map(read).filter(|line| line["target"] == "collie::access").collect();
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        assert_eq!((line.remove("level"), line.remove("message")), (Some(json!("INFO")), Some(json!("access"))));
        line.remove("target");
    }
    lines
}

fn subscriber(log: &Log) -> impl tracing::Subscriber + Send + Sync + use<> {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .without_time()
        .with_max_level(tracing::Level::INFO)
        .with_writer(log.clone())
        .finish()
}

#[tokio::test]
async fn every_request_is_one_line_with_who_what_by_which_rules_and_the_decision() {
    let (log, world) = (Log::default(), World::new());
    let _guard = tracing::subscriber::set_default(subscriber(&log));
    world.get("", "/v1/health").await;
    let item = world.submitted("deps", "bot/x").await.to_string();
    world.get("reader", &format!("/v1/work-items/{item}")).await;
    world.get("bob", &format!("/v1/work-items/{item}/explain")).await;
    world.get("alice", "/v1/work-items?project=group~app").await;
    world.submit("reader", &submission("bot/y")).await;
    world.get("fork", "/v1/me").await;
    world.get("outage", "/v1/me").await;
    world.post("deps", &format!("/v1/work-items/{item}/retry"), &json!({})).await;
    let hook = Request::post("/v1/hooks/gitlab/main").header("x-gitlab-token", HOOK_SECRET).body("{}".into()).unwrap();
    world.send(hook).await;
    let (deps, reader) = ("gitlab.example.com|deps", "gitlab.example.com|reader");
    let (deps_rules, reader_rules) = ("deps-rule, everyone", "reader-rule, everyone");
    let call = |path: &str| format!("{} /v1/work-items{}", if path == "/{id}/retry" { "POST" } else { "GET" }, path);
    let expected = json!([
        {"request": "token-1", "identity": "anonymous", "call": "GET /v1/health", "decision": "allowed", "status": 200},
        {"request": "token-2", "identity": deps, "rules": deps_rules, "call": "POST /v1/work-items", "item": item, "project": "group/app",
         "decision": "allowed", "status": 201},
        {"request": "token-3", "identity": reader, "rules": reader_rules, "call": call("/{id}"), "item": item, "decision": "allowed",
         "status": 200},
        {"request": "token-4", "identity": "local|bob", "call": call("/{id}/explain"), "item": item, "decision": "refused", "status": 404,
         "code": "not_found"},
        {"request": "token-5", "identity": "local|alice", "call": call(""), "project": "group/app", "decision": "allowed", "status": 200},
        {"request": "token-6", "identity": reader, "rules": reader_rules, "call": "POST /v1/work-items", "project": "group/app",
         "decision": "refused", "status": 403, "code": "forbidden"},
        {"request": "token-7", "identity": "gitlab.example.com|fork", "call": "GET /v1/me", "decision": "refused", "status": 403,
         "code": "no_rule"},
        {"request": "token-8", "identity": "anonymous", "call": "GET /v1/me", "decision": "failed", "status": 503, "code": "unavailable"},
        {"request": "token-9", "identity": deps, "rules": deps_rules, "call": call("/{id}/retry"), "item": item, "decision": "rejected",
         "status": 409, "code": "not_retryable"},
        {"request": "token-10", "identity": "hook|main", "call": "POST /v1/hooks/gitlab/{webhook_id}", "decision": "allowed", "status": 200},
    ]);
    assert_eq!(json!(lines(&log)), expected);
}

#[tokio::test]
async fn what_callers_choose_freely_is_not_in_it() {
    let (log, world) = (Log::default(), World::new());
    let _guard = tracing::subscriber::set_default(subscriber(&log));
    let mut unknown = submission("bot/canary");
    unknown["project"] = json!("canary/app");
    world.submit("alice", &unknown).await;
    world.get("alice", "/v1/work-items?project=canary&source_branch=canary").await;
    world.get("canary", "/v1/work-items/glpat-canary").await;
    world.get("alice", "/v1/canary?canary").await;
    world.get("alice", "/v1/work-items/%ff").await;
    world.get("alice", "/errors/canary").await;
    let shown: Vec<_> = lines(&log).iter().map(|line| format!("{} {}", line["call"].as_str().unwrap(), line["decision"])).collect();
    let expected = [
        "POST /v1/work-items \"refused\"",
        "GET /v1/work-items \"refused\"",
        "GET /v1/work-items/{id} \"refused\"",
        "GET (none) \"rejected\"",
        "GET /v1/work-items/{id} \"rejected\"",
        "GET /errors/{code} \"rejected\"",
    ];
    assert_eq!(shown, expected);
    assert!(!log.text().contains("canary"), "{}", log.text());
}
