//! The whole port against the model of GitLab, so that requests and texts fit a server that judges them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_core::files::{FileAction, Verb};
use collie_core::id::{MrIid, ProjectId, Sha};
use collie_core::mr::ticket::{MergeTicket, PipelineRule};
use collie_core::mr::view::{ChangedPaths, EntryKind, MergeRequest, State};
use collie_core::policy::{FileActions, Inspected, Policy, Subject};
use collie_engine::credential::Credential;
use collie_engine::ports::{Forge, MergeOptions, MrEdit, NewCommit, NewMergeRequest, Secrets};
use gitlab_sim::{DEMO_BOT_TOKEN, DEMO_PROJECT_ID, DEMO_PROJECT_PATH, Fault, FaultAction};
use secrecy::SecretString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use support::Still;
use support::demo::Demo;

const BRANCH: &str = "collie/add-a";

impl Demo {
    async fn main(&self) -> Sha {
        self.gitlab.branch(&self.project, "main").await.unwrap().unwrap().sha
    }

    async fn commit(&self, start: &Sha, action: FileAction, force: bool) -> Result<Sha, Failure> {
        let actions = inspected(action);
        let commit = NewCommit { branch: BRANCH, start_sha: start, message: "Add a", actions: &actions, pending: &[0], force };
        self.gitlab.create_commit(&self.project, commit).await
    }

    /// A branch with one commit on main.
    async fn branch(&self) -> Sha {
        self.commit(&self.main().await, create("src/a.rs"), false).await.unwrap()
    }

    async fn open(&self, title: &str) -> Result<MergeRequest, Failure> {
        let mr = NewMergeRequest {
            source_branch: BRANCH.into(),
            target_branch: "main".into(),
            title: title.into(),
            description: "Adds a.".into(),
            labels: vec!["bot".into()],
            remove_source_branch: true,
            squash: false,
        };
        self.gitlab.open_merge_request(&self.project, &mr).await
    }

    async fn read(&self, iid: MrIid) -> MergeRequest {
        self.gitlab.merge_request(&self.project, iid).await.unwrap().unwrap()
    }

    async fn merge(&self, iid: MrIid, head: &Sha) -> Result<MergeRequest, Failure> {
        let ticket = MergeTicket::issue(&self.read(iid).await, Some(head), PipelineRule::None, None).unwrap();
        let options = MergeOptions { squash: false, remove_source_branch: true };
        self.gitlab.merge(&self.project, iid, &ticket, options).await
    }
}

fn create(path: &str) -> FileAction {
    FileAction {
        verb: Verb::Create,
        file_path: path.into(),
        previous_path: None,
        content: Some(b"fn a() {}\n".to_vec()),
        execute_filemode: None,
        expect: None,
    }
}

fn inspected(action: FileAction) -> Inspected<FileActions> {
    let subject = Subject {
        actions: &[action],
        source_branch: BRANCH,
        target_branch: "main",
        title: "Add a",
        description: "",
        labels: &[],
        commit_message: None,
    };
    Policy::default().inspect(&subject).unwrap()
}

fn kind<T: std::fmt::Debug>(result: Result<T, Failure>) -> (Class, &'static str) {
    let failure = result.unwrap_err();
    (failure.class, failure.code)
}

#[tokio::test]
async fn who_and_what_is_known_at_start_even_after_a_rename() {
    let demo = Demo::start().await;
    let user = demo.gitlab.current_user(&demo.project.host).await.unwrap();
    assert_eq!(user.username, "collie-bot");
    let found = demo.gitlab.resolve_project(&demo.project.host, DEMO_PROJECT_PATH).await.unwrap();
    assert_eq!((found.id, found.path.as_str(), found.default_branch.as_deref()), (ProjectId(DEMO_PROJECT_ID), "demo/app", Some("main")));
    demo.sim.rename_project(DEMO_PROJECT_ID, "demo/renamed");
    let found = demo.gitlab.resolve_project(&demo.project.host, DEMO_PROJECT_PATH).await.unwrap();
    assert_eq!((found.id, found.path.as_str()), (ProjectId(DEMO_PROJECT_ID), "demo/renamed"));
    let missing = demo.gitlab.resolve_project(&demo.project.host, "demo/none").await;
    assert_eq!(kind(missing), (Class::Unauthorized, "forge_auth"));
}

