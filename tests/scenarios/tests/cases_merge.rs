//! Field reports about merging: when it is tried, what a refusal means, and what one is told meanwhile.

use collie_core::id::Sha;
use collie_core::item::{BlockedReason, Phase, ResultKind};
use collie_core::mr::wanted::Wanted;
use collie_engine::submit::Submission;
use collie_scenarios::effects::When;
use collie_scenarios::people::PERSON;
use collie_scenarios::world::submission;
use collie_scenarios::{Effects, World};
use gitlab_sim::{DEMO_PROJECT_ID, Fault, FaultAction, JobOutcome, JobRule, MergeMethod, PipelineMode, Status};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const MERGE: &str = "/projects/:id/merge_requests/:merge_request_iid/merge";
const README: &str = "# App\n\nA small program.\n";

fn without_auto_merge() -> Submission {
    Submission { wanted: Wanted::default(), ..submission("hello") }
}

async fn told() -> (World, collie_core::id::ItemId) {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&submission("hello")).await.item.id;
    (world, id)
}

/// A conflict that the merge call finds is a reason, not a thing to try again; it goes when its cause goes.
#[tokio::test]
async fn mrg_02() {
    let (world, id) = told().await;
    let person = world.clone();
    let conflicting = Box::pin(async move {
        person.push_to_main("README.md", "# App\n\nRewritten.\n");
        person.sim().advance_by(600);
    });
    world.when("forge.merge", When::Before, conflicting);
    world.until_blocked(&id).await;
    world.pass(6 * HOUR).await;
    assert_eq!((world.merge_calls(), world.blocked(&id).await), (1, Some(BlockedReason::Conflict)));
    let explained = world.explain(&id).await;
    assert_eq!(explained.phase, Phase::Active);
    assert_eq!(
        explained.blocked.map(|b| b.detail).as_deref(),
        Some("\"main\" changed the same files; submit again on top of it, or with on_conflict overwrite")
    );
    assert!(world.blockers(&id).await.contains(&"conflict".to_owned()));
    let wait = explained.next_look_at.unwrap().as_millis() - world.sim().now_ms();
    assert!(wait <= 30 * 60 * 1000, "{wait}");
    world.push_to_main("README.md", README);
    world.expect_merged(&id).await;
    assert_eq!(world.merge_calls(), 2);
}

/// Nothing is merged while GitLab prepares and checks; a refusal that slips through is read again.
#[tokio::test]
async fn mrg_03() {
    let (world, id) = told().await;
    world.sim().set_timing(|timing| (timing.mr_preparation_ms, timing.mergeability_check_ms) = (40_000, 25_000));
    world.sim().add_fault(Fault::once(
        "PUT",
        MERGE,
        FaultAction::FailBefore { status: 422, body: Some(r#"{"message":"Branch cannot be merged"}"#.into()) },
    ));
    for _ in 0..2 {
        let gitlab = world.clone();
        world.when("forge.merge", When::Before, Box::pin(async move { assert_eq!(gitlab.the_mr().detailed_merge_status, "mergeable") }));
    }
    world.expect_merged(&id).await;
    assert_eq!(world.merge_calls(), 2);
}

/// Someone pushes between the look and the merge: the pinned commit is refused, the new one is not merged.
#[tokio::test]
async fn mrg_05() {
    let (world, id) = told().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.require_sha_on_merge = true);
    world.until_mr(&id).await;
    let evaluated = world.head();
    let person = world.clone();
    let pushes = Box::pin(async move {
        person.push_on_top("src/lib.rs", "// mine\n");
        person.sim().advance_by(600);
    });
    world.when("forge.merge", When::Before, pushes);
    world.until_blocked(&id).await;
    world.pass(3 * HOUR).await;
    assert_eq!(world.effects().merges(), [Sha::new(evaluated)]);
    assert_eq!((world.merge_calls(), world.blocked(&id).await), (1, Some(BlockedReason::ForeignCommits)));
    assert_eq!(world.the_mr().state, "opened");
    world.finish().await;
}

/// A project that wants a rebase gets one rebuild on the target's head, never a loop.
#[tokio::test]
async fn mrg_06_need_rebase() {
    let (world, id) = told().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.merge_method = MergeMethod::Ff);
    world.until_mr(&id).await;
    world.push_to_main("NEWS", "something else\n");
    world.expect_merged(&id).await;
    let builds: Vec<_> = world.facts(&id).await.builds.iter().map(|b| b.number).collect();
    assert_eq!((builds, world.commit_calls(), world.merge_calls()), (vec![1, 2], 2, 1));
}

