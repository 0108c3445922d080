//! The real binary, with rules in its configuration and an issuer that it asks over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use collie_engine::ports::Clock as _;
use collie_system::SystemClock;
use ed25519_dalek::{Signer, SigningKey};
use gitlab_sim::{DEMO_PROJECT_ID, DEMO_PROJECT_PATH};
use lambda_support::{World, sample};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;

const SUBMIT: &str = env!("CARGO_BIN_EXE_submit");
const TIMEOUT: Duration = Duration::from_secs(29);

fn base64url(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// An issuer with one key.
async fn issuer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let discovery = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
    let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": base64url(key().verifying_key().as_bytes())}]});
    let router = Router::new()
        .route("/.well-known/openid-configuration", get(move || async move { Json(discovery) }))
        .route("/keys", get(move || async move { Json(keys) }));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

fn token(issuer: &str, protected: &str) -> String {
    let now = SystemClock.now().as_millis() / 1000;
    let claims = json!({"iss": issuer, "aud": "collie", "sub": "project_path:infra/bot", "exp": now + 600, "project_path": "infra/bot",
        "ref": "main", "ref_type": "branch", "ref_protected": protected});
    let text = format!("{}.{}", base64url(json!({"alg": "EdDSA", "kid": "k"}).to_string()), base64url(claims.to_string()));
    format!("{text}.{}", base64url(key().sign(text.as_bytes()).to_bytes()))
}

fn configuration(gitlab: &str, issuer: &str) -> String {
    format!(
        r#"
connections: {{main: {{url: "{gitlab}"}}}}
projects: [{{path: {DEMO_PROJECT_PATH}, id: {DEMO_PROJECT_ID}}}]
rules:
  - name: bot
    issuer: {issuer}
    claims: {{aud: collie, project_path: infra/bot, ref: main, ref_type: branch, ref_protected: true}}
    grants:
      - submit: {{item_types: [mr], projects: ["demo/*"], source_branches: ["bot/**"], target_branches: [main], labels: ["**"], auto_merge: true}}
"#
    )
}

async fn call(world: &World, token: &str) -> (u64, Value) {
    let mut event = sample("submit.json");
    event["headers"]["authorization"] = json!(format!("Bearer {token}"));
    let answer = world.runtime.invoke(event, TIMEOUT).await.response();
    (answer["statusCode"].as_u64().unwrap(), serde_json::from_str(answer["body"].as_str().unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_the_protected_branch_submits_and_others_do_not() {
    let (world, issuer, directory) = (World::start().await, issuer().await, tempfile::tempdir().unwrap());
    let file = directory.path().join("rules.yaml");
    std::fs::write(&file, configuration(world.gitlab(), &issuer)).unwrap();
    let function = world.function_with(SUBMIT, &[("COLLIE_CONFIG_FILE", file.to_str().unwrap())]);
    let identity = format!("{}|project_path:infra/bot", issuer.trim_start_matches("http://"));

    let (status, body) = call(&world, &token(&issuer, "true")).await;
    assert_eq!((status, &body["work_item"]["caller_identity"]), (201, &json!(identity)), "{body}");

    let (status, body) = call(&world, &token(&issuer, "false")).await;
    let detail = format!("no rule gives {identity} anything; claims that do not fit: ref_protected");
    assert_eq!((status, &body["code"], &body["detail"]), (403, &json!("no_rule"), &json!(detail)));
    let audit: Vec<_> = world.aws.objects().into_keys().filter(|key| key.contains("/auth-")).collect();
    assert!(audit.len() == 1 && audit[0].starts_with("/audit-bucket/"), "{audit:?}");

    let (status, body) = call(&world, &world.token()).await;
    assert_eq!((status, &body["code"]), (403, &json!("forbidden")), "local tokens count beside rules, and the branch is another's: {body}");
    for token in [token(&issuer, "true"), token(&issuer, "false")] {
        let signature = token.rsplit_once('.').unwrap().1.to_owned();
        assert!(!function.log().contains(&signature), "no token is logged");
    }
}
