//! Signatures: algorithms, kinds of keys, key ids, and everything that is no token.

use crate::support::{Issuer, Pair, World, base64url, claims, clock, door, rule};
use collie_auth::{AuthError, Authenticator};
use collie_core::access::Algorithm;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn invalid<T>(reason: &'static str) -> Result<T, AuthError> {
    Err(AuthError::Invalid(reason))
}

async fn refused(world: &World, token: &str) -> AuthError {
    world.ask(token).await.unwrap_err()
}

#[tokio::test]
async fn rsa_ecdsa_and_eddsa_are_known() {
    let pairs = [Pair::stored("rs256", "r"), Pair::stored("es256", "e"), Pair::ed25519("d", 4)];
    let issuer = Issuer::start(Vec::new()).await;
    issuer.rotate(&pairs.iter().collect::<Vec<_>>());
    let door = door(vec![rule("app", issuer.name(), &json!({"aud": "collie"}))], BTreeMap::new(), Vec::new(), &clock());
    for pair in &pairs {
        let token = pair.sign(&claims(&issuer.url));
        assert!(door.authenticate(&token).await.is_ok(), "{}", pair.jwk);
        let (signed, _) = token.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{}", base64url([1; 64]));
        assert_eq!(door.authenticate(&forged).await, invalid("its signature is not its issuer's"), "{}", pair.jwk);
    }
}

