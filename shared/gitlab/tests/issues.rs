//! Issues of a project: against the model of GitLab, and against its own sample.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_core::id::IssueIid;
use collie_core::time::Timestamp;
use collie_engine::ports::{IssueEdit, IssueTracker, NewIssue, ProjectIssue};
use gitlab_sim::{ApiRequest, DEMO_PROJECT_ID, DEMO_REVIEWER_TOKEN, Fault, FaultAction};
use support::demo::Demo;
use support::{Stub, answer};

const MARKER: &str = "<!-- collie:issue:7 -->";

fn new(title: &str) -> NewIssue {
    NewIssue { title: title.into(), description: format!("It fails.\n{MARKER}"), labels: vec!["ci".into(), "red".into()] }
}

impl Demo {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.sim.now_ms())
    }

    async fn find(&self, since: Timestamp) -> Option<ProjectIssue> {
        self.gitlab.find_own_issue(&self.project, MARKER, since).await.unwrap()
    }
}

#[tokio::test]
async fn an_issue_is_opened_edited_closed_and_reopened() {
    let demo = Demo::start().await;
    let (gitlab, project) = (&demo.gitlab, &demo.project);
    let made = gitlab.open_issue(project, &new("unit-tests fails")).await.unwrap();
    assert_eq!((made.iid, made.is_open, made.title.as_str()), (IssueIid(1), true, "unit-tests fails"));
    assert_eq!(
        (made.description.as_str(), made.labels.as_slice()),
        ("It fails.\n<!-- collie:issue:7 -->", &["ci".to_owned(), "red".into()][..])
    );
    assert_eq!(gitlab.issue(project, made.iid).await, Ok(Some(made.clone())));
    let edit = IssueEdit { description: Some("It failed.".into()), add_labels: vec!["flaky".into()], ..IssueEdit::default() };
    let edited = gitlab.edit_issue(project, made.iid, &edit).await.unwrap();
    assert_eq!((edited.description.as_str(), edited.labels.len(), edited.title), ("It failed.", 3, made.title));
    let close = |close| IssueEdit { close: Some(close), ..IssueEdit::default() };
    assert!(!gitlab.edit_issue(project, made.iid, &close(true)).await.unwrap().is_open);
    assert!(gitlab.edit_issue(project, made.iid, &close(false)).await.unwrap().is_open);
    assert_eq!(gitlab.issue(project, IssueIid(9)).await, Ok(None));
}

#[tokio::test]
async fn an_issue_is_found_again_by_its_marker_among_our_own_open_or_closed() {
    let demo = Demo::start().await;
    let start = demo.now();
    assert_eq!(demo.find(start).await, None);
    let body = format!(r#"{{"title":"not ours","description":"{MARKER}"}}"#);
    let headers = vec![("PRIVATE-TOKEN".into(), DEMO_REVIEWER_TOKEN.into()), ("Content-Type".into(), "application/json".into())];
    let uri = format!("/api/v4/projects/{DEMO_PROJECT_ID}/issues");
    demo.sim.call(ApiRequest { method: "POST".into(), uri, headers, body: body.into() }).unwrap();
    assert_eq!(demo.find(start).await, None, "another user's does not count");
    demo.sim.add_fault(Fault::once("POST", "/issues", FaultAction::DropAfterApplying));
    let lost = demo.gitlab.open_issue(&demo.project, &new("unit-tests fails")).await.unwrap_err();
    assert_eq!((lost.class, lost.code), (Class::Indeterminate, "forge_unanswered"));
    let found = demo.find(start).await.unwrap();
    assert_eq!(found.iid, IssueIid(2));
    demo.sim.advance_by(60_000);
    demo.gitlab.open_issue(&demo.project, &new("again")).await.unwrap();
    let close = IssueEdit { close: Some(true), ..IssueEdit::default() };
    demo.gitlab.edit_issue(&demo.project, found.iid, &close).await.unwrap();
    assert_eq!(demo.find(start).await.map(|issue| (issue.iid, issue.is_open)), Some((IssueIid(2), false)));
    assert_eq!(demo.find(demo.now()).await.map(|issue| issue.iid), Some(IssueIid(3)));
}

#[tokio::test]
async fn notes_on_issues_are_comments_of_people_and_ours() {
    let demo = Demo::start().await;
    let iid = demo.gitlab.open_issue(&demo.project, &new("unit-tests fails")).await.unwrap().iid;
    let id = demo.gitlab.add_issue_note(&demo.project, iid, "It went well in build 7.").await.unwrap();
    let notes = demo.gitlab.issue_notes(&demo.project, iid).await.unwrap();
    assert_eq!(notes.iter().map(|note| (note.id, note.body.as_str())).collect::<Vec<_>>(), [(id, "It went well in build 7.")]);
    let kind = |result: Result<_, Failure>| result.map_err(|failure: Failure| (failure.class, failure.code));
    let none = demo.gitlab.add_issue_note(&demo.project, iid, "/close").await;
    assert_eq!(kind(none), Err((Class::Rejected, "note_not_made")));
    assert_eq!(kind(demo.gitlab.add_issue_note(&demo.project, IssueIid(9), "x").await), Err((Class::Gone, "forge_gone")));
}

#[tokio::test]
async fn a_project_without_issues_and_a_title_that_is_too_long_are_told_apart() {
    let demo = Demo::start().await;
    let kind = |result: Result<ProjectIssue, Failure>| result.map_err(|failure| (failure.class, failure.code));
    let long = demo.gitlab.open_issue(&demo.project, &new(&"x".repeat(300))).await;
    assert_eq!(kind(long), Err((Class::Rejected, "forge_refused")));
    demo.sim.set_settings(DEMO_PROJECT_ID, |settings| settings.issues_enabled = false);
    let off = demo.gitlab.open_issue(&demo.project, &new("x")).await;
    assert_eq!(kind(off), Err((Class::Unauthorized, "forge_auth")));
}

#[tokio::test]
async fn gitlabs_own_sample_of_an_issue_is_read() {
    let stub = Stub::start([answer(200, include_str!("samples/issue.json"))]).await;
    let issue = stub.gitlab().issue(&stub.project(), IssueIid(5)).await.unwrap().unwrap();
    let want = ProjectIssue {
        iid: IssueIid(5),
        is_open: true,
        title: "Add OAuth login".into(),
        description: "We need OAuth.".into(),
        labels: vec!["enhancement".into()],
        web_url: "https://gitlab.example.com/acme-group/demo-repository/-/issues/5".into(),
    };
    assert_eq!(issue, want);
}
