//! What a life costs, counted by the adapters: calls to GitLab and DynamoDB write units (`spec` gates: 9 calls, 40 units).
//!
//! The snapshots are the published figures; a change of one is a decision.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::item::{Item, Phase};
use collie_engine::submit::{Outcome, Submission};
use collie_scenarios::World;
use collie_scenarios::world::submission;
use gitlab_sim::{DEMO_PROJECT_ID, Delivery};
use std::time::Duration;

const GATE_CALLS: u32 = 9;
const GATE_UNITS: u32 = 40;

fn is_green_pipeline(delivery: &Delivery) -> bool {
    let body = delivery.json();
    body["object_kind"] == "pipeline" && body["object_attributes"]["status"] == "success"
}

/// The usual change in one directory, as most changes are.
fn in_one_directory() -> Submission {
    let mut submission = submission("hello");
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

async fn bill(world: &World, item: &Item) -> String {
    let page = world.items().timeline(&item.id, None, 50).await.unwrap();
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
    let item = world.item(&item.id).await;
    assert_eq!(item.phase, Phase::Completed);
    assert!(world.meter().gitlab_calls() <= GATE_CALLS && world.meter().write_units() <= GATE_UNITS, "{}", bill(&world, &item).await);
    insta::assert_snapshot!(bill(&world, &item).await);
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
    let item = world.item(&item.id).await;
    assert_eq!(item.phase, Phase::Completed);
    insta::assert_snapshot!(bill(&world, &item).await);
}

#[tokio::test]
async fn a_life_with_every_hook_and_one_approval() {
    let world = World::on_dynamo().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.approvals_required = 1);
    let reviewer = gitlab_sim::Persona { user: "reviewer".into(), approves_after_ms: 5_000, title_contains: None };
    world.sim().add_persona(DEMO_PROJECT_ID, reviewer);
    let item = world.submit(&in_one_directory()).await.item;
    world.until_all_ended(Duration::from_secs(3600)).await;
    let item = world.item(&item.id).await;
    assert_eq!(item.phase, Phase::Completed);
    insta::assert_snapshot!(bill(&world, &item).await);
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