#[tokio::test]
async fn a_repository_is_read_as_it_was_written() {
    let demo = Demo::start().await;
    let (gitlab, project) = (&demo.gitlab, &demo.project);
    let main = demo.main().await;
    let head = demo.branch().await;
    assert_eq!(gitlab.branch(project, BRANCH).await.unwrap().unwrap().sha, head);
    let commit = gitlab.commit(project, &head).await.unwrap().unwrap();
    assert_eq!((commit.parents, commit.message.trim_end()), (vec![main.clone()], "Add a"));
    let tree = gitlab.tree(project, &head, "src").await.unwrap().unwrap();
    let blob = collie_core::files::blob_id(b"fn a() {}\n");
    assert!(tree.iter().any(|e| e.path == "src/a.rs" && e.id == blob && e.kind == EntryKind::File { executable: false }), "{tree:?}");
    assert_eq!(gitlab.tree(project, &head, "none").await, Ok(None));
    assert_eq!(gitlab.tree(project, &head, "").await.unwrap().unwrap().len(), 4);
    assert_eq!(gitlab.merge_base(project, &main, &head).await, Ok(Some(main.clone())));
    assert_eq!(gitlab.changed_paths(project, &main, &head).await, Ok(ChangedPaths::Complete(vec!["src/a.rs".into()])));
    assert_eq!(gitlab.changed_paths(project, &main, &main).await, Ok(ChangedPaths::Complete(vec![])));
    let unknown = Sha::new("0123456789012345678901234567890123456789");
    assert_eq!(gitlab.commit(project, &unknown).await, Ok(None));
    assert_eq!(kind(gitlab.changed_paths(project, &main, &unknown).await), (Class::Gone, "forge_gone"));
    assert_eq!(kind(gitlab.merge_base(project, &main, &unknown).await), (Class::Gone, "forge_gone"));
    assert_eq!(gitlab.delete_branch(project, BRANCH).await, Ok(()));
    assert_eq!(gitlab.delete_branch(project, BRANCH).await, Ok(()));
    assert_eq!(gitlab.branch(project, BRANCH).await, Ok(None));
}

#[tokio::test]
async fn a_tree_of_several_pages_is_read_whole() {
    let demo = Demo::start().await;
    let names: Vec<_> = (0..230).map(|n| format!("many/f{n:03}")).collect();
    let changes: Vec<_> = names.iter().map(|name| (name.as_str(), Some(name.as_str()))).collect();
    let head = Sha::new(demo.sim.push(DEMO_PROJECT_ID, "many", &changes, "Many", "developer"));
    let tree = demo.gitlab.tree(&demo.project, &head, "many").await.unwrap().unwrap();
    assert_eq!(tree.into_iter().map(|entry| entry.path).collect::<Vec<_>>(), names);
}

#[tokio::test]
async fn refused_commits_have_their_codes() {
    let demo = Demo::start().await;
    let main = demo.main().await;
    let missing = FileAction { verb: Verb::Update, ..create("src/none.rs") };
    assert_eq!(kind(demo.commit(&main, create("src/lib.rs"), false).await), (Class::Rejected, "file_exists"));
    assert_eq!(kind(demo.commit(&main, missing, false).await), (Class::Rejected, "file_missing"));
    assert_eq!(kind(demo.commit(&main, create("src"), false).await), (Class::Rejected, "directory_exists"));
    let unknown = Sha::new("0123456789012345678901234567890123456789");
    assert_eq!(kind(demo.commit(&unknown, create("src/a.rs"), false).await), (Class::Rejected, "stale_start"));
    demo.branch().await;
    assert_eq!(kind(demo.commit(&main, create("src/b.rs"), false).await), (Class::Conflict, "branch_exists"));
    let forced = demo.commit(&main, create("src/b.rs"), true).await.unwrap();
    assert_eq!(demo.sim.branch_head(DEMO_PROJECT_ID, BRANCH).as_deref(), Some(forced.as_str()));
}

