//! What people do to Collie's branch and its target, and what becomes of the item.

use collie_core::item::{BlockedReason, Phase, ResultKind};
use collie_core::mr::wanted::{OnConflict, Wanted};
use collie_engine::submit::Submission;
use collie_scenarios::effects::When;
use collie_scenarios::people::PERSON;
use collie_scenarios::world::{BRANCH, CANARY, submission};
use collie_scenarios::{Effects, World};
use gitlab_sim::{AccessLevel, DEMO_PROJECT_ID, MergeMethod, ProtectedBranch};
use serde_json::json;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

async fn told() -> (World, collie_core::id::ItemId) {
    told_of(&submission("hello")).await
}

/// A submission whose merge request was just opened; no hook has arrived yet.
async fn told_of(submission: &Submission) -> (World, collie_core::id::ItemId) {
    let world = World::new(Effects::default()).await;
    let id = world.submit(submission).await.item.id;
    world.until_mr(&id).await;
    (world, id)
}

fn readme(greeting: &str) -> String {
    format!("# App\n\nSays {greeting}. {CANARY}\n")
}

/// A person pushes on top: the item stops with one note and never overwrites; when the commit is gone it goes on.
#[tokio::test]
async fn foreign_commits_and_their_removal() {
    let (world, id) = told().await;
    let ours = world.head();
    let theirs = world.push_on_top("README.md", "# App\n\nMine.\n");
    world.until_blocked(&id).await;
    world.pass(5 * HOUR).await;
    assert_eq!((world.blocked(&id).await, world.head()), (Some(BlockedReason::ForeignCommits), theirs.clone()));
    let detail = world.explain(&id).await.blocked.unwrap().detail;
    assert!(detail.starts_with(&format!("{} on \"{BRANCH}\" is not Collie's: ", &theirs[..8])), "{detail}");
    assert_eq!((world.notes_with("collie:foreign:").len(), world.commit_calls(), world.merge_calls()), (1, 1, 0));
    assert_eq!(world.notes_with("collie:dashboard:")[0].body.matches("blocked: `foreign_commits`").count(), 1);
    world.reset_branch(&ours);
    world.expect_merged(&id).await;
    assert_eq!((world.commit_calls(), world.notes_with("collie:foreign:").len()), (1, 1));
}

/// New content does not clear the block, and is built when the commits of others are gone.
#[tokio::test]
async fn new_content_does_not_clear_foreign_commits() {
    let (world, id) = told().await;
    let ours = world.head();
    world.push_on_top("src/lib.rs", "// mine\n");
    world.until_blocked(&id).await;
    world.submit(&submission("hi")).await;
    world.pass(3 * HOUR).await;
    assert_eq!((world.blocked(&id).await, world.commit_calls()), (Some(BlockedReason::ForeignCommits), 1));
    world.reset_branch(&ours);
    world.expect_merged(&id).await;
    assert!(world.main_has("README.md", readme("hi").as_bytes()));
}

/// A suggestion that someone applies is their commit.
#[tokio::test]
async fn a_suggestion_applied() {
    let (world, id) = told().await;
    world.sim().push(
        DEMO_PROJECT_ID,
        BRANCH,
        &[("README.md", Some("# App\n\nSays hello!\n"))],
        "Apply 1 suggestion(s) to 1 file(s)",
        PERSON,
    );
    world.until_blocked(&id).await;
    assert_eq!(world.blocked(&id).await, Some(BlockedReason::ForeignCommits));
    world.finish().await;
}

/// Somebody amends Collie's commit, keeps its trailer and changes the tree.
async fn amended_with_another_tree(effects: Effects, trusting: bool) {
    let world = World::new(effects).await;
    let id = world.submit(&submission("hello")).await.item.id;
    world.until_mr(&id).await;
    if trusting {
        world.effects().trust_trailers();
    }
    let amended = world.amend(&[("README.md", Some("# App\n\nSomething nobody inspected.\n"))]);
    world.pass(6 * HOUR).await;
    assert_eq!((world.blocked(&id).await, world.merge_calls(), world.head()), (Some(BlockedReason::ForeignCommits), 0, amended));
    assert_eq!(world.notes_with("collie:foreign:").len(), 1);
    world.finish().await;
}

