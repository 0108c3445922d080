//! What callers of the API write: updates, retries, cancels.

use crate::fixture::{
    NOW, applies, at, born, born_as, branch, cancel, claim, commit, committed, content, creation_of, dimension, ended, held, id, landed,
    new_item, read, refused, retry, token, update, updated,
};
use crate::stores::Store;
use collie_core::item::{Blocked, BlockedReason, BranchHead, CancelRequest, Document, Item, LastError, Phase, ResultKind};
use collie_core::queue::Verdict;
use collie_engine::ports::{ChangeError, Created};
use serde_json::json;

pub(crate) async fn an_update_brings_new_content(store: Store) {
    let mut row = new_item(1);
    row.last_error = Some(LastError { code: "conflict".into(), message: String::new(), at: NOW });
    row.attempts = 3;
    let row = born_as(&store, row).await;
    let after = applies(&store, &row, &updated(update(&row, 8))).await;
    assert_eq!((after.rev, after.wake_seq, after.attempts, after.last_error), (2, 2, 0, None));
    assert_eq!((after.dim_seq.get(&dimension("needs_mr")), after.due_at, after.outbox.len()), (Some(&2), Some(at(2)), 2));
    assert_eq!(store.content(&row.id, 2).await, Ok(Some(content("Update more dependencies"))));
    assert_eq!(store.content(&row.id, 1).await, Ok(Some(content("Update dependencies"))));
}

pub(crate) async fn the_same_update_again_is_a_success(store: Store) {
    let row = born(&store, 1).await;
    let change = updated(update(&row, 8));
    let after = applies(&store, &row, &change).await;
    landed(&store, &after, &change).await;
    let claimed = applies(&store, &after, &claim(9, NOW)).await;
    landed(&store, &claimed, &change).await;
    assert_eq!(store.content(&row.id, 3).await, Ok(None));
}

pub(crate) async fn an_update_needs_what_it_saw(store: Store) {
    let row = born(&store, 1).await;
    for rev in [0, 2] {
        let mut u = update(&row, 8);
        u.rev = rev;
        refused(&store, &row, &updated(u)).await;
    }
    let cancelled = applies(&store, &row, &cancel(&row, 7)).await;
    refused(&store, &cancelled, &updated(update(&cancelled, 8))).await;
    for (n, phase) in [(2, Phase::Completed), (3, Phase::Failed), (4, Phase::Cancelled)] {
        let row = ended(&store, n, phase).await;
        refused(&store, &row, &updated(update(&row, 8))).await;
        assert_eq!(store.content(&row.id, 2).await, Ok(None));
    }
}

pub(crate) async fn of_two_updates_one_is_refused(store: Store) {
    let row = born(&store, 1).await;
    let (one, two) = (updated(update(&row, 8)), updated(update(&row, 9)));
    let (a, b) = tokio::join!(store.change(&row.id, &one), store.change(&row.id, &two));
    let after = read(&store, &row.id).await;
    assert_eq!(after.rev, 2);
    let refusal = Err(ChangeError::Refused(Some(Box::new(after.clone()))));
    assert!([(Ok(after.clone()), refusal.clone()), (refusal, Ok(after))].contains(&(a, b)));
}

pub(crate) async fn an_update_revives_only_a_failed_item(store: Store) {
    for (n, phase) in [(1, Phase::Active), (2, Phase::Completed), (3, Phase::Cancelled)] {
        let row = ended(&store, n, phase).await;
        let mut u = update(&row, 8);
        u.revives = true;
        refused(&store, &row, &updated(u)).await;
    }
    let mut failed = new_item(4);
    (failed.phase, failed.actionable, failed.due_at, failed.claims) = (Phase::Failed, false, None, 4);
    failed.cancel_requested = Some(CancelRequest { by: "bob".into(), reason: None, close_mr: true });
    let row = born_as(&store, failed).await;
    let mut u = update(&row, 8);
    u.revives = true;
    let after = applies(&store, &row, &updated(u)).await;
    assert_eq!((after.phase, after.retried_at, after.claims, after.cancel_requested), (Phase::Active, Some(at(2)), 0, None));
    assert_eq!((after.actionable, after.due_at), (true, Some(at(2))));
}

fn blocked(mut item: Item) -> Item {
    item.blocked = Some(Blocked { reason: BlockedReason::ForeignCommits, since: NOW, detail: String::new() });
    item
}

async fn head_of(store: &Store, row: &Item) -> BranchHead {
    store.head(&row.branch).await.unwrap().unwrap()
}

