//! What grants let callers do with work items: each call is checked against the item's own fields, by one whole grant.

use crate::support::{World, submission};
use collie_core::id::ItemId;
use collie_core::item::Phase;
use insta::assert_json_snapshot;
use serde_json::{Value, json};

/// Status and detail of a submission that differs from the usual one.
async fn submit(world: &World, caller: &str, changes: &Value) -> (u16, String) {
    let mut body = submission("bot/x");
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    let (answer, validated) = (world.submit(caller, &body).await, world.post(caller, "/v1/work-items/validate", &body).await);
    assert_eq!(answer.status >= 400, validated.status >= 400, "validating says the same: {}", validated.text);
    (answer.status, answer.json()["detail"].as_str().unwrap_or_default().to_owned())
}

const NONE: &str = "no single grant of this caller covers this work item; GET /v1/me shows the grants";

#[tokio::test]
async fn a_submission_needs_a_grant_of_all_its_fields() {
    let world = World::new();
    assert_eq!(submit(&world, "deps", &json!({"labels": ["deps", "auto/merge"]})).await.0, 201);
    let cases = [
        (json!({"project": "group/other"}), NONE),
        (json!({"project": "group/nothing"}), NONE),
        (json!({"item_type": "issue"}), NONE),
        (json!({"source_branch": "feature/x"}), NONE),
        (json!({"target_branch": "stable"}), NONE),
        (json!({"labels": ["deps", "urgent"]}), "this caller may not use these labels here"),
        (json!({"labels": ["auto/a/b"]}), "this caller may not use these labels here"),
        (json!({"on_conflict": "overwrite"}), "this caller may not overwrite the work of others"),
        (json!({"on_conflict": "overwrite", "labels": ["urgent"]}), NONE),
    ];
    for (changes, detail) in cases {
        assert_eq!(submit(&world, "deps", &changes).await, (403, detail.to_owned()), "{changes}");
    }
    assert_eq!(submit(&world, "reader", &json!({})).await, (403, NONE.to_owned()));
}

#[tokio::test]
async fn two_grants_never_combine() {
    let world = World::new();
    assert_eq!(submit(&world, "split", &json!({"auto_merge": false})).await.0, 201);
    assert_eq!(submit(&world, "split", &json!({"target_branch": "stable", "source_branch": "bot/y"})).await.0, 201);
    let denied = submit(&world, "split", &json!({"source_branch": "bot/z"})).await;
    assert_eq!(denied, (403, "this caller may not ask for auto_merge here".into()), "to main, and merged: each of two grants has one half");
}

#[tokio::test]
async fn a_submission_that_finds_anothers_item_needs_others_and_a_grant_of_that_item() {
    let world = World::new();
    world.submitted("alice", "bot/x").await;
    let others = (403, "the branch belongs to another caller's work item".to_owned());
    assert_eq!(submit(&world, "deps", &json!({"title": "Other"})).await, others);
    assert_eq!(submit(&world, "lead", &json!({"title": "Other"})).await.0, 200);
    let mut urgent = submission("bot/y");
    urgent["labels"] = json!(["urgent"]);
    assert_eq!(world.submit("alice", &urgent).await.status, 201);
    assert_eq!(
        submit(&world, "lead", &json!({"source_branch": "bot/y"})).await,
        others,
        "that item has a label of which lead has no grant"
    );
    let mut stable = submission("bot/z");
    stable["target_branch"] = json!("stable");
    assert_eq!(world.submit("alice", &stable).await.status, 201);
    assert_eq!(submit(&world, "lead", &json!({"source_branch": "bot/z"})).await, others, "that item goes to another branch");
    assert_eq!(submit(&world, "root", &json!({"source_branch": "bot/z"})).await.0, 200);
}

/// Statuses of reading in all ways, retrying, overwriting and cancelling.
async fn calls(world: &World, caller: &str, id: &ItemId) -> [u16; 6] {
    let path = format!("/v1/work-items/{id}");
    let [show, timeline, explain] = ["", "/timeline", "/explain"].map(|end| format!("{path}{end}"));
    [
        world.get(caller, &show).await.status,
        world.get(caller, &timeline).await.status,
        world.get(caller, &explain).await.status,
        world.post(caller, &format!("{path}/retry"), &json!({"overwrite": true})).await.status,
        world.post(caller, &format!("{path}/retry"), &json!({})).await.status,
        world.post(caller, &format!("{path}/cancel"), &json!({})).await.status,
    ]
}