/// The trailer claims, the tree proves: a tree that nobody inspected is never adopted.
#[tokio::test]
async fn an_amend_with_another_tree_is_never_adopted() {
    amended_with_another_tree(Effects::default(), false).await;
}

/// The wrong variant, by the trailer alone, is found out by that very story.
#[test]
fn adopting_by_the_trailer_alone_is_found_out() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = std::panic::AssertUnwindSafe(|| runtime.block_on(amended_with_another_tree(Effects::default(), true)));
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found_out = std::panic::catch_unwind(told).is_err();
    std::panic::set_hook(quiet);
    assert!(found_out, "the story holds for a forge that proves nothing");
}

/// An amend that leaves the tree as it was is adopted.
#[tokio::test]
async fn an_amend_with_the_same_tree_is_adopted() {
    let (world, id) = told().await;
    let ours = world.head();
    world.sim().advance_by(2_000);
    let amended = world.amend(&[]);
    assert_ne!(amended, ours);
    world.expect_merged(&id).await;
    assert_eq!((world.commit_calls(), world.effects().merges()[0].as_str()), (1, amended.as_str()));
}

/// GitLab's Rebase button: the same change on the target's head is adopted.
#[tokio::test]
async fn the_rebase_button() {
    let (world, id) = told().await;
    let target = world.push_to_main("NEWS", "moved\n");
    world.reviewer("PUT", "/merge_requests/1/rebase", &json!({}));
    world.expect_merged(&id).await;
    let facts = world.facts(&id).await;
    let build = facts.latest().unwrap();
    assert_eq!((build.number, build.start_sha.as_str(), world.commit_calls()), (1, target.as_str(), 1));
    assert_eq!(world.effects().merges(), [build.sha.clone().unwrap()]);
}

/// A person pushes between Collie's look and its forced push, which replaces the commit; the item stops.
async fn overwritten(hooks: bool) -> (World, collie_core::id::ItemId, String) {
    let (world, id) = told().await;
    world.pass(Duration::from_secs(8)).await;
    let (person, lost) = (world.clone(), std::sync::Arc::new(tokio::sync::Mutex::new(String::new())));
    let slot = lost.clone();
    let pushes = Box::pin(async move { *slot.lock().await = person.push_on_top("src/lib.rs", "// mine\n") });
    world.when("forge.create_commit", When::Before, pushes);
    world.submit(&submission("hi")).await;
    if !hooks {
        world.lose_hooks();
    }
    world.until_blocked(&id).await;
    let lost = lost.lock().await.clone();
    (world, id, lost)
}

/// The note names what to restore, also where GitLab's hooks are lost: its project events tell as well.
#[tokio::test]
async fn an_overwritten_push() {
    for hooks in [true, false] {
        let (world, id, lost) = overwritten(hooks).await;
        world.pass(3 * HOUR).await;
        let explained = world.explain(&id).await.blocked.unwrap();
        assert_eq!(explained.reason, BlockedReason::ForeignCommits);
        assert_eq!(explained.detail, format!("a push to {BRANCH:?} replaced {lost}; restore it, or retry to go on without it"));
        let notes = world.notes_with(&lost);
        assert_eq!((notes.len(), world.merge_calls(), world.commit_calls()), (1, 0, 2), "hooks: {hooks}");
        assert!(notes[0].body.contains(&format!("its push replaced `{lost}`")), "{}", notes[0].body);
        world.retry(&id, false).await;
        world.expect_merged(&id).await;
        assert!(world.main_has("README.md", readme("hi").as_bytes()));
    }
}

/// The person restores the commit: it is foreign as any other, and its removal lets the item go on.
#[tokio::test]
async fn an_overwritten_push_restored() {
    let (world, id, _) = overwritten(true).await;
    let (ours, lost) = (world.head(), world.facts(&id).await.lost.unwrap().sha);
    world.reset_branch(lost.as_str());
    world.pass(HOUR).await;
    assert_eq!(world.blocked(&id).await, Some(BlockedReason::ForeignCommits));
    world.reset_branch(&ours);
    world.expect_merged(&id).await;
    assert_eq!(world.notes_with("collie:foreign:").len(), 1);
}

