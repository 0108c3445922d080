//! Which request each method makes, and what it reads from GitLab's answer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_core::files::{FileAction, Verb};
use collie_core::id::{JobId, MrIid, NoteId, PipelineId, Sha, UserId};
use collie_core::mr::ticket::{MergeTicket, PipelineRule};
use collie_core::mr::train::CarState;
use collie_core::mr::view::{Branch, ChangedPaths, Commit, EntryKind, Job, Note, Pipeline, State, TreeEntry};
use collie_core::policy::{FileActions, Inspected, Policy, Subject};
use collie_core::time::Timestamp;
use collie_engine::cost::Meter;
use collie_engine::ports::{Forge, MergeOptions, MrEdit, NewCommit, NewMergeRequest};
use collie_gitlab::{CurrentUser, ResolvedProject};
use serde_json::json;
use support::{CANARY, Stub, answer, refusal};

const HEAD: &str = "11499a581bf88090fa5e0abbf6d73e10e6fb56a7";

macro_rules! sample {
    ($name:literal) => {
        answer(200, include_str!(concat!("samples/", $name, ".json")))
    };
}

fn head() -> Sha {
    Sha::new(HEAD)
}

#[tokio::test]
async fn every_request_carries_the_token_and_the_agent_and_is_counted() {
    let stub = Stub::start([sample!("branch")]).await;
    let meter = Meter::default();
    let branch = meter.scope(async { stub.gitlab().branch(&stub.project(), "feature/ä #1%").await }).await;
    assert_eq!(branch, Ok(Some(Branch { sha: head(), protected: false, default: false })));
    assert_eq!(stub.lines(), ["GET …/repository/branches/feature%2F%C3%A4%20%231%25"]);
    assert_eq!(stub.asked()[0].token, CANARY);
    assert_eq!(stub.user_agents(), [concat!("collie/", env!("CARGO_PKG_VERSION"))]);
    assert_eq!(meter.gitlab_calls(), 1);
}

#[tokio::test]
async fn a_missing_branch_is_none_and_a_missing_project_is_not() {
    let stub = Stub::start([refusal(404, "404 Branch Not Found"), refusal(404, "404 Project Not Found")]).await;
    assert_eq!(stub.gitlab().branch(&stub.project(), "b").await, Ok(None));
    let failure = stub.gitlab().branch(&stub.project(), "b").await.unwrap_err();
    assert_eq!((failure.class, failure.code), (Class::Unauthorized, "forge_auth"));
}

#[tokio::test]
async fn a_name_that_would_change_the_route_is_never_sent() {
    let stub = Stub::start([]).await;
    for name in ["", ".", ".."] {
        let want = Failure::rejected("forge_refused", format!("{name:?} cannot be part of a route"));
        assert_eq!(stub.gitlab().delete_branch(&stub.project(), name).await, Err(want));
    }
    assert_eq!(stub.asked(), []);
}

#[tokio::test]
async fn a_tree_is_read_over_all_its_pages_by_cursor_on_our_own_host() {
    let row = |name: &str, kind: &str, mode: &str| json!({"id": "e69de29b", "name": name, "type": kind, "path": format!("d é/{name}"), "mode": mode});
    let first = json!([row("a", "blob", "100644"), row("b", "blob", "100755"), row("c", "blob", "120000")]).to_string();
    let last = json!([row("d", "commit", "160000"), row("e", "tree", "040000")]).to_string();
    let link = "<https://inner.example/api/v4/projects/1/repository/tree?page_token=T%2B1&private_token=x>; rel=\"next\"";
    let stub = Stub::start([answer(200, first).with("link", link), answer(200, last)]).await;
    let tree = stub.gitlab().tree(&stub.project(), &head(), "d é").await.unwrap().unwrap();
    let entry = |name: &str, kind| TreeEntry { path: format!("d é/{name}"), id: "e69de29b".into(), kind };
    let want = [
        entry("a", EntryKind::File { executable: false }),
        entry("b", EntryKind::File { executable: true }),
        entry("c", EntryKind::Symlink),
        entry("d", EntryKind::Submodule),
        entry("e", EntryKind::Directory),
    ];
    assert_eq!(tree, want);
    let url = format!("GET …/repository/tree?ref={HEAD}&pagination=keyset&path=d+%C3%A9&per_page=100");
    assert_eq!(stub.lines(), [url.clone(), format!("{url}&page_token=T%2B1")]);
}

