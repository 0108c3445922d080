//! `collie serve --config` with rules, as people run it: GitLab is a process of its own, and vouches for its jobs by their ID tokens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use gitlab_sim::DEMO_BOT_TOKEN;
use serde_json::{Value, json};
use support::{Server, submission};
use tempfile::TempDir;

/// GitLab in one process, and a server whose rules know its jobs in another.
struct World {
    gitlab: Server,
    server: Server,
    http: reqwest::Client,
    _directory: TempDir,
}

/// A status and a body.
type Answer = (u16, Value);

impl World {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        // The server that comes with this GitLab has nothing to do here.
        let gitlab = Server::start(&place("gitlab"), &["--simulator"]).await;
        let url = gitlab.ready["gitlab"].as_str().unwrap();
        std::fs::create_dir(place("secrets")).unwrap();
        std::fs::write(place("secrets/gitlab"), DEMO_BOT_TOKEN).unwrap();
        std::fs::write(place("collie.yaml"), configuration(url).to_string()).unwrap();
        let (config, secrets) = (place("collie.yaml"), place("secrets"));
        let args = ["--config", config.to_str().unwrap(), "--secrets-dir", secrets.to_str().unwrap()];
        let server = Server::start(&place("data"), &args).await;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        Self { gitlab, server, http, _directory: directory }
    }

    fn url(&self) -> &str {
        self.gitlab.ready["gitlab"].as_str().unwrap()
    }

    /// Who the job of a branch is to Collie.
    fn identity(&self, branch: &str) -> String {
        let host = self.url().trim_start_matches("http://");
        format!("{host}|project_path:demo/app:ref_type:branch:ref:{branch}")
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn control(&self, path: &str, body: &Value) -> Value {
        self.send(self.http.post(format!("{}/_sim/oidc/{path}", self.url())).json(body)).await.1
    }

    /// The ID token of a job on `main` for Collie, with these changes.
    async fn token(&self, changes: &Value) -> String {
        let mut wanted = json!({"project": "demo/app", "aud": "collie", "user": "developer"});
        changes.as_object().unwrap().iter().for_each(|(name, value)| wanted[name] = value.clone());
        self.control("id_tokens", &wanted).await["id_token"].as_str().unwrap().to_owned()
    }

    async fn me(&self, token: &str) -> Answer {
        self.send(self.http.get(format!("{}/v1/me", self.server.api())).bearer_auth(token)).await
    }

    async fn submit(&self, token: &str, submission: &Value) -> Answer {
        self.send(self.http.post(format!("{}/v1/work-items", self.server.api())).bearer_auth(token).json(submission)).await
    }

    async fn refusal(&self, changes: &Value) -> Answer {
        let (status, mut problem) = self.submit(&self.token(changes).await, &submission()).await;
        assert!(problem["request_id"].take().is_string(), "{problem}");
        (status, problem)
    }
}

fn configuration(gitlab: &str) -> Value {
    json!({
        "connections": {"main": {"url": gitlab, "token": "secret:gitlab"}},
        "projects": [{"path": "demo/app"}],
        "rules": [{
            "name": "jobs-on-main",
            "issuer": gitlab,
            "claims": {"aud": "collie", "project_path": ["demo/app"], "ref_type": "branch", "ref": "main", "ref_protected": true},
            "grants": [{"submit": {"item_types": ["mr"], "projects": ["demo/*"], "source_branches": ["bot/**"],
                                   "target_branches": ["main"], "auto_merge": true}}],
        }],
    })
}

fn problem(status: u16, code: &str, title: &str, detail: &str) -> Answer {
    let body = json!({
        "type": format!("/errors/{code}"), "title": title, "status": status, "detail": detail, "code": code, "errors": [], "request_id": null,
    });
    (status, body)
}

#[tokio::test]
async fn jobs_come_in_by_rules_and_others_learn_why_they_do_not() {
    let world = World::start().await;
    let (status, me) = world.me(&world.token(&json!({})).await).await;
    let grant = json!({"submit": {"item_types": ["mr"], "projects": ["demo/*"], "source_branches": ["bot/**"], "target_branches": ["main"],
                                  "labels": [], "auto_merge": true, "overwrite": false, "others": false}});
    assert_eq!((status, me), (200, json!({"identity": world.identity("main"), "issuer": world.url(), "grants": [grant]})));

    let no_rule = |branch: &str, claims: &str| {
        let detail = format!("no rule gives {} anything; claims that do not fit: {claims}", world.identity(branch));
        problem(403, "no_rule", "No rule knows the caller", &detail)
    };
    let expired = problem(401, "unauthenticated", "Who calls is not known", "the token has expired");
    let fork =
        json!({"claims": {"ref_protected": "false", "pipeline_source": "merge_request_event", "ref_path": "refs/merge-requests/2/head"}});
    let cases = [
        (json!({"aud": "other"}), no_rule("main", "aud")),
        (json!({"ref": "MAIN"}), no_rule("MAIN", "ref, ref_protected")),
        (fork, no_rule("main", "ref_protected")),
        (json!({"expires_in_s": -61}), expired),
    ];
    for (changes, refusal) in cases {
        assert_eq!(world.refusal(&changes).await, refusal, "{changes}");
    }
    let mut uncovered = submission();
    uncovered["source_branch"] = json!("feature");
    let (status, answer) = world.submit(&world.token(&json!({})).await, &uncovered).await;
    assert_eq!((status, &answer["code"]), (403, &json!("forbidden")), "{answer}");
    assert_eq!(answer["detail"], "no single grant of this caller covers this work item; GET /v1/me shows the grants");

    let (status, answer) = world.submit(&world.token(&json!({"expires_in_s": -50})).await, &submission()).await;
    assert_eq!((status, &answer["outcome"]), (201, &json!("created")), "{answer}");
    assert_eq!(answer["work_item"]["caller_identity"], world.identity("main"));
}

#[tokio::test]
async fn a_rotated_key_works_at_its_first_use_and_the_old_one_no_longer() {
    let world = World::start().await;
    let old = world.token(&json!({})).await;
    assert_eq!(world.submit(&old, &submission()).await.0, 201);

    assert!(world.control("rotate", &json!({})).await["kid"].is_string());
    let new = world.token(&json!({})).await;
    let (status, answer) = world.submit(&new, &submission()).await;
    assert_eq!((status, &answer["outcome"]), (200, &json!("unchanged")), "{answer}");
    let (status, answer) = world.me(&old).await;
    let detail = "the token is not valid: its key (kid) is not one that its issuer has";
    assert_eq!((status, &answer["detail"]), (401, &json!(detail)));
    assert_eq!(world.server.terminate().await.code(), Some(0));
}
