//! TOK-02: whatever GitLab echoes in its errors, no token and no file content is in rows, timelines, notes, audit or explanations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_scenarios::world::submission;
use collie_scenarios::{Effects, World};
use gitlab_sim::{DEMO_BOT_TOKEN, Fault, FaultAction};
use std::time::Duration;

const CALLS: [(&str, &str); 7] = [
    ("GET", "/repository/branches/main"),
    ("GET", "/repository/tree"),
    ("POST", "/repository/commits"),
    ("POST", "/merge_requests"),
    ("POST", "/notes"),
    ("GET", "/merge_requests/1"),
    ("PUT", "/merge_requests/1/merge"),
];
const STATUSES: [u16; 5] = [400, 403, 409, 422, 500];

#[tokio::test]
async fn no_echo_of_a_token_is_kept_anywhere() {
    for (method, path) in CALLS {
        for status in STATUSES {
            let world = World::new(Effects::default()).await;
            let body = serde_json::json!({"message": format!("PRIVATE-TOKEN {DEMO_BOT_TOKEN} is not good")}).to_string();
            world.sim().add_fault(Fault::once(method, path, FaultAction::FailBefore { status, body: Some(body) }));
            let id = world.submit(&submission("hello")).await.item.id;
            world.pass(Duration::from_secs(2 * 3600)).await;
            let (item, timeline) = (world.item(&id).await, world.items().timeline(&id, None, 50).await.unwrap());
            let told = format!("{item:?} {timeline:?} {:?}", world.explain(&id).await);
            assert!(!told.contains(DEMO_BOT_TOKEN), "{method} {path} {status}: {told}");
            world.finish().await;
        }
    }
}
