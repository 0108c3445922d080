//! Events: stored once each, in a bounded inbox.

use crate::fixture::{
    NOW, append, applies, at, born, born_as, commit, committed, digest, dimension, ended, held, id, landed, new_item, overflow, read,
    refused,
};
use crate::stores::Store;
use collie_core::item::{INBOX_LIMIT, Item, Phase, RECENT_LIMIT};
use collie_core::queue::Change;

pub(crate) async fn an_event_is_stored_and_wakes_the_item(store: Store) {
    let mut item = new_item(1);
    (item.actionable, item.due_at) = (false, None);
    let row = born_as(&store, item).await;
    let after = applies(&store, &row, &append(7)).await;
    assert_eq!((after.inbox.len(), after.recent.clone()), (1, vec![digest(7)]));
    assert_eq!((after.wake_seq, after.actionable, after.due_at, after.rev), (2, true, Some(at(7)), 1));
    let both = applies(&store, &after, &append(8)).await;
    assert_eq!(both.recent, [digest(7), digest(8)]);
}

pub(crate) async fn a_repeated_delivery_changes_nothing(store: Store) {
    let row = born(&store, 1).await;
    let after = applies(&store, &row, &append(7)).await;
    landed(&store, &after, &append(7)).await;
}

async fn filled(store: &Store, n: u64) -> Item {
    let mut item = new_item(n);
    for event in 1..=INBOX_LIMIT as u64 {
        append(event).apply(&mut item);
    }
    born_as(store, item).await
}

pub(crate) async fn a_full_inbox_refuses_and_overflows(store: Store) {
    let mut row = new_item(1);
    for event in 1..INBOX_LIMIT as u64 {
        append(event).apply(&mut row);
    }
    let row = born_as(&store, row).await;
    let full = applies(&store, &row, &append(90)).await;
    refused(&store, &full, &append(91)).await;
    let woken = applies(&store, &full, &overflow(91)).await;
    assert_eq!((woken.inbox.len(), woken.wake_seq), (INBOX_LIMIT, full.wake_seq + 1));
    assert_eq!(woken.dim_seq.get(&dimension("needs_reconcile")), Some(&woken.wake_seq));
    assert!(woken.dims[&dimension("needs_reconcile")].is_needed());
}

pub(crate) async fn a_full_memory_of_deliveries_refuses(store: Store) {
    let mut item = new_item(1);
    item.recent = (1..RECENT_LIMIT as u64).map(digest).collect();
    let row = born_as(&store, item).await;
    let full = applies(&store, &row, &append(90)).await;
    refused(&store, &full, &append(91)).await;
}

pub(crate) async fn an_overflow_of_a_known_delivery_changes_nothing(store: Store) {
    let row = filled(&store, 1).await;
    landed(&store, &row, &overflow(3)).await;
}

pub(crate) async fn events_of_ended_items_are_refused(store: Store) {
    for (n, phase) in [(1, Phase::Completed), (2, Phase::Failed), (3, Phase::Cancelled)] {
        let row = ended(&store, n, phase).await;
        refused(&store, &row, &append(7)).await;
        refused(&store, &row, &overflow(8)).await;
    }
}

pub(crate) async fn concurrent_events_are_all_stored(store: Store) {
    born(&store, 1).await;
    let changes: Vec<Change> = (1..=10).map(append).collect();
    let (me, [a, b, c, d]) = (id(1), [0, 1, 2, 3]);
    let sent = tokio::join!(
        store.change(&me, &changes[a]),
        store.change(&me, &changes[b]),
        store.change(&me, &changes[c]),
        store.change(&me, &changes[d]),
        store.change(&me, &changes[a]),
    );
    assert!(sent.0.is_ok() && sent.1.is_ok() && sent.2.is_ok() && sent.3.is_ok() && sent.4.is_ok());
    let row = read(&store, &me).await;
    assert_eq!((row.inbox.len(), row.recent.len(), row.wake_seq), (4, 4, 5));
}

pub(crate) async fn an_inbox_drained_by_a_commit_keeps_what_came_since_out(store: Store) {
    let row = held(&store, 1).await;
    let woken = applies(&store, &row, &append(1)).await;
    let mut c = commit(&woken, 5);
    c.next.inbox.clear();
    let late = applies(&store, &woken, &append(2)).await;
    refused(&store, &late, &committed(c)).await;
    let mut c = commit(&late, 6);
    c.next.inbox.clear();
    let drained = applies(&store, &late, &committed(c)).await;
    assert_eq!((drained.inbox.len(), drained.recent.len(), drained.due_at), (0, 2, Some(at(2))));
    assert_eq!(drained.created_at, NOW);
}
