//! Reading items, lists, timelines and explanations.

use crate::support::{NOW, World, submission};
use collie_core::id::{ItemId, MrIid, NoteId, PipelineId, Sha, UserId};
use collie_core::item::{Blocked, BlockedReason, Dimension, LastError, Phase, Step, TimelineEntry};
use collie_core::mr::dims;
use collie_core::mr::facts::{Blocker, Facts, MrRef, NoteRef, PipelineRef};
use collie_engine::ports::Items;
use insta::assert_json_snapshot;
use serde_json::json;
use std::time::Duration;

/// Makes an item look like one whose merge request waits for its pipeline.
async fn under_way(world: &World, id: &ItemId) {
    let write = |item: &mut collie_core::item::Item| {
        let mut facts = Facts::default();
        let number = facts.intend(item, 1, Sha::new("aaaa")).number;
        facts.made(number, Sha::new("bbbb"), None);
        let (url, metadata) = ("https://gitlab.example.com/group/app/-/merge_requests/7".into(), item.metadata_hash.clone());
        facts.mr = Some(MrRef { iid: MrIid(7), author: UserId(1), url, metadata, described: String::new() });
        facts.note = Some(NoteRef { id: Some(NoteId(3)), ..NoteRef::default() });
        facts.pipeline = Some(PipelineRef { id: PipelineId(90), status: "running".into(), sha: Sha::new("bbbb"), listed: false });
        facts.blockers =
            vec![Blocker { code: "ci_still_running".into(), detail: "the pipeline runs".into(), source: "pipeline".into(), seen_at: NOW }];
        item.facts = facts.document();
        item.attempts = 1;
        item.last_error = Some(LastError { code: "forge_busy".into(), message: "GitLab is busy".into(), at: NOW });
        item.dims.insert(dims::mr(), Dimension::done());
        item.dims.insert(dims::dashboard(), Dimension::done());
        item.dims.insert(dims::reconcile(), Dimension::deferred(NOW.after(Duration::from_secs(60)), "waiting for the pipeline"));
    };
    world.hold(id, write).await;
}

#[tokio::test]
async fn an_item_shows_everything_but_bytes() {
    let world = World::new();
    let mut body = submission("bot/x");
    body["file_actions"] = json!([
        {"action": "update", "file_path": "lib/versions.txt", "content": "canary-content"},
        {"action": "move", "previous_path": "a.md", "file_path": "docs/a.md"},
        {"action": "chmod", "file_path": "run.sh", "execute_filemode": true},
    ]);
    let id = ItemId::new(world.submit("alice", &body).await.json()["work_item"]["id"].as_str().unwrap());
    under_way(&world, &id).await;
    let answer = world.get("alice", &format!("/v1/work-items/{id}")).await;
    assert!(!answer.text.contains("canary-content"));
    assert_json_snapshot!("item", answer.shown());
}

#[tokio::test]
async fn an_explanation_names_what_is_waited_for() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    under_way(&world, &id).await;
    assert_json_snapshot!("explanation", world.get("alice", &format!("/v1/work-items/{id}/explain")).await.shown());
}

#[tokio::test]
async fn a_blocked_item_says_since_when() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let blocked = Blocked { reason: BlockedReason::ForeignCommits, since: NOW, detail: "someone pushed".into() };
    world.hold(&id, |item| item.blocked = Some(blocked)).await;
    let item = world.get("alice", &format!("/v1/work-items/{id}")).await.json();
    assert_eq!(item["blocked"], json!({"reason": "foreign_commits", "since": "2026-01-31T18:04:04.000Z", "detail": "someone pushed"}));
}

fn run(epoch: u64) -> TimelineEntry {
    let step = Step { action: "ensure_mr".into(), outcome: "opened !7".into(), gitlab_calls: 4, sha: Some(Sha::new("bbbb")) };
    TimelineEntry {
        at: NOW,
        epoch,
        actor: "worker".into(),
        steps: vec![step],
        waits_for: "pipeline".into(),
        gitlab_calls: 4,
        write_units: 6,
    }
}

#[tokio::test]
async fn a_timeline_is_paged_oldest_first() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    for epoch in 1..=3 {
        world.items.append_timeline(&id, &run(epoch)).await.unwrap();
    }
    let path = format!("/v1/work-items/{id}/timeline");
    let first = world.get("alice", &format!("{path}?limit=2")).await;
    assert_json_snapshot!("timeline", first.shown());
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let last = world.get("alice", &format!("{path}?limit=2&cursor={cursor}")).await.json();
    assert_eq!((last["entries"][0]["epoch"].as_u64(), &last["next_cursor"]), (Some(3), &json!(null)));
}

