//! Clusters: as issuers of tokens, and as who knows the users behind opaque ones.

use crate::support::{HandClock, Issuer, Mood, Pair, claims, clock, cluster, door, rule};
use collie_auth::{AuthError, Authenticator, Cluster, RuleAuthenticator};
use collie_core::access::{Globs, Grant, Grants, Rule, Who};
use collie_core::error::Failure;
use collie_engine::credential::Credential;
use collie_engine::ports::Secrets;
use secrecy::SecretString;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const ISSUER: &str = "https://oidc.example.com/2f1a";
const TOKEN: &str = "sha256~canary-Abc_123";

fn of_cluster(name: &str, rule_name: &str) -> Rule {
    rule(rule_name, collie_core::access::Issuer::Cluster(name.into()), &json!({"aud": "collie", "sub": "system:serviceaccount:ci:bot"}))
}

fn admins(cluster: &str, group: &str) -> Rule {
    Rule { name: "admins".into(), who: Who::Groups { cluster: cluster.into(), groups: Globs::new([group]) }, grants: vec![Grant::Admin] }
}

fn account_token(issuer: &str, pair: &Pair) -> String {
    let mut claims = claims(issuer);
    claims["sub"] = json!("system:serviceaccount:ci:bot");
    pair.sign(&claims)
}

#[tokio::test]
async fn a_clusters_issuer_comes_from_discovery_and_its_keys_from_its_api() {
    let api = Issuer::start(vec![Pair::ed25519("k1", 1)]).await;
    // The document names another issuer, and keys on a host that nobody reaches.
    api.be(Mood::Says(ISSUER.into()));
    let door = door(vec![of_cluster("prod", "app")], BTreeMap::new(), vec![cluster("prod", &api, false)], &clock());
    let caller = door.authenticate(&account_token(ISSUER, &Pair::ed25519("k1", 1))).await.unwrap();
    assert_eq!(caller.identity, "prod|system:serviceaccount:ci:bot");
    assert_eq!(caller.issuer.as_deref(), Some(ISSUER));
    assert_eq!(api.bearers(), ["prod-account", "prod-account"], "both requests carry the service account's token");
    let foreign = account_token("https://elsewhere.example.com", &Pair::ed25519("k1", 1));
    assert_eq!(door.authenticate(&foreign).await, Err(AuthError::Invalid("its issuer is not one that is configured")));
    assert_eq!(api.fetches(), (1, 1), "what the cluster's issuer is was known");
}

