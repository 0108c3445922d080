//! A small world: the router over the store in memory, on a clock that stands still.

mod fakes;
mod log;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use collie_api::{ApiState, HookConnection, HookDoor, router};
use collie_core::id::{ItemId, ProjectId, Token};
use collie_core::issue::delivery::Limits;
use collie_core::issue::id::QueueName;
use collie_core::item::Item;
use collie_core::letter::Origin;
use collie_core::mr::wanted::ProjectRules;
use collie_core::policy::Policy;
use collie_core::queue::{Belief, Change, Commit, Ending};
use collie_core::rate::Limit;
use collie_core::time::Timestamp;
use collie_dynamo::{MemoryItems, MemoryTracking};
use collie_engine::blobs::Blobs;
use collie_engine::credential::Credential;
use collie_engine::letters::DeadLetters;
use collie_engine::limiter::Limiter;
use collie_engine::ports::{Items, ProjectRef};
use collie_engine::settings::{Detector, Project, Queue, Repair, Settings};
use collie_engine::tracking::{Tracking, TrackingPorts};
use collie_engine::{Engine, Ports};
use fakes::{Callers, Drawer, NoForge, Tally};
pub(crate) use fakes::{Ring, Still};
pub(crate) use log::Log;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::ServiceExt;

/// The time of the world: 2026-01-31T18:04:04Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_000);
/// The secret of the connection `main`.
pub(crate) const HOOK_SECRET: &str = "canary-hook-secret";
/// Changes that one identity may ask for, on a clock that stands still.
pub(crate) const PER_MINUTE: u32 = 600;
/// The host of the connection `main`.
pub(crate) const HOST: &str = "gitlab.example.com";

