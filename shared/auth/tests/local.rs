//! The local issuer: its key's file, its tokens, and everything that is none of them.
#![allow(clippy::unwrap_used, reason = "a test helper that fails fails its test")]

use async_trait::async_trait;
use collie_auth::local::{Error, LocalIssuer};
use collie_auth::{AuthError, Authenticator};
use collie_core::time::Timestamp;
use collie_engine::access::Caller;
use collie_engine::ports::Clock;
use ed25519_dalek::{Signer, SigningKey};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::{TempDir, tempdir};

const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_000);
const HOUR: Duration = Duration::from_secs(3600);

struct At(Timestamp);

#[async_trait]
impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep(&self, _duration: Duration) {}
}

fn issuer() -> (TempDir, LocalIssuer) {
    let dir = tempdir().unwrap();
    let issuer = LocalIssuer::open(dir.path()).unwrap();
    (dir, issuer)
}

fn token(issuer: &LocalIssuer) -> String {
    issuer.token("ann", false, HOUR, NOW).unwrap().expose_secret().to_owned()
}

fn later(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

/// A token with any header and claims, signed with the key in a directory.
fn signed(dir: &Path, header: &Value, claims: &Value) -> String {
    let mut seed = [0; 32];
    hex::decode_to_slice(fs::read_to_string(dir.join("ed25519.key")).unwrap().trim_end(), &mut seed).unwrap();
    let part = |value: &Value| base64url(value.to_string().as_bytes());
    let text = format!("{}.{}", part(header), part(claims));
    let signature = SigningKey::from_bytes(&seed).sign(text.as_bytes()).to_bytes();
    format!("{text}.{}", base64url(&signature))
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let group = |chunk: &[u8]| {
        let bits = chunk.iter().enumerate().fold(0u32, |bits, (n, b)| bits | u32::from(*b) << (16 - 8 * n));
        (0..=chunk.len()).map(|n| char::from(DIGITS[(bits >> (18 - 6 * n) & 63) as usize])).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

fn claims() -> Value {
    let now = NOW.as_millis() / 1000;
    json!({"iss": "collie-local", "aud": "collie", "sub": "ann", "iat": now, "exp": now + 3600, "admin": true})
}

#[test]
fn a_token_names_its_caller_and_no_more() {
    let (_dir, issuer) = issuer();
    assert_eq!(issuer.verify(&token(&issuer), NOW), Ok(Caller::own_items("local|ann")));
    let admin = issuer.token("root@example.com", true, HOUR, NOW).unwrap();
    assert_eq!(issuer.verify(admin.expose_secret(), NOW), Ok(Caller::admin("local|root@example.com")));
}

#[test]
fn a_token_is_good_until_a_minute_after_its_end() {
    let (_dir, issuer) = issuer();
    let token = token(&issuer);
    assert!(issuer.verify(&token, later(3659)).is_ok());
    assert_eq!(issuer.verify(&token, later(3660)), Err(AuthError::Expired));
}

#[test]
fn a_token_of_the_future_is_good_from_a_minute_before() {
    let (dir, issuer) = issuer();
    let mut claims = claims();
    claims["nbf"] = json!(NOW.as_millis() / 1000 + 61);
    let token = signed(dir.path(), &json!({"alg": "EdDSA"}), &claims);
    assert_eq!(issuer.verify(&token, NOW), Err(AuthError::Invalid("it is not valid yet")));
    assert!(issuer.verify(&token, later(1)).is_ok());
}

#[test]
fn other_algorithms_issuers_audiences_and_subjects_are_refused() {
    let (dir, issuer) = issuer();
    let eddsa = json!({"alg": "EdDSA"});
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        claims
    };
    let mut endless = claims();
    endless.as_object_mut().unwrap().remove("exp");
    assert!(issuer.verify(&signed(dir.path(), &eddsa, &claims()), NOW).is_ok());
    let cases = [
        (json!({"alg": "none"}), claims(), "it is not a local token"),
        (json!({"alg": "HS256"}), claims(), "its algorithm is not EdDSA"),
        (json!({"alg": "RS256"}), claims(), "its algorithm is not EdDSA"),
        (eddsa.clone(), with("iss", json!("other")), "its issuer is not the local one"),
        (eddsa.clone(), with("aud", json!("other")), "it is meant for someone else"),
        (eddsa.clone(), with("sub", json!("a|b")), "its subject is not a name"),
        (eddsa.clone(), with("admin", json!("yes")), "it is not a local token"),
        (eddsa, endless, "it is not a local token"),
    ];
    for (header, claims, reason) in cases {
        let token = signed(dir.path(), &header, &claims);
        assert_eq!(issuer.verify(&token, NOW), Err(AuthError::Invalid(reason)), "{header} {claims}");
    }
}

#[test]
fn a_token_of_another_key_or_changed_on_its_way_is_refused() {
    let ((_a, one), (_b, other)) = (issuer(), issuer());
    let token = token(&one);
    assert_eq!(other.verify(&token, NOW), Err(AuthError::Invalid("its signature is not this issuer's")));
    let (head, rest) = token.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let forged = format!("{head}.{}.{signature}", base64url(claims().to_string().as_bytes()));
    assert_eq!(one.verify(&forged, NOW), Err(AuthError::Invalid("its signature is not this issuer's")));
    assert_eq!(one.verify("", NOW), Err(AuthError::Missing));
    assert_eq!(one.verify("x", NOW), Err(AuthError::Invalid("it is not a local token")));
    assert_eq!(one.verify(&"x".repeat(3000), NOW), Err(AuthError::Invalid("it is too long")));
}

#[test]
fn names_that_could_be_taken_for_something_else_get_no_token() {
    let (_dir, issuer) = issuer();
    for name in ["", "a|b", "a b", &"x".repeat(65)] {
        assert!(matches!(issuer.token(name, false, HOUR, NOW), Err(Error::InvalidName)), "{name:?}");
    }
}

#[test]
fn everyone_who_opens_the_directory_has_the_same_key() {
    let dir = tempdir().unwrap();
    let dir = dir.path().join("new/issuer");
    let tokens: Vec<String> = std::thread::scope(|scope| {
        let open = || token(&LocalIssuer::open(&dir).unwrap());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let issuer = LocalIssuer::open(&dir).unwrap();
    assert!(tokens.iter().all(|token| issuer.verify(token, NOW).is_ok()));
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["ed25519.key"]);
}

#[cfg(unix)]
#[test]
fn the_key_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, _issuer) = issuer();
    let key = dir.path().join("ed25519.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(LocalIssuer::open(dir.path()), Err(Error::Exposed(path)) if path == key));
}

#[test]
fn a_damaged_key_is_not_replaced() {
    let (dir, _issuer) = issuer();
    let key = dir.path().join("ed25519.key");
    fs::write(&key, "not a key\n").unwrap();
    assert!(matches!(LocalIssuer::open(dir.path()), Err(Error::Damaged(path)) if path == key));
    assert_eq!(fs::read_to_string(&key).unwrap(), "not a key\n");
}

#[test]
fn nothing_shows_the_key() {
    let (_dir, issuer) = issuer();
    assert_eq!(format!("{issuer:?}"), "LocalIssuer { .. }");
}

#[tokio::test]
async fn the_port_asks_its_clock() {
    let (_dir, issuer) = issuer();
    let token = token(&issuer);
    let port: Arc<dyn Authenticator> = Arc::new(issuer.clone().authenticator(Arc::new(At(later(10)))));
    assert_eq!(port.authenticate(&token).await, Ok(Caller::own_items("local|ann")));
    let late: Arc<dyn Authenticator> = Arc::new(issuer.authenticator(Arc::new(At(later(9999)))));
    assert_eq!(late.authenticate(&token).await, Err(AuthError::Expired));
}
