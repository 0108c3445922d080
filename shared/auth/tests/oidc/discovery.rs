//! Where keys are looked for, and where not.

use crate::support::{Issuer, Mood, Pair, World};
use collie_auth::AuthError;
use serde_json::json;

fn key() -> Pair {
    Pair::ed25519("k1", 1)
}

#[tokio::test]
async fn documents_that_cannot_be_trusted_lead_nowhere() {
    let other = Issuer::start(vec![key()]).await;
    let moods = [
        Mood::Says(other.url.clone()),
        Mood::Says("https://issuer.example.com".into()),
        Mood::RedirectsTo(format!("{}/moved", other.url)),
        Mood::KeysAt("http://keys.example.com/keys".into()),
        Mood::KeysAt("ftp://127.0.0.1/keys".into()),
        Mood::KeysAt("no url".into()),
        Mood::Endless,
        Mood::Garbage,
        Mood::NoKeys,
        Mood::Down,
    ];
    for mood in moods {
        let world = World::start().await;
        world.issuer.be(mood);
        assert_eq!(world.ask_with(&key()).await, Err(AuthError::Unavailable));
    }
    assert_eq!((other.fetches(), other.bearers()), ((0, 0), Vec::new()), "no redirect was followed off the host");
}

#[tokio::test]
async fn a_redirect_on_the_same_host_is_followed() {
    let world = World::start().await;
    world.issuer.be(Mood::RedirectsTo("/moved".into()));
    assert!(world.ask_with(&key()).await.is_ok());
}

#[tokio::test]
async fn keys_may_be_on_another_host_that_the_document_names() {
    let (world, keys) = (World::start().await, Issuer::start(vec![Pair::ed25519("k2", 2)]).await);
    world.issuer.be(Mood::KeysAt(format!("{}/keys", keys.url)));
    assert!(world.ask_with(&Pair::ed25519("k2", 2)).await.is_ok());
    assert_eq!((world.fetches(), keys.fetches()), ((1, 0), (0, 1)));
    assert_eq!(world.issuer.bearers(), [""], "providers are asked without a token");
}

#[tokio::test]
async fn only_configured_issuers_are_ever_asked() {
    let (world, stranger) = (World::start().await, Issuer::start(vec![key()]).await);
    let mut claims = world.claims();
    claims["iss"] = json!(stranger.url);
    assert_eq!(world.ask(&key().sign(&claims)).await, Err(AuthError::Invalid("its issuer is not one that is configured")));
    assert_eq!((world.fetches(), stranger.fetches()), ((0, 0), (0, 0)));
}
