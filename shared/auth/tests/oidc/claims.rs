//! Standard claims: times, audiences, subjects.

use crate::support::{NOW, Pair, World};
use collie_auth::AuthError;
use serde_json::{Value, json};

fn key() -> Pair {
    Pair::ed25519("k1", 1)
}

/// The answer to good claims with one of them changed; null takes it away.
async fn with(world: &World, name: &str, value: Value) -> Result<String, AuthError> {
    let mut claims = world.claims();
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    world.ask(&key().sign(&claims)).await.map(|caller| caller.identity)
}

#[tokio::test]
async fn a_good_token_names_its_caller_its_issuer_and_its_grants() {
    let world = World::start().await;
    let caller = world.ask_with(&key()).await.unwrap();
    assert_eq!(caller.identity, format!("{}|bot", world.issuer.host()));
    assert_eq!(caller.issuer, Some(world.issuer.url.clone()));
    assert_eq!(caller.grants.as_slice(), [crate::support::grant("app")]);
    assert_eq!(caller.groups, Vec::<String>::new());
}

#[tokio::test]
async fn jwt_02_an_audience_is_text_or_a_list() {
    let world = World::start().await;
    for good in [json!("collie"), json!(["collie"]), json!(["x", "collie"])] {
        assert!(with(&world, "aud", good.clone()).await.is_ok(), "{good}");
    }
    for other in [json!([]), json!(["x"]), json!("x"), json!("Collie")] {
        let identity = format!("{}|bot", world.issuer.host());
        let refused = AuthError::NoRule { identity, failed_claims: vec!["aud".into()] };
        assert_eq!(with(&world, "aud", other.clone()).await, Err(refused), "{other}");
    }
    let malformed = AuthError::Invalid("its aud is neither text nor a list of texts");
    for wrong in [json!(5), Value::Null, json!(["collie", 5]), json!({"collie": true})] {
        assert_eq!(with(&world, "aud", wrong.clone()).await, Err(malformed.clone()), "{wrong}");
    }
    let mut claims = world.claims();
    claims["aud"] = Value::Null;
    assert_eq!(world.ask(&key().sign(&claims)).await, Err(malformed));
}

#[tokio::test]
async fn jwt_03_a_standard_claim_of_the_wrong_type_refuses_the_token() {
    let world = World::start().await;
    let no_date = AuthError::Invalid("one of exp, nbf and iat is no date");
    let cases = [
        ("nbf", json!("9999999999"), no_date.clone()),
        ("exp", json!("1"), no_date.clone()),
        ("exp", json!(-1), no_date.clone()),
        ("exp", json!(true), no_date.clone()),
        ("exp", json!([NOW + 60]), AuthError::Invalid("its claims are malformed")),
        ("iat", json!({}), no_date),
        ("iat", json!(NOW + 86_400), AuthError::Invalid("it was issued in the future")),
        ("exp", Value::Null, AuthError::Invalid("it has no exp")),
        ("sub", Value::Null, AuthError::Invalid("it has no sub")),
        ("sub", json!(7), AuthError::Invalid("it has no sub")),
        ("iss", json!(7), AuthError::Invalid("it names no issuer")),
    ];
    for (name, value, error) in cases {
        assert_eq!(with(&world, name, value.clone()).await, Err(error), "{name} {value}");
    }
    let huge = world.claims().to_string().replace(&(NOW + 3600).to_string(), "1e999");
    assert_eq!(world.ask(&key().sign_text(&huge)).await, Err(AuthError::Invalid("its claims cannot be read")));
    let mut null = world.claims();
    null["exp"] = Value::Null;
    assert_eq!(world.ask(&key().sign(&null)).await, Err(AuthError::Invalid("one of exp, nbf and iat is no date")));
}

#[test]
fn jwt_03_the_lock_file_has_a_library_that_fails_closed() {
    let lock = include_str!("../../../../Cargo.lock");
    let (_, rest) = lock.split_once("name = \"jsonwebtoken\"\nversion = \"").unwrap();
    let version: Vec<u32> = rest.split('"').next().unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version >= vec![10, 3, 0], "{version:?}");
}

#[tokio::test]
async fn clocks_may_differ_by_less_than_a_minute() {
    let world = World::start().await;
    assert!(with(&world, "exp", json!(NOW - 59)).await.is_ok());
    assert_eq!(with(&world, "exp", json!(NOW - 60)).await, Err(AuthError::Expired));
    assert_eq!(with(&world, "exp", json!(NOW - 61)).await, Err(AuthError::Expired));
    assert!(with(&world, "exp", json!(NOW as f64 + 10.5)).await.is_ok());
    for (name, error) in [("nbf", "it is not valid yet"), ("iat", "it was issued in the future")] {
        assert!(with(&world, name, json!(NOW + 60)).await.is_ok(), "{name}");
        assert_eq!(with(&world, name, json!(NOW + 61)).await, Err(AuthError::Invalid(error)), "{name}");
        assert!(with(&world, name, Value::Null).await.is_ok(), "{name} may be missing");
    }
}

#[tokio::test]
async fn jwt_11_a_subject_is_kept_whole_or_refused() {
    let world = World::start().await;
    let host = world.issuer.host();
    let branch = "b".repeat(250);
    for subject in [
        "project_path:g/p".to_owned(),
        format!("project_path:g/p:ref_type:branch:ref:{branch}"),
        "project_path:g/p:ref_type:branch:ref:x:ref_type:branch:ref:main".to_owned(),
        "a|b".to_owned(),
        "x".repeat(1024),
    ] {
        assert_eq!(with(&world, "sub", json!(subject)).await, Ok(format!("{host}|{subject}")));
    }
    for subject in [String::new(), "x".repeat(1025), "a\nb".to_owned()] {
        let refused = AuthError::Invalid("its sub is empty, too long or has control characters");
        assert_eq!(with(&world, "sub", json!(subject)).await, Err(refused));
    }
}

#[tokio::test]
async fn jwt_11_a_rule_on_sub_compares_it_whole() {
    let world = World::with_rule(&json!({"aud": "collie", "sub": "project_path:g/p:ref_type:branch:ref:main"})).await;
    assert!(with(&world, "sub", json!("project_path:g/p:ref_type:branch:ref:main")).await.is_ok());
    for forged in ["project_path:g/p:ref_type:branch:ref:x:ref_type:branch:ref:main", "project_path:g/p:ref_type:branch:ref:main2"] {
        let identity = format!("{}|{forged}", world.issuer.host());
        assert_eq!(with(&world, "sub", json!(forged)).await, Err(AuthError::NoRule { identity, failed_claims: vec!["sub".into()] }));
    }
}
