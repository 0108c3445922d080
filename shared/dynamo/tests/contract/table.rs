//! What only the table shows: raw rows, sizes and units.

use crate::fixture::{
    NOW, append, applies, at, audit, born, born_as, cancel, claim, commit, committed, creation_of, dimension, exit, id, new_item, overflow,
    release, retry, sha, update, updated,
};
use crate::stores::{Store, TABLE, table};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use collie_core::item::{Dimension, Document, Item, Phase, TimelineEntry};
use collie_core::queue::{Change, Ending};
use collie_dynamo::{DynamoItems, MemoryItems, units};
use collie_engine::cost::Meter;
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

type Raw = HashMap<String, AttributeValue>;

async fn raw(client: &Client, pk: &str, sk: &str) -> Raw {
    let key = [("pk", pk), ("sk", sk)].map(|(name, text)| (name.to_owned(), AttributeValue::S(text.into())));
    client.get_item().table_name(TABLE).set_key(Some(HashMap::from(key))).send().await.unwrap().item.unwrap()
}

async fn with_client() -> (Client, Store) {
    let client = table().await;
    (client.clone(), Arc::new(DynamoItems::new(client, TABLE.into())))
}

fn pk(item: &Item) -> String {
    format!("item#{}", item.id)
}

#[tokio::test]
async fn a_timeline_row_expires_after_ninety_days() {
    let (client, store) = with_client().await;
    let entry = TimelineEntry {
        at: NOW,
        epoch: 3,
        actor: "execute".into(),
        steps: vec![],
        waits_for: "pipeline".into(),
        gitlab_calls: 0,
        write_units: 0,
    };
    store.append_timeline(&id(1), &entry).await.unwrap();
    let row = raw(&client, &format!("item#{}", id(1)), "log#001769882644120#0000000003").await;
    assert_eq!(row["exp"], AttributeValue::N((1_769_882_644 + 90 * 86_400).to_string()));
    let ttl = client.describe_time_to_live().table_name(TABLE).send().await.unwrap();
    assert_eq!(ttl.time_to_live_description().unwrap().attribute_name(), Some("exp"));
}

#[tokio::test]
async fn the_due_attribute_is_there_only_while_the_item_is_due() {
    let (client, store) = with_client().await;
    let row = born(&store, 1).await;
    assert_eq!(raw(&client, &pk(&row), "item").await["due_at"], AttributeValue::N(NOW.as_millis().to_string()));
    let row = applies(&store, &row, &claim(9, NOW)).await;
    applies(&store, &row, &exit(&row, 7, None)).await;
    assert_eq!(raw(&client, &pk(&row), "item").await.get("due_at"), None);
}

#[tokio::test]
async fn attributes_of_a_newer_version_survive_every_change() {
    let (client, store) = with_client().await;
    let row = born(&store, 1).await;
    let mut newer = raw(&client, &pk(&row), "item").await;
    newer.insert("later".into(), AttributeValue::Ss(vec!["x".into()]));
    client.put_item().table_name(TABLE).set_item(Some(newer)).send().await.unwrap();
    let row = applies(&store, &row, &claim(9, NOW)).await;
    let row = applies(&store, &row, &committed(commit(&row, 5))).await;
    let row = applies(&store, &row, &append(1)).await;
    let row = applies(&store, &row, &updated(update(&row, 6))).await;
    applies(&store, &row, &release(&row, 7, at(1))).await;
    assert_eq!(raw(&client, &pk(&row), "item").await["later"], AttributeValue::Ss(vec!["x".into()]));
}

#[tokio::test]
async fn creating_the_table_again_leaves_it() {
    let (client, store) = with_client().await;
    let row = born(&store, 1).await;
    collie_dynamo::schema::create_table(&client, TABLE).await.unwrap();
    assert_eq!(store.item(&row.id).await, Ok(Some(row)));
}

/// A merge request's item after its first run, waiting for its pipeline.
fn typical() -> Item {
    let mut item = new_item(1);
    (item.wake_seq, item.lease_epoch, item.commit_seq, item.claims) = (4, 3, 7, 1);
    (item.commit_token, item.lease_token) = (Some(crate::fixture::token(70)), Some(crate::fixture::token(71)));
    (item.leased_until, item.last_event_at) = (Some(at(90)), Some(at(60)));
    item.dims.insert(dimension("needs_mr"), Dimension::done());
    item.dims.insert(dimension("needs_dashboard"), Dimension::done());
    item.dims.insert(dimension("needs_reconcile"), Dimension::deferred(at(1_860), "the pipeline runs"));
    item.dim_seq.insert(dimension("needs_reconcile"), 3);
    item.recent = (1..=4).map(crate::fixture::digest).collect();
    append(9).apply(&mut item);
    item.outbox = vec![audit(1, "action"), audit(2, "decision")];
    item.wanted =
        Document::of(&json!({"auto_merge": true, "draft": false, "on_conflict": "block", "remove_source_branch": true, "spec_rev": 1}));
    item.facts = Document::of(&json!({
        "built": [{"build": 1, "content_hash": format!("{:064x}", 5), "target": "main", "base": sha(1), "start": sha(2), "sha": sha(3), "at": NOW}],
        "mr_iid": 7, "mr_author_id": 1_204, "note_id": 881_234_567, "note_hash": format!("{:064x}", 6), "branch_sha": sha(3),
        "pipeline": {"id": 90_001, "status": "running", "sha": sha(3)}, "blockers": ["ci_still_running"], "target_sha": sha(2),
    }));
    item
}