#[tokio::test]
async fn a_missing_directory_is_none_in_every_version_and_an_empty_root_is_not() {
    let stub = Stub::start([refusal(404, "404 Tree Not Found"), answer(200, "[]"), answer(200, "[]")]).await;
    let gitlab = stub.gitlab();
    assert_eq!(gitlab.tree(&stub.project(), &head(), "d").await, Ok(None));
    assert_eq!(gitlab.tree(&stub.project(), &head(), "d").await, Ok(None));
    assert_eq!(gitlab.tree(&stub.project(), &head(), "").await, Ok(Some(vec![])));
    assert_eq!(stub.lines()[2], format!("GET …/repository/tree?ref={HEAD}&pagination=keyset&per_page=100"));
}

#[tokio::test]
async fn a_commit_shows_its_parents_and_its_message() {
    let stub = Stub::start([sample!("commit_get_with_pipeline"), refusal(404, "404 Commit Not Found")]).await;
    let parents = vec![Sha::new("a4bf10d93a2d136f1db911b6f1c03d26d835a44f")];
    let want = Commit { sha: head(), parents, message: "Add authentication module".into() };
    assert_eq!(stub.gitlab().commit(&stub.project(), &head()).await, Ok(Some(want)));
    assert_eq!(stub.gitlab().commit(&stub.project(), &head()).await, Ok(None));
    assert_eq!(stub.lines()[0], format!("GET …/repository/commits/{HEAD}?stats=false"));
}

#[tokio::test]
async fn without_a_common_ancestor_there_is_no_merge_base() {
    let answers = [sample!("commit_created"), refusal(404, "404 Merge Base Not Found"), refusal(400, "Could not find ref: b")];
    let stub = Stub::start(answers).await;
    let ask = || async { stub.gitlab().merge_base(&stub.project(), &Sha::new("a"), &Sha::new("b")).await };
    let created: serde_json::Value = serde_json::from_str(include_str!("samples/commit_created.json")).unwrap();
    assert_eq!(ask().await, Ok(Some(Sha::new(created["id"].as_str().unwrap()))));
    assert_eq!(ask().await, Ok(None));
    let gone = Failure::new(Class::Gone, "forge_gone", "GET …/repository/merge_base answered 400: Could not find ref: b");
    assert_eq!(ask().await, Err(gone));
    assert_eq!(stub.lines()[0], "GET …/repository/merge_base?refs%5B%5D=a&refs%5B%5D=b");
}

#[tokio::test]
async fn what_a_push_replaced_is_read_from_the_pushes_of_that_branch() {
    let push = |name: &str, kind: &str, from: Option<&str>, to: &str| json!({"action_name": "pushed to", "push_data": {"ref": name, "ref_type": kind, "commit_from": from, "commit_to": to}});
    let pushes = [
        json!({"action_name": "joined"}),
        json!({"action_name": "pushed to", "push_data": {"ref": null, "ref_type": null, "commit_from": null, "commit_to": null, "ref_count": 4}}),
        push("other", "branch", Some("x"), "new"),
        push("bot/a", "tag", Some("y"), "new"),
        push("bot/a", "branch", None, "first"),
        push("bot/a", "branch", Some("old"), "new"),
    ];
    let stub = Stub::start((0..3).map(|_| answer(200, json!(pushes).to_string()))).await;
    let ask = async |head: &str| stub.gitlab().replaced_by(&stub.project(), "bot/a", &Sha::new(head)).await;
    assert_eq!(ask("new").await, Ok(Some(Sha::new("old"))));
    assert_eq!(ask("first").await, Ok(None));
    assert_eq!(ask("unknown").await, Ok(None));
    assert_eq!(stub.lines()[0], "GET …/events?action=pushed&per_page=100");
}

