//! The local issuer: one key pair in a directory, tokens signed with it, and the check of such tokens.
//!
//! For `collie serve` and its callers on one machine. The token is a JWT, EdDSA only, whose `iss`, `aud` and `exp` are
//! required. Time is always given, so that a verdict can be replayed. Upholds INV-12: neither the key nor a token is ever
//! part of an error or of debug output.

use crate::claims::{AUDIENCE, Claims, ISSUER, is_name};
use crate::key::{self, Seed};
use crate::{AuthError, Authenticator};
use async_trait::async_trait;
use collie_core::time::Timestamp;
use collie_engine::access::Caller;
use collie_engine::ports::Clock;
use ed25519_dalek::SigningKey;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::SecretString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, §7).
const PKCS8_HEAD: [u8; 16] = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// A longer text is not one of our tokens.
const MAX_TOKEN_BYTES: usize = 2048;

/// Why there is no issuer, or no token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key's file cannot be read or written.
    #[error("the issuer's key: {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The key's file holds something else.
    #[error("{} does not hold a key; remove it to get a new one, which ends all tokens of the old", .0.display())]
    Damaged(PathBuf),
    /// Others may read or write the key's file.
    #[error("{} is open to other users; set its mode to 0600", .0.display())]
    Exposed(PathBuf),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
    /// The name cannot be part of an identity.
    #[error("a name is 1 to 64 of letters, digits, '.', '_', '@' and '-'")]
    InvalidName,
    /// The key does not sign.
    #[error("the token cannot be signed")]
    Signing,
}

/// Signs and verifies local tokens. Clones share the key.
#[derive(Clone)]
pub struct LocalIssuer {
    signing: EncodingKey,
    verifying: DecodingKey,
}

impl LocalIssuer {
    /// The issuer whose key is in this directory (`<data-dir>/issuer`); directory and key are made where there are none.
    ///
    /// # Errors
    /// Where the key cannot be made or read, or others can read it.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Ok(Self::of(&key::open(dir)?))
    }

    fn of(seed: &Seed) -> Self {
        let verifying = SigningKey::from_bytes(seed).verifying_key();
        let pkcs8 = [PKCS8_HEAD.as_slice(), seed].concat();
        Self { signing: EncodingKey::from_ed_der(&pkcs8), verifying: DecodingKey::from_ed_der(verifying.as_bytes()) }
    }

    /// A token for the identity `local|<name>`, good from now for this long.
    ///
    /// # Errors
    /// [`Error::InvalidName`] where the name cannot be part of an identity.
    pub fn token(&self, name: &str, admin: bool, ttl: Duration, now: Timestamp) -> Result<SecretString, Error> {
        if !is_name(name) {
            return Err(Error::InvalidName);
        }
        let claims = Claims::new(name, admin, ttl, now);
        let token = jsonwebtoken::encode(&Header::new(Algorithm::EdDSA), &claims, &self.signing);
        token.map(SecretString::from).map_err(|_| Error::Signing)
    }

    /// Whom a token names at this time.
    ///
    /// # Errors
    /// Why it names nobody.
    pub fn verify(&self, bearer: &str, now: Timestamp) -> Result<Caller, AuthError> {
        if bearer.is_empty() {
            return Err(AuthError::Missing);
        }
        if bearer.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::Invalid("it is too long"));
        }
        let decoded = jsonwebtoken::decode::<Claims>(bearer, &self.verifying, &validation());
        let claims = decoded.map_err(|e| AuthError::Invalid(reason(e.kind())))?.claims;
        claims.check(now)?;
        let identity = format!("local|{}", claims.sub);
        Ok(if claims.admin { Caller::admin(identity) } else { Caller::own_items(identity) })
    }

    /// The port over this issuer and a clock.
    #[must_use]
    pub fn authenticator(self, clock: Arc<dyn Clock>) -> LocalAuthenticator {
        LocalAuthenticator { issuer: self, clock }
    }
}

/// Without the key.
impl fmt::Debug for LocalIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalIssuer").finish_non_exhaustive()
    }
}

/// Authenticates by local tokens.
#[derive(Clone)]
pub struct LocalAuthenticator {
    issuer: LocalIssuer,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Authenticator for LocalAuthenticator {
    async fn authenticate(&self, bearer: &str) -> Result<Caller, AuthError> {
        self.issuer.verify(bearer, self.clock.now())
    }
}

/// Whether a token says that it is a local one. Only which issuer is to judge it depends on that.
pub(crate) fn is_local(bearer: &str) -> bool {
    crate::jwt::Jwt::read(bearer).is_ok_and(|jwt| jwt.issuer() == ISSUER)
}

/// Times are left to [`Claims::check`]: the library reads the wall clock.
fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.algorithms = vec![Algorithm::EdDSA];
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["iss", "aud", "sub", "exp"]);
    validation
}

fn reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => "its signature is not this issuer's",
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm | ErrorKind::InvalidAlgorithmName => "its algorithm is not EdDSA",
        ErrorKind::InvalidIssuer => "its issuer is not the local one",
        ErrorKind::InvalidAudience => "it is meant for someone else",
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => "its claims are incomplete",
        _ => "it is not a local token",
    }
}