#[tokio::test]
async fn calls_on_an_item_are_checked_against_its_own_fields() {
    let table = [
        ("deps", json!({}), [404, 404, 404, 404, 404, 404]),
        ("reader", json!({}), [200, 200, 200, 403, 403, 403]),
        ("lead", json!({}), [200, 200, 200, 403, 200, 202]),
        ("root", json!({}), [200, 200, 200, 200, 409, 202]),
        ("lead", json!({"labels": ["urgent"]}), [404, 404, 404, 404, 404, 404]),
        ("lead", json!({"target_branch": "stable"}), [404, 404, 404, 404, 404, 404]),
        ("lead", json!({"project": "group/other"}), [200, 200, 200, 403, 403, 403]),
        ("reader", json!({"project": "group/other"}), [404, 404, 404, 404, 404, 404]),
        ("split", json!({}), [404, 404, 404, 404, 404, 404]),
    ];
    for (caller, changes, statuses) in table {
        let world = World::new();
        let mut body = submission("bot/x");
        changes.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        let id = ItemId::new(world.submit("alice", &body).await.json()["work_item"]["id"].as_str().unwrap());
        world.hold(&id, |item| item.phase = Phase::Failed).await;
        assert_eq!(calls(&world, caller, &id).await, statuses, "{caller} on {changes}");
    }
}

#[tokio::test]
async fn what_one_may_see_and_not_move_says_so() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let answer = world.post("reader", &format!("/v1/work-items/{id}/cancel"), &json!({})).await;
    assert_eq!((answer.refusal(), answer.json()["detail"].as_str()), ((403, "forbidden".into()), Some(NONE)));
}

#[tokio::test]
async fn lists_show_what_the_caller_may_see() {
    let world = World::new();
    let mut ids = std::collections::BTreeMap::new();
    for (name, caller, changes) in [
        ("plain", "alice", json!({"source_branch": "bot/a"})),
        ("urgent", "alice", json!({"source_branch": "bot/b", "labels": ["urgent"]})),
        ("stable", "bob", json!({"source_branch": "bot/c", "target_branch": "stable"})),
        ("other", "bob", json!({"source_branch": "bot/d", "project": "group/other"})),
        ("own", "deps", json!({"source_branch": "bot/e"})),
    ] {
        let mut body = submission("");
        changes.as_object().unwrap().iter().for_each(|(field, value)| body[field] = value.clone());
        let answer = world.submit(caller, &body).await;
        ids.insert(answer.json()["work_item"]["id"].as_str().unwrap().to_owned(), name);
    }
    let cases = [
        ("deps", "", vec!["own"]),
        ("split", "", vec![]),
        ("reader", "", vec!["own", "stable", "urgent", "plain"]),
        ("reader", "?caller=local%7Cbob", vec!["stable"]),
        ("lead", "", vec!["own", "other", "plain"]),
        ("lead", "?project=group/other", vec!["other"]),
        ("alice", "", vec!["urgent", "plain"]),
        ("root", "", vec!["own", "other", "stable", "urgent", "plain"]),
    ];
    for (caller, query, names) in cases {
        let page = world.get(caller, &format!("/v1/work-items{query}")).await.json();
        let shown: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| ids[item["id"].as_str().unwrap()]).collect();
        assert_eq!(shown, names, "{caller} {query}");
    }
    assert_eq!(world.get("reader", "/v1/work-items?project=group/other").await.refusal(), (403, "forbidden".into()));
}

#[tokio::test]
async fn the_policy_is_above_every_grant() {
    let mut body = submission("bot/x");
    body["file_actions"] = json!([{"action": "create", "file_path": ".gitlab-ci.yml", "content": "x"}]);
    let answer = World::new().submit("root", &body).await;
    assert_eq!((answer.refusal(), answer.errors()[0].1.as_str()), ((422, "policy".into()), "protected_path"));
}

#[tokio::test]
async fn grants_are_shown_as_the_configuration_writes_them() {
    let world = World::new();
    assert_json_snapshot!("me_with_grants", world.get("lead", "/v1/me").await.json());
}
