//! The policy is another one by the time that an item is worked on: what passed has to pass again, before the push and before the merge.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::item::{Item, Phase};
use collie_core::mr::facts::Facts;
use collie_core::policy::{Config, Policy};
use collie_scenarios::world::{BRANCH, submission};
use collie_scenarios::{Effects, World};
use gitlab_sim::DEMO_PROJECT_ID;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn protecting(paths: &[&str]) -> Policy {
    let protect = paths.iter().map(|path| (*path).to_owned()).collect();
    Policy::new(Config { protect, ..Config::default() }).unwrap()
}

fn error_of(item: &Item) -> (Phase, &str, &str) {
    let error = item.last_error.as_ref().unwrap();
    (item.phase, error.code.as_str(), error.message.as_str())
}

/// A world whose item is at a merge request, with its head pushed and not merged.
async fn at_a_merge_request() -> (World, collie_core::id::ItemId) {
    let world = World::new(Effects::default()).await;
    let item = world.submit(&submission("hello")).await.item;
    world.until(HOUR, || async { !world.sim().merge_requests(DEMO_PROJECT_ID).is_empty() }).await;
    (world, item.id)
}

#[tokio::test]
async fn content_that_a_stricter_policy_refuses_is_not_pushed_and_every_finding_is_told() {
    let world = World::new(Effects::default()).await;
    let submitted = world.submit(&submission("hello")).await.item;
    world.configure_policy(protecting(&["README.md", "greetings/**"]));
    world.until_all_ended(HOUR).await;

    let item = world.item(&submitted.id).await;
    let message = "the content no longer passes the policy, which has changed since the submission: \
                   /file_actions/0/file_path: \"README.md\" is protected by \"README.md\"; \
                   /file_actions/1/file_path: \"greetings/hello\" is protected by \"greetings/**\"";
    assert_eq!(error_of(&item), (Phase::Failed, "policy", message));
    assert_eq!(item.policy_version, Policy::default().version());
    assert_eq!(world.sim().branch_head(DEMO_PROJECT_ID, BRANCH), None);
    world.finish().await;
}

#[tokio::test]
async fn a_commit_that_a_stricter_policy_refuses_is_not_merged() {
    let (world, id) = at_a_merge_request().await;
    world.configure_policy(protecting(&["greetings/**"]));
    world.until_all_ended(HOUR).await;

    let item = world.item(&id).await;
    let message = "the content no longer passes the policy, which has changed since the submission: \
                   /file_actions/1/file_path: \"greetings/hello\" is protected by \"greetings/**\"";
    assert_eq!(error_of(&item), (Phase::Failed, "policy", message));
    assert_eq!(world.sim().merge_requests(DEMO_PROJECT_ID)[0].state, "opened");
    world.finish().await;
}

#[tokio::test]
async fn content_that_the_new_policy_takes_as_well_is_merged_and_its_version_is_on_record() {
    let (world, id) = at_a_merge_request().await;
    let policy = protecting(&["deploy/**"]);
    let version = policy.version().to_owned();
    world.configure_policy(policy);
    world.until_all_ended(HOUR).await;

    let item = world.item(&id).await;
    assert_eq!(item.phase, Phase::Completed);
    let facts = Facts::of(&item).unwrap();
    assert_eq!(facts.passed.map(|passed| (passed.version, passed.content_hash)), Some((version, item.content_hash.clone())));
    assert_eq!(item.policy_version, Policy::default().version());
    world.finish().await;
}

#[tokio::test]
async fn an_unchanged_policy_leaves_no_record() {
    let (world, id) = at_a_merge_request().await;
    world.until_all_ended(HOUR).await;
    let item = world.item(&id).await;
    assert_eq!((item.phase, Facts::of(&item).unwrap().passed), (Phase::Completed, None));
    world.finish().await;
}
