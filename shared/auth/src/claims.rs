//! What a local token says, and what of it is checked by hand against a given time.

use crate::AuthError;
use collie_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The issuer of local tokens.
pub(crate) const ISSUER: &str = "collie-local";
/// Whom local tokens are for.
pub(crate) const AUDIENCE: &str = "collie";
/// How far the clocks of issuer and verifier may differ.
const LEEWAY: Duration = Duration::from_secs(60);
/// How long a name may be.
const MAX_NAME: usize = 64;

/// The claims of a local token; times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) aud: String,
    pub(crate) sub: String,
    pub(crate) iat: u64,
    pub(crate) exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nbf: Option<u64>,
    pub(crate) admin: bool,
}

impl Claims {
    /// The claims of a token that begins now.
    pub(crate) fn new(name: &str, admin: bool, ttl: Duration, now: Timestamp) -> Self {
        let iat = now.as_millis() / 1000;
        Self { iss: ISSUER.into(), aud: AUDIENCE.into(), sub: name.into(), iat, exp: iat.saturating_add(ttl.as_secs()), nbf: None, admin }
    }

    /// Whether the token counts at this time.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), AuthError> {
        let (now, leeway) = (now.as_millis() / 1000, LEEWAY.as_secs());
        if !is_name(&self.sub) {
            return Err(AuthError::Invalid("its subject is not a name"));
        }
        if self.nbf.is_some_and(|nbf| nbf > now.saturating_add(leeway)) {
            return Err(AuthError::Invalid("it is not valid yet"));
        }
        if now >= self.exp.saturating_add(leeway) { Err(AuthError::Expired) } else { Ok(()) }
    }
}

/// Whether this can be a caller's name: 1 to 64 of letters, digits, `.`, `_`, `@` and `-`.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'@' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["a", "deps-bot", "Ann.B_2@example.com", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a b", "a|b", "a/b", "ä", "a\n", &"x".repeat(65)] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