/// A word that nobody knows is not ready, is named, and is looked at slowly.
#[tokio::test]
async fn mrg_06_unknown_word() {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&without_auto_merge()).await.item.id;
    world.pass(HOUR).await;
    assert_eq!(
        (world.the_mr().detailed_merge_status.as_str(), world.blockers(&id).await),
        ("mergeable", vec!["auto_merge_off".to_owned()])
    );
    world.gitlab_shows(1, |mr| mr["detailed_merge_status"] = json!("brand_new_word"));
    world.submit(&submission("hello")).await;
    let before = world.sim().journal().len();
    world.pass(3 * HOUR).await;
    let blockers = world.explain(&id).await.merge_blockers;
    let said: Vec<_> = blockers.iter().map(|b| (b.code.as_str(), b.detail.as_str())).collect();
    assert_eq!(said, [("brand_new_word", "GitLab says brand_new_word")]);
    assert_eq!((world.merge_calls(), world.item(&id).await.attempts), (0, 0));
    assert!(world.sim().journal().len() - before <= 30, "{}", world.picture().await);
    world.sim().clear_faults();
    world.expect_merged(&id).await;
}

/// A merge request that GitLab is merging at this moment is left alone and read again soon.
#[tokio::test]
async fn locked_while_it_is_being_merged() {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&without_auto_merge()).await.item.id;
    world.pass(HOUR).await;
    world.gitlab_shows(1, |mr| mr["state"] = json!("locked"));
    world.submit(&submission("hello")).await;
    world.pass(Duration::from_secs(20)).await;
    let writes = world.sim().journal().iter().filter(|call| call.write && call.path.contains("/merge_requests/1")).count();
    let soon = world.explain(&id).await.next_look_at.unwrap().as_millis() - world.sim().now_ms();
    assert!(soon <= 60_000, "{soon}");
    world.sim().clear_faults();
    world.expect_merged(&id).await;
    assert_eq!(writes, 1, "only the note was posted");
}

/// GitLab's own rules do not replace Collie's: without a green pipeline of the head nothing is merged.
#[tokio::test]
async fn mrg_07() {
    let (world, id) = told().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.only_allow_merge_if_pipeline_succeeds = false);
    world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule { outcome: JobOutcome::Hang, ..JobRule::success("unit-tests") });
    world.pass(2 * HOUR).await;
    assert_eq!((world.the_mr().detailed_merge_status.as_str(), world.merge_calls()), ("mergeable", 0));
    assert_eq!(world.blockers(&id).await, ["pipeline_running"]);
    let pipelines = world.sim().pipelines(DEMO_PROJECT_ID);
    let hanging = pipelines.iter().flat_map(|p| &p.jobs).find(|job| job.status == Status::Running).unwrap();
    assert!(world.sim().finish_job(DEMO_PROJECT_ID, hanging.id, JobOutcome::Success, None));
    world.expect_merged(&id).await;
}

/// A merge whose answer says something else happened all the same, and is found out by reading.
#[tokio::test]
async fn mrg_09() {
    for status in [504, 405, 404] {
        let (world, id) = told().await;
        world.sim().add_fault(Fault::once("PUT", MERGE, FaultAction::FailAfterApplying { status }));
        world.expect_merged(&id).await;
        let recorded = world.facts(&id).await.merge_commit.map(|sha| sha.as_str().to_owned());
        assert!(recorded.is_some(), "{status}");
        assert_eq!((world.merge_calls(), recorded), (1, world.the_mr().merge_commit_sha), "{status}");
    }
}