/// The target changed beside our files: one rebuild on its head.
#[tokio::test]
async fn a_conflict_with_untouched_files_is_rebuilt() {
    let (world, id) = told().await;
    world.push_to_main("greetings", "a file where ours needs a directory\n");
    world.sim().push(DEMO_PROJECT_ID, "main", &[("greetings", None)], "No, not that", "reviewer");
    world.gitlab_shows(1, |mr| (mr["has_conflicts"], mr["detailed_merge_status"]) = (json!(true), json!("conflict")));
    world.until_item(HOUR, &id, |item| collie_core::mr::facts::Facts::of(item).unwrap().builds.len() == 2).await;
    world.sim().clear_faults();
    world.expect_merged(&id).await;
    assert_eq!(world.commit_calls(), 2);
}

/// A conflict that GitLab goes on naming: three rebuilds for one head of the target, then blocked; a new head starts anew.
#[tokio::test]
async fn three_rebuilds_for_one_head_of_the_target() {
    let (world, id) = told().await;
    for round in 2..=4 {
        world.gitlab_shows(1, |mr| {
            (mr["has_conflicts"], mr["detailed_merge_status"], mr["sha"]) = (json!(true), json!("conflict"), json!(world.head()))
        });
        world.until_item(3 * HOUR, &id, |item| collie_core::mr::facts::Facts::of(item).unwrap().builds.len() == round).await;
        world.sim().clear_faults();
    }
    world.gitlab_shows(1, |mr| {
        (mr["has_conflicts"], mr["detailed_merge_status"], mr["sha"]) = (json!(true), json!("conflict"), json!(world.head()))
    });
    world.until_blocked(&id).await;
    assert_eq!((world.blocked(&id).await, world.commit_calls()), (Some(BlockedReason::Conflict), 4));
    world.push_to_main("NEWS", "moved\n");
    world.pass(HOUR).await;
    assert_eq!(world.commit_calls(), 5);
    world.sim().clear_faults();
    world.expect_merged(&id).await;
}

/// The target changed our files: blocked, until someone decides; with `overwrite` the item's content wins.
#[tokio::test]
async fn a_conflict_with_touched_files() {
    let (world, id) = told().await;
    world.push_to_main("README.md", "# App\n\nRewritten.\n");
    world.until_blocked(&id).await;
    world.pass(2 * HOUR).await;
    assert_eq!((world.blocked(&id).await, world.commit_calls()), (Some(BlockedReason::Conflict), 1));
    let mut decided = submission("hello");
    decided.wanted.on_conflict = OnConflict::Overwrite;
    world.submit(&decided).await;
    world.expect_merged(&id).await;
    assert!(world.main_has("README.md", readme("hello").as_bytes()));
    assert_eq!(world.commit_calls(), 2);
}

/// Other content clears a conflict block, soon.
#[tokio::test]
async fn new_content_answers_a_conflict() {
    let (world, id) = told().await;
    world.push_to_main("README.md", "# App\n\nRewritten.\n");
    world.until_blocked(&id).await;
    world.submit(&submission("hi")).await;
    world.until_item(Duration::from_secs(60), &id, |item| item.blocked.is_none()).await;
    world.expect_merged(&id).await;
    assert!(world.main_has("README.md", readme("hi").as_bytes()));
}

/// With `on_conflict: overwrite` from the start nobody is asked.
#[tokio::test]
async fn a_conflict_with_touched_files_and_overwrite() {
    let wanted = Wanted { auto_merge: true, on_conflict: OnConflict::Overwrite, ..Wanted::default() };
    let (world, id) = told_of(&Submission { wanted, ..submission("hello") }).await;
    world.push_to_main("README.md", "# App\n\nRewritten.\n");
    world.expect_merged(&id).await;
    assert!(world.main_has("README.md", readme("hello").as_bytes()));
    assert_eq!((world.commit_calls(), world.item(&id).await.blocked), (2, None));
}