#[tokio::test]
async fn a_merge_request_lives_and_is_merged() {
    let demo = Demo::start().await;
    let (gitlab, project) = (&demo.gitlab, &demo.project);
    let head = demo.branch().await;
    let opened = demo.open("Add a").await.unwrap();
    assert_eq!((opened.state, opened.labels.as_slice()), (State::Opened, &["bot".to_owned()][..]));
    assert_eq!(kind(demo.open("Add a").await), (Class::Conflict, "mr_exists"));
    demo.sim.advance_by(60_000);
    let rows = gitlab.open_merge_requests(project, BRANCH).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.iid).collect::<Vec<_>>(), [opened.iid]);
    let edit = MrEdit { title: Some("Add a, really".into()), add_labels: vec!["more".into()], ..MrEdit::default() };
    assert_eq!(gitlab.edit_merge_request(project, opened.iid, &edit).await.unwrap().title, "Add a, really");
    let note = gitlab.add_note(project, opened.iid, "one").await.unwrap();
    gitlab.edit_note(project, opened.iid, note.id, "two").await.unwrap();
    let bodies: Vec<_> = gitlab.notes(project, opened.iid).await.unwrap().into_iter().map(|note| note.body).collect();
    assert_eq!(bodies, ["two"]);
    let mr = demo.read(opened.iid).await;
    let pipeline = mr.head_pipeline.unwrap();
    let mut jobs: Vec<_> = gitlab.jobs(project, pipeline.id).await.unwrap().into_iter().map(|job| job.name).collect();
    jobs.sort();
    assert_eq!(jobs, ["compile", "lint", "unit-tests"]);
    gitlab.approvals_left(project, opened.iid).await.unwrap();
    demo.read(opened.iid).await;
    demo.sim.advance_by(60_000);
    assert_eq!(demo.merge(opened.iid, &head).await.unwrap().state, State::Merged);
    assert_eq!(demo.read(opened.iid).await.state, State::Merged);
    assert_eq!(gitlab.open_merge_requests(project, BRANCH).await, Ok(vec![]));
    assert_eq!(gitlab.merge_request(project, MrIid(99)).await, Ok(None));
}

#[tokio::test]
async fn merges_are_refused_for_a_draft_and_for_another_head() {
    let demo = Demo::start().await;
    let head = demo.branch().await;
    let iid = demo.open("Draft: Add a").await.unwrap().iid;
    demo.sim.advance_by(60_000);
    assert_eq!(kind(demo.merge(iid, &head).await), (Class::Conflict, "not_mergeable"));
    let edit = MrEdit { title: Some("Add a".into()), ..MrEdit::default() };
    demo.gitlab.edit_merge_request(&demo.project, iid, &edit).await.unwrap();
    let ticket = MergeTicket::issue(&demo.read(iid).await, Some(&head), PipelineRule::None, None).unwrap();
    demo.sim.push(DEMO_PROJECT_ID, BRANCH, &[("src/c.rs", Some("c"))], "c", "developer");
    demo.sim.advance_by(60_000);
    let options = MergeOptions { squash: false, remove_source_branch: true };
    let late = demo.gitlab.merge(&demo.project, iid, &ticket, options).await;
    assert_eq!(kind(late), (Class::Conflict, "head_moved"));
    let close = MrEdit { close: Some(true), ..MrEdit::default() };
    assert_eq!(demo.gitlab.edit_merge_request(&demo.project, iid, &close).await.unwrap().state, State::Closed);
}