fn ids(page: &serde_json::Value) -> Vec<u64> {
    let number = |item: &serde_json::Value| item["id"].as_str().unwrap()[24..].parse().unwrap();
    page["items"].as_array().unwrap().iter().map(number).collect()
}

#[tokio::test]
async fn a_list_is_paged_newest_first_and_holds_ones_own_items() {
    let world = World::new();
    let mut mine = Vec::new();
    for branch in ["bot/a", "bot/b", "bot/c"] {
        mine.push(world.submitted("alice", branch).await);
        world.submitted("bob", &format!("{branch}-bob")).await;
    }
    let first = world.get("alice", "/v1/work-items?limit=2").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let last = world.get("alice", &format!("/v1/work-items?limit=2&cursor={cursor}")).await.json();
    let shown = |page: &serde_json::Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|i| i["detail"]["source_branch"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((shown(&first), shown(&last)), (vec!["bot/c".into(), "bot/b".into()], vec!["bot/a".into()]));
    assert_eq!(last["next_cursor"], json!(null));
    let all = world.get("root", "/v1/work-items").await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), 6);
    assert!(ids(&all).is_sorted_by(|a, b| a > b));
}

#[tokio::test]
async fn filters_narrow_a_list() {
    let world = World::new();
    let a = world.submitted("alice", "bot/a").await;
    let b = world.submitted("bob", "bot/b").await;
    world.hold(&b, |item| item.phase = Phase::Failed).await;
    let (a, b) = (a.as_str(), b.as_str());
    let cases = [
        ("phase=active", vec![a]),
        ("phase=failed", vec![b]),
        ("phase=completed", vec![]),
        ("item_type=mr", vec![b, a]),
        ("item_type=issue", vec![]),
        ("project=group/app", vec![b, a]),
        ("project=group~app", vec![b, a]),
        ("project=group%2Fother", vec![]),
        ("source_branch=bot/a", vec![a]),
        ("caller=local%7Cbob", vec![b]),
        ("caller=local%7Cbob&phase=active", vec![]),
    ];
    for (query, want) in cases {
        let page = world.get("root", &format!("/v1/work-items?{query}")).await.json();
        let got: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(got, want, "{query}");
    }
    assert_eq!(world.get("alice", "/v1/work-items?caller=local%7Cbob").await.json(), json!({"items": [], "next_cursor": null}));
}

#[tokio::test]
async fn parameters_that_cannot_be_used_are_named_together() {
    let world = World::new();
    let answer = world.get("alice", "/v1/work-items?limit=0&phase=done&cursor=%25&state=x&caller=a&caller=b").await;
    assert_eq!(answer.refusal(), (400, "invalid_query".into()));
    let want = [
        ("state", "unknown_parameter"),
        ("caller", "repeated_parameter"),
        ("phase", "invalid_value"),
        ("limit", "invalid_value"),
        ("cursor", "invalid_value"),
    ];
    assert_eq!(answer.errors(), want.map(|(path, code)| (path.to_owned(), code.to_owned())));
    for limit in ["201", "-1", "x", ""] {
        assert_eq!(world.get("alice", &format!("/v1/work-items?limit={limit}")).await.status, 400, "{limit}");
    }
    assert_eq!(world.get("alice", "/v1/work-items?limit=200").await.status, 200);
    assert_eq!(world.get("root", "/v1/work-items?project=group/nothing").await.refusal(), (422, "unknown_project".into()));
    assert_eq!(world.get("alice", "/v1/work-items?project=group/nothing").await.refusal(), (403, "forbidden".into()));
}

#[tokio::test]
async fn an_item_of_another_caller_looks_like_none() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    for path in ["", "/timeline", "/explain"] {
        let other = world.get("bob", &format!("/v1/work-items/{id}{path}")).await;
        let missing = world.get("bob", &format!("/v1/work-items/nothing{path}")).await;
        let strange = world.get("bob", &format!("/v1/work-items/a%20b{path}")).await;
        for answer in [&other, &missing, &strange] {
            assert_eq!(answer.refusal(), (404, "not_found".into()), "{path}");
            assert_eq!(answer.json()["detail"], other.json()["detail"]);
        }
        assert_eq!(world.get("root", &format!("/v1/work-items/{id}{path}")).await.status, 200, "{path}");
    }
}
