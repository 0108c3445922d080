//! Submitting: what is stored, and everything that is refused.

use crate::support::{World, submission};
use collie_core::item::Phase;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

#[tokio::test]
async fn a_new_submission_is_created_and_rung_for() {
    let world = World::new();
    let answer = world.submit("alice", &submission("bot/x")).await;
    assert_json_snapshot!("created", answer.shown());
    assert_eq!(world.rings.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_same_again_is_unchanged_other_content_updates_and_a_failed_item_is_retried() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let same = world.submit("alice", &submission("bot/x")).await;
    assert_eq!((same.status, same.json()["outcome"].as_str()), (200, Some("unchanged")));
    let mut other = submission("bot/x");
    other["title"] = json!("Bump openssl to 3.5.1");
    let updated = world.submit("alice", &other).await.json();
    assert_eq!(
        (updated["outcome"].as_str(), updated["work_item"]["detail"]["title"].as_str()),
        (Some("updated"), Some("Bump openssl to 3.5.1"))
    );
    world.hold(&id, |item| item.phase = Phase::Failed).await;
    let retried = world.submit("alice", &other).await.json();
    assert_eq!((retried["outcome"].as_str(), retried["work_item"]["phase"].as_str()), (Some("retried"), Some("active")));
    assert_eq!(retried["work_item"]["id"], id.as_str());
}

#[tokio::test]
async fn validating_says_what_would_happen_and_writes_nothing() {
    let world = World::new();
    let path = "/v1/work-items/validate";
    assert_json_snapshot!("validated", world.post("alice", path, &submission("bot/x")).await.shown());
    assert!(world.rings.lock().unwrap().is_empty() && world.drawer.objects.lock().unwrap().is_empty());
    world.submitted("alice", "bot/x").await;
    let same = world.post("alice", path, &submission("bot/x")).await.json();
    assert_eq!(same, json!({"ok": true, "would": "unchanged", "calls": []}));
    let mut other = submission("bot/x");
    other["description"] = json!("because");
    let updated = world.post("alice", path, &other).await.json();
    assert_eq!(
        (updated["would"].as_str(), updated["calls"][0].as_str()),
        (Some("updated"), Some("GET /projects/4711/merge_requests/:iid"))
    );
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let world = World::new();
    let answer = world.submit("alice", &Value::Null).await;
    assert_eq!((answer.refusal(), answer.errors()), ((400, "invalid_request".into()), vec![(String::new(), "wrong_type".into())]));
    let request = axum::http::Request::post("/v1/work-items").header("authorization", "Bearer alice");
    let answer = world.send(request.body("{\"item_type\": \"mr\",".into()).unwrap()).await;
    assert_eq!(answer.refusal(), (400, "invalid_json".into()));
    assert_eq!(answer.json()["detail"], "EOF while parsing a value at line 1 column 19");
}

#[tokio::test]
async fn every_error_of_shape_is_named() {
    let mut body = submission("bot/x");
    body["lables"] = json!([]);
    body["draft"] = json!("no");
    body["file_actions"][0]["mode"] = json!("0644");
    body.as_object_mut().unwrap().remove("title");
    let world = World::new();
    for path in ["/v1/work-items", "/v1/work-items/validate"] {
        let answer = world.post("alice", path, &body).await;
        let mut shown = answer.shown();
        shown["headers"]["x-request-id"] = json!("[id]");
        shown["body"]["request_id"] = json!("[id]");
        assert_json_snapshot!("shape", shown);
    }
}

#[tokio::test]
async fn every_broken_rule_is_listed_together() {
    let mut body = submission("main");
    body["title"] = json!("");
    body["labels"] = json!(["a,b"]);
    body["file_actions"] = json!([
        {"action": "create", "file_path": "../x", "content": "canary-content"},
        {"action": "Create", "file_path": ".gitlab-ci.yml"},
        {"action": "update", "file_path": "a", "content": "%canary-content%", "encoding": "base64"},
        {"action": "create", "file_path": "logo.png", "content_ref": "sha256:00"},
        {"action": "update", "file_path": "b", "content": "x", "expect": "sha256:xyz"},
        {"action": "chmod", "file_path": "c"},
    ]);
    let world = World::new();
    let answer = world.submit("alice", &body).await;
    assert_json_snapshot!("rules", answer.shown());
    assert!(world.drawer.objects.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_rule_broken_while_reading_is_refused_even_where_nothing_else_is() {
    let mut body = submission("bot/x");
    body["file_actions"][0] = json!({"action": "create", "file_path": "a", "content": "%", "encoding": "base64"});
    let answer = World::new().submit("alice", &body).await;
    assert_eq!(answer.refusal(), (422, "policy".into()));
    assert_eq!(answer.errors(), [("/file_actions/0/content".into(), "invalid_base64".into())]);
}

#[tokio::test]
async fn an_unknown_project_is_told_to_admins_alone() {
    let (world, mut body) = (World::new(), submission("bot/x"));
    body["project"] = json!("group/nothing");
    let admin = world.submit("root", &body).await;
    assert_eq!((admin.refusal(), admin.errors()), ((422, "unknown_project".into()), vec![("/project".into(), "unknown_project".into())]));
    assert_eq!(world.submit("alice", &body).await.refusal(), (403, "forbidden".into()));
}

#[tokio::test]
async fn a_type_that_is_not_handled_is_refused() {
    let mut body = submission("bot/x");
    body["item_type"] = json!("issue");
    let answer = World::new().submit("alice", &body).await;
    assert_eq!((answer.refusal(), answer.errors()[0].0.as_str()), ((422, "unhandled_item_type".into()), "/item_type"));
}

#[tokio::test]
async fn a_branch_of_another_caller_and_overwriting_are_forbidden() {
    let world = World::new();
    world.submitted("alice", "bot/x").await;
    assert_eq!(world.submit("bob", &submission("bot/x")).await.refusal(), (403, "forbidden".into()));
    assert_eq!(world.submit("root", &submission("bot/x")).await.status, 200);
    let mut body = submission("bot/y");
    body["on_conflict"] = json!("overwrite");
    assert_eq!(world.submit("alice", &body).await.refusal(), (403, "forbidden".into()));
    assert_eq!(world.submit("root", &body).await.status, 201);
}

#[tokio::test]
async fn an_item_that_is_being_cancelled_takes_nothing_in() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    assert_eq!(world.post("alice", &format!("/v1/work-items/{id}/cancel"), &json!({})).await.status, 202);
    let mut body = submission("bot/x");
    body["title"] = json!("Other");
    assert_eq!(world.submit("alice", &body).await.refusal(), (409, "cancel_pending".into()));
    assert_eq!(world.post("alice", "/v1/work-items/validate", &body).await.refusal(), (409, "cancel_pending".into()));
}

#[tokio::test]
async fn a_body_has_six_mebibytes_at_most() {
    let world = World::new();
    let mut body = submission("bot/x");
    let rest = body.to_string().len() - "openssl 3.5.1\\n".len();
    body["file_actions"][0]["content"] = json!("x".repeat((6 << 20) - rest));
    assert_eq!(world.submit("alice", &body).await.status, 201);
    body["file_actions"][0]["content"] = json!("x".repeat((6 << 20) - rest + 1));
    let answer = world.submit("alice", &body).await;
    assert_eq!(
        (answer.refusal(), answer.json()["detail"].as_str()),
        ((413, "too_large".into()), Some("the body is longer than 6291456 bytes"))
    );
}
