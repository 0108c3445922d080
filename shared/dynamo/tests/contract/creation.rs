//! Births: one transaction of item, content and branch head.

use crate::fixture::NOW;
use crate::fixture::{applies, born, branch, claim, content, creation_of, id, new_item, read, token};
use crate::stores::Store;
use collie_core::item::BranchHead;
use collie_engine::ports::Created;

pub(crate) async fn a_creation_makes_the_item_its_content_and_the_head(store: Store) {
    let item = born(&store, 1).await;
    assert_eq!(store.content(&item.id, 1).await, Ok(Some(content("Update dependencies"))));
    assert_eq!(store.head(&item.branch).await, Ok(Some(BranchHead { item_id: id(1), generation: 1, version: 1 })));
}

pub(crate) async fn the_same_creation_again_is_a_success_and_changes_nothing(store: Store) {
    let item = born(&store, 1).await;
    assert_eq!(store.create(&creation_of(item.clone(), None)).await, Ok(Created::Yes));
    assert_eq!(read(&store, &item.id).await, item);
    assert_eq!(store.head(&item.branch).await.unwrap().unwrap().version, 1);
}

pub(crate) async fn a_creation_is_known_again_after_a_claim(store: Store) {
    let item = born(&store, 1).await;
    let claimed = applies(&store, &item, &claim(9, NOW)).await;
    assert_eq!(store.create(&creation_of(item, None)).await, Ok(Created::Yes));
    assert_eq!(read(&store, &id(1)).await, claimed);
}

pub(crate) async fn of_two_creators_one_loses(store: Store) {
    let mut other = new_item(2);
    other.branch = branch(1);
    let (first, second) = (creation_of(new_item(1), None), creation_of(other, None));
    let (a, b) = tokio::join!(store.create(&first), store.create(&second));
    let (winner, loser) = if a == Ok(Created::Yes) { (id(1), id(2)) } else { (id(2), id(1)) };
    assert!(matches!((a, b), (Ok(Created::Yes), Ok(Created::LostRace)) | (Ok(Created::LostRace), Ok(Created::Yes))));
    assert_eq!(store.head(&branch(1)).await.unwrap().unwrap().item_id, winner);
    assert_eq!((store.item(&loser).await, store.content(&loser, 1).await), (Ok(None), Ok(None)));
}

pub(crate) async fn the_next_life_replaces_the_head_it_saw(store: Store) {
    born(&store, 1).await;
    let mut next = new_item(2);
    (next.branch, next.generation, next.previous_item_id) = (branch(1), 2, Some(id(1)));
    let head = store.head(&branch(1)).await.unwrap();
    assert_eq!(store.create(&creation_of(next.clone(), head)).await, Ok(Created::Yes));
    assert_eq!(store.head(&branch(1)).await, Ok(Some(BranchHead { item_id: id(2), generation: 2, version: 2 })));
    assert_eq!(read(&store, &id(2)).await, next);
}

pub(crate) async fn a_creation_that_saw_an_older_head_loses(store: Store) {
    born(&store, 1).await;
    let seen = store.head(&branch(1)).await.unwrap().unwrap();
    for stale in [BranchHead { version: 2, ..seen.clone() }, BranchHead { item_id: id(7), ..seen }] {
        let mut next = new_item(2);
        next.branch = branch(1);
        assert_eq!(store.create(&creation_of(next, Some(stale))).await, Ok(Created::LostRace));
    }
    assert_eq!(store.item(&id(2)).await, Ok(None));
    assert_eq!(
        store.create(&creation_of(new_item(3), Some(BranchHead { item_id: id(1), generation: 1, version: 1 }))).await,
        Ok(Created::LostRace)
    );
}

pub(crate) async fn another_creation_under_a_taken_id_loses(store: Store) {
    let item = born(&store, 1).await;
    let mut other = item.clone();
    (other.branch, other.write_token) = (branch(2), token(77));
    assert_eq!(store.create(&creation_of(other, None)).await, Ok(Created::LostRace));
    assert_eq!((read(&store, &id(1)).await, store.head(&branch(2)).await), (item, Ok(None)));
}
