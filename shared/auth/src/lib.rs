#![doc = include_str!("../README.md")]

mod access;
mod claims;
pub mod http;
mod jwt;
mod key;
mod keyring;
mod keys;
pub mod local;
mod rules;
mod source;
mod users;

pub use access::{Access, Cluster};
pub use rules::RuleAuthenticator;

use async_trait::async_trait;
use collie_engine::access::Caller;
use collie_engine::ports::Clock;
use local::LocalIssuer;
use std::sync::Arc;

/// Says who a bearer token belongs to.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The caller of a request that carried this token.
    ///
    /// # Errors
    /// Why the token names nobody.
    async fn authenticate(&self, bearer: &str) -> Result<Caller, AuthError>;
}

/// Why a token lets nobody in. No variant holds any part of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There is no token.
    #[error("there is no token")]
    Missing,
    /// It is not one that counts here.
    #[error("the token is not valid: {0}")]
    Invalid(&'static str),
    /// It is too old.
    #[error("the token has expired")]
    Expired,
    /// Whoever could tell does not answer; the same token may be good later.
    #[error("the token cannot be checked now")]
    Unavailable,
    /// It is good, and no rule gives its holder anything.
    #[error("no rule gives {identity} anything")]
    NoRule {
        /// Whose token it is.
        identity: String,
        /// The claims that the closest rule misses, by name.
        failed_claims: Vec<String>,
    },
}

/// Everyone who may come in: holders of the local issuer's tokens, those whom rules know, or both.
pub struct Door {
    /// The local issuer, where its tokens count.
    pub local: Option<LocalIssuer>,
    /// The rules, where there are any.
    pub rules: Option<RuleAuthenticator>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Authenticator for Door {
    async fn authenticate(&self, bearer: &str) -> Result<Caller, AuthError> {
        match (&self.local, &self.rules) {
            (Some(issuer), None) => issuer.verify(bearer, self.clock.now()),
            (Some(issuer), Some(_)) if local::is_local(bearer) => issuer.verify(bearer, self.clock.now()),
            (_, Some(rules)) => rules.authenticate(bearer).await,
            (None, None) => Err(AuthError::Unavailable),
        }
    }
}
