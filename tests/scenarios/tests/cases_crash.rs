//! The longer stories, once for every effect and every way in which that effect can go wrong.

use collie_core::item::{BlockedReason, Phase, ResultKind};
use collie_core::mr::wanted::Wanted;
use collie_engine::submit::Submission;
use collie_scenarios::world::{CANARY, submission};
use collie_scenarios::{Effects, World, survives_crash_at_every_effect};
use gitlab_sim::MergeMethod;
use serde_json::json;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

async fn told(effects: Effects, submission: &Submission) -> (World, collie_core::id::ItemId) {
    let world = World::new(effects).await;
    let id = world.submit(submission).await.item.id;
    world.until_mr(&id).await;
    (world, id)
}

#[test]
fn conflict_rebuild_merge() {
    survives_crash_at_every_effect(|effects| async {
        let (world, id) = told(effects, &submission("hello")).await;
        world.sim().set_settings(gitlab_sim::DEMO_PROJECT_ID, |settings| settings.merge_method = MergeMethod::Ff);
        world.push_to_main("NEWS", "moved\n");
        world.expect_merged(&id).await;
        assert!(world.facts(&id).await.builds.len() >= 2);
    });
}

#[test]
fn empty_after_the_target_caught_up() {
    survives_crash_at_every_effect(|effects| async {
        let (world, id) = told(effects, &Submission { wanted: Wanted::default(), ..submission("hello") }).await;
        world.push_to_main("README.md", &format!("# App\n\nSays hello. {CANARY}\n"));
        world.push_to_main("greetings/hello", &format!("hello {CANARY}\n"));
        world.until_all_ended(6 * HOUR).await;
        assert_eq!(world.end_of(&id).await, (Phase::Completed, Some(ResultKind::NoChange), None));
        let notes = world.notes_with("already holds everything").len();
        let most = 1 + usize::from(world.effects().was_doubled("forge.add_note"));
        assert!(world.the_mr().state == "closed" && (1..=most).contains(&notes), "{notes} notes");
        world.finish().await;
    });
}

#[test]
fn foreign_commits_then_cleared() {
    survives_crash_at_every_effect(|effects| async {
        let (world, id) = told(effects, &submission("hello")).await;
        let ours = world.head();
        let theirs = world.push_on_top("src/lib.rs", "// mine\n");
        world.until_item(6 * HOUR, &id, |item| item.blocked.as_ref().is_some_and(|b| b.reason == BlockedReason::ForeignCommits)).await;
        assert_eq!(world.head(), theirs);
        world.reset_branch(&ours);
        world.expect_merged(&id).await;
        let notes = world.notes_with("collie:foreign:").len();
        let most = 1 + usize::from(world.effects().was_doubled("forge.add_note"));
        assert!((1..=most).contains(&notes), "{notes} notes");
    });
}

#[test]
fn retry_after_failure() {
    survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        let id = world.submit(&Submission { target_branch: "release".into(), ..submission("hello") }).await.item.id;
        world.until_all_ended(6 * HOUR).await;
        assert_eq!(world.end_of(&id).await, (Phase::Failed, None, Some("target_branch_missing".into())));
        world.reviewer("POST", "/repository/branches?branch=release&ref=main", &json!({}));
        world.retry(&id, false).await;
        world.expect_merged(&id).await;
    });
}

#[test]
fn amend_adopted() {
    survives_crash_at_every_effect(|effects| async {
        let (world, id) = told(effects, &submission("hello")).await;
        world.sim().advance_by(2_000);
        let amended = world.amend(&[]);
        world.expect_merged(&id).await;
        assert_eq!((world.the_mr().sha, world.facts(&id).await.builds.len()), (Some(amended), 1));
    });
}
