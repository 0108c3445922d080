//! Neither tokens nor the content of files are ever answered or logged (INV-12).

use crate::support::{HOOK_SECRET, Log, World, submission};
use axum::http::Request;
use collie_core::error::Failure;
use serde_json::json;

const CANARY: &str = "canary";

#[tokio::test]
async fn no_canary_is_answered_or_logged() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    // Of the whole process: what tests beside this one log holds no canary either.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let world = World::new();
    let mut answers = Vec::new();
    for actions in [
        json!([{"action": "create", "file_path": "a", "content": "canary ok"}]),
        json!([{"action": "delete", "file_path": "a", "content": "canary refused"}]),
        json!([{"action": "create", "file_path": "a", "content": "canary%", "encoding": "base64"}]),
        json!([{"action": "create", "file_path": "a", "content": "-----BEGIN RSA PRIVATE KEY-----\ncanary\n"}]),
        json!([{"action": "create", "file_path": "a", "content": ["canary"]}]),
        json!([{"action": "create", "file_path": "a", "content": "x", "encoding": "canary", "expect": "canary", "content_ref": "canary"}]),
        json!("canary"),
    ] {
        let mut body = submission("bot/x");
        body["file_actions"] = actions;
        answers.push(world.submit("alice", &body).await);
        answers.push(world.post("alice", "/v1/work-items/validate", &body).await);
    }
    answers.push(world.get("canary-token", "/v1/me").await);
    let hook = Request::post("/v1/hooks/gitlab/main").header("x-gitlab-token", HOOK_SECRET).body("canary".into()).unwrap();
    answers.push(world.send(hook).await);
    answers.push(world.send(Request::post("/v1/hooks/gitlab/main").header("x-gitlab-token", "canary").body("".into()).unwrap()).await);
    let json = Request::post("/v1/work-items").header("authorization", "Bearer alice").body("{\"content\": \"canary".into()).unwrap();
    answers.push(world.send(json).await);
    *world.drawer.failure.lock().unwrap() = Some(Failure::bug("stored nothing"));
    answers.push(world.submit("alice", &submission("bot/y")).await);
    assert_eq!(
        answers.iter().map(|a| a.status).collect::<Vec<_>>(),
        [201, 200, 422, 422, 422, 422, 422, 422, 400, 400, 400, 400, 400, 400, 401, 200, 401, 400, 500]
    );
    for answer in &answers {
        assert!(!answer.text.contains(CANARY), "{}", answer.text);
    }
    let log = log.text();
    assert!(log.contains("refused") && log.contains("stored nothing"), "{log}");
    assert!(!log.contains(CANARY), "{log}");
}
