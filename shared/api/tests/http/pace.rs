//! One identity may ask for so many changes in a minute; what others ask for, and reads, are not its business.

use crate::support::{PER_MINUTE, World};
use serde_json::json;

#[tokio::test]
async fn an_identity_that_asks_for_too_many_changes_is_told_when_to_come_back() {
    let world = World::new();
    let cancel = async |token: &str| world.post(token, "/v1/work-items/none/cancel", &json!({})).await;
    for _ in 0..PER_MINUTE {
        assert_eq!(cancel("alice").await.status, 404);
    }
    let refused = cancel("alice").await;
    assert_eq!((refused.refusal(), refused.header("retry-after")), ((429, "rate_limited".to_owned()), Some("1")));
    assert_eq!(world.get("alice", "/v1/work-items").await.status, 200);
    assert_eq!(cancel("bob").await.status, 404);
}
