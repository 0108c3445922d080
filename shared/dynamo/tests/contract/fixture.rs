//! Items and changes as the cases need them, and the three answers a change can get.

use crate::stores::Store;
use collie_core::files::{ActionRecord, ContentHash, Verb};
use collie_core::id::{BranchIdentity, Digest, ItemId, JobId, PipelineId, ProjectId, Sha, Token};
use collie_core::item::{
    AuditEntry, BranchHead, CancelRequest, Content, Dimension, DimensionKey, Document, InboxEntry, Item, Phase, ResultKind, StateChange,
    Trigger,
};
use collie_core::queue::{Belief, Cancel, Change, Commit, Creation, Ending, Enqueue, Retry, Update, Verdict};
use collie_core::time::Timestamp;
use collie_engine::ports::{ChangeError, Created};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const HOST: &str = "gitlab.example.com";
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_120);

/// This many seconds after [`NOW`].
pub(crate) fn at(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

pub(crate) fn id(n: u64) -> ItemId {
    ItemId::new(format!("0198c0de-0000-7000-8000-{n:012x}"))
}

pub(crate) fn token(n: u64) -> Token {
    Token::new(format!("5ca1ab1e-0000-4000-8000-{n:012x}"))
}

pub(crate) fn digest(n: u64) -> Digest {
    Digest::new(format!("{n:032x}"))
}

pub(crate) fn sha(n: u64) -> Sha {
    Sha::new(format!("{n:040x}"))
}

pub(crate) fn hash(n: u64) -> ContentHash {
    serde_json::from_value(json!(format!("{n:064x}"))).unwrap()
}

pub(crate) fn branch(n: u64) -> BranchIdentity {
    BranchIdentity { host: HOST.into(), project_id: ProjectId(4242), source_branch: format!("collie/update-dependencies-{n}") }
}

pub(crate) fn dimension(name: &str) -> DimensionKey {
    DimensionKey::new(name)
}

pub(crate) fn audit(n: u64, event_type: &str) -> AuditEntry {
    AuditEntry {
        id: format!("0198c0de-0000-7000-8000-{n:012x}:{n}"),
        ts: NOW,
        event_type: event_type.into(),
        actor: "ci-bot".into(),
        old_state: None,
        new_state: Some(StateChange { phase: Phase::Active, action: Some("ensure_mr".into()) }),
        trigger: Trigger { source: "api".into(), action: None, reason: Some("submitted".into()), error: None },
        metadata: None,
    }
}

pub(crate) fn content(title: &str) -> Content {
    Content {
        title: title.into(),
        description: "Moves all dependencies to their latest versions.".into(),
        labels: vec!["dependencies".into(), "managed-by::collie".into()],
        commit_message: "chore: update dependencies".into(),
        actions: vec![ActionRecord {
            action: Verb::Update,
            file_path: "Cargo.lock".into(),
            previous_path: None,
            execute_filemode: None,
            size: Some(48_213),
            sha256: Some(format!("{:064x}", 7)),
            blob_id: Some(format!("{:040x}", 8)),
            expect: None,
        }],
    }
}

/// A new item of branch `n`, as a submission makes it.
pub(crate) fn new_item(n: u64) -> Item {
    let dims = BTreeMap::from([
        (dimension("needs_mr"), Dimension::needed()),
        (dimension("needs_ci_retry"), Dimension::done()),
        (dimension("needs_empty_check"), Dimension::deferred(at(1_800), "the first check")),
    ]);
    Item {
        id: id(n),
        item_type: "mr".into(),
        branch: branch(n),
        project: "platform/services/billing".into(),
        caller_identity: "ci-bot".into(),
        generation: 1,
        previous_item_id: None,
        created_at: NOW,
        updated_at: NOW,
        phase: Phase::Active,
        result: None,
        blocked: None,
        last_error: None,
        attempts: 0,
        outage: None,
        cancel_requested: None,
        retried_at: None,
        last_event_at: None,
        rev: 1,
        wake_seq: 1,
        lease_epoch: 0,
        commit_seq: 0,
        claims: 0,
        write_token: token(n),
        commit_token: None,
        lease_token: None,
        leased_until: None,
        actionable: true,
        due_at: Some(NOW),
        due_shard: u8::try_from(n % 4).unwrap(),
        dims,
        dim_seq: BTreeMap::new(),
        inbox: Vec::new(),
        recent: Vec::new(),
        outbox: vec![audit(n, "submitted")],
        content_hash: hash(n),
        metadata_hash: format!("{n:064x}"),
        target: "main".into(),
        policy_version: "2026-01-31.1".into(),
        wanted: Document::of(&json!({"auto_merge": true, "draft": false, "rev": 1})),
        facts: Document::default(),
    }
}

pub(crate) fn creation_of(item: Item, replaces: Option<BranchHead>) -> Creation {
    Creation { item, content: content("Update dependencies"), replaces }
}

/// Creates item `n` and returns its row.
pub(crate) async fn born(store: &Store, n: u64) -> Item {
    born_as(store, new_item(n)).await
}

/// Creates this item and returns its row.
pub(crate) async fn born_as(store: &Store, item: Item) -> Item {
    let creation = creation_of(item.clone(), None);
    assert_eq!(store.create(&creation).await, Ok(Created::Yes));
    assert_eq!(read(store, &item.id).await, item);
    item
}

/// Creates and claims item `n` and returns its row.
pub(crate) async fn held(store: &Store, n: u64) -> Item {
    let item = born(store, n).await;
    applies(store, &item, &claim(1_000 + n, NOW)).await
}

/// Creates item `n` in a phase, with nobody holding it.
pub(crate) async fn ended(store: &Store, n: u64, phase: Phase) -> Item {
    let mut item = new_item(n);
    item.phase = phase;
    item.result = (phase == Phase::Completed).then_some(ResultKind::Merged);
    item.actionable = false;
    item.due_at = None;
    born_as(store, item).await
}

pub(crate) fn claim(mark: u64, now: Timestamp) -> Change {
    Change::Claim { now, token: token(mark) }
}

/// The holder's next state of `row` with a fact changed.
pub(crate) fn commit(row: &Item, mark: u64) -> Commit {
    let mut next = row.clone();
    next.facts = Document::of(&json!({"mr_iid": mark}));
    next.updated_at = at(1);
    Commit { belief: Belief::of(row), token: token(mark), next, progress: true, ending: Ending::Stay, successor: None }
}

pub(crate) fn committed(commit: Commit) -> Change {
    Change::Commit(Box::new(commit))
}

pub(crate) fn exit(row: &Item, mark: u64, due_at: Option<Timestamp>) -> Change {
    Change::Exit { belief: Belief::of(row), token: token(mark), due_at, outbox: Vec::new() }
}

pub(crate) fn release(row: &Item, mark: u64, now: Timestamp) -> Change {
    Change::Release { epoch: row.lease_epoch, commit_seq: row.commit_seq, token: token(mark), now, died: mark.is_multiple_of(2) }
}

pub(crate) fn enqueue(names: &[&str], now: Timestamp) -> Enqueue {
    Enqueue { dims: names.iter().map(|name| (dimension(name), Dimension::needed())).collect(), now }
}

pub(crate) fn update(row: &Item, mark: u64) -> Update {
    Update {
        rev: row.rev,
        token: token(mark),
        content: content("Update more dependencies"),
        content_hash: hash(mark),
        metadata_hash: format!("{mark:064x}"),
        target: "release".into(),
        policy_version: "2026-02-01.1".into(),
        wanted: Document::of(&json!({"auto_merge": false})),
        revives: false,
        enqueue: enqueue(&["needs_mr", "needs_reconcile"], at(2)),
        audit: audit(mark, "submitted"),
    }
}

pub(crate) fn updated(update: Update) -> Change {
    Change::Update(Box::new(update))
}

pub(crate) fn retry(row: &Item, head: BranchHead, mark: u64) -> Change {
    Change::Retry(Box::new(Retry {
        rev: row.rev,
        head,
        token: token(mark),
        wanted: Document::of(&json!({"on_conflict": "overwrite"})),
        enqueue: enqueue(&["needs_mr"], at(3)),
        audit: audit(mark, "admin"),
    }))
}

pub(crate) fn cancel(row: &Item, mark: u64) -> Change {
    let request = CancelRequest { by: "alice".into(), reason: Some("superseded".into()), close_mr: true };
    Change::Cancel(Box::new(Cancel { rev: row.rev, token: token(mark), request, now: at(4), audit: audit(mark, "admin") }))
}

pub(crate) fn append(n: u64) -> Change {
    let event = collie_core::event::Event::Job {
        at: at(n),
        id: JobId(n),
        pipeline: PipelineId(90_001),
        name: "unit tests".into(),
        stage: "test".into(),
        status: "failed".into(),
        failure_reason: "script_failure".into(),
    };
    Change::Append { entry: Box::new(InboxEntry { digest: digest(n), event }), now: at(n) }
}

pub(crate) fn overflow(n: u64) -> Change {
    Change::Overflow { digest: digest(n), enqueue: enqueue(&["needs_reconcile"], at(n)) }
}

pub(crate) async fn read(store: &Store, id: &ItemId) -> Item {
    store.item(id).await.unwrap().unwrap()
}

/// The change applies to this row; the answer and the stored row are what the rules say.
pub(crate) async fn applies(store: &Store, row: &Item, change: &Change) -> Item {
    assert_eq!(change.judge(row), Verdict::Apply, "{}", change.name());
    let mut next = row.clone();
    change.apply(&mut next);
    assert_eq!(store.change(&row.id, change).await, Ok(next.clone()), "{}", change.name());
    assert_eq!(read(store, &row.id).await, next, "{}", change.name());
    next
}

/// The change is refused with this row, which stays.
pub(crate) async fn refused(store: &Store, row: &Item, change: &Change) {
    assert_eq!(store.change(&row.id, change).await, Err(ChangeError::Refused(Some(Box::new(row.clone())))), "{}", change.name());
    assert_eq!(read(store, &row.id).await, *row, "{}", change.name());
}

/// The row shows the change to have landed; it is a success and changes nothing.
pub(crate) async fn landed(store: &Store, row: &Item, change: &Change) {
    assert_eq!(change.judge(row), Verdict::Landed, "{}", change.name());
    assert_eq!(store.change(&row.id, change).await, Ok(row.clone()), "{}", change.name());
    assert_eq!(read(store, &row.id).await, *row, "{}", change.name());
}
