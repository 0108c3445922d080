//! GitLab as the OpenID provider of its jobs: the discovery document, the public keys, and ID tokens as `id_tokens` of a job gives
//! them, signed with RS256.
//!
//! A rotation drops the old key at once. There are three keys in all, which take turns, so that a run is the same each time.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::call::ApiRequest;
use crate::git::object_id;
use crate::reply::Reply;
use crate::sim::Sim;
use crate::state::State;

const KEYS: &str = include_str!("signing_keys.json");
/// The public exponent of all keys: 65537.
const EXPONENT: &str = "AQAB";
/// How long a job's token lasts where nothing else is said.
const HOUR_S: i64 = 3_600;

/// One key pair, as the file has it.
#[derive(Clone, Debug, Deserialize)]
struct Pair {
    n: String,
    pkcs1: String,
}

#[derive(Deserialize)]
struct KeyFile {
    keys: Vec<Pair>,
}

/// Which key signs now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signing {
    rotations: usize,
}

/// The ID token of a job of some project.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdToken {
    /// Path of the project.
    pub project: String,
    /// Whom the token is for; text or a list.
    pub aud: Value,
    /// The branch; the default branch if absent.
    #[serde(rename = "ref", default)]
    pub reference: Option<String>,
    /// Who started the pipeline; `root` if absent.
    #[serde(default)]
    pub user: Option<String>,
    /// Seconds until it expires, negative for one that has expired; an hour if absent.
    #[serde(default)]
    pub expires_in_s: Option<i64>,
    /// Claims that differ from what such a job would get.
    #[serde(default)]
    pub claims: Map<String, Value>,
}

impl IdToken {
    /// The token of a job of this project, for an audience.
    pub fn new(project: &str, aud: &str) -> Self {
        let (reference, user, expires_in_s, claims) = (None, None, None, Map::new());
        Self { project: project.to_owned(), aud: json!(aud), reference, user, expires_in_s, claims }
    }
}

impl Sim {
    /// Mints an ID token; `None` for an unknown project or user.
    pub fn id_token(&self, wanted: &IdToken) -> Option<String> {
        self.lock().id_token(wanted)
    }

    /// Signs with another key from now on; the answer is its id.
    pub fn rotate_signing_key(&self) -> String {
        let mut state = self.lock();
        state.signing.rotations += 1;
        state.signing.pair().map(|pair| pair.kid()).unwrap_or_default()
    }
}

impl Signing {
    fn pair(self) -> Option<Pair> {
        let KeyFile { keys } = serde_json::from_str(KEYS).ok()?;
        keys.get(self.rotations % keys.len()).cloned()
    }
}

impl Pair {
    /// The thumbprint of RFC 7638, as GitLab names its keys.
    fn kid(&self) -> String {
        let members = format!(r#"{{"e":"{EXPONENT}","kty":"RSA","n":"{}"}}"#, self.n);
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }

    fn jwk(&self) -> Value {
        json!({ "kty": "RSA", "kid": self.kid(), "e": EXPONENT, "n": self.n, "use": "sig", "alg": "RS256" })
    }

    fn sign(&self, claims: &Value) -> Option<String> {
        let key = EncodingKey::from_rsa_der(&BASE64_URL_SAFE_NO_PAD.decode(&self.pkcs1).ok()?);
        let header = Header { kid: Some(self.kid()), ..Header::new(Algorithm::RS256) };
        jsonwebtoken::encode(&header, claims, &key).ok()
    }
}

impl State {
    /// The answer to a request for a public document of the provider; `None` for any other request.
    pub(crate) fn provider_document(&self, request: &ApiRequest) -> Option<Reply> {
        let document = match (request.method.as_str(), request.path()) {
            ("GET", "/.well-known/openid-configuration") => self.discovery(),
            ("GET", "/oauth/discovery/keys") => json!({ "keys": self.signing.pair().map(|pair| pair.jwk()).as_slice() }),
            _ => return None,
        };
        Some(Reply::json(200, &document))
    }

