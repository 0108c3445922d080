//! What callers see where Collie's own world fails them.

use crate::support::{NOW, World, submission};
use collie_core::error::{Class, Failure};
use insta::assert_json_snapshot;

#[tokio::test]
async fn the_class_of_a_failure_decides() {
    let cases = [
        (Class::Throttled { until: NOW }, 429, "throttled", Some("30")),
        (Class::Transient { answered: false }, 503, "unavailable", Some("5")),
        (Class::Transient { answered: true }, 503, "unavailable", Some("5")),
        (Class::Indeterminate, 503, "unavailable", Some("5")),
        (Class::Unauthorized, 503, "unavailable", Some("5")),
        (Class::Conflict, 503, "contended", Some("1")),
        (Class::Rejected, 500, "internal", None),
        (Class::Gone, 500, "internal", None),
        (Class::Bug, 500, "internal", None),
    ];
    for (class, status, code, retry_after) in cases {
        let world = World::new();
        *world.drawer.failure.lock().unwrap() = Some(Failure::new(class, "store", "the inside of Collie"));
        let answer = world.submit("alice", &submission("bot/x")).await;
        assert_eq!((answer.refusal(), answer.header("retry-after")), ((status, code.into()), retry_after), "{class:?}");
        assert!(!answer.text.contains("the inside of Collie"));
    }
}

#[tokio::test]
async fn a_bug_is_ours() {
    let world = World::new();
    *world.drawer.failure.lock().unwrap() = Some(Failure::bug("the inside of Collie"));
    assert_json_snapshot!("bug", world.submit("alice", &submission("bot/x")).await.shown());
}

#[tokio::test]
async fn a_panic_ends_one_request() {
    let world = World::new();
    let answer = world.get("panic", "/v1/me").await;
    assert_eq!((answer.refusal(), answer.header("x-request-id")), ((500, "internal".into()), Some("token-1")));
    assert_eq!(world.get("alice", "/v1/me").await.status, 200);
}