#[tokio::test]
async fn changed_paths_are_old_and_new_ones_once_each() {
    let diff = |old: &str, new: &str| json!({"old_path": old, "new_path": new, "collapsed": true, "too_large": true});
    let body = json!({"diffs": [diff("z", "z"), diff("b", "a")], "compare_timeout": false, "compare_same_ref": false});
    let stub = Stub::start([answer(200, body.to_string()), sample!("compare_overflow"), sample!("compare_same_ref")]).await;
    let ask = || async { stub.gitlab().changed_paths(&stub.project(), &Sha::new("x"), &Sha::new("y")).await };
    assert_eq!(ask().await, Ok(ChangedPaths::Complete(vec!["a".into(), "b".into(), "z".into()])));
    assert_eq!(ask().await, Ok(ChangedPaths::Truncated));
    assert_eq!(ask().await, Ok(ChangedPaths::Complete(vec![])));
    assert_eq!(stub.lines()[0], "GET …/repository/compare?from=x&to=y&straight=true");
}

fn inspected() -> Inspected<FileActions> {
    let action = |verb, path: &str, content: Option<&[u8]>| FileAction {
        verb,
        file_path: path.into(),
        previous_path: None,
        content: content.map(<[u8]>::to_vec),
        execute_filemode: None,
        expect: None,
    };
    let actions = [action(Verb::Create, "src/a.rs", Some(b"fn a() {}\n")), action(Verb::Delete, "src/b.rs", None)];
    let subject = Subject {
        actions: &actions,
        source_branch: "collie/x",
        target_branch: "main",
        title: "Add a",
        description: "",
        labels: &[],
        commit_message: None,
    };
    Policy::default().inspect(&subject).unwrap()
}

#[tokio::test]
async fn a_commit_is_built_on_a_sha_and_forced_only_when_asked() {
    let actions = inspected();
    for (force, pending, verbs) in [(false, &[0, 1][..], &["create", "delete"][..]), (true, &[1], &["delete"])] {
        let stub = Stub::start([answer(201, json!({"id": HEAD}).to_string())]).await;
        let start = Sha::new("a4bf10d9");
        let commit = NewCommit { branch: "collie/x", start_sha: &start, message: "m", actions: &actions, pending, force };
        assert_eq!(stub.gitlab().create_commit(&stub.project(), commit).await, Ok(head()));
        assert_eq!(stub.lines(), ["POST …/repository/commits"]);
        let sent = stub.sent();
        let shown =
            json!({"branch": sent["branch"], "start_sha": sent["start_sha"], "message": sent["commit_message"], "stats": sent["stats"]});
        assert_eq!(shown, json!({"branch": "collie/x", "start_sha": "a4bf10d9", "message": "m", "stats": false}));
        assert_eq!(sent.get("force"), force.then_some(&json!(true)));
        let sent_verbs: Vec<_> = sent["actions"].as_array().unwrap().iter().map(|action| action["action"].as_str().unwrap()).collect();
        assert_eq!(sent_verbs, verbs);
    }
}

#[tokio::test]
async fn deleting_a_missing_branch_is_a_success() {
    let stub =
        Stub::start([answer(204, ""), refusal(404, "404 Branch Not Found"), refusal(405, "You dont have push access to repo")]).await;
    let delete = || async { stub.gitlab().delete_branch(&stub.project(), "a/b").await };
    assert_eq!(delete().await, Ok(()));
    assert_eq!(delete().await, Ok(()));
    assert_eq!(delete().await.unwrap_err().code, "forge_auth");
    assert_eq!(stub.lines()[0], "DELETE …/repository/branches/a%2Fb");
}

#[tokio::test]
async fn a_merge_request_shows_what_decisions_use() {
    let stub = Stub::start([sample!("mr_mergeable"), refusal(404, "404 Not found")]).await;
    let mr = stub.gitlab().merge_request(&stub.project(), MrIid(2)).await.unwrap().unwrap();
    assert_eq!((mr.iid, mr.state, mr.draft), (MrIid(2), State::Opened, false));
    assert_eq!((mr.sha, mr.detailed_merge_status.as_str()), (Some(head()), "mergeable"));
    assert_eq!((mr.has_conflicts, mr.discussions_resolved, mr.can_merge), (false, true, Some(true)));
    assert_eq!((mr.author, mr.merge_error), (UserId(777), None));
    let pipeline = Pipeline { id: PipelineId(90001), git_ref: "refs/merge-requests/2/head".into(), sha: head(), status: "success".into() };
    assert_eq!(mr.head_pipeline, Some(pipeline));
    assert_eq!(stub.gitlab().merge_request(&stub.project(), MrIid(2)).await, Ok(None));
    assert_eq!(stub.lines()[0], "GET …/merge_requests/2");
}