#[test]
fn a_typical_row_takes_two_units() {
    let size = units::item_size(&typical());
    assert_eq!(size, 1_688);
    assert_eq!(units::item_size(&new_item(1)), 722);
}

async fn cost_of(store: &Store, row: &Item, change: &Change) -> (u32, Item) {
    let meter = Meter::default();
    let after = meter.scope(applies(store, row, change)).await;
    (meter.write_units(), after)
}

/// The units of each change on the typical row, as text.
async fn bill(store: Store) -> String {
    let mut bill = String::new();
    let mut note = |what: &str, units: u32| writeln!(bill, "{what}: {units}").unwrap();
    let mut idle = typical();
    (idle.leased_until, idle.lease_token) = (None, None);
    let row = born_as(&store, idle).await;
    let (units, row) = cost_of(&store, &row, &claim(9, at(1))).await;
    note("claim", units);
    let (units, row) = cost_of(&store, &row, &Change::Heartbeat { epoch: row.lease_epoch, until: at(100) }).await;
    note("heartbeat", units);
    let mut c = commit(&row, 5);
    (c.next.facts, c.next.outbox) = (row.facts.clone(), vec![audit(1, "action")]);
    let (units, row) = cost_of(&store, &row, &committed(c)).await;
    note("commit", units);
    let (units, row) = cost_of(&store, &row, &append(20)).await;
    note("append", units);
    let (units, row) = cost_of(&store, &row, &overflow(21)).await;
    note("overflow", units);
    let (units, row) = cost_of(&store, &row, &updated(update(&row, 6))).await;
    note("update", units);
    let (units, row) = cost_of(&store, &row, &release(&row, 7, at(5))).await;
    note("release", units);
    let row = applies(&store, &row, &claim(10, at(6))).await;
    let (units, row) = cost_of(&store, &row, &exit(&row, 8, Some(at(60)))).await;
    note("exit", units);
    let (units, row) = cost_of(&store, &row, &cancel(&row, 11)).await;
    note("cancel", units);
    let row = applies(&store, &row, &claim(12, at(7))).await;
    let mut c = commit(&row, 13);
    (c.next.phase, c.ending, c.next.facts) = (Phase::Failed, Ending::Exit { due_at: None }, row.facts.clone());
    let (units, row) = cost_of(&store, &row, &committed(c)).await;
    note("last commit", units);
    let head = store.head(&row.branch).await.unwrap().unwrap();
    let (units, row) = cost_of(&store, &row, &retry(&row, head.clone(), 14)).await;
    note("retry", units);
    let row = applies(&store, &row, &claim(15, at(8))).await;
    let mut next = new_item(2);
    (next.branch, next.generation) = (row.branch.clone(), 2);
    let mut c = commit(&row, 16);
    (c.next.phase, c.ending) = (Phase::Completed, Ending::Exit { due_at: None });
    c.successor = Some(Box::new(creation_of(next, Some(collie_core::item::BranchHead { version: head.version + 1, ..head }))));
    let (units, _) = cost_of(&store, &row, &committed(c)).await;
    note("last commit with a next life", units);
    bill
}

const BILL: &str = "\
claim: 2
heartbeat: 2
commit: 2
append: 4
overflow: 4
update: 8
release: 4
exit: 4
cancel: 4
last commit: 4
retry: 8
last commit with a next life: 14
";

#[tokio::test]
async fn a_creation_takes_eight_units() {
    for store in [Arc::new(MemoryItems::new()) as Store, with_client().await.1] {
        let meter = Meter::default();
        meter.scope(born(&store, 1)).await;
        assert_eq!(meter.write_units(), 8);
    }
}

#[tokio::test]
async fn both_stores_bill_the_same() {
    let memory = bill(Arc::new(MemoryItems::new())).await;
    let (_, dynamodb) = with_client().await;
    assert_eq!(memory, bill(dynamodb).await);
    assert_eq!(memory, BILL);
}
