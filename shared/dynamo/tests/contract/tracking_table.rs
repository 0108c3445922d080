//! What only the table shows of issue tracking: rows as they are stored, when they expire, and units.
//!
//! `fixtures/tracking.json` has rows as this version writes them. It is never changed: where the writer changes, the rows that it writes
//! then go into a file of their own, and both are read.

use crate::fixture::{NOW, at};
use crate::stores::{TABLE, Tracking, table, tracking_dynamodb, tracking_memory};
use crate::tracked::{Queue, build_id, build_issue, checkpoint, create, issue, mark, queue, request, rows, unit};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use collie_core::issue::call::{self, MAX_CHUNK};
use collie_core::issue::id::QueueName;
use collie_core::issue::row::{Analysis, Build, HistoryEntry, Milestone, Outcome, QueueHead, Request, RowKey, Status};
use collie_core::issue::table::{Belief, BuildChange, Edit};
use collie_dynamo::DynamoTracking;
use collie_engine::cost::Meter;
use collie_engine::ports::{TrackingRows, Written};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

const RECORDED: &str = include_str!("fixtures/tracking.json");

/// Attribute values as DynamoDB's JSON has them.
fn shown(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(text) => json!({"N": text}),
        AttributeValue::Bool(flag) => json!({"BOOL": flag}),
        AttributeValue::B(bytes) => json!({"B": bytes.as_ref()}),
        AttributeValue::L(list) => json!({"L": list.iter().map(shown).collect::<Vec<_>>()}),
        AttributeValue::M(map) => json!({"M": map.iter().map(|(name, value)| (name.clone(), shown(value))).collect::<Map<_, _>>()}),
        other => panic!("{other:?}"),
    }
}

fn stored(value: &Value) -> AttributeValue {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "S" => AttributeValue::S(value.as_str().unwrap().into()),
        "N" => AttributeValue::N(value.as_str().unwrap().into()),
        "BOOL" => AttributeValue::Bool(value.as_bool().unwrap()),
        "B" => AttributeValue::B(Blob::new(serde_json::from_value::<Vec<u8>>(value.clone()).unwrap())),
        "L" => AttributeValue::L(value.as_array().unwrap().iter().map(stored).collect()),
        "M" => AttributeValue::M(attributes(value)),
        other => panic!("{other}"),
    }
}

fn attributes(value: &Value) -> HashMap<String, AttributeValue> {
    value.as_object().unwrap().iter().map(|(name, value)| (name.clone(), stored(value))).collect()
}

/// The rows that are in the table, by key.
async fn all_rows(client: &Client) -> Vec<Value> {
    let found = client.scan().table_name(TABLE).send().await.unwrap().items.unwrap();
    let mut found: Vec<_> = found.into_iter().map(|row| shown(&AttributeValue::M(row))["M"].clone()).collect();
    found.sort_by_key(|row| (row["pk"]["S"].to_string(), row["sk"]["S"].to_string()));
    found
}

fn names() -> [(bool, &'static str); 2] {
    [(true, "app-main"), (false, "lib#2.x")]
}

async fn on_a_table() -> (Client, DynamoTracking) {
    let client = table().await;
    (client.clone(), DynamoTracking::new(client, TABLE.into()))
}

#[tokio::test]
async fn rows_are_written_as_recorded() {
    let (client, store) = on_a_table().await;
    for (full, name) in names() {
        for row in rows(full) {
            assert_eq!(store.write(&QueueName::new(name), &[create(row)]).await, Ok(Written::Yes));
        }
    }
    let written: Vec<_> = all_rows(&client).await.iter().map(Value::to_string).collect();
    assert_eq!(format!("[\n{}\n]\n", written.join(",\n")), RECORDED);
}

#[tokio::test]
async fn recorded_rows_are_read_back() {
    let (client, store) = on_a_table().await;
    let recorded: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded.len(), 28);
    for row in &recorded {
        let mut row = attributes(row);
        row.insert("later".into(), AttributeValue::Ss(vec!["of a newer version".into()]));
        client.put_item().table_name(TABLE).set_item(Some(row)).send().await.unwrap();
    }
    for (full, name) in names() {
        for (key, row) in rows(full) {
            assert_eq!(store.read(&QueueName::new(name), &key).await, Ok(Some(row)), "{key:?}");
        }
    }
}