/// The world.
pub(crate) struct World {
    router: Router,
    pub(crate) items: MemoryItems,
    pub(crate) rings: Arc<Mutex<Vec<Ring>>>,
    pub(crate) drawer: Arc<Drawer>,
    pub(crate) tracking: Tracking,
    pub(crate) letters: DeadLetters,
    pub(crate) resent: Arc<Mutex<Vec<(Origin, String)>>>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status and code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        (self.status, self.json()["code"].as_str().unwrap().to_owned())
    }

    /// Path and code of each error.
    pub(crate) fn errors(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.json()["errors"].as_array().unwrap().iter().map(|e| (text(&e["path"]), text(&e["code"]))).collect()
    }

    /// What a person would see, for snapshots.
    pub(crate) fn shown(&self) -> Value {
        let names = ["content-type", "cache-control", "retry-after", "www-authenticate", "x-request-id"];
        let headers: serde_json::Map<_, _> = names.iter().filter_map(|n| Some(((*n).to_owned(), json!(self.header(n)?)))).collect();
        json!({"status": self.status, "headers": headers, "body": self.json()})
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(false, SecretString::from(HOOK_SECRET).into())
    }

    /// A world with another secret of the connection `main`.
    pub(crate) fn with_hook_secret(secret: Credential) -> Self {
        Self::with(false, secret)
    }

    /// A world in which an OAuth proxy protects `GET /v1/me`.
    pub(crate) fn behind_proxy() -> Self {
        Self::with(true, SecretString::from(HOOK_SECRET).into())
    }

    fn with(oauth_proxy: bool, secret: Credential) -> Self {
        let tracking = TrackingPorts {
            rows: Arc::new(MemoryTracking::new()),
            jobs: Arc::new(fakes::Silent),
            notices: Arc::new(fakes::Silent),
            clock: Arc::new(Still),
        };
        let (items, drawer, rings, resent) = (MemoryItems::new(), Arc::new(Drawer::default()), Arc::default(), Arc::default());
        let ports = Ports {
            items: Arc::new(items.clone()),
            forge: Arc::new(NoForge),
            archive: drawer.clone(),
            wakes: Arc::new(fakes::Bell(Arc::clone(&rings))),
            clock: Arc::new(Still),
            ids: Arc::new(Tally::default()),
        };
        let letters = DeadLetters {
            letters: Arc::new(items.clone()),
            archive: drawer.clone(),
            redrive: Arc::new(fakes::Resent(Arc::clone(&resent))),
            clock: Arc::new(Still),
        };
        let connection = HookConnection { slug: "main".into(), host: HOST.into(), secret };
        let unset = HookConnection { slug: "unset".into(), host: HOST.into(), secret: SecretString::from("").into() };
        let blobs = Blobs::new(Arc::new(fakes::Signer), drawer.clone(), Arc::new(Still));
        let limiter = Limiter::new(Arc::new(items.clone()), Arc::new(Still), Limit { per_minute: PER_MINUTE });
        let state = ApiState {
            blobs,
            limiter,
            engine: Engine::new(ports, Arc::new(settings())),
            tracking: Tracking::new(tracking.clone(), Arc::new(settings())),
            letters: letters.clone(),
            auth: Arc::new(Callers),
            oauth_proxy,
            hooks: HookDoor { connections: vec![connection, unset] },
            request_ids: Arc::new(Tally::default()),
        };
        Self { router: router(state), items, rings, drawer, letters, resent, tracking: Tracking::new(tracking, Arc::new(settings())) }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(request("GET", token, path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(request("POST", token, path).body(Body::from(body.to_string())).unwrap()).await
    }

    pub(crate) async fn put(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(request("PUT", token, path).body(Body::from(body.to_string())).unwrap()).await
    }

    pub(crate) async fn patch(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(request("PATCH", token, path).body(Body::from(body.to_string())).unwrap()).await
    }

    pub(crate) async fn submit(&self, token: &str, body: &Value) -> Answer {
        self.post(token, "/v1/work-items", body).await
    }

    /// Submits a change of one branch, and returns the item's id.
    pub(crate) async fn submitted(&self, token: &str, branch: &str) -> ItemId {
        let answer = self.submit(token, &submission(branch)).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        ItemId::new(answer.json()["work_item"]["id"].as_str().unwrap())
    }

    /// Writes an item as the holder of its lease does.
    pub(crate) async fn hold(&self, id: &ItemId, write: impl FnOnce(&mut Item)) {
        let claim = Change::Claim { now: NOW, token: Token::new("lease") };
        let row = self.items.change(id, &claim).await.unwrap();
        let mut next = row.clone();
        write(&mut next);
        let due_at = next.is_active().then(|| NOW.after(Duration::from_secs(60)));
        let commit = Commit {
            belief: Belief::of(&row),
            token: Token::new("commit"),
            next,
            progress: true,
            ending: Ending::Exit { due_at },
            successor: None,
        };
        self.items.change(id, &Change::Commit(Box::new(commit))).await.unwrap();
    }
}

fn request(method: &str, token: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"))
}

fn settings() -> Settings {
    let project = |path: &str, id| Project {
        path: path.into(),
        at: ProjectRef { host: HOST.into(), id: ProjectId(id) },
        rules: ProjectRules::default(),
        policy: Policy::default(),
        ci_retry: collie_core::ci::RetryRules::default(),
    };
    Settings {
        projects: vec![project("group/app", 4711), project("group/other", 4712)],
        handled_types: vec!["mr".into()],
        queues: vec![queue("app-main"), queue("other")],
        max_attempts: 5,
    }
}

fn queue(name: &str) -> Queue {
    Queue {
        name: QueueName::new(name),
        project: "group/app".into(),
        reference: "main".into(),
        detector: Detector::None,
        repair: Repair::None,
        limits: Limits::default(),
    }
}

/// A small submission.
pub(crate) fn submission(branch: &str) -> Value {
    json!({"item_type": "mr", "project": "group/app", "source_branch": branch, "target_branch": "main", "title": "Bump openssl",
        "labels": ["deps"], "auto_merge": true,
        "file_actions": [{"action": "update", "file_path": "lib/versions.txt", "content": "openssl 3.5.1\n"}]})
}
