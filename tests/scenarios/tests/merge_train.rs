//! Merge trains: joining with the verified head, waiting, being dropped, and a configuration that does not fit.

use collie_core::id::{ItemId, Sha};
use collie_core::item::{BlockedReason, Phase, ResultKind};
use collie_core::mr::wanted::Wanted;
use collie_engine::submit::Submission;
use collie_scenarios::effects::{Fault, When};
use collie_scenarios::world::submission;
use collie_scenarios::{Effects, World, survives_crash_at_every_effect};
use gitlab_sim::{DEMO_PROJECT_ID, JobRule, Status};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

async fn on_rails() -> (World, ItemId) {
    told_with(Effects::default()).await
}

async fn told_with(effects: Effects) -> (World, ItemId) {
    let world = World::new(effects).await;
    world.merge_by_train();
    let id = world.submit(&submission("hello")).await.item.id;
    (world, id)
}

fn joins(world: &World) -> usize {
    world.calls("POST", "/merge_trains/merge_requests/:merge_request_iid")
}

/// The pipelines of the first merge request's cars, oldest first.
fn train_pipelines(world: &World) -> Vec<Status> {
    let on_train = |p: &gitlab_sim::PipelineInfo| p.reference == "refs/merge-requests/1/train";
    world.sim().pipelines(DEMO_PROJECT_ID).iter().filter(|p| on_train(p)).map(|p| p.status).collect()
}

fn fail_on_the_train(world: &World) {
    let rule = JobRule { ref_contains: Some("/train".into()), ..JobRule::failed("unit-tests", "script_failure") };
    world.sim().add_job_rule(DEMO_PROJECT_ID, rule);
}

async fn is_aboard(world: &World, id: &ItemId) -> bool {
    world.blockers(id).await == ["in_merge_train"] && world.item(id).await.leased_until.is_none()
}

/// It joins with the head that its own pipeline validated, waits without reading over and over, and the train merges it.
#[tokio::test]
async fn it_joins_waits_and_is_merged_by_the_train() {
    let (world, id) = on_rails().await;
    world.until(HOUR, || is_aboard(&world, &id)).await;
    assert_eq!((joins(&world), world.the_mr().state.as_str()), (1, "opened"));
    assert_eq!(world.effects().merges(), [Sha::new(world.head())]);
    world.expect_merged(&id).await;
    assert_eq!((joins(&world), world.merge_calls()), (1, 0));
    assert_eq!(train_pipelines(&world), [Status::Success]);
    assert_eq!(world.the_mr().merge_user.as_deref(), Some("collie-bot"));
    let reads = world.calls("GET", "/merge_trains/merge_requests/:merge_request_iid");
    assert!(reads <= 3, "{reads} looks at the car");
}

/// A hook that is lost is made up for by the regular look.
#[tokio::test]
async fn without_hooks() {
    let (world, id) = on_rails().await;
    world.lose_hooks();
    world.expect_merged(&id).await;
    assert_eq!(joins(&world), 1);
}

/// The train drops it once: a pipeline of its own, then it joins again.
#[tokio::test]
async fn a_train_that_fails_once() {
    let (world, id) = on_rails().await;
    fail_on_the_train(&world);
    world.until(HOUR, || async { train_pipelines(&world) == [Status::Failed] }).await;
    world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule::success("unit-tests"));
    world.expect_merged(&id).await;
    assert_eq!((joins(&world), world.calls("POST", "/pipelines")), (2, 1));
    assert_eq!(train_pipelines(&world), [Status::Failed, Status::Success]);
}

/// The train drops it twice: it stays off, says so, and joins again when the target moves.
#[tokio::test]
async fn a_train_that_always_fails() {
    let (world, id) = on_rails().await;
    fail_on_the_train(&world);
    world.pass(6 * HOUR).await;
    assert_eq!((joins(&world), world.calls("POST", "/pipelines")), (2, 1));
    let explained = world.explain(&id).await;
    assert_eq!((explained.phase, explained.merge_blockers[0].code.as_str()), (Phase::Active, "merge_train_dropped"));
    assert_eq!(explained.merge_blockers.len(), 1);
    world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule::success("unit-tests"));
    world.push_to_main("NEWS", "one\n");
    world.expect_merged(&id).await;
    assert_eq!(joins(&world), 3);
}

