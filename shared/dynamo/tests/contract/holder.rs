//! What a lease holder writes: commits, exits and releases, and who may come between.

use crate::fixture::{
    NOW, append, applies, at, audit, cancel, claim, commit, committed, dimension, enqueue, exit, held, landed, read, refused, release,
    token, update, updated,
};
use crate::stores::Store;
use collie_core::id::Token;
use collie_core::item::{Blocked, BlockedReason, CancelRequest, Dimension, Document, Item, LastError, Outage, Phase, ResultKind};
use collie_core::queue::{Belief, Change, Ending};
use serde_json::json;

/// A next row in which everything differs that may.
fn everything_else(row: &Item) -> Item {
    let mut next = row.clone();
    next.blocked = Some(Blocked { reason: BlockedReason::Auth, since: at(1), detail: "403".into() });
    next.last_error = Some(LastError { code: "conflict".into(), message: "é".into(), at: at(2) });
    next.attempts = 3;
    next.outage = Some(Outage { since: at(3), tries: 4 });
    next.cancel_requested = Some(CancelRequest { by: "bob".into(), reason: None, close_mr: false });
    next.last_event_at = Some(at(5));
    next.updated_at = at(6);
    next.dims.insert(collie_core::item::DimensionKey::with_variant("needs_build", "a#b.c"), Dimension::deferred(at(7), "pipeline"));
    next.dims.remove(&dimension("needs_mr"));
    next.outbox.push(audit(5, "action"));
    next.facts = Document::of(&json!({"built": [{"n": 1, "sha": "0123456789abcdef0123"}], "note": null}));
    next
}

pub(crate) async fn a_commit_writes_the_holders_fields_and_no_others(store: Store) {
    let row = held(&store, 1).await;
    let mut c = commit(&row, 5);
    c.next = everything_else(&row);
    let wanted = c.next.clone();
    (c.next.rev, c.next.wake_seq, c.next.actionable, c.next.due_at, c.next.due_shard) = (99, 99, false, None, 3);
    (c.next.write_token, c.next.lease_token, c.next.leased_until) = (token(99), None, None);
    (c.next.target, c.next.project, c.next.wanted) = ("other".into(), "other".into(), Document::default());
    c.next.dim_seq.insert(dimension("needs_mr"), 99);
    let after = applies(&store, &row, &committed(c)).await;
    assert_eq!((after.rev, after.wake_seq, after.due_at, after.target.as_str()), (1, 1, Some(NOW), "main"));
    assert_eq!((after.facts, after.dims, after.outbox), (wanted.facts, wanted.dims, wanted.outbox));
    assert_eq!((after.commit_seq, after.commit_token, after.lease_epoch), (1, Some(token(5)), 1));
}

pub(crate) async fn a_commit_removes_what_the_next_row_lacks(store: Store) {
    let row = held(&store, 1).await;
    let mut c = commit(&row, 5);
    c.next = everything_else(&row);
    let full = applies(&store, &row, &committed(c)).await;
    let mut c = commit(&full, 6);
    (c.next.blocked, c.next.last_error, c.next.outage, c.next.cancel_requested) = (None, None, None, None);
    (c.next.outbox, c.next.last_event_at) = (Vec::new(), None);
    let after = applies(&store, &full, &committed(c)).await;
    assert_eq!((after.blocked, after.last_error, after.outage, after.cancel_requested), (None, None, None, None));
}

pub(crate) async fn progress_resets_claims_and_an_intent_does_not(store: Store) {
    let row = held(&store, 1).await;
    let mut c = commit(&row, 5);
    c.progress = false;
    let intent = applies(&store, &row, &committed(c)).await;
    assert_eq!(intent.claims, 1);
    assert_eq!(applies(&store, &intent, &committed(commit(&intent, 6))).await.claims, 0);
}

/// Each belief wrong in turn, both ways.
fn wrong(belief: Belief) -> [Belief; 6] {
    let Belief { epoch, wake_seq, commit_seq } = belief;
    [
        Belief { epoch: epoch + 1, ..belief },
        Belief { epoch: epoch - 1, ..belief },
        Belief { wake_seq: wake_seq + 1, ..belief },
        Belief { wake_seq: wake_seq - 1, ..belief },
        Belief { commit_seq: commit_seq + 1, ..belief },
        Belief { commit_seq: commit_seq - 1, ..belief },
    ]
}

/// A held row with one commit, so that every counter can be believed too low.
async fn worked(store: &Store) -> Item {
    let row = held(store, 1).await;
    applies(store, &row, &committed(commit(&row, 5))).await
}

pub(crate) async fn a_commit_needs_each_of_its_beliefs(store: Store) {
    let row = worked(&store).await;
    for belief in wrong(Belief::of(&row)) {
        let mut c = commit(&row, 6);
        c.belief = belief;
        refused(&store, &row, &committed(c)).await;
    }
    applies(&store, &row, &committed(commit(&row, 6))).await;
}

pub(crate) async fn a_commit_needs_an_active_item(store: Store) {
    let row = held(&store, 1).await;
    let mut c = commit(&row, 5);
    (c.next.phase, c.next.result) = (Phase::Completed, Some(ResultKind::NoChange));
    let done = applies(&store, &row, &committed(c)).await;
    refused(&store, &done, &committed(commit(&done, 6))).await;
    applies(&store, &done, &exit(&done, 7, None)).await;
}

