//! Keys that are kept, and asked for again (JWT-06).

use crate::support::{Mood, Pair, World, base64url};
use collie_auth::{AuthError, Authenticator};
use futures::future::join_all;
use serde_json::json;
use std::sync::Arc;

fn key(kid: &str, seed: u8) -> Pair {
    Pair::ed25519(kid, seed)
}

const UNKNOWN: AuthError = AuthError::Invalid("its key (kid) is not one that its issuer has");
const FORGED: AuthError = AuthError::Invalid("its signature is not its issuer's");

/// A token that names some key and has some signature.
fn made_up(world: &World, n: usize) -> String {
    let header = json!({"alg": "EdDSA", "kid": format!("random-{n}")});
    format!("{}.{}.{}", base64url(header.to_string()), base64url(world.claims().to_string()), base64url([n as u8; 64]))
}

#[tokio::test]
async fn jwt_06_a_thousand_made_up_key_ids_lead_to_one_fetch() {
    let world = World::start().await;
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    assert_eq!(world.fetches(), (1, 1));
    world.clock.advance(60);
    for burst in 0..10 {
        let tokens: Vec<_> = (0..100).map(|n| made_up(&world, burst * 100 + n)).collect();
        let answers = join_all(tokens.iter().map(|token| world.ask(token))).await;
        assert!(answers.into_iter().all(|answer| answer == Err(UNKNOWN)));
        world.clock.advance(1);
    }
    assert_eq!(world.fetches(), (2, 2), "one more, for all of them");
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
}

#[tokio::test]
async fn jwt_06_a_thousand_made_up_key_ids_before_any_good_token_lead_to_one_fetch_too() {
    let world = World::start().await;
    for n in 0..1000 {
        assert_eq!(world.ask(&made_up(&world, n)).await, Err(UNKNOWN));
    }
    world.clock.advance(59);
    assert_eq!(world.ask(&made_up(&world, 1000)).await, Err(UNKNOWN));
    assert_eq!(world.fetches(), (1, 1), "the first keys were fetched for the first of them");
    world.clock.advance(1);
    assert_eq!(world.ask(&made_up(&world, 1001)).await, Err(UNKNOWN));
    assert_eq!(world.fetches(), (2, 2));
}

#[tokio::test]
async fn jwt_06_a_new_key_counts_at_its_first_use_unless_the_cool_down_runs() {
    let world = World::start().await;
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    world.issuer.rotate(&[&key("k1", 1), &key("k2", 2)]);
    assert!(world.ask_with(&key("k2", 2)).await.is_ok(), "however young the first keys are");
    world.issuer.rotate(&[&key("k2", 2), &key("k3", 3)]);
    world.clock.advance(59);
    assert_eq!(world.ask_with(&key("k3", 3)).await, Err(UNKNOWN));
    world.clock.advance(1);
    assert!(world.ask_with(&key("k3", 3)).await.is_ok());
    assert!(world.ask_with(&key("k2", 2)).await.is_ok());
    assert_eq!(world.fetches(), (3, 3));
}

#[tokio::test]
async fn jwt_06_other_material_under_the_same_id_is_fetched_once() {
    let world = World::start().await;
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    world.issuer.rotate(&[&key("k1", 2)]);
    assert!(world.ask_with(&key("k1", 2)).await.is_ok());
    assert_eq!(world.ask_with(&key("k1", 1)).await, Err(FORGED), "the old one no longer counts");
    assert_eq!(world.fetches(), (2, 2), "the cool-down runs");
}

#[tokio::test]
async fn jwt_06_the_last_good_keys_stay_while_the_issuer_is_down() {
    let world = World::start().await;
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    world.issuer.be(Mood::Down);
    world.clock.advance(60);
    assert_eq!(world.ask_with(&key("k2", 2)).await, Err(AuthError::Unavailable), "it may be a new one: nobody can tell");
    for _ in 0..20 {
        world.clock.advance(60);
        assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    }
    world.issuer.be(Mood::Good);
    world.issuer.rotate(&[&key("k2", 2)]);
    world.clock.advance(60);
    assert!(world.ask_with(&key("k2", 2)).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_serves_no_key_any_more_takes_none_away() {
    let world = World::start().await;
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    world.issuer.be(Mood::NoKeys);
    world.clock.advance(1200);
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
}

#[tokio::test]
async fn old_keys_are_asked_for_again_so_that_a_withdrawn_one_ends() {
    let world = World::start().await;
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    world.issuer.rotate(&[&key("k2", 2)]);
    world.clock.advance(899);
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    world.clock.advance(1);
    assert_eq!(world.ask_with(&key("k1", 1)).await, Err(UNKNOWN));
    assert_eq!(world.fetches(), (2, 2));
}

#[tokio::test]
async fn an_issuer_that_is_down_at_first_is_asked_again_soon_but_not_by_every_request() {
    let world = World::start().await;
    world.issuer.be(Mood::Down);
    for _ in 0..50 {
        assert_eq!(world.ask_with(&key("k1", 1)).await, Err(AuthError::Unavailable));
    }
    assert_eq!(world.fetches(), (1, 0));
    world.issuer.be(Mood::Good);
    world.clock.advance(10);
    assert!(world.ask_with(&key("k1", 1)).await.is_ok());
    assert_eq!(world.fetches(), (2, 1));
}

#[tokio::test]
async fn requests_at_the_same_time_share_a_fetch() {
    let world = World::start().await;
    let token = key("k1", 1).sign(&world.claims());
    let answers = join_all((0..100).map(|_| world.ask(&token))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(world.fetches(), (1, 1));
}

#[tokio::test]
async fn a_fetch_goes_on_where_the_request_that_began_it_goes_away() {
    let world = World::start().await;
    world.issuer.hold();
    let token = key("k1", 1).sign(&world.claims());
    let mut first = Box::pin(world.ask(&token));
    // Until the keys are asked for and held back.
    while world.fetches().0 == 0 {
        assert!(futures::poll!(&mut first).is_pending());
        tokio::task::yield_now().await;
    }
    drop(first);
    let second = tokio::spawn({
        let (door, token) = (Arc::clone(&world.door), token.clone());
        async move { door.authenticate(&token).await }
    });
    world.issuer.release();
    assert!(second.await.unwrap().is_ok());
    assert_eq!(world.fetches().1, 1);
}