/// New content takes it off the train and joins again; only the new head is merged.
#[tokio::test]
async fn an_update_on_the_train() {
    let (world, id) = on_rails().await;
    world.until(HOUR, || is_aboard(&world, &id)).await;
    world.submit(&submission("hi")).await;
    world.expect_merged(&id).await;
    assert_eq!(joins(&world), 2);
    assert!(world.main_has("greetings/hi", format!("hi {}\n", collie_scenarios::world::CANARY).as_bytes()));
    assert!(world.sim().file_at(DEMO_PROJECT_ID, "main", "greetings/hello").is_none());
}

/// A cancelled item leaves the train with its merge request.
#[tokio::test]
async fn a_cancel_on_the_train() {
    let (world, id) = on_rails().await;
    world.until(HOUR, || is_aboard(&world, &id)).await;
    world.cancel(&id).await;
    world.until_all_ended(HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Cancelled, Some(ResultKind::Cancelled), None));
    assert_eq!(world.the_mr().state, "closed");
    world.finish().await;
}

/// Who no longer wants the merge takes it off the train; who wants it again gets it on again.
#[tokio::test]
async fn auto_merge_is_withdrawn_on_the_train() {
    let (world, id) = on_rails().await;
    world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule { seconds: Some(900.0), ..JobRule::success("unit-tests") });
    world.until(2 * HOUR, || is_aboard(&world, &id)).await;
    world.submit(&Submission { wanted: Wanted::default(), ..submission("hello") }).await;
    world.pass(3 * HOUR).await;
    assert_eq!(world.the_mr().state, "opened");
    assert!(world.blockers(&id).await.contains(&"auto_merge_off".to_owned()));
    world.submit(&submission("hello")).await;
    world.expect_merged(&id).await;
    assert_eq!((joins(&world), world.merge_calls()), (2, 0));
}

/// Someone pushes between the look and the join: the pinned commit is refused.
#[tokio::test]
async fn a_push_before_the_join() {
    let (world, id) = on_rails().await;
    let person = world.clone();
    let pushes = Box::pin(async move {
        person.push_on_top("NOTES", "mine\n");
        person.sim().advance_by(600);
    });
    world.when("forge.join_merge_train", When::Before, pushes);
    world.until_blocked(&id).await;
    assert_eq!(world.blocked(&id).await, Some(BlockedReason::ForeignCommits));
    assert_eq!((train_pipelines(&world), world.the_mr().state.as_str()), (vec![], "opened"));
    world.finish().await;
}

/// The answer to the join is lost: GitLab is asked whether it is on the train, and no second car is made.
#[tokio::test]
async fn the_answer_to_the_join_is_lost() {
    let (world, id) = on_rails().await;
    world.effects().strike_next("forge.join_merge_train", Fault::TimedOutButApplied);
    world.expect_merged(&id).await;
    assert_eq!((joins(&world), train_pipelines(&world)), (1, vec![Status::Success]));
}

/// Merging directly where merges go by train: blocked, with what to do, and free again when the train is gone.
#[tokio::test]
async fn a_direct_merge_where_the_train_is_required() {
    let world = World::new(Effects::default()).await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.merge_trains = true);
    let id = world.submit(&submission("hello")).await.item.id;
    world.until_blocked(&id).await;
    let blocked = world.explain(&id).await.blocked.unwrap();
    assert_eq!(blocked.reason, BlockedReason::MergeTrainRequired);
    assert!(blocked.detail.contains("configure `merge: train`"), "{}", blocked.detail);
    world.pass(3 * HOUR).await;
    assert_eq!((world.merge_calls(), joins(&world)), (1, 0));
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.merge_trains = false);
    world.expect_merged(&id).await;
}

#[test]
#[allow(clippy::print_stdout, reason = "the counts are published")]
fn every_crash_around_a_train_that_fails_once() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let (world, id) = told_with(effects).await;
        fail_on_the_train(&world);
        world.until(6 * HOUR, || async { train_pipelines(&world) == [Status::Failed] }).await;
        world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule::success("unit-tests"));
        world.expect_merged(&id).await;
        assert_eq!(world.merge_calls(), 0);
        assert!(joins(&world) <= 4, "{} joins", joins(&world));
    });
    println!("a train that fails once: {} effects, {} faults survived", crashed.effects, crashed.runs);
}

#[test]
#[allow(clippy::print_stdout, reason = "the counts are published")]
fn every_crash_on_the_way_to_the_train_and_on_it() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let (world, id) = told_with(effects).await;
        world.expect_merged(&id).await;
        assert_eq!(world.merge_calls(), 0);
        assert!(joins(&world) <= 2, "{} joins", joins(&world));
    });
    println!("create to merge by train: {} effects, {} faults survived", crashed.effects, crashed.runs);
}