#[tokio::test]
async fn no_signature_and_shared_secrets_are_never_taken() {
    let world = World::start().await;
    let key = Pair::ed25519("k1", 1);
    let claims = world.claims();
    let unsigned = format!("{}.{}.", base64url(r#"{"alg":"none"}"#), base64url(claims.to_string()));
    assert_eq!(refused(&world, &unsigned).await, AuthError::Invalid("it is neither a JWT nor an opaque token"));
    // The public key as the secret of an HMAC, the oldest trick.
    let public = key.jwk["x"].as_str().unwrap().to_owned();
    let header = jsonwebtoken::Header { kid: Some("k1".into()), ..jsonwebtoken::Header::default() };
    let secret = jsonwebtoken::EncodingKey::from_secret(public.as_bytes()).unwrap();
    let hmac = jsonwebtoken::encode(&header, &claims, &secret).unwrap();
    assert_eq!(refused(&world, &hmac).await, AuthError::Invalid("its algorithm is not one that its issuer is allowed"));
}

#[tokio::test]
async fn an_issuer_has_the_algorithms_that_it_is_allowed() {
    let pair = Pair::ed25519("k1", 1);
    let issuer = Issuer::start(vec![Pair::ed25519("k1", 1)]).await;
    let rules = || vec![rule("app", issuer.name(), &json!({"aud": "collie"}))];
    let token = pair.sign(&claims(&issuer.url));
    for (allowed, good) in [(vec![Algorithm::EdDsa], true), (vec![Algorithm::Rs256, Algorithm::Es256], false)] {
        let door = door(rules(), BTreeMap::from([(issuer.url.clone(), allowed)]), Vec::new(), &clock());
        assert_eq!(door.authenticate(&token).await.is_ok(), good);
    }
}

#[tokio::test]
async fn an_algorithm_has_to_fit_the_key() {
    let world = World::start().await;
    let key = Pair::ed25519("k1", 1);
    for algorithm in ["RS256", "ES256"] {
        let token = key.sign_all(&json!({"alg": algorithm, "kid": "k1"}), &world.claims().to_string());
        assert_eq!(refused(&world, &token).await, AuthError::Invalid("its algorithm does not fit its key"), "{algorithm}");
    }
    let mut other = Pair::ed25519("k1", 1);
    other.jwk["alg"] = json!("ES256");
    let issuer = Issuer::start(vec![other]).await;
    let door = door(vec![rule("app", issuer.name(), &json!({"aud": "collie"}))], BTreeMap::new(), Vec::new(), &clock());
    let answer = door.authenticate(&key.sign(&claims(&issuer.url))).await;
    assert_eq!(answer, Err(AuthError::Unavailable), "a key that names an algorithm of another kind is no key");
}

#[tokio::test]
async fn a_key_is_named_where_there_are_several() {
    let world = World::start().await;
    let unnamed = || Pair::ed25519("k1", 1).unnamed();
    assert!(world.ask_with(&unnamed()).await.is_ok(), "the only key needs no name");
    assert_eq!(world.ask_with(&Pair::ed25519("k2", 1)).await, invalid("its key (kid) is not one that its issuer has"));
    world.clock.advance(60);
    world.issuer.rotate(&[&Pair::ed25519("k1", 1), &Pair::ed25519("k2", 2)]);
    assert!(world.ask_with(&Pair::ed25519("k2", 2)).await.is_ok());
    assert_eq!(world.ask_with(&unnamed()).await, invalid("it names no key (kid), and its issuer has several"));
    let mut nameless = Pair::ed25519("k1", 1);
    nameless.jwk.as_object_mut().unwrap().remove("kid");
    world.clock.advance(60);
    world.issuer.rotate(&[&nameless]);
    assert_eq!(world.ask_with(&Pair::ed25519("k3", 3)).await, invalid("its signature is not its issuer's"));
    assert!(world.ask_with(&Pair::ed25519("any", 1)).await.is_ok(), "the only key has no name to compare");
}

#[tokio::test]
async fn keys_for_encryption_short_ones_and_strange_ones_are_left_out() {
    let world = World::start().await;
    let key = Pair::ed25519("k1", 1);
    let mut encrypting = Pair::ed25519("enc", 5);
    encrypting.jwk["use"] = json!("enc");
    let (mut strange, mut short, mut shared) = (Pair::ed25519("s", 6), Pair::stored("rs256", "short"), Pair::ed25519("oct", 7));
    strange.jwk["kty"] = json!("quantum");
    short.jwk["n"] = json!(short.jwk["n"].as_str().unwrap()[..171]);
    shared.jwk = json!({"kty": "oct", "k": base64url([7; 32]), "kid": "oct"});
    world.issuer.rotate(&[&encrypting, &strange, &short, &shared, &key]);
    assert!(world.ask_with(&key.unnamed()).await.is_ok(), "it is the only one that counts");
    assert_eq!(world.ask_with(&encrypting).await, invalid("its key (kid) is not one that its issuer has"));
}

#[tokio::test]
async fn what_is_no_token_is_refused_without_asking_anyone() {
    let world = World::start().await;
    let key = Pair::ed25519("k1", 1);
    let claims = world.claims().to_string();
    let with_header = |header: Value| key.sign_all(&header, &claims);
    let cases = [
        (String::new(), AuthError::Missing),
        ("x".into(), AuthError::Invalid("it is neither a JWT nor an opaque token")),
        ("a.b.c".into(), AuthError::Invalid("it is neither a JWT nor an opaque token")),
        ("x".repeat(20_000), AuthError::Invalid("it is too long")),
        (key.sign_text("[]"), AuthError::Invalid("its claims cannot be read")),
        (key.sign_text("{}"), AuthError::Invalid("it names no issuer")),
        (key.sign_text(r#"{"iss":"https://other.example.com"}"#), AuthError::Invalid("its issuer is not one that is configured")),
        (key.sign_text(&format!(r#"{{"iss":"{}/"}}"#, world.issuer.url)), AuthError::Invalid("its issuer is not one that is configured")),
        (with_header(json!({"alg": "EdDSA", "b64": true})), AuthError::Invalid("its header asks for extensions")),
        ("sha256~abc".into(), AuthError::Invalid("opaque tokens are not taken here")),
    ];
    for (token, error) in cases {
        assert_eq!(world.ask(&token).await, Err(error), "{token}");
    }
    assert_eq!(world.fetches(), (0, 0));
}

#[tokio::test]
async fn tok_02_a_refusal_never_repeats_the_token() {
    let world = World::start().await;
    let stranger = Pair::ed25519("k1", 9);
    let mut wrong = world.claims();
    wrong["aud"] = json!("canary-audience");
    for token in [stranger.sign(&world.claims()), Pair::ed25519("k1", 1).sign(&wrong), "canary-1.canary-2.canary-3".into()] {
        let error = world.ask(&token).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        for part in token.split('.').chain(["canary"]) {
            assert!(!shown.contains(part), "{shown}");
        }
    }
}