/// Attributes beside the columns are a newer version's; no edit but a removal touches them.
#[tokio::test]
async fn attributes_of_a_newer_version_survive_every_change() {
    let (client, store) = on_a_table().await;
    let key = [("pk", "build#app-main#gitlab/4242/1"), ("sk", "build")];
    let key: HashMap<_, _> = key.into_iter().map(|(name, text)| (name.to_owned(), AttributeValue::S(text.into()))).collect();
    let mut row = key.clone();
    row.insert("later".into(), AttributeValue::Ss(vec!["x".into()]));
    client.put_item().table_name(TABLE).set_item(Some(row)).send().await.unwrap();
    let own = || crate::tracked::open_build(1);
    for edit in [
        Edit::Put(RowKey::build(&build_id(1)), own().into(), Belief::Anything),
        Edit::Keep(RowKey::build(&build_id(1)), own().into()),
        Edit::Change(build_id(1), BuildChange::Report),
        Edit::Put(RowKey::build(&build_id(1)), own().into(), Belief::Version(1)),
    ] {
        assert_eq!(store.write(&queue(), &[edit]).await, Ok(Written::Yes));
    }
    let found = client.get_item().table_name(TABLE).set_key(Some(key)).send().await.unwrap().item.unwrap();
    assert_eq!(found["later"], AttributeValue::Ss(vec!["x".into()]));
}

async fn expiries(client: &Client) -> Vec<(String, Option<String>)> {
    let rows = all_rows(client).await;
    rows.iter().map(|row| (row["sk"]["S"].as_str().unwrap().to_owned(), row["exp"]["N"].as_str().map(str::to_owned))).collect()
}

#[tokio::test]
async fn what_builds_reported_and_the_history_of_requests_expire_and_nothing_else() {
    let (client, store) = on_a_table().await;
    for row in rows(true) {
        store.write(&queue(), &[create(row)]).await.unwrap();
    }
    let expiring: Vec<_> = expiries(&client).await.into_iter().filter_map(|(sk, exp)| Some((sk, exp?))).collect();
    let days = |written: u64, days: u64| (written + days * 86_400).to_string();
    let (reported, told) = (NOW.as_millis() / 1_000, at(8).as_millis() / 1_000);
    let sk = |text: &str| text.to_owned();
    assert_eq!(
        expiring,
        [
            (sk("issue#unit\"20tests!a::b\"20#1\"2050%\"20\"22é\"22!"), days(reported, 187)),
            (sk("history#event/issues_reconciled/gitlab/4242/3"), days(told, 187)),
        ]
    );
}

#[tokio::test]
async fn an_expiry_stays_as_it_was_first_written() {
    let (client, store) = on_a_table().await;
    let keep = [Edit::Keep(RowKey::build_issue(&build_id(1), &unit("a")), build_issue(&unit("a"), None))];
    let week = store.clone().keeping(Duration::from_secs(7 * 86_400));
    for store in [&week, &store] {
        assert_eq!(store.write(&queue(), &keep).await, Ok(Written::Yes));
    }
    let expected = (NOW.as_millis() / 1_000 + 7 * 86_400).to_string();
    assert_eq!(expiries(&client).await, [("issue#unit\"20tests!a!".to_owned(), Some(expected))]);
}

/// The units of one write, as a line of the bill.
async fn note(bill: &mut String, what: &str, queue: &mut Queue, edits: &[Edit]) {
    let meter = Meter::default();
    meter.scope(queue.store.write(&queue.name, edits)).await.unwrap();
    queue.model.write(edits).ok();
    writeln!(bill, "{what}: {}", meter.write_units()).unwrap();
}

