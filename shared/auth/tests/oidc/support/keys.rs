//! Key pairs and signed tokens.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer, SigningKey};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

enum Secret {
    Ed25519(Box<SigningKey>),
    Other(Algorithm, EncodingKey),
}

/// A key pair.
pub(crate) struct Pair {
    pub(crate) jwk: Value,
    kid: Option<String>,
    secret: Secret,
}

impl Pair {
    pub(crate) fn ed25519(kid: &str, seed: u8) -> Self {
        let key = SigningKey::from_bytes(&[seed; 32]);
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(key.verifying_key().as_bytes()), "kid": kid, "use": "sig"});
        Self { jwk, kid: Some(kid.into()), secret: Secret::Ed25519(Box::new(key)) }
    }

    /// The pair of `test-keys.json`: `rs256` or `es256`.
    pub(crate) fn stored(name: &str, kid: &str) -> Self {
        let keys: Value = serde_json::from_str(include_str!("../../keys/test-keys.json")).unwrap();
        let der = |form: &str| BASE64_URL_SAFE_NO_PAD.decode(keys[name][form].as_str().unwrap()).unwrap();
        let secret = match name {
            "rs256" => Secret::Other(Algorithm::RS256, EncodingKey::from_rsa_der(&der("pkcs1"))),
            _ => Secret::Other(Algorithm::ES256, EncodingKey::from_ec_der(&der("pkcs8"))),
        };
        let mut jwk = keys[name]["jwk"].clone();
        jwk["kid"] = json!(kid);
        Self { jwk, kid: Some(kid.into()), secret }
    }

    /// The same pair, whose tokens name no key.
    pub(crate) fn unnamed(self) -> Self {
        Self { kid: None, ..self }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        match &self.secret {
            Secret::Ed25519(_) => self.sign_text(&claims.to_string()),
            Secret::Other(algorithm, key) => {
                let header = Header { kid: self.kid.clone(), ..Header::new(*algorithm) };
                jsonwebtoken::encode(&header, claims, key).unwrap()
            }
        }
    }

    /// Signs claims that need not be JSON.
    pub(crate) fn sign_text(&self, claims: &str) -> String {
        let mut header = json!({"alg": "EdDSA", "typ": "JWT"});
        if let Some(kid) = &self.kid {
            header["kid"] = json!(kid);
        }
        self.sign_all(&header, claims)
    }

    /// Signs any header and any claims.
    pub(crate) fn sign_all(&self, header: &Value, claims: &str) -> String {
        let Secret::Ed25519(key) = &self.secret else { panic!("only for Ed25519") };
        let text = format!("{}.{}", base64url(header.to_string()), base64url(claims));
        format!("{text}.{}", base64url(key.sign(text.as_bytes()).to_bytes()))
    }
}
