//! Completion with content that was not merged: the end of one life and the birth of the next are one write.

use crate::fixture::{applies, born, branch, commit, committed, content, creation_of, held, id, landed, new_item, read, refused};
use crate::stores::Store;
use collie_core::item::{BranchHead, Item, Phase, ResultKind};
use collie_core::queue::{Commit, Ending};

fn next_life(of: &Item, n: u64) -> Item {
    let mut next = new_item(n);
    (next.branch, next.generation, next.previous_item_id) = (of.branch.clone(), of.generation + 1, Some(of.id.clone()));
    next
}

/// The completion of `row`, whose next life is item 2.
fn completion(row: &Item, head: BranchHead) -> Commit {
    let mut c = commit(row, 5);
    (c.next.phase, c.next.result) = (Phase::Completed, Some(ResultKind::Merged));
    c.ending = Ending::Exit { due_at: None };
    c.successor = Some(Box::new(creation_of(next_life(row, 2), Some(head))));
    c
}

fn first_head() -> BranchHead {
    BranchHead { item_id: id(1), generation: 1, version: 1 }
}

pub(crate) async fn completion_and_the_next_life_are_one_write(store: Store) {
    let row = held(&store, 1).await;
    let done = applies(&store, &row, &committed(completion(&row, first_head()))).await;
    assert_eq!((done.phase, done.due_at, done.leased_until), (Phase::Completed, None, None));
    assert_eq!(read(&store, &id(2)).await, next_life(&row, 2));
    assert_eq!(store.content(&id(2), 1).await, Ok(Some(content("Update dependencies"))));
    assert_eq!(store.head(&branch(1)).await, Ok(Some(BranchHead { item_id: id(2), generation: 2, version: 2 })));
}

pub(crate) async fn the_same_completion_again_makes_one_next_life(store: Store) {
    let row = held(&store, 1).await;
    let change = committed(completion(&row, first_head()));
    let done = applies(&store, &row, &change).await;
    landed(&store, &done, &change).await;
    assert_eq!(store.head(&branch(1)).await.unwrap().unwrap().version, 2);
}

pub(crate) async fn a_moved_head_refuses_the_whole_completion(store: Store) {
    let row = held(&store, 1).await;
    let moved = BranchHead { version: 2, ..first_head() };
    refused(&store, &row, &committed(completion(&row, moved))).await;
    assert_eq!((store.item(&id(2)).await, store.content(&id(2), 1).await), (Ok(None), Ok(None)));
    assert_eq!(store.head(&branch(1)).await, Ok(Some(first_head())));
}

pub(crate) async fn a_taken_id_refuses_the_whole_completion(store: Store) {
    let row = held(&store, 1).await;
    let other = born(&store, 2).await;
    refused(&store, &row, &committed(completion(&row, first_head()))).await;
    assert_eq!((read(&store, &id(2)).await, store.head(&branch(1)).await), (other, Ok(Some(first_head()))));
}
