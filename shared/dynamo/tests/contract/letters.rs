//! Dead letters: kept once, listed by state, decided about on what was read.

use crate::fixture::NOW;
use crate::stores::Store;
use collie_core::letter::{Letter, Origin, State};

fn letter(id: &str) -> Letter {
    Letter::new(id.to_owned(), Origin::Hooks, Some("app#main / b%1".to_owned()), NOW)
}

pub(crate) async fn a_letter_is_kept_once(store: Store) {
    assert_eq!(store.letter("m1").await, Ok(None));
    store.keep(&letter("m1")).await.unwrap();
    let decided = letter("m1").redriven("local|root", NOW).unwrap();
    assert_eq!(store.replace(&decided).await, Ok(true));
    store.keep(&letter("m1")).await.unwrap();
    assert_eq!(store.letter("m1").await, Ok(Some(decided)));
}

pub(crate) async fn a_letter_is_decided_about_on_what_was_read(store: Store) {
    store.keep(&letter("m1")).await.unwrap();
    let (one, other) = (letter("m1").redriven("local|a", NOW).unwrap(), letter("m1").abandoned("local|b", NOW).unwrap());
    assert_eq!((store.replace(&one).await, store.replace(&other).await), (Ok(true), Ok(false)));
    assert_eq!(store.replace(&letter("m2").abandoned("local|b", NOW).unwrap()).await, Ok(false), "there is none");
    assert_eq!(store.letter("m1").await, Ok(Some(one)));
}

pub(crate) async fn letters_page_by_id_and_filter_by_state(store: Store) {
    for id in ["a", "b#1", "b%2", "c", "d"] {
        store.keep(&letter(id)).await.unwrap();
    }
    store.replace(&letter("c").abandoned("local|a", NOW).unwrap()).await.unwrap();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.letters(Some(State::Waiting), after.as_deref(), 2).await.unwrap();
        found.extend(page.items.into_iter().map(|letter| letter.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["a", "b#1", "b%2", "d"]);
    let all = store.letters(None, None, 9).await.unwrap();
    assert_eq!((all.items.len(), all.next), (5, None));
}