#[tokio::test]
async fn a_list_row_lacks_pipeline_and_rights_and_a_fork_is_left_out() {
    let mut rows: Vec<serde_json::Value> = serde_json::from_str(include_str!("samples/mr_list.json")).unwrap();
    rows.truncate(1);
    let mut fork = rows[0].clone();
    fork["source_project_id"] = json!(9);
    rows.insert(0, fork);
    let stub =
        Stub::start([answer(200, "[]").with("x-next-page", "2"), answer(200, json!(rows).to_string()).with("x-next-page", "")]).await;
    let mrs = stub.gitlab().open_merge_requests(&stub.project(), "feature/oauth").await.unwrap();
    assert_eq!(mrs.len(), 1);
    assert_eq!((&mrs[0].head_pipeline, mrs[0].can_merge), (&None, None));
    let url = "GET …/merge_requests?state=opened&source_branch=feature%2Foauth&order_by=created_at&sort=asc&per_page=100";
    assert_eq!(stub.lines(), [url.to_owned(), format!("{url}&page=2")]);
}

fn new_merge_request(labels: &[&str]) -> NewMergeRequest {
    NewMergeRequest {
        source_branch: "collie/x".into(),
        target_branch: "main".into(),
        title: "Draft: t".into(),
        description: "d".into(),
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        remove_source_branch: true,
        squash: false,
    }
}

#[tokio::test]
async fn opening_a_merge_request_sends_every_field() {
    let stub = Stub::start([answer(201, include_str!("samples/mr_just_created.json"))]).await;
    let mr = stub.gitlab().open_merge_request(&stub.project(), &new_merge_request(&["a", "b::c"])).await.unwrap();
    assert_eq!((mr.iid, mr.detailed_merge_status.as_str(), mr.head_pipeline), (MrIid(2), "preparing", None));
    assert_eq!(stub.lines(), ["POST …/merge_requests"]);
    let want = json!({"source_branch": "collie/x", "target_branch": "main", "title": "Draft: t", "description": "d",
        "labels": "a,b::c", "remove_source_branch": true, "squash": false});
    assert_eq!(stub.sent(), want);
}

#[tokio::test]
async fn editing_sends_only_what_changes() {
    let all = MrEdit {
        title: Some("t".into()),
        description: Some(String::new()),
        add_labels: vec!["x".into(), "y".into()],
        target_branch: Some("next".into()),
        close: Some(true),
    };
    let table = [
        (all, json!({"title": "t", "description": "", "add_labels": "x,y", "target_branch": "next", "state_event": "close"})),
        (MrEdit { close: Some(false), ..MrEdit::default() }, json!({"state_event": "reopen"})),
        (MrEdit { title: Some("u".into()), ..MrEdit::default() }, json!({"title": "u"})),
    ];
    for (edit, want) in table {
        let stub = Stub::start([sample!("mr_mergeable")]).await;
        stub.gitlab().edit_merge_request(&stub.project(), MrIid(2), &edit).await.unwrap();
        assert_eq!(stub.lines(), ["PUT …/merge_requests/2"]);
        assert_eq!(stub.sent(), want);
    }
}

#[tokio::test]
async fn merging_names_the_tickets_sha() {
    let stub = Stub::start([sample!("mr_mergeable")]).await;
    let mr = stub.gitlab().merge_request(&stub.project(), MrIid(2)).await.unwrap().unwrap();
    let ticket = MergeTicket::issue(&mr, Some(&head()), PipelineRule::Required, None).unwrap();
    let stub = Stub::start([sample!("mr_merged")]).await;
    let options = MergeOptions { squash: true, remove_source_branch: false };
    let merged = stub.gitlab().merge(&stub.project(), MrIid(2), &ticket, options).await.unwrap();
    assert_eq!(merged.state, State::Merged);
    assert_eq!(stub.lines(), ["PUT …/merge_requests/2/merge"]);
    assert_eq!(stub.sent(), json!({"sha": HEAD, "squash": true, "should_remove_source_branch": false}));
}

