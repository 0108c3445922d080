#![doc = include_str!("../README.md")]

mod claims;
mod key;
pub mod local;

use async_trait::async_trait;
use collie_engine::access::Caller;

/// Says who a bearer token belongs to.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The caller of a request that carried this token.
    ///
    /// # Errors
    /// Why the token names nobody.
    async fn authenticate(&self, bearer: &str) -> Result<Caller, AuthError>;
}

/// Why a token names nobody. No variant holds any part of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
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
}
