//! Public keys of an issuer, from its JWKS document, and which of them may have signed a token.

use crate::AuthError;
use crate::jwt::{Claims, Jwt};
use collie_core::time::Timestamp;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Keys that are read of one document.
const MAX_KEYS: usize = 64;
/// Base64 digits of the shortest RSA modulus that is taken: 2048 bits.
const MIN_MODULUS_DIGITS: usize = 342;

/// The keys of an issuer.
pub(crate) struct KeySet {
    /// What its tokens have as `iss`.
    pub(crate) issuer: String,
    /// When they were asked for.
    pub(crate) at: Timestamp,
    keys: Vec<Key>,
}

/// One key.
struct Key {
    kid: Option<String>,
    algorithms: &'static [Algorithm],
    decoding: DecodingKey,
}

/// What the keys say of a token.
pub(crate) enum Verdict {
    /// One of them signed it; an error where its claims are malformed.
    Signed(Result<Claims, AuthError>),
    /// It does not say which key, and there are several.
    NoKeyId,
    /// It names a key that is not here.
    UnknownKey,
    /// The key that it names is of another kind.
    Misfit,
    /// The key that it names did not sign it.
    Forged,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// The keys of a JWKS document. Keys of kinds that are not known here are left out; none where no key is left.
    pub(crate) fn read(issuer: String, document: &[u8], at: Timestamp) -> Option<Self> {
        let Document { keys } = serde_json::from_slice(document).ok()?;
        let keys: Vec<_> = keys.into_iter().take(MAX_KEYS).filter_map(Key::read).collect();
        (!keys.is_empty()).then_some(Self { issuer, at, keys })
    }

    /// What the keys say of a token.
    pub(crate) fn verify(&self, jwt: &Jwt<'_>) -> Verdict {
        let named: Vec<&Key> = match (jwt.kid(), self.keys.as_slice()) {
            (None, [only]) | (Some(_), [only @ Key { kid: None, .. }]) => vec![only],
            (None, _) => return Verdict::NoKeyId,
            (Some(kid), keys) => keys.iter().filter(|key| key.kid.as_deref() == Some(kid)).collect(),
        };
        if named.is_empty() {
            return Verdict::UnknownKey;
        }
        let fitting: Vec<_> = named.into_iter().filter(|key| key.algorithms.contains(&jwt.algorithm())).collect();
        if fitting.is_empty() {
            return Verdict::Misfit;
        }
        fitting.into_iter().find_map(|key| jwt.signed_by(&key.decoding)).map_or(Verdict::Forged, Verdict::Signed)
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let named = value.get("alg").map(|alg| alg.as_str()?.parse().ok());
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|use_| *use_ != PublicKeyUse::Signature) {
            return None;
        }
        let algorithms = algorithms(&jwk, named)?;
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { kid: jwk.common.key_id, algorithms, decoding })
    }
}

/// The algorithms that fit a key: those of its kind, or the one that it names. None fits a shared secret.
fn algorithms(jwk: &Jwk, named: Option<Option<Algorithm>>) -> Option<&'static [Algorithm]> {
    use Algorithm as A;
    const RSA: &[Algorithm] = &[A::RS256, A::RS384, A::RS512, A::PS256, A::PS384, A::PS512];
    let of_kind: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(rsa) if rsa.n.len() >= MIN_MODULUS_DIGITS => RSA,
        AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P256 => &[A::ES256],
        AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P384 => &[A::ES384],
        AlgorithmParameters::OctetKeyPair(point) if point.curve == EllipticCurve::Ed25519 => &[A::EdDSA],
        _ => return None,
    };
    let Some(named) = named else { return Some(of_kind) };
    let at = of_kind.iter().position(|algorithm| Some(*algorithm) == named)?;
    of_kind.get(at..=at)
}