#[tokio::test]
async fn a_train_is_joined_with_the_tickets_sha_looked_at_and_left() {
    let stub = Stub::start([sample!("mr_mergeable")]).await;
    let mr = stub.gitlab().merge_request(&stub.project(), MrIid(2)).await.unwrap().unwrap();
    let ticket = MergeTicket::issue(&mr, Some(&head()), PipelineRule::Required, None).unwrap();
    let stub = Stub::start([answer(201, "[]")]).await;
    stub.gitlab().join_merge_train(&stub.project(), MrIid(2), &ticket, true).await.unwrap();
    assert_eq!(stub.lines(), ["POST …/merge_trains/merge_requests/2"]);
    assert_eq!(stub.sent(), json!({"sha": HEAD, "squash": true}));
    let stub = Stub::start([
        answer(200, r#"{"id":267,"status":"idle"}"#),
        refusal(404, "404 Merge Train Merge Request Not Found"),
        answer(201, "{}"),
    ])
    .await;
    assert_eq!(stub.gitlab().merge_train_car(&stub.project(), MrIid(2)).await, Ok(Some(CarState::Waiting)));
    assert_eq!(stub.gitlab().merge_train_car(&stub.project(), MrIid(2)).await, Ok(None));
    stub.gitlab().leave_merge_train(&stub.project(), MrIid(2)).await.unwrap();
    assert_eq!(stub.lines()[2], "POST …/merge_requests/2/cancel_merge_when_pipeline_succeeds");
}

#[tokio::test]
async fn approvals_left_are_known_where_gitlab_says_so() {
    let stub = Stub::start([sample!("approvals_free"), answer(200, r#"{"approvals_left":2,"approved":false}"#)]).await;
    assert_eq!(stub.gitlab().approvals_left(&stub.project(), MrIid(2)).await, Ok(None));
    assert_eq!(stub.gitlab().approvals_left(&stub.project(), MrIid(2)).await, Ok(Some(2)));
    assert_eq!(stub.lines()[0], "GET …/merge_requests/2/approvals");
}

fn lgtm() -> Note {
    Note { id: NoteId(4_406_178), author: UserId(501), body: "LGTM!".into() }
}

#[tokio::test]
async fn notes_leave_out_system_notes_and_go_by_the_header_over_short_pages() {
    let stub = Stub::start([sample!("notes_list").with("x-next-page", "2"), answer(200, "[]").with("x-next-page", "")]).await;
    assert_eq!(stub.gitlab().notes(&stub.project(), MrIid(2)).await, Ok(vec![lgtm()]));
    let url = "GET …/merge_requests/2/notes?activity_filter=only_comments&order_by=created_at&sort=asc&per_page=100";
    assert_eq!(stub.lines(), [url.to_owned(), format!("{url}&page=2")]);
}

#[tokio::test]
async fn a_note_of_nothing_but_quick_actions_is_rejected() {
    let commands = answer(202, include_str!("samples/note_commands_only_202.json"));
    let stub = Stub::start([answer(201, include_str!("samples/note_created.json")), commands]).await;
    assert_eq!(stub.gitlab().add_note(&stub.project(), MrIid(2), "LGTM!").await, Ok(lgtm()));
    let want = Failure::rejected("note_not_made", "the note held nothing but quick actions");
    assert_eq!(stub.gitlab().add_note(&stub.project(), MrIid(2), "/close").await, Err(want));
    assert_eq!(stub.asked()[0].body, r#"{"body":"LGTM!"}"#);
}

#[tokio::test]
async fn a_note_is_edited_in_place() {
    let stub = Stub::start([sample!("note_created")]).await;
    assert_eq!(stub.gitlab().edit_note(&stub.project(), MrIid(2), NoteId(7), "x").await, Ok(()));
    assert_eq!(stub.lines(), ["PUT …/merge_requests/2/notes/7"]);
    assert_eq!(stub.sent(), json!({"body": "x"}));
}

#[tokio::test]
async fn jobs_have_a_failure_reason_only_when_failed() {
    let rows = json!([
        {"id": 2, "name": "test", "stage": "test", "status": "failed", "allow_failure": false, "failure_reason": "script_failure",
         "finished_at": "2026-01-31T18:04:04.000Z"},
        {"id": 1, "name": "lint", "stage": "check", "status": "a_word_of_the_future", "allow_failure": true, "finished_at": null},
    ]);
    let stub = Stub::start([answer(200, rows.to_string())]).await;
    let job = |id, name: &str, stage: &str, status: &str| Job {
        id: JobId(id),
        name: name.into(),
        stage: stage.into(),
        status: status.into(),
        allow_failure: false,
        failure_reason: None,
        finished_at: None,
    };
    let finished_at = Some(Timestamp::from_millis(1_769_882_644_000));
    let want = vec![
        Job { failure_reason: Some("script_failure".into()), finished_at, ..job(2, "test", "test", "failed") },
        Job { allow_failure: true, ..job(1, "lint", "check", "a_word_of_the_future") },
    ];
    assert_eq!(stub.gitlab().jobs(&stub.project(), PipelineId(5)).await, Ok(want));
    assert_eq!(stub.lines(), ["GET …/pipelines/5/jobs?per_page=100"]);
}

#[tokio::test]
async fn the_sampled_jobs_can_be_read() {
    let stub = Stub::start([answer(200, include_str!("samples/pipeline_jobs_list.json"))]).await;
    let gitlab = collie_gitlab::GitLab::new(vec![support::connection(&stub.host)], std::sync::Arc::new(support::Still)).unwrap();
    let jobs = gitlab.jobs(&stub.project(), PipelineId(90001)).await.unwrap();
    assert_eq!((jobs[0].id, jobs[0].status.as_str(), jobs[0].allow_failure), (JobId(700_003), "manual", true));
}

fn project_row() -> String {
    json!({"id": 4242, "path_with_namespace": "acme/demo", "default_branch": "main", "web_url": "https://g.example/acme/demo"}).to_string()
}

fn resolved() -> ResolvedProject {
    ResolvedProject {
        id: collie_core::id::ProjectId(4242),
        path: "acme/demo".into(),
        default_branch: Some("main".into()),
        web_url: "https://g.example/acme/demo".into(),
    }
}

#[tokio::test]
async fn a_path_resolves_to_a_project() {
    let stub = Stub::start([answer(200, project_row())]).await;
    assert_eq!(stub.gitlab().resolve_project(&stub.host, "acme/demo").await, Ok(resolved()));
    assert_eq!(stub.asked()[0].line, "GET /api/v4/projects/acme%2Fdemo");
}

#[tokio::test]
async fn a_renamed_project_is_followed_by_its_id_on_the_same_host_only() {
    let moved = |location: String| answer(301, "This resource has been moved permanently").with("location", location);
    for relative in [true, false] {
        let stub = Stub::start([]).await;
        let location = if relative { "/api/v4/projects/4242".to_owned() } else { format!("http://{}/api/v4/projects/4242", stub.host) };
        stub.push(moved(location));
        stub.push(answer(200, project_row()));
        assert_eq!(stub.gitlab().resolve_project(&stub.host, "old/demo").await, Ok(resolved()));
        assert_eq!(stub.asked()[1].line, "GET /api/v4/projects/4242");
    }
    let elsewhere =
        ["http://evil.example/api/v4/projects/4242", "/api/v4/users/4242", "/api/v4/projects/acme%2Fdemo", "/api/v4/projects/", "http://["];
    for location in elsewhere {
        let stub = Stub::start([moved(location.to_owned())]).await;
        let failure = stub.gitlab().resolve_project(&stub.host, "old/demo").await.unwrap_err();
        assert_eq!((failure.class, failure.code), (Class::Rejected, "redirected"), "{location}");
        assert_eq!(stub.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_project_that_moves_twice_is_not_followed() {
    let moved = || answer(301, "").with("location", "/api/v4/projects/4242");
    let stub = Stub::start([moved(), moved()]).await;
    assert_eq!(stub.gitlab().resolve_project(&stub.host, "old/demo").await.unwrap_err().code, "redirected");
    assert_eq!(stub.asked().len(), 2);
}

#[tokio::test]
async fn the_credentials_user_is_known() {
    let stub = Stub::start([answer(200, r#"{"id":777,"username":"collie","bot":true}"#), refusal(401, "401 Unauthorized")]).await;
    let want = CurrentUser { id: UserId(777), username: "collie".into() };
    assert_eq!(stub.gitlab().current_user(&stub.host).await, Ok(want));
    let want = Failure::new(Class::Unauthorized, "forge_auth", "GET /user answered 401: 401 Unauthorized");
    assert_eq!(stub.gitlab().current_user(&stub.host).await, Err(want));
}