/// A project that merges by fast-forward, whose target moves twice.
#[tokio::test]
async fn a_project_that_fast_forwards() {
    let (world, id) = told().await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.merge_method = MergeMethod::Ff);
    world.push_to_main("NEWS", "one\n");
    world.pass(Duration::from_secs(40)).await;
    let target = world.push_to_main("NEWS", "two\n");
    world.expect_merged(&id).await;
    let merged = world.sim().commits(DEMO_PROJECT_ID, "main").remove(0);
    assert_eq!((merged.parents, merged.sha), (vec![target], world.effects().merges().pop().unwrap().as_str().to_owned()));
}

/// Nothing to change, found before anything was pushed.
#[tokio::test]
async fn empty_before_any_push() {
    let world = World::new(Effects::default()).await;
    world.push_to_main("README.md", &readme("hello"));
    world.push_to_main("greetings/hello", &format!("hello {CANARY}\n"));
    let id = world.submit(&submission("hello")).await.item.id;
    world.until_all_ended(HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Completed, Some(ResultKind::NoChange), None));
    assert_eq!((world.commit_calls(), world.sim().branch_head(DEMO_PROJECT_ID, BRANCH)), (0, None));
    world.finish().await;
}

/// The target caught up by itself: the merge request is closed with one note.
#[tokio::test]
async fn empty_after_the_target_caught_up() {
    let (world, id) = told_of(&Submission { wanted: Wanted::default(), ..submission("hello") }).await;
    world.push_to_main("README.md", &readme("hello"));
    world.push_to_main("greetings/hello", &format!("hello {CANARY}\n"));
    world.until_all_ended(2 * HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Completed, Some(ResultKind::NoChange), None));
    assert_eq!((world.the_mr().state.as_str(), world.notes_with("already holds everything").len()), ("closed", 1));
    assert!(world.notes_with("collie:dashboard:")[0].body.contains("completed: `no_change`"));
    world.finish().await;
}

/// New content that arrives while the item is being ended without a change is not lost.
#[tokio::test]
async fn new_content_while_the_item_ends_empty() {
    for on in ["items.commit", "forge.add_note", "forge.edit_merge_request"] {
        let (world, id) = told_of(&Submission { wanted: Wanted::default(), ..submission("hello") }).await;
        world.pass(Duration::from_secs(120)).await;
        world.push_to_main("README.md", &readme("hello"));
        world.push_to_main("greetings/hello", &format!("hello {CANARY}\n"));
        world
            .until(HOUR, || async { world.item(&id).await.due_at.is_some_and(|due| due.as_millis() <= world.sim().now_ms() + 60_000) })
            .await;
        let caller = world.clone();
        world.when(on, When::After, Box::pin(async move { drop(caller.submit(&submission("hi")).await) }));
        world.expect_merged(&id).await;
        assert!(world.main_has("README.md", readme("hi").as_bytes()), "{on}");
    }
}

/// A person deletes the branch: GitLab closes the merge request, which ends the item.
#[tokio::test]
async fn the_source_branch_deleted_by_a_person() {
    let (world, id) = told().await;
    world.pass(Duration::from_secs(5)).await;
    world.sim().delete_branch(DEMO_PROJECT_ID, BRANCH, PERSON);
    world.until_all_ended(HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Cancelled, Some(ResultKind::Closed), None));
    assert_eq!((world.sim().branch_head(DEMO_PROJECT_ID, BRANCH), world.commit_calls()), (None, 1));
    world.finish().await;
}

/// A source branch that the project protects is not Collie's to write.
#[tokio::test]
async fn a_protected_source_branch() {
    let rule = |push| ProtectedBranch { pattern: "bot/*".into(), push, merge: AccessLevel::Maintainer, allow_force_push: false };
    for (push, code, writes) in [(AccessLevel::NoOne, "branch_protected", 1), (AccessLevel::Maintainer, "source_branch_protected", 1)] {
        let world = World::new(Effects::default()).await;
        let before = world.sim().push(DEMO_PROJECT_ID, BRANCH, &[("x", Some("x"))], "Theirs", "reviewer");
        world.sim().protect(DEMO_PROJECT_ID, vec![rule(push)]);
        let id = world.submit(&submission("hello")).await.item.id;
        world.expect_failed(&id, code).await;
        assert_eq!((world.head(), world.commit_calls()), (before, writes), "{push:?}");
    }
}

