//! A clock that is set by hand, rules, and an issuer.

mod issuer;
mod keys;

pub(crate) use issuer::{Issuer, Mood};
pub(crate) use keys::{Pair, base64url};

use async_trait::async_trait;
use collie_auth::http::HttpClient;
use collie_auth::{Access, AuthError, Authenticator, Cluster, RuleAuthenticator};
use collie_core::access::{Algorithm, ClaimRule, Expected, Globs, Grant, Rule, Who};
use collie_core::time::Timestamp;
use collie_engine::access::Caller;
use collie_engine::ports::Clock;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use url::Url;

/// 2026-01-31T18:04:04Z, in seconds.
pub(crate) const NOW: u64 = 1_769_882_644;

/// A clock that is set by hand.
#[derive(Clone)]
pub(crate) struct HandClock(Arc<AtomicU64>);

impl HandClock {
    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst) * 1000)
    }

    async fn sleep(&self, _duration: Duration) {}
}

/// An issuer, rules over it, and the clock.
pub(crate) struct World {
    pub(crate) issuer: Issuer,
    pub(crate) clock: HandClock,
    pub(crate) door: Arc<RuleAuthenticator>,
}

/// What a rule with these claims gives in tests: reading the project of its name.
pub(crate) fn grant(name: &str) -> Grant {
    Grant::Read { projects: Globs::new([name]) }
}

/// A rule on claims of an issuer.
pub(crate) fn rule(name: &str, issuer: collie_core::access::Issuer, claims: &Value) -> Rule {
    let values = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let condition = |(name, value): (&String, &Value)| ClaimRule {
        name: name.clone(),
        any_of: values(value).iter().map(|value| Expected::read(value).unwrap()).collect(),
    };
    let claims = claims.as_object().unwrap().iter().map(condition).collect();
    Rule { name: name.into(), who: Who::Token { issuer, claims }, grants: vec![grant(name)] }
}

/// An authenticator over rules and clusters.
pub(crate) fn door(
    rules: Vec<Rule>,
    algorithms: BTreeMap<String, Vec<Algorithm>>,
    clusters: Vec<Cluster>,
    clock: &HandClock,
) -> Arc<RuleAuthenticator> {
    let access = Access { rules, algorithms, clusters, http: Arc::new(HttpClient::of(&[])) };
    Arc::new(RuleAuthenticator::new(access, Arc::new(clock.clone())))
}

pub(crate) fn clock() -> HandClock {
    HandClock(Arc::new(AtomicU64::new(NOW)))
}

impl World {
    /// An issuer with one key, `k1`, and a rule `app` on the audience `collie`.
    pub(crate) async fn start() -> Self {
        Self::with_rule(&json!({"aud": "collie"})).await
    }

    pub(crate) async fn with_rule(claims: &Value) -> Self {
        let issuer = Issuer::start(vec![Pair::ed25519("k1", 1)]).await;
        let clock = clock();
        let rules = vec![rule("app", issuer.name(), claims)];
        let door = door(rules, BTreeMap::new(), Vec::new(), &clock);
        Self { issuer, clock, door }
    }

    /// Good claims of this issuer.
    pub(crate) fn claims(&self) -> Value {
        claims(&self.issuer.url)
    }

    pub(crate) async fn ask(&self, token: &str) -> Result<Caller, AuthError> {
        self.door.authenticate(token).await
    }

    /// The answer to a good token of this key.
    pub(crate) async fn ask_with(&self, pair: &Pair) -> Result<Caller, AuthError> {
        self.ask(&pair.sign(&self.claims())).await
    }

    /// How often the discovery document and the keys were asked for.
    pub(crate) fn fetches(&self) -> (usize, usize) {
        self.issuer.fetches()
    }
}

/// Good claims of an issuer at the beginning of the tests' time.
pub(crate) fn claims(issuer: &str) -> Value {
    json!({"iss": issuer, "aud": "collie", "sub": "bot", "iat": NOW, "nbf": NOW - 5, "exp": NOW + 3600})
}

/// A cluster whose API is this issuer's server.
pub(crate) fn cluster(name: &str, issuer: &Issuer, opaque_tokens: bool) -> Cluster {
    Cluster {
        name: name.into(),
        api: Url::parse(&issuer.url).unwrap(),
        http: Arc::new(HttpClient::of(&[])),
        token: Some(SecretString::from(format!("{name}-account")).into()),
        opaque_tokens,
    }
}