pub(crate) async fn a_commit_with_an_exit_ends_the_run(store: Store) {
    let row = held(&store, 1).await;
    let mut c = commit(&row, 5);
    (c.ending, c.progress) = (Ending::Exit { due_at: Some(at(60)) }, false);
    let out = applies(&store, &row, &committed(c)).await;
    assert_eq!((out.actionable, out.due_at, out.claims, out.commit_seq), (false, Some(at(60)), 0, 1));
    assert_eq!((out.leased_until, out.lease_token.clone()), (None, None));
    let again = applies(&store, &out, &claim(9, at(60))).await;
    let mut c = commit(&again, 6);
    (c.next.phase, c.next.result, c.ending) = (Phase::Completed, Some(ResultKind::Merged), Ending::Exit { due_at: None });
    let done = applies(&store, &again, &committed(c)).await;
    assert_eq!((done.phase, done.due_at), (Phase::Completed, None));
}

pub(crate) async fn the_same_commit_again_is_a_success(store: Store) {
    let row = held(&store, 1).await;
    let change = committed(commit(&row, 5));
    let after = applies(&store, &row, &change).await;
    landed(&store, &after, &change).await;
    let woken = applies(&store, &after, &append(1)).await;
    landed(&store, &woken, &change).await;
}

pub(crate) async fn a_delayed_commit_after_the_exit_is_refused(store: Store) {
    let row = held(&store, 1).await;
    let intent = committed(commit(&row, 5));
    let after = applies(&store, &row, &intent).await;
    let out = applies(&store, &after, &exit(&after, 6, None)).await;
    refused(&store, &out, &intent).await;
    let held_again = applies(&store, &applies(&store, &out, &append(1)).await, &claim(9, at(10))).await;
    refused(&store, &held_again, &intent).await;
}

fn exit_with(belief: Belief, mark: u64) -> Change {
    Change::Exit { belief, token: token(mark), due_at: None, outbox: Vec::new() }
}

pub(crate) async fn an_exit_needs_each_of_its_beliefs(store: Store) {
    let row = worked(&store).await;
    for belief in wrong(Belief::of(&row)) {
        refused(&store, &row, &exit_with(belief, 6)).await;
    }
    applies(&store, &row, &exit_with(Belief::of(&row), 6)).await;
}

pub(crate) async fn an_exit_sets_or_removes_due_at(store: Store) {
    let row = held(&store, 1).await;
    let outbox = vec![audit(5, "decision")];
    let change = Change::Exit { belief: Belief::of(&row), token: token(6), due_at: Some(at(60)), outbox: outbox.clone() };
    let out = applies(&store, &row, &change).await;
    assert_eq!((out.due_at, out.actionable, out.outbox.clone()), (Some(at(60)), false, outbox));
    let row = applies(&store, &out, &claim(9, at(60))).await;
    assert_eq!(applies(&store, &row, &exit(&row, 7, None)).await.due_at, None);
}

pub(crate) async fn the_same_exit_again_is_a_success(store: Store) {
    let row = held(&store, 1).await;
    let change = exit(&row, 6, Some(at(60)));
    let out = applies(&store, &row, &change).await;
    landed(&store, &out, &change).await;
    let woken = applies(&store, &out, &append(1)).await;
    landed(&store, &woken, &change).await;
    let taken = applies(&store, &woken, &claim(9, at(1))).await;
    refused(&store, &taken, &change).await;
}

pub(crate) async fn a_release_keeps_the_item_actionable(store: Store) {
    let row = worked(&store).await;
    let change = release(&row, 6, at(70));
    let out = applies(&store, &row, &change).await;
    assert_eq!((out.actionable, out.due_at, out.leased_until, out.claims), (true, Some(at(70)), None, 0));
    landed(&store, &out, &change).await;
    applies(&store, &out, &claim(9, at(70))).await;
}

pub(crate) async fn a_release_needs_each_of_its_beliefs(store: Store) {
    let row = worked(&store).await;
    for (epoch, commit_seq) in [(0, 1), (2, 1), (1, 0), (1, 2)] {
        refused(&store, &row, &Change::Release { epoch, commit_seq, token: Token::new("t"), now: at(70), died: false }).await;
    }
    let woken = applies(&store, &row, &append(1)).await;
    applies(&store, &woken, &release(&row, 6, at(70))).await;
}

pub(crate) async fn an_event_between_read_and_exit_keeps_the_item_awake(store: Store) {
    let row = held(&store, 1).await;
    let woken = applies(&store, &row, &append(1)).await;
    refused(&store, &woken, &exit(&row, 6, None)).await;
    applies(&store, &woken, &exit(&woken, 7, None)).await;
}

pub(crate) async fn an_update_between_read_and_commit_refuses_the_commit(store: Store) {
    let row = held(&store, 1).await;
    let newer = applies(&store, &row, &updated(update(&row, 8))).await;
    refused(&store, &newer, &committed(commit(&row, 5))).await;
    let mut c = commit(&newer, 6);
    c.next.dims.insert(dimension("needs_mr"), Dimension::needed());
    assert_eq!(applies(&store, &newer, &committed(c)).await.dim_seq, newer.dim_seq);
}

pub(crate) async fn a_cancel_between_read_and_commit_refuses_the_commit(store: Store) {
    let row = held(&store, 1).await;
    let newer = applies(&store, &row, &cancel(&row, 8)).await;
    refused(&store, &newer, &committed(commit(&row, 5))).await;
}

pub(crate) async fn a_holder_that_lost_its_lease_cannot_write(store: Store) {
    let row = held(&store, 1).await;
    let taken = applies(&store, &row, &claim(9, at(200))).await;
    for change in [committed(commit(&row, 5)), exit(&row, 6, None), release(&row, 7, at(1))] {
        refused(&store, &taken, &change).await;
    }
    let events = Change::Overflow { digest: crate::fixture::digest(1), enqueue: enqueue(&["needs_reconcile"], at(201)) };
    let woken = applies(&store, &taken, &events).await;
    assert_eq!(read(&store, &row.id).await.lease_epoch, woken.lease_epoch);
}