/// The check for an empty diff finds the change on the target because it was merged, which is a success.
#[tokio::test]
async fn mrg_11_merged_by_a_person() {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&without_auto_merge()).await.item.id;
    world.pass(Duration::from_secs(120)).await;
    world.lose_hooks();
    world.reviewer("PUT", "/merge_requests/1/merge", &json!({}));
    world.expect_merged(&id).await;
    assert_eq!(world.merge_calls(), 0);
    let timeline = world.timeline(&id).await;
    assert!(timeline.last().unwrap().starts_with("check_empty_diff: !1 is merged at "), "{timeline:#?}");
    assert_eq!(world.facts(&id).await.merge_commit.map(|sha| sha.as_str().to_owned()), world.the_mr().merge_commit_sha);
}

/// A person closes the merge request: the item is cancelled and nothing is reopened.
#[tokio::test]
async fn closed_by_a_person() {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&without_auto_merge()).await.item.id;
    world.until_mr(&id).await;
    world.reviewer("PUT", "/merge_requests/1", &json!({"state_event": "close"}));
    world.until_all_ended(HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Cancelled, Some(ResultKind::Closed), None));
    assert_eq!(world.timeline(&id).await.last().unwrap(), "reconcile_mr: !1 was closed by someone else");
    assert_eq!(world.the_mr().state, "closed");
    world.finish().await;
}

/// Closed while newer content waits: cancelled all the same, and the timeline says what was not carried out.
#[tokio::test]
async fn closed_while_newer_content_waits() {
    for late in [false, true] {
        let world = World::new(Effects::default()).await;
        let id = world.submit(&without_auto_merge()).await.item.id;
        world.pass(Duration::from_secs(120)).await;
        world.reviewer("PUT", "/merge_requests/1", &json!({"state_event": "close"}));
        if late {
            let caller = world.clone();
            world.when("forge.merge_request", When::After, Box::pin(async move { drop(caller.submit(&submission("hi")).await) }));
        } else {
            world.submit(&submission("hi")).await;
        }
        world.until_all_ended(HOUR).await;
        assert_eq!(world.end_of(&id).await, (Phase::Cancelled, Some(ResultKind::Closed), None));
        let timeline = world.timeline(&id).await;
        let told = timeline.iter().filter(|step| step.contains("the update submitted since was not carried out")).count();
        assert_eq!((told, world.commit_calls()), (1, 1), "{timeline:#?}");
        world.finish().await;
    }
}

/// Every unmet condition at once, whichever GitLab names first, and when the next look is.
#[tokio::test]
async fn explain_names_every_unmet_condition() {
    let world = World::new(Effects::default()).await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| {
        settings.approvals_required = 1;
        settings.only_allow_merge_if_all_discussions_are_resolved = true;
    });
    world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule::failed("unit-tests", "script_failure"));
    let wanted = Wanted { draft: true, auto_merge: true, ..Wanted::default() };
    let id = world.submit(&Submission { wanted, ..submission("hello") }).await.item.id;
    world.until_mr(&id).await;
    world.sim().open_discussion(DEMO_PROJECT_ID, 1, PERSON, "Why?").unwrap();
    world.pass(HOUR).await;
    let explained = world.explain(&id).await;
    let mut codes: Vec<_> = explained.merge_blockers.iter().map(|b| b.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["discussions_not_resolved", "draft", "not_approved", "pipeline_failed"]);
    let wait = explained.next_look_at.unwrap().as_millis() - world.sim().now_ms();
    assert!(wait > 0 && wait <= 30 * 60 * 1000, "{wait}");
    assert_eq!((explained.phase, world.merge_calls()), (Phase::Active, 0));
    world.finish().await;
}