async fn bill(store: Tracking) -> String {
    let (mut bill, mut queue) = (String::new(), Queue::new(store));
    let queue = &mut queue;
    let (id, admission) = call::admit(None::<&QueueHead>, "git@example.com/app@0af1", NOW).unwrap();
    note(&mut bill, "admission", queue, &admission).await;
    let admitted = Request::try_from(queue.model.get(&RowKey::request(id)).unwrap().clone()).unwrap();
    note(&mut bill, "association", queue, &call::associate(&admitted, None, &build_id(1)).unwrap()).await;
    let issues: BTreeMap<_, _> = (0..MAX_CHUNK).map(|n| (unit(&format!("test {n}")), Some("expected 3, got 4".into()))).collect();
    note(&mut bill, "report of 90", queue, &call::report(&build_id(1), &issues, NOW)).await;
    note(&mut bill, "report of none", queue, &call::report(&build_id(1), &BTreeMap::new(), NOW)).await;
    let associated = Request::try_from(queue.model.get(&RowKey::request(id)).unwrap().clone()).unwrap();
    note(&mut bill, "outcome", queue, &call::conclude(&associated, Outcome::Failed, NOW)).await;
    let build = Build::try_from(queue.model.get(&RowKey::build(&build_id(1))).unwrap().clone()).unwrap();
    note(&mut bill, "end of the analysis", queue, &call::end_analysis(&build, Analysis::Completed, None, NOW).unwrap()).await;
    note(&mut bill, "checkpoint", queue, &[Edit::create(RowKey::checkpoint(), checkpoint(1))]).await;
    note(&mut bill, "cursor", queue, &[Edit::replace(RowKey::checkpoint(), checkpoint(2), Some(1))]).await;
    note(&mut bill, "refused cursor", queue, &[Edit::replace(RowKey::checkpoint(), checkpoint(2), Some(1))]).await;
    let key = unit("test 1");
    let opened = Edit::create(RowKey::issue(&key), issue(&key, Status::Open, 1));
    note(&mut bill, "opening", queue, &[opened, Edit::Put(RowKey::open(&key), mark(&key), Belief::Anything)]).await;
    note(&mut bill, "processed", queue, &[Edit::replace(RowKey::issue(&key), issue(&key, Status::Open, 2), Some(1))]).await;
    let closed = Edit::replace(RowKey::issue(&key), issue(&key, Status::Closed, 3), Some(2));
    note(&mut bill, "closing", queue, &[closed, Edit::Remove(RowKey::open(&key))]).await;
    let milestone = Milestone::BuildAnalysisAbandoned { build: build_id(1) };
    let entry = HistoryEntry { request: request(1), milestone, at: NOW };
    note(&mut bill, "history", queue, &[Edit::Keep(RowKey::history(id, &entry.milestone), entry.into())]).await;
    let mut large = issue(&key, Status::Closed, 4);
    large.metadata.insert("example.com/note".into(), "x".repeat(4_000));
    note(&mut bill, "more metadata", queue, &[Edit::replace(RowKey::issue(&key), large, Some(3))]).await;
    note(&mut bill, "less metadata", queue, &[Edit::replace(RowKey::issue(&key), issue(&key, Status::Closed, 5), Some(4))]).await;
    note(&mut bill, "end of the job", queue, &[Edit::Remove(RowKey::job(id))]).await;
    bill
}

const BILL: &str = "\
admission: 8
association: 4
report of 90: 182
report of none: 1
outcome: 4
end of the analysis: 4
checkpoint: 1
cursor: 1
refused cursor: 1
opening: 4
processed: 1
closing: 4
history: 1
more metadata: 5
less metadata: 5
end of the job: 1
";

#[tokio::test]
async fn both_stores_bill_the_same() {
    let memory = bill(tracking_memory()).await;
    assert_eq!(memory, bill(tracking_dynamodb().await).await);
    assert_eq!(memory, BILL);
}
