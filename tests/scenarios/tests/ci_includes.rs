//! Files that a CI definition includes are protected, through included files too; only GitLab knows them, so `execute` looks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::item::Phase;
use collie_engine::submit::Submission;
use collie_scenarios::world::{BRANCH, submission};
use collie_scenarios::{Effects, World};
use gitlab_sim::DEMO_PROJECT_ID;
use std::time::Duration;

const DEFINITION: &str = "include:\n  - local: /ci/build.yml\nstages: [test]\nunit: {stage: test, script: [true]}\n";
const BUILD: &str = "include: {local: 'ci/parts/*.yml'}\n";

async fn world_with_includes() -> World {
    let world = World::new(Effects::default()).await;
    let files = [(".gitlab-ci.yml", Some(DEFINITION)), ("ci/build.yml", Some(BUILD)), ("ci/other.yml", Some("x: 1\n"))];
    world.sim().push(DEMO_PROJECT_ID, "main", &files, "Split the CI definition", "root");
    world.sim().settle(60_000);
    world.sim().take_deliveries();
    world
}

fn creating(path: &str) -> Submission {
    let mut submission = submission("hello");
    submission.file_actions.truncate(2);
    submission.file_actions[1].file_path = path.into();
    submission
}

#[tokio::test]
async fn a_file_that_ci_includes_is_refused_before_anything_is_written() {
    for (path, by) in [("ci/parts/deploy.yml", "/ci/parts/*.yml"), ("CI/Parts/deploy.yml", "/ci/parts/*.yml")] {
        let world = world_with_includes().await;
        let item = world.submit(&creating(path)).await.item;
        world.until_all_ended(Duration::from_secs(3600)).await;
        let item = world.item(&item.id).await;
        let error = item.last_error.clone().unwrap();
        assert_eq!((item.phase, error.code.as_str()), (Phase::Failed, "policy"));
        assert!(error.message.contains(&format!("is protected by \"{by}\"")), "{}", error.message);
        assert_eq!(world.sim().branch_head(DEMO_PROJECT_ID, BRANCH), None);
        world.finish().await;
    }
}

#[tokio::test]
async fn a_yaml_file_that_ci_does_not_include_passes() {
    let world = world_with_includes().await;
    let item = world.submit(&creating("ci/another.yml")).await.item;
    world.until_all_ended(Duration::from_secs(3600)).await;
    assert_eq!(world.item(&item.id).await.phase, Phase::Completed);
    world.finish().await;
}