    fn discovery(&self) -> Value {
        let url = |path: &str| format!("{}{path}", self.base_url);
        json!({
            "issuer": self.base_url, "authorization_endpoint": url("/oauth/authorize"), "token_endpoint": url("/oauth/token"),
            "jwks_uri": url("/oauth/discovery/keys"), "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        })
    }

    fn id_token(&mut self, wanted: &IdToken) -> Option<String> {
        let mut claims = self.id_claims(wanted)?;
        wanted.claims.iter().for_each(|(name, value)| claims[name] = value.clone());
        self.signing.pair()?.sign(&claims)
    }

    /// What the token of such a job says; ids are texts, as GitLab writes them.
    fn id_claims(&mut self, wanted: &IdToken) -> Option<Value> {
        let user = self.user_by_name(wanted.user.as_deref().unwrap_or("root"))?.clone();
        let (pipeline, job) = (self.ids.next("pipeline"), self.ids.next("job"));
        let project = self.projects.values().find(|project| project.path == wanted.project)?;
        let (path, branch) = (&project.path, wanted.reference.as_ref().unwrap_or(&project.default_branch));
        let namespace = path.rsplit_once('/').map_or(path.as_str(), |(namespace, _)| namespace);
        let now_s = (self.now_ms / 1_000) as i64;
        Some(json!({
            "iss": self.base_url, "aud": wanted.aud, "sub": format!("project_path:{path}:ref_type:branch:ref:{branch}"),
            "iat": now_s, "nbf": now_s - 5, "exp": now_s + wanted.expires_in_s.unwrap_or(HOUR_S),
            "jti": object_id("jti", format!("{pipeline}/{job}").as_bytes()),
            "namespace_path": namespace, "project_id": project.id.to_string(), "project_path": path,
            "user_id": user.id.to_string(), "user_login": user.username, "user_email": user.email(),
            "pipeline_id": pipeline.to_string(), "pipeline_source": "push", "job_id": job.to_string(),
            "ref": branch, "ref_type": "branch", "ref_path": format!("refs/heads/{branch}"),
            "ref_protected": project.is_protected(branch).to_string(), "sha": project.head_id(branch),
            "runner_id": 1, "runner_environment": "self-hosted",
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, MANUAL_START_MS};
    use crate::seed::{DEMO_PROJECT_ID, DEMO_PROJECT_PATH};

    fn get(sim: &Sim, path: &str) -> Value {
        let request = ApiRequest { method: "GET".into(), uri: path.into(), ..ApiRequest::default() };
        sim.call(request).unwrap().json_body()
    }

    /// Header and claims, verified with the one key that is served.
    fn verified(sim: &Sim, token: &str) -> (Option<String>, Value) {
        let keys = get(sim, "/oauth/discovery/keys")["keys"].clone();
        let (n, e) = (keys[0]["n"].as_str().unwrap(), keys[0]["e"].as_str().unwrap());
        let key = jsonwebtoken::DecodingKey::from_rsa_components(n, e).unwrap();
        let mut validation = jsonwebtoken::Validation::new(Algorithm::RS256);
        (validation.validate_exp, validation.validate_aud) = (false, false);
        let read = jsonwebtoken::decode::<Value>(token, &key, &validation).unwrap();
        assert_eq!(read.header.kid.as_deref(), keys[0]["kid"].as_str());
        (read.header.kid, read.claims)
    }

    #[test]
    fn a_job_gets_a_token_that_the_served_key_verifies() {
        let sim = Sim::demo(Clock::Manual);
        let discovery = get(&sim, "/.well-known/openid-configuration");
        assert_eq!(
            (&discovery["issuer"], &discovery["jwks_uri"]),
            (&json!("http://gitlab.sim"), &json!("http://gitlab.sim/oauth/discovery/keys"))
        );
        let token = sim.id_token(&IdToken { user: Some("developer".into()), ..IdToken::new(DEMO_PROJECT_PATH, "collie") }).unwrap();
        let (_, claims) = verified(&sim, &token);
        let now_s = MANUAL_START_MS / 1_000;
        let expected = [
            ("iss", json!("http://gitlab.sim")),
            ("aud", json!("collie")),
            ("sub", json!("project_path:demo/app:ref_type:branch:ref:main")),
            ("exp", json!(now_s + 3_600)),
            ("project_id", json!(DEMO_PROJECT_ID.to_string())),
            ("namespace_path", json!("demo")),
            ("user_login", json!("developer")),
            ("ref_protected", json!("true")),
            ("sha", json!(sim.branch_head(DEMO_PROJECT_ID, "main"))),
        ];
        for (name, value) in expected {
            assert_eq!(claims[name], value, "{name}");
        }
    }

    #[test]
    fn a_token_can_be_asked_for_with_other_claims_and_of_what_is_there_only() {
        let sim = Sim::demo(Clock::Manual);
        let wanted = json!({"project": DEMO_PROJECT_PATH, "aud": ["a", "b"], "ref": "side", "expires_in_s": -61, "claims": {"jti": "1"}});
        let wanted: IdToken = serde_json::from_value(wanted).unwrap();
        let (_, claims) = verified(&sim, &sim.id_token(&wanted).unwrap());
        assert_eq!((&claims["aud"], &claims["ref"], &claims["ref_protected"]), (&json!(["a", "b"]), &json!("side"), &json!("false")));
        assert_eq!((&claims["exp"], &claims["jti"], &claims["sha"]), (&json!(MANUAL_START_MS / 1_000 - 61), &json!("1"), &Value::Null));
        assert_eq!(sim.id_token(&IdToken::new("demo/other", "a")), None);
        assert_eq!(sim.id_token(&IdToken { user: Some("nobody".into()), ..wanted }), None);
    }

    #[test]
    fn a_rotation_takes_the_next_of_three_keys() {
        let sim = Sim::demo(Clock::Manual);
        let kid = || verified(&sim, &sim.id_token(&IdToken::new(DEMO_PROJECT_PATH, "a")).unwrap()).0.unwrap();
        let first = kid();
        let (second, third) = (sim.rotate_signing_key(), sim.rotate_signing_key());
        assert_eq!(kid(), third);
        assert!(first != second && second != third && third != first);
        assert_eq!((sim.rotate_signing_key(), kid()), (first.clone(), first));
    }
}
