//! What a life costs, counted by the adapters: calls to GitLab and DynamoDB write units.
//!
//! A life that is built once and merged stays within 9 calls and 40 units, whatever hooks and approvals come with it. A story in which
//! more happens may cost a fixed amount more for each thing that happens. The snapshots are the published figures; a change of one
//! is a decision.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::ci::RetryRules;
use collie_core::id::ItemId;
use collie_core::item::Phase;
use collie_engine::submit::{Outcome, Submission};
use collie_scenarios::World;
use collie_scenarios::world::submission;
use gitlab_sim::{DEMO_PROJECT_ID, Delivery, JobRule};
use serde_json::json;
use std::time::Duration;

/// Calls and units of a life that is built once and merged.
const GATES: (u32, u32) = (9, 40);
/// What each further event with work to do may add: a new submission, a failed job, a moved target.
const GATES_PER_EVENT: (u32, u32) = (8, 22);

fn is_green_pipeline(delivery: &Delivery) -> bool {
    let body = delivery.json();
    body["object_kind"] == "pipeline" && body["object_attributes"]["status"] == "success"
}

/// The usual change in one directory, as most changes are.
fn in_one_directory() -> Submission {
    in_one_directory_saying("hello")
}

fn in_one_directory_saying(greeting: &str) -> Submission {
    let mut submission = submission(greeting);
    submission.file_actions[1].file_path = "GREETING".into();
    submission
}

/// Runs whatever is rung for now.
async fn work_off(world: &World) {
    while let Some(id) = world.next_ring() {
        world.work(&id).await;
    }
}

/// Lets GitLab go on until it says that the pipeline is green, and hands over that one hook.
async fn green_pipeline(world: &World) {
    for _ in 0..1000 {
        if let Some(delivery) = world.sim().take_deliveries().into_iter().find(is_green_pipeline) {
            assert!(world.ingest_once(&delivery).await);
            return;
        }
        let next = world.sim().next_event_at().expect("the pipeline is under way");
        world.sim().advance_to(next);
    }
    panic!("no green pipeline");
}

/// The bill of a merged item to whose life this many further events belonged.
async fn bill_within_gates(world: &World, id: &ItemId, events: u32) -> String {
    assert_eq!(world.item(id).await.phase, Phase::Completed, "{}", world.picture().await);
    let bill = bill(world, id).await;
    assert!(world.meter().gitlab_calls() <= GATES.0 + events * GATES_PER_EVENT.0, "{bill}");
    assert!(world.meter().write_units() <= GATES.1 + events * GATES_PER_EVENT.1, "{bill}");
    bill
}

async fn bill(world: &World, id: &ItemId) -> String {
    let page = world.items().timeline(id, None, 50).await.unwrap();
    let mut text = String::new();
    for run in &page.entries {
        let steps: Vec<_> = run.steps.iter().map(|step| format!("{} ({} calls)", step.action, step.gitlab_calls)).collect();
        text += &format!("run: {} calls, {} units: {}\n", run.gitlab_calls, run.write_units, steps.join(", "));
    }
    text + &format!("life: {} calls, {} units", world.meter().gitlab_calls(), world.meter().write_units())
}

#[tokio::test]
async fn the_happy_path_takes_two_runs_and_stays_within_its_gates() {
    let world = World::on_dynamo().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.check_after_prepare = true);
    let item = world.submit(&in_one_directory()).await.item;
    work_off(&world).await;
    green_pipeline(&world).await;
    work_off(&world).await;
    insta::assert_snapshot!(bill_within_gates(&world, &item.id, 0).await);
    world.finish().await;
}

#[tokio::test]
async fn the_same_where_gitlab_checks_mergeability_only_when_asked() {
    let world = World::on_dynamo().await;
    let item = world.submit(&in_one_directory()).await.item;
    work_off(&world).await;
    green_pipeline(&world).await;
    world.lose_hooks();
    world.until_all_ended(Duration::from_secs(600)).await;
    insta::assert_snapshot!(bill_within_gates(&world, &item.id, 0).await);
}

#[tokio::test]
async fn a_life_with_every_hook_and_one_approval() {
    let world = World::on_dynamo().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.approvals_required = 1);
    let reviewer = gitlab_sim::Persona { user: "reviewer".into(), approves_after_ms: 5_000, title_contains: None };
    world.sim().add_persona(DEMO_PROJECT_ID, reviewer);
    let item = world.submit(&in_one_directory()).await.item;
    world.until_all_ended(Duration::from_secs(3600)).await;
    insta::assert_snapshot!(bill_within_gates(&world, &item.id, 0).await);
    world.finish().await;
}

#[tokio::test]
async fn a_life_whose_content_changes_while_its_merge_request_is_open() {
    let world = World::on_dynamo().await;
    let item = world.submit(&in_one_directory()).await.item;
    work_off(&world).await;
    world.submit(&Submission { title: "Another title".into(), ..in_one_directory_saying("hi") }).await;
    world.until_all_ended(Duration::from_secs(3600)).await;
    insta::assert_snapshot!(bill_within_gates(&world, &item.id, 1).await);
    world.finish().await;
}

#[tokio::test]
async fn a_life_in_which_a_job_loses_its_runner_once() {
    let world = World::on_dynamo().await;
    let rule = json!([{"name": "runner-gone", "match": {"failure_reason": "runner_system_failure"}, "delays": ["0s"]}]);
    world.retry_ci_jobs(RetryRules::parse(&rule).unwrap());
    let lost = JobRule { attempt: Some(1), ..JobRule::failed("unit-tests", "runner_system_failure") };
    world.sim().add_job_rule(DEMO_PROJECT_ID, lost);
    let item = world.submit(&in_one_directory()).await.item;
    world.until_all_ended(Duration::from_secs(3600)).await;
    insta::assert_snapshot!(bill_within_gates(&world, &item.id, 1).await);
    world.finish().await;
}

#[tokio::test]
async fn a_life_that_is_cancelled_while_its_merge_request_is_open() {
    let world = World::on_dynamo().await;
    let item = world.submit(&in_one_directory()).await.item;
    work_off(&world).await;
    world.cancel(&item.id).await;
    world.until_all_ended(Duration::from_secs(3600)).await;
    assert_eq!(world.item(&item.id).await.phase, Phase::Cancelled);
    assert!(world.meter().gitlab_calls() <= GATES.0 && world.meter().write_units() <= GATES.1, "{}", bill(&world, &item.id).await);
    insta::assert_snapshot!(bill(&world, &item.id).await);
    world.finish().await;
}

#[tokio::test]
async fn an_unchanged_resubmission_costs_nothing() {
    let world = World::on_dynamo().await;
    world.submit(&submission("hello")).await;
    work_off(&world).await;
    let before = (world.meter().gitlab_calls(), world.meter().write_units(), world.effects().log().len());
    let again = world.submit(&submission("hello")).await;
    assert_eq!(again.outcome, Outcome::Unchanged);
    assert_eq!((world.meter().gitlab_calls(), world.meter().write_units(), world.effects().log().len()), before);
    assert_eq!(world.next_ring(), None);
}