pub(crate) async fn a_retry_brings_back_failed_cancelled_and_blocked_items(store: Store) {
    let failed = ended(&store, 1, Phase::Failed).await;
    let cancelled = ended(&store, 2, Phase::Cancelled).await;
    let blocked = born_as(&store, blocked(new_item(3))).await;
    for row in [failed, cancelled, blocked] {
        let after = applies(&store, &row, &retry(&row, head_of(&store, &row).await, 8)).await;
        assert_eq!((after.phase, after.blocked.clone(), after.retried_at), (Phase::Active, None, Some(at(3))));
        assert_eq!((after.wanted.clone(), after.rev), (Document::of(&json!({"on_conflict": "overwrite"})), 2));
        assert_eq!(head_of(&store, &row).await, BranchHead { item_id: row.id, generation: 1, version: 2 });
    }
}

pub(crate) async fn a_retry_needs_an_ended_or_blocked_item(store: Store) {
    let active = born(&store, 1).await;
    let completed = ended(&store, 2, Phase::Completed).await;
    let mut ending = blocked(new_item(3));
    ending.cancel_requested = Some(CancelRequest { by: "bob".into(), reason: None, close_mr: true });
    let ending = born_as(&store, ending).await;
    for row in [active, completed, ending] {
        refused(&store, &row, &retry(&row, head_of(&store, &row).await, 8)).await;
        assert_eq!(head_of(&store, &row).await.version, 1);
    }
    let mut failed = ended(&store, 4, Phase::Failed).await;
    let head = head_of(&store, &failed).await;
    let stored = failed.clone();
    failed.rev = 2;
    refused(&store, &stored, &retry(&failed, head, 8)).await;
}

pub(crate) async fn a_retry_of_an_earlier_life_is_refused(store: Store) {
    let row = ended(&store, 1, Phase::Failed).await;
    let seen = head_of(&store, &row).await;
    refused(&store, &row, &retry(&row, BranchHead { version: 2, ..seen.clone() }, 7)).await;
    let mut next = new_item(2);
    (next.branch, next.generation) = (branch(1), 2);
    assert_eq!(store.create(&creation_of(next, Some(seen.clone()))).await, Ok(Created::Yes));
    refused(&store, &row, &retry(&row, seen, 8)).await;
    refused(&store, &row, &retry(&row, head_of(&store, &row).await, 9)).await;
}

pub(crate) async fn the_same_retry_again_moves_the_head_once(store: Store) {
    let row = ended(&store, 1, Phase::Failed).await;
    let change = retry(&row, head_of(&store, &row).await, 8);
    let after = applies(&store, &row, &change).await;
    landed(&store, &after, &change).await;
    assert_eq!(head_of(&store, &row).await.version, 2);
}

pub(crate) async fn a_cancel_of_an_active_item_is_a_request(store: Store) {
    let row = born(&store, 1).await;
    let change = cancel(&row, 8);
    let after = applies(&store, &row, &change).await;
    assert_eq!((after.phase, after.cancel_requested.clone().unwrap().by.as_str(), after.rev), (Phase::Active, "alice", 2));
    assert_eq!((after.actionable, after.due_at, after.wake_seq), (true, Some(at(4)), 2));
    landed(&store, &after, &change).await;
    refused(&store, &after, &cancel(&after, 9)).await;
}

pub(crate) async fn a_cancel_of_a_failed_item_ends_it(store: Store) {
    let row = ended(&store, 1, Phase::Failed).await;
    let change = cancel(&row, 8);
    let after = applies(&store, &row, &change).await;
    assert_eq!((after.phase, after.result, after.cancel_requested.clone()), (Phase::Cancelled, Some(ResultKind::Cancelled), None));
    landed(&store, &after, &change).await;
}

pub(crate) async fn a_cancel_needs_what_it_saw(store: Store) {
    for (n, phase) in [(1, Phase::Completed), (2, Phase::Cancelled)] {
        let row = ended(&store, n, phase).await;
        refused(&store, &row, &cancel(&row, 8)).await;
    }
    let mut row = born(&store, 3).await;
    let stored = row.clone();
    row.rev = 2;
    refused(&store, &stored, &cancel(&row, 8)).await;
}

pub(crate) async fn a_row_cannot_grow_beyond_its_limit(store: Store) {
    let row = held(&store, 1).await;
    let mut c = commit(&row, 5);
    c.next.facts = Document::of(&json!({ "note": "é".repeat(3_000) }));
    let row = applies(&store, &row, &committed(c)).await;
    let mut u = update(&row, 8);
    u.wanted = Document::of(&json!({ "labels": "y".repeat(2_000) }));
    let change = updated(u);
    assert_eq!(change.judge(&row), Verdict::Apply);
    assert_eq!(store.change(&row.id, &change).await, Err(ChangeError::TooLarge));
    assert_eq!((read(&store, &id(1)).await, store.content(&id(1), 2).await), (row.clone(), Ok(None)));
    applies(&store, &row, &updated(update(&row, 9))).await;
    assert_eq!(read(&store, &id(1)).await.write_token, token(9));
}
