//! Retry and cancel.

use crate::support::{NOW, World, submission};
use collie_core::id::ItemId;
use collie_core::item::{Blocked, BlockedReason, Phase, ResultKind};
use insta::assert_json_snapshot;
use serde_json::{Value, json};

async fn retry(world: &World, token: &str, id: &ItemId, body: &Value) -> crate::support::Answer {
    world.post(token, &format!("/v1/work-items/{id}/retry"), body).await
}

async fn cancel(world: &World, token: &str, id: &ItemId, body: &Value) -> crate::support::Answer {
    world.post(token, &format!("/v1/work-items/{id}/cancel"), body).await
}

#[tokio::test]
async fn failed_cancelled_and_blocked_items_come_back() {
    let blocked = Blocked { reason: BlockedReason::Conflict, since: NOW, detail: "x".into() };
    for phase in [Phase::Failed, Phase::Cancelled, Phase::Active] {
        let world = World::new();
        let id = world.submitted("alice", "bot/x").await;
        let blocked = (phase == Phase::Active).then(|| blocked.clone());
        world.hold(&id, |item| (item.phase, item.blocked) = (phase, blocked)).await;
        let answer = retry(&world, "alice", &id, &json!({})).await;
        let item = answer.json();
        assert_eq!((answer.status, item["phase"].as_str(), &item["blocked"]), (200, Some("active"), &Value::Null), "{phase:?}");
        assert_eq!(item["actionable"], true);
    }
}

#[tokio::test]
async fn a_body_may_be_left_out() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let request = |path: String| axum::http::Request::post(path).header("authorization", "Bearer alice").body("".into()).unwrap();
    assert_eq!(world.send(request(format!("/v1/work-items/{id}/retry"))).await.refusal(), (409, "not_retryable".into()));
    assert_eq!(world.send(request(format!("/v1/work-items/{id}/cancel"))).await.status, 202);
}

#[tokio::test]
async fn items_that_are_where_they_should_be_are_not_retried() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    assert_json_snapshot!("not_retryable", retry(&world, "alice", &id, &json!({})).await.shown());
    world.hold(&id, |item| (item.phase, item.result) = (Phase::Completed, Some(ResultKind::Merged))).await;
    let completed = retry(&world, "alice", &id, &json!({})).await;
    assert_eq!(
        (completed.refusal(), completed.json()["detail"].as_str()),
        ((409, "not_retryable".into()), Some("the work item is completed"))
    );
}

#[tokio::test]
async fn a_superseded_item_stays_as_it_is() {
    let world = World::new();
    let old = world.submitted("alice", "bot/x").await;
    world.hold(&old, |item| item.phase = Phase::Cancelled).await;
    let new = world.submit("alice", &submission("bot/x")).await.json();
    assert_eq!((new["outcome"].as_str(), new["work_item"]["generation"].as_u64()), (Some("created"), Some(2)));
    assert_eq!(retry(&world, "alice", &old, &json!({})).await.refusal(), (409, "superseded".into()));
}

#[tokio::test]
async fn overwriting_is_for_admins() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    world.hold(&id, |item| item.phase = Phase::Failed).await;
    assert_eq!(retry(&world, "alice", &id, &json!({"overwrite": true})).await.refusal(), (403, "forbidden".into()));
    assert_eq!(retry(&world, "root", &id, &json!({"overwrite": true})).await.status, 200);
}

#[tokio::test]
async fn an_active_item_is_cancelled_later_and_once() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let answer = cancel(&world, "alice", &id, &json!({"reason": "not needed", "close_mr": false})).await;
    assert_eq!((answer.status, answer.json()["phase"].as_str()), (202, Some("active")));
    assert_eq!(cancel(&world, "alice", &id, &json!({})).await.refusal(), (409, "cancel_pending".into()));
    assert_eq!(retry(&world, "alice", &id, &json!({})).await.refusal(), (409, "cancel_pending".into()));
}

#[tokio::test]
async fn a_failed_item_is_cancelled_at_once_and_an_ended_one_never() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    world.hold(&id, |item| item.phase = Phase::Failed).await;
    let answer = cancel(&world, "alice", &id, &json!({})).await;
    assert_eq!(
        (answer.status, answer.json()["phase"].as_str(), answer.json()["result"].as_str()),
        (200, Some("cancelled"), Some("cancelled"))
    );
    assert_eq!(cancel(&world, "alice", &id, &json!({})).await.refusal(), (409, "not_cancellable".into()));
    let merged = world.submitted("alice", "bot/y").await;
    world.hold(&merged, |item| item.phase = Phase::Completed).await;
    assert_eq!(cancel(&world, "alice", &merged, &json!({})).await.refusal(), (409, "not_cancellable".into()));
}

#[tokio::test]
async fn items_of_others_look_like_none_and_shapes_are_checked() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    assert_eq!(retry(&world, "bob", &id, &json!({})).await.refusal(), (404, "not_found".into()));
    assert_eq!(cancel(&world, "bob", &id, &json!({})).await.refusal(), (404, "not_found".into()));
    let wrong = retry(&world, "alice", &id, &json!({"overwrite": 1, "force": true})).await;
    assert_eq!(wrong.refusal(), (400, "invalid_request".into()));
    assert_eq!(wrong.errors(), [("/force".into(), "unknown_field".into()), ("/overwrite".into(), "wrong_type".into())]);
    let wrong = cancel(&world, "alice", &id, &json!({"reason": 1, "close": true})).await;
    assert_eq!(wrong.errors(), [("/close".into(), "unknown_field".into()), ("/reason".into(), "wrong_type".into())]);
}