/// Thirty on one target: each merge makes the others unchecked, and all are merged, without a storm of reads.
#[tokio::test]
async fn thirty_merge_requests_on_one_target() {
    let world = World::new(Effects::default()).await;
    for n in 0..30 {
        let mut one = submission(&format!("greeting-{n}"));
        one.source_branch = format!("bot/greeting-{n}");
        one.file_actions.remove(0);
        world.submit(&one).await;
    }
    world.until_all_ended(24 * HOUR).await;
    let states: Vec<_> = world.sim().merge_requests(DEMO_PROJECT_ID).into_iter().map(|mr| (mr.state, mr.iid)).collect();
    assert_eq!(states.iter().filter(|(state, _)| state == "merged").count(), 30);
    let journal = world.sim().journal();
    let merged: BTreeMap<u64, u64> = journal
        .iter()
        .filter(|call| call.status == 200 && call.template.ends_with("/merge"))
        .map(|call| (call.path.split('/').nth(6).unwrap().parse().unwrap(), call.request_id))
        .collect();
    let first = *merged.values().min().unwrap();
    for (iid, end) in &merged {
        let path = format!("/api/v4/projects/{DEMO_PROJECT_ID}/merge_requests/{iid}");
        let reads = journal.iter().filter(|c| c.method == "GET" && c.path == path && (first..*end).contains(&c.request_id)).count();
        let merges = merged.values().filter(|id| (first..*end).contains(id)).count();
        assert!(reads <= 3 * merges, "!{iid}: {reads} reads for {merges} merges");
    }
    world.finish().await;
}

/// A pipeline of the merged result counts for the target it ran on; for another, one new pipeline is started.
#[tokio::test]
async fn merged_results_on_a_target_that_moves() {
    let (world, id) = told().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.pipelines = PipelineMode::MergedResults);
    world.until_mr(&id).await;
    let running =
        |world: &World| world.sim().pipelines(DEMO_PROJECT_ID).iter().any(|p| p.merge_request == Some(1) && p.status == Status::Running);
    for (n, text) in ["one\n", "two\n"].into_iter().enumerate() {
        world.until(HOUR, || async { running(&world) }).await;
        world.push_to_main("NEWS", text);
        world.until(HOUR, || async { world.calls("POST", "/pipelines") == n + 1 }).await;
        assert_eq!(world.merge_calls(), 0);
    }
    world.expect_merged(&id).await;
    assert_eq!((world.calls("POST", "/pipelines"), world.merge_calls()), (2, 1));
    let last = world.sim().pipelines(DEMO_PROJECT_ID).into_iter().rfind(|p| p.merge_request == Some(1)).unwrap();
    assert_eq!((last.reference.as_str(), last.status), ("refs/merge-requests/1/merge", Status::Success));
}

/// Where the target stays, the pipeline that GitLab started is enough.
#[tokio::test]
async fn merged_results_on_a_target_that_stays() {
    let (world, id) = told().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.pipelines = PipelineMode::MergedResults);
    world.expect_merged(&id).await;
    assert_eq!((world.calls("POST", "/pipelines"), world.merge_calls()), (0, 1));
}

/// A merge train is not Collie's to drive where it is configured to merge directly: it says so and goes on when the merge request is
/// off it.
#[tokio::test]
async fn a_merge_train_blocks() {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&without_auto_merge()).await.item.id;
    world.pass(HOUR).await;
    world.gitlab_shows(1, |mr| mr["head_pipeline"]["ref"] = json!("refs/merge-requests/1/train"));
    world.submit(&submission("hello")).await;
    world.until_blocked(&id).await;
    let blocked = world.explain(&id).await.blocked.unwrap();
    assert_eq!(blocked.reason, BlockedReason::MergeTrainRequired);
    assert!(blocked.detail.contains("configure `merge: train` for it, or a person adds"), "{}", blocked.detail);
    assert_eq!(world.merge_calls(), 0);
    world.sim().clear_faults();
    world.expect_merged(&id).await;
}

/// Our user may not merge: blocked until GitLab says that it may.
#[tokio::test]
async fn may_not_merge() {
    let (world, id) = told().await;
    world.sim().add_fault(Fault {
        times: Some(2),
        ..Fault::always("PUT", MERGE, FaultAction::FailBefore { status: 401, body: Some(r#"{"message":"401 Unauthorized"}"#.into()) })
    });
    world.until_blocked(&id).await;
    assert_eq!(world.blocked(&id).await, Some(BlockedReason::Auth));
    world.expect_merged(&id).await;
    assert_eq!(world.merge_calls(), 3);
}