/// The project is renamed while the item is under way: numbers are followed, names are not needed.
#[tokio::test]
async fn a_renamed_project() {
    let (world, id) = told().await;
    world.sim().rename_project(DEMO_PROJECT_ID, "demo/renamed");
    world.expect_merged(&id).await;
    let refused = world.sim().journal().iter().filter(|call| [301, 405].contains(&call.status)).count();
    assert_eq!((refused, world.commit_calls()), (0, 1));
}

/// A failed item is retried once its cause is gone.
#[tokio::test]
async fn a_retry_after_a_failure() {
    let world = World::new(Effects::default()).await;
    let mut change = submission("hello");
    change.target_branch = "release".into();
    let id = world.submit(&change).await.item.id;
    world.until_all_ended(HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Failed, None, Some("target_branch_missing".into())));
    world.reviewer("POST", "/repository/branches?branch=release&ref=main", &json!({}));
    world.retry(&id, false).await;
    world.expect_merged(&id).await;
    assert_eq!((world.the_mr().target_branch.as_str(), world.item(&id).await.attempts), ("release", 0));
}

/// A cancelled item comes back with its merge request.
#[tokio::test]
async fn a_retry_of_a_cancelled_item_reopens() {
    let (world, id) = told().await;
    world.cancel(&id).await;
    world.until_all_ended(HOUR).await;
    assert_eq!((world.end_of(&id).await.1, world.the_mr().state.as_str()), (Some(ResultKind::Cancelled), "closed"));
    assert!(world.notes_with("collie:dashboard:")[0].body.contains("| State | cancelled |"));
    world.retry(&id, false).await;
    world.expect_merged(&id).await;
    assert_eq!((world.the_mr().iid, world.commit_calls()), (1, 1));
}

/// Where GitLab refuses to reopen, a new one takes its place.
#[tokio::test]
async fn a_retry_of_a_cancelled_item_whose_branch_is_gone() {
    let (world, id) = told().await;
    world.cancel(&id).await;
    world.until_all_ended(HOUR).await;
    world.sim().delete_branch(DEMO_PROJECT_ID, BRANCH, PERSON);
    world.sim().set_version("19.4.1");
    world.retry(&id, false).await;
    world.expect_merged(&id).await;
    let states: Vec<_> = world.sim().merge_requests(DEMO_PROJECT_ID).into_iter().map(|mr| mr.state).collect();
    assert_eq!(states, ["closed", "merged"]);
}

/// A retry with `overwrite` replaces what someone pushed, once and no more.
#[tokio::test]
async fn a_retry_with_overwrite() {
    let (world, id) = told().await;
    world.push_on_top("src/lib.rs", "// mine\n");
    world.until_blocked(&id).await;
    world.retry(&id, true).await;
    world.until_item(HOUR, &id, |item| collie_core::mr::facts::Facts::of(item).unwrap().builds.len() == 2).await;
    world.push_on_top("src/lib.rs", "// mine again\n");
    world.until_blocked(&id).await;
    assert_eq!((world.blocked(&id).await, world.commit_calls()), (Some(BlockedReason::ForeignCommits), 2));
    world.retry(&id, true).await;
    world.expect_merged(&id).await;
    assert!(!world.main_has("src/lib.rs", b"// mine again\n"));
    assert_eq!((world.commit_calls(), world.notes_with("its push replaced").len()), (3, 0));
}

/// A retry without it does not.
#[tokio::test]
async fn a_retry_without_overwrite() {
    let (world, id) = told().await;
    let theirs = world.push_on_top("src/lib.rs", "// mine\n");
    world.until_blocked(&id).await;
    world.retry(&id, false).await;
    world.pass(3 * HOUR).await;
    assert_eq!(
        (world.blocked(&id).await, world.head(), world.notes_with("collie:foreign:").len()),
        (Some(BlockedReason::ForeignCommits), theirs, 1)
    );
    world.finish().await;
}
