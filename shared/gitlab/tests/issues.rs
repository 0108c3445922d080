//! Issues of a project: against the model of GitLab, and against its own sample.
#![allow(clippy::unwrap_used, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_engine::ports::{IssueEdit, IssueTracker, NewIssue, TrackedIssue};
use gitlab_sim::{ApiRequest, DEMO_PROJECT_ID, DEMO_REVIEWER_TOKEN, Fault, FaultAction};
use support::demo::Demo;
use support::{Stub, answer};

const MARKER: &str = "<!-- collie:issue:7 -->";

fn new(title: &str) -> NewIssue {
    NewIssue { title: title.into(), description: format!("{MARKER}\nIt fails."), labels: vec!["ci".into(), "red".into()] }
}

fn edit(description: &str, close: Option<bool>) -> IssueEdit {
    IssueEdit { title: "lint fails".into(), description: description.into(), close }
}

impl Demo {
    async fn find(&self) -> Option<u64> {
        self.gitlab.own_issue(&self.project, MARKER).await.unwrap().map(|issue| issue.iid)
    }
}

#[tokio::test]
async fn an_issue_is_opened_edited_closed_and_reopened() {
    let demo = Demo::start().await;
    let (gitlab, project) = (&demo.gitlab, &demo.project);
    let made = gitlab.open_issue(project, &new("unit-tests fails")).await.unwrap();
    let url = format!("http://{}/demo/app/-/issues/1", project.host);
    assert_eq!(made, TrackedIssue { iid: 1, url, is_open: true });
    assert_eq!(gitlab.issue(project, 1).await, Ok(Some(made.clone())));
    assert_eq!(gitlab.edit_issue(project, 1, &edit("It fails still.", None)).await, Ok(made.clone()));
    let issue = demo.sim.issues(DEMO_PROJECT_ID).remove(0);
    assert_eq!((issue.title.as_str(), issue.description.as_deref()), ("lint fails", Some("It fails still.")));
    assert_eq!(issue.labels, ["ci", "red"]);
    assert!(!gitlab.edit_issue(project, 1, &edit("It is over.", Some(true))).await.unwrap().is_open);
    assert_eq!(gitlab.edit_issue(project, 1, &edit("It is back.", Some(false))).await, Ok(made));
    assert_eq!(gitlab.issue(project, 9).await, Ok(None));
}

#[tokio::test]
async fn an_issue_is_found_again_by_its_marker_among_our_own_open_or_closed() {
    let demo = Demo::start().await;
    assert_eq!(demo.find().await, None);
    let body = format!(r#"{{"title":"not ours","description":"{MARKER}"}}"#);
    let headers = vec![("PRIVATE-TOKEN".into(), DEMO_REVIEWER_TOKEN.into()), ("Content-Type".into(), "application/json".into())];
    let uri = format!("/api/v4/projects/{DEMO_PROJECT_ID}/issues");
    demo.sim.call(ApiRequest { method: "POST".into(), uri, headers, body: body.into() }).unwrap();
    assert_eq!(demo.find().await, None, "another user's does not count");
    demo.sim.add_fault(Fault::once("POST", "/issues", FaultAction::DropAfterApplying));
    let lost = demo.gitlab.open_issue(&demo.project, &new("unit-tests fails")).await.unwrap_err();
    assert_eq!((lost.class, lost.code), (Class::Indeterminate, "forge_unanswered"));
    assert_eq!(demo.find().await, Some(2));
    demo.gitlab.edit_issue(&demo.project, 2, &edit(MARKER, Some(true))).await.unwrap();
    for n in 0..150 {
        let other = NewIssue { title: format!("other {n}"), description: "none".into(), labels: vec![] };
        demo.gitlab.open_issue(&demo.project, &other).await.unwrap();
    }
    assert_eq!(demo.find().await, Some(2), "on the second page");
}

#[tokio::test]
async fn a_list_of_our_own_that_is_too_long_is_not_taken_for_none() {
    let page =
        |next: u32| answer(200, r#"[{"iid":1,"state":"opened","description":null,"web_url":""}]"#).with("x-next-page", next.to_string());
    let stub = Stub::start((2..5).map(page)).await;
    let failure = stub.gitlab().own_issue(&stub.project(), MARKER).await.unwrap_err();
    assert_eq!(
        (failure.class, failure.code, failure.message.as_str()),
        (Class::Rejected, "too_many_pages", "GET …/issues: more than 3 pages")
    );
}

#[tokio::test]
async fn a_project_without_issues_and_a_title_that_is_too_long_are_told_apart() {
    let demo = Demo::start().await;
    let kind = |result: Result<TrackedIssue, Failure>| result.map_err(|failure| (failure.class, failure.code));
    let long = demo.gitlab.open_issue(&demo.project, &new(&"x".repeat(300))).await;
    assert_eq!(kind(long), Err((Class::Rejected, "forge_refused")));
    demo.sim.set_settings(DEMO_PROJECT_ID, |settings| settings.issues_enabled = false);
    let off = demo.gitlab.open_issue(&demo.project, &new("x")).await;
    assert_eq!(kind(off), Err((Class::Unauthorized, "forge_auth")));
}

#[tokio::test]
async fn gitlabs_own_sample_of_an_issue_is_read() {
    let stub = Stub::start([answer(200, include_str!("samples/issue.json"))]).await;
    let url = "https://gitlab.example.com/acme-group/demo-repository/-/issues/5".to_owned();
    assert_eq!(stub.gitlab().issue(&stub.project(), 5).await, Ok(Some(TrackedIssue { iid: 5, url, is_open: true })));
    assert_eq!(stub.lines(), ["GET …/issues/5"]);
}