/// A secret store whose secrets are all the same.
struct Same(&'static str);

#[async_trait::async_trait]
impl Secrets for Same {
    async fn secret(&self, _name: &str) -> Result<SecretString, Failure> {
        Ok(SecretString::from(self.0))
    }
}

#[tokio::test]
async fn a_rotated_service_account_token_is_used_at_the_next_question() {
    let (api, clock) = (Issuer::start(vec![Pair::ed25519("k1", 1)]).await, clock());
    api.need("new");
    let token = |kept| Credential::named("k8s/prod", "old".into(), Arc::new(Same(kept)), Arc::new(clock.clone()));
    let account = account_token(&api.url, &Pair::ed25519("k1", 1));
    let door = |kept| {
        let prod = Cluster { token: Some(token(kept)), ..cluster("prod", &api, false) };
        door(vec![of_cluster("prod", "app")], BTreeMap::new(), vec![prod], &clock)
    };
    assert!(door("new").authenticate(&account).await.is_ok());
    assert_eq!(api.bearers(), ["old", "new", "new"]);
    assert_eq!(door("old").authenticate(&account).await, Err(AuthError::Unavailable), "it has not changed");
    assert_eq!(api.bearers()[3..], ["old"]);
}

#[tokio::test]
async fn two_clusters_with_the_same_issuer_are_told_apart_by_their_keys() {
    let (one, two) = (Issuer::start(vec![Pair::ed25519("a", 1)]).await, Issuer::start(vec![Pair::ed25519("b", 2)]).await);
    one.be(Mood::Says(ISSUER.into()));
    two.be(Mood::Says(ISSUER.into()));
    let clusters = vec![cluster("one", &one, false), cluster("two", &two, false)];
    let door = door(vec![of_cluster("one", "x"), of_cluster("two", "y")], BTreeMap::new(), clusters, &clock());
    for (pair, identity) in
        [(Pair::ed25519("a", 1), "one|system:serviceaccount:ci:bot"), (Pair::ed25519("b", 2), "two|system:serviceaccount:ci:bot")]
    {
        assert_eq!(door.authenticate(&account_token(ISSUER, &pair)).await.unwrap().identity, identity);
    }
}

#[tokio::test]
async fn rules_of_clusters_that_are_not_configured_are_skipped() {
    let issuer = Issuer::start(vec![Pair::ed25519("k1", 1)]).await;
    let rules = vec![of_cluster("prod", "skipped"), admins("prod", "ops"), rule("app", issuer.name(), &json!({"aud": "collie"}))];
    let door = door(rules, BTreeMap::new(), Vec::new(), &clock());
    assert!(door.authenticate(&Pair::ed25519("k1", 1).sign(&claims(&issuer.url))).await.is_ok());
    assert_eq!(door.authenticate(TOKEN).await, Err(AuthError::Invalid("opaque tokens are not taken here")));
}

/// A cluster that knows `ann`, and one that takes no opaque tokens.
async fn users() -> (Issuer, Issuer, HandClock, Arc<RuleAuthenticator>) {
    let (prod, stage) = (Issuer::start(Vec::new()).await, Issuer::start(Vec::new()).await);
    prod.user(TOKEN, "ann", &["platform-admins", "system:authenticated"]);
    let clock = clock();
    let clusters = vec![cluster("stage", &stage, false), cluster("prod", &prod, true)];
    let door = door(vec![admins("prod", "platform-admins")], BTreeMap::new(), clusters, &clock);
    (prod, stage, clock, door)
}

#[tokio::test]
async fn an_opaque_token_is_asked_of_the_one_cluster_with_itself() {
    let (prod, stage, _clock, door) = users().await;
    let caller = door.authenticate(TOKEN).await.unwrap();
    assert_eq!((caller.identity.as_str(), &caller.grants, caller.issuer), ("prod|ann", &Grants::admin(), None));
    assert_eq!(caller.groups, ["platform-admins"], "groups that everyone is in are left out");
    assert_eq!((prod.bearers(), stage.bearers()), (vec![TOKEN.to_owned()], Vec::new()));
}

#[tokio::test]
async fn an_answer_is_kept_for_five_minutes_and_a_failure_for_half_a_minute() {
    let (prod, _stage, clock, door) = users().await;
    assert!(door.authenticate(TOKEN).await.is_ok());
    prod.forget(TOKEN);
    clock.advance(299);
    assert!(door.authenticate(TOKEN).await.is_ok());
    assert_eq!(prod.lookups(), 1);
    clock.advance(1);
    let unknown = Err(AuthError::Invalid("its cluster does not know it"));
    assert_eq!(door.authenticate(TOKEN).await, unknown);
    prod.user(TOKEN, "ann", &["platform-admins"]);
    clock.advance(29);
    assert_eq!(door.authenticate(TOKEN).await, unknown);
    assert_eq!(prod.lookups(), 2);
    clock.advance(1);
    assert!(door.authenticate(TOKEN).await.is_ok());
}

#[tokio::test]
async fn a_cluster_that_is_down_refuses_nobody_for_good() {
    let (prod, _stage, clock, door) = users().await;
    prod.be(Mood::Down);
    assert_eq!(door.authenticate(TOKEN).await, Err(AuthError::Unavailable));
    prod.be(Mood::Good);
    clock.advance(30);
    assert!(door.authenticate(TOKEN).await.is_ok());
}

#[tokio::test]
async fn users_whom_no_rule_knows_are_told_who_they_are() {
    let (prod, _stage, _clock, door) = users().await;
    prod.user("sha256~other", "bob", &["developers", "system:masters"]);
    let refused = AuthError::NoRule { identity: "prod|bob".into(), failed_claims: Vec::new() };
    assert_eq!(door.authenticate("sha256~other").await, Err(refused));
}

#[tokio::test]
async fn what_only_begins_like_an_opaque_token_is_not_asked() {
    let (prod, _stage, _clock, door) = users().await;
    for token in ["sha256~", "sha256~a b", "sha256~../..", &format!("sha256~{}", "x".repeat(300))] {
        assert_eq!(door.authenticate(token).await, Err(AuthError::Invalid("it begins like an opaque token and is none")), "{token}");
    }
    assert_eq!(prod.lookups(), 0);
}
