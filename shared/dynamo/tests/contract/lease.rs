//! Claims and heartbeats.

use crate::fixture::{NOW, append, applies, at, born, born_as, claim, exit, held, id, landed, new_item, read, refused, release, token};
use crate::stores::Store;
use collie_core::queue::Change;
use collie_core::time::{SKEW, Timestamp};
use collie_engine::ports::ChangeError;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

pub(crate) async fn a_claim_takes_the_lease_and_leaves_due_at_alone(store: Store) {
    let item = born(&store, 1).await;
    let held = applies(&store, &item, &claim(9, at(5))).await;
    assert_eq!((held.lease_epoch, held.claims, held.leased_until), (1, 1, Some(at(95))));
    assert_eq!((held.lease_token, held.due_at, held.actionable), (Some(token(9)), Some(NOW), true));
}

pub(crate) async fn a_claim_needs_a_reason_to_look(store: Store) {
    let mut item = new_item(1);
    (item.actionable, item.due_at) = (false, None);
    let asleep = born_as(&store, item.clone()).await;
    refused(&store, &asleep, &claim(9, at(1_000))).await;

    (item.id, item.branch, item.due_at) = (id(2), crate::fixture::branch(2), Some(at(100)));
    let waiting = born_as(&store, item).await;
    refused(&store, &waiting, &claim(9, at(95).before(MS))).await;
    applies(&store, &waiting, &claim(9, at(95))).await;
}

pub(crate) async fn of_two_claimers_one_is_refused(store: Store) {
    let item = born(&store, 1).await;
    let (one, two) = (claim(8, NOW), claim(9, NOW));
    let (a, b) = tokio::join!(store.change(&item.id, &one), store.change(&item.id, &two));
    let row = read(&store, &item.id).await;
    assert_eq!((row.lease_epoch, row.claims), (1, 1));
    let refusal = Err(ChangeError::Refused(Some(Box::new(row.clone()))));
    assert!([(Ok(row.clone()), refusal.clone()), (refusal, Ok(row))].contains(&(a, b)));
}

pub(crate) async fn a_lease_is_free_only_after_the_margin(store: Store) {
    let row = held(&store, 1).await;
    let until = row.leased_until.unwrap();
    refused(&store, &row, &claim(8, until)).await;
    refused(&store, &row, &claim(8, until.after(SKEW))).await;
    let taken = applies(&store, &row, &claim(8, until.after(SKEW).after(MS))).await;
    assert_eq!((taken.lease_epoch, taken.claims), (2, 2));
}

pub(crate) async fn the_same_claim_again_is_one_lease(store: Store) {
    let item = born(&store, 1).await;
    let change = claim(9, NOW);
    let row = applies(&store, &item, &change).await;
    landed(&store, &row, &change).await;
}

pub(crate) async fn nothing_applies_to_an_absent_item(store: Store) {
    let row = new_item(1);
    let heartbeat = Change::Heartbeat { epoch: 0, until: at(90) };
    let head = collie_core::item::BranchHead { item_id: id(1), generation: 1, version: 1 };
    let changes = [
        claim(9, NOW),
        heartbeat,
        crate::fixture::committed(crate::fixture::commit(&row, 9)),
        exit(&row, 9, None),
        release(&row, 9, NOW),
        crate::fixture::updated(crate::fixture::update(&row, 9)),
        crate::fixture::retry(&row, head, 9),
        crate::fixture::cancel(&row, 9),
        append(1),
        crate::fixture::overflow(1),
    ];
    for change in changes {
        assert_eq!(store.change(&id(1), &change).await, Err(ChangeError::Refused(None)), "{}", change.name());
        assert_eq!(store.item(&id(1)).await, Ok(None), "{}", change.name());
    }
}

pub(crate) async fn a_heartbeat_extends_the_lease_and_nothing_else(store: Store) {
    let row = held(&store, 1).await;
    let beat = Change::Heartbeat { epoch: 1, until: at(100) };
    let longer = applies(&store, &row, &beat).await;
    assert_eq!((longer.leased_until, longer.due_at), (Some(at(100)), Some(NOW)));
    landed(&store, &longer, &beat).await;
    landed(&store, &longer, &Change::Heartbeat { epoch: 1, until: at(99) }).await;
}

pub(crate) async fn a_heartbeat_of_a_lost_lease_is_refused(store: Store) {
    let row = held(&store, 1).await;
    let taken = applies(&store, &row, &claim(8, at(200))).await;
    let late = Timestamp::from_millis(u64::from(u32::MAX) * 1_000);
    refused(&store, &taken, &Change::Heartbeat { epoch: 1, until: late }).await;
    refused(&store, &taken, &Change::Heartbeat { epoch: 3, until: late }).await;
}

pub(crate) async fn a_heartbeat_after_the_exit_is_refused(store: Store) {
    let row = held(&store, 1).await;
    let out = applies(&store, &row, &exit(&row, 7, None)).await;
    refused(&store, &out, &Change::Heartbeat { epoch: 1, until: at(500) }).await;
}
