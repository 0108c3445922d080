//! A JWT: what it says, who signed it, and whether its standard claims hold at a given time.
//!
//! The library verifies signatures and nothing else: it reads the wall clock for times, and takes a claim of the wrong type for a
//! missing one. Here a standard claim that is malformed refuses the token (JWT-03).

use crate::AuthError;
use collie_core::time::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde_json::{Map, Value};

/// The claims of a token.
pub(crate) type Claims = Map<String, Value>;

/// A longer text is no token of an issuer.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// A longer subject could not be kept whole.
const MAX_SUBJECT_BYTES: usize = 1024;
/// How far the clocks of issuer and verifier may differ, in seconds.
const LEEWAY: u64 = 60;

/// A token that has the form of one. Nothing that it says is believed yet.
pub(crate) struct Jwt<'t> {
    text: &'t str,
    header: Header,
    issuer: String,
}

impl<'t> Jwt<'t> {
    /// Reads a token, without believing it.
    pub(crate) fn read(text: &'t str) -> Result<Self, AuthError> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::Invalid("it is too long"));
        }
        let header = jsonwebtoken::decode_header(text).map_err(|_| AuthError::Invalid("it is neither a JWT nor an opaque token"))?;
        // Extensions that must be understood, and unencoded payloads, are of no use here and change what a signature covers.
        if header.crit.is_some() || header.extras.inner().contains_key("b64") {
            return Err(AuthError::Invalid("its header asks for extensions"));
        }
        let claims = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(text);
        let claims = claims.map_err(|_| AuthError::Invalid("its claims cannot be read"))?;
        let issuer = claims.get("iss").and_then(Value::as_str).ok_or(AuthError::Invalid("it names no issuer"))?;
        Ok(Self { text, header, issuer: issuer.to_owned() })
    }

    /// The issuer that it names.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The key that it names.
    pub(crate) fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// The algorithm that it names.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.header.alg
    }

    /// Its claims, where this key signed it; an error where it did and they are malformed.
    pub(crate) fn signed_by(&self, key: &DecodingKey) -> Option<Result<Claims, AuthError>> {
        match jsonwebtoken::decode::<Claims>(self.text, key, &signature_alone(self.header.alg)) {
            Ok(token) => Some(Ok(token.claims)),
            Err(error) => match error.kind() {
                ErrorKind::Json(_) | ErrorKind::InvalidClaimFormat(_) => Some(Err(AuthError::Invalid("its claims are malformed"))),
                _ => None,
            },
        }
    }
}

fn signature_alone(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    validation
}

/// Checks the standard claims of a token whose signature is good, and returns its subject.
pub(crate) fn subject(claims: &Claims, now: Timestamp) -> Result<&str, AuthError> {
    let now = now.as_millis() / 1000;
    let expires = date(claims, "exp")?.ok_or(AuthError::Invalid("it has no exp"))?;
    if now >= expires.saturating_add(LEEWAY) {
        return Err(AuthError::Expired);
    }
    if date(claims, "nbf")?.is_some_and(|nbf| nbf > now + LEEWAY) {
        return Err(AuthError::Invalid("it is not valid yet"));
    }
    if date(claims, "iat")?.is_some_and(|iat| iat > now + LEEWAY) {
        return Err(AuthError::Invalid("it was issued in the future"));
    }
    let is_audience = |aud: &Value| aud.is_string() || aud.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    if !claims.get("aud").is_some_and(is_audience) {
        return Err(AuthError::Invalid("its aud is neither text nor a list of texts"));
    }
    let subject = claims.get("sub").and_then(Value::as_str).ok_or(AuthError::Invalid("it has no sub"))?;
    if name_is_good(subject) { Ok(subject) } else { Err(AuthError::Invalid("its sub is empty, too long or has control characters")) }
}

/// Whether a text can be the second part of an identity. It is never cut (JWT-11).
pub(crate) fn name_is_good(name: &str) -> bool {
    (1..=MAX_SUBJECT_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// A date in seconds since the Unix epoch; a fraction is dropped.
fn date(claims: &Claims, name: &str) -> Result<Option<u64>, AuthError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_u64().or_else(|| value.as_f64().filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64));
    whole.map(Some).ok_or(AuthError::Invalid("one of exp, nbf and iat is no date"))
}
