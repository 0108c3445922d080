//! From submission to merge, undisturbed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::item::{Phase, ResultKind};
use collie_scenarios::world::{BRANCH, submission};
use collie_scenarios::{Effects, World};
use gitlab_sim::DEMO_PROJECT_ID;
use std::time::Duration;

#[tokio::test]
async fn a_submission_becomes_a_merged_merge_request() {
    let world = World::new(Effects::default()).await;
    let item = world.submit(&submission("hello")).await.item;
    world.until_all_ended(Duration::from_secs(3600)).await;

    let item = world.item(&item.id).await;
    assert_eq!((item.phase, item.result), (Phase::Completed, Some(ResultKind::Merged)));
    let mrs = world.sim().merge_requests(DEMO_PROJECT_ID);
    assert_eq!(mrs.len(), 1);
    assert_eq!((mrs[0].state.as_str(), mrs[0].source_branch.as_str()), ("merged", BRANCH));
    assert_eq!(mrs[0].labels, ["greeting", "managed-by::collie"]);
    world.finish().await;
}