#[tokio::test]
async fn a_lost_answer_to_a_write_is_doubt_and_the_write_may_be_there() {
    let demo = Demo::start().await;
    let main = demo.main().await;
    demo.sim.add_fault(Fault::once("POST", "/repository/commits", FaultAction::DropAfterApplying));
    assert_eq!(kind(demo.commit(&main, create("src/a.rs"), false).await), (Class::Indeterminate, "forge_unanswered"));
    assert!(demo.gitlab.branch(&demo.project, BRANCH).await.unwrap().is_some());
    demo.sim.add_fault(Fault::once("GET", "/repository/branches", FaultAction::DropBefore));
    let lost = demo.gitlab.branch(&demo.project, BRANCH).await;
    assert_eq!(kind(lost), (Class::Transient { answered: false }, "forge_unreachable"));
    demo.sim.add_fault(Fault::once("POST", "/merge_requests", FaultAction::FailAfterApplying { status: 502 }));
    assert_eq!(kind(demo.open("Add a").await), (Class::Indeterminate, "forge_unanswered"));
    assert_eq!(demo.gitlab.open_merge_requests(&demo.project, BRANCH).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_branch_that_the_cache_lacks_is_worth_another_try() {
    let demo = Demo::start().await;
    demo.sim.push(DEMO_PROJECT_ID, BRANCH, &[("src/a.rs", Some("a"))], "a", "developer");
    assert_eq!(kind(demo.open("Add a").await), (Class::Transient { answered: true }, "branch_not_visible"));
    demo.sim.advance_by(60_000);
    assert_eq!(demo.open("Add a").await.unwrap().state, State::Opened);
}

#[tokio::test]
async fn a_revoked_token_is_for_a_person_to_mend() {
    let demo = Demo::start().await;
    demo.sim.revoke_token(DEMO_BOT_TOKEN);
    assert_eq!(kind(demo.gitlab.branch(&demo.project, "main").await), (Class::Unauthorized, "forge_auth"));
    assert_eq!(kind(demo.open("Add a").await), (Class::Unauthorized, "forge_auth"));
}

/// Where the token of a demonstration is kept; it is counted how often it is read.
struct Kept {
    token: Mutex<&'static str>,
    reads: AtomicUsize,
}

#[async_trait::async_trait]
impl Secrets for Kept {
    async fn secret(&self, _name: &str) -> Result<SecretString, Failure> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Ok(SecretString::from(*self.token.lock().unwrap()))
    }
}

#[tokio::test]
async fn a_rotated_token_works_at_the_next_call_and_one_that_only_ended_does_not() {
    let kept = Arc::new(Kept { token: Mutex::new(DEMO_BOT_TOKEN), reads: AtomicUsize::new(0) });
    let secrets: Arc<dyn Secrets> = kept.clone();
    let demo = Demo::with(Credential::named("gitlab/main", DEMO_BOT_TOKEN.into(), secrets, Arc::new(Still))).await;
    let start = demo.main().await;
    assert!(demo.sim.add_token("collie-bot", "glpat-rotated", &["api"], None));
    *kept.token.lock().unwrap() = "glpat-rotated";
    assert_eq!(demo.main().await, start, "the old one still works");
    assert_eq!(kept.reads.load(Ordering::SeqCst), 0);

    demo.sim.revoke_token(DEMO_BOT_TOKEN);
    demo.commit(&start, create("src/a.rs"), false).await.unwrap();
    assert_eq!(demo.sim.branches(DEMO_PROJECT_ID), [BRANCH, "main"]);
    let calls: Vec<_> = demo.sim.journal().iter().rev().take(2).map(|call| (call.status, call.applied)).collect();
    assert_eq!((calls, kept.reads.load(Ordering::SeqCst)), (vec![(201, true), (401, true)], 1));

    demo.sim.revoke_token("glpat-rotated");
    assert_eq!(kind(demo.gitlab.branch(&demo.project, "main").await), (Class::Unauthorized, "forge_auth"));
    assert_eq!(kept.reads.load(Ordering::SeqCst), 1, "it was read a moment ago");
}
