//! An OpenID provider, or the API of a cluster, over real HTTP. It counts what it is asked and does as it is told.

use super::Pair;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How the server behaves.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Down,
    /// The discovery document is elsewhere.
    RedirectsTo(String),
    /// The keys are here, said the document.
    KeysAt(String),
    /// The document is of this issuer.
    Says(String),
    Endless,
    Garbage,
    NoKeys,
}

struct Told {
    mood: Mood,
    keys: Vec<Value>,
    discoveries: usize,
    fetches: usize,
    /// Who a token is of; asked of `users/~`.
    users: BTreeMap<String, Value>,
    lookups: usize,
    bearers: Vec<String>,
    /// The only token that is taken, where one is needed.
    needed: Option<String>,
}

struct Shared {
    url: String,
    told: Mutex<Told>,
    /// Answers of keys wait for a permit.
    gate: Semaphore,
}

/// A running server.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

impl Issuer {
    pub(crate) async fn start(keys: Vec<Pair>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = keys.into_iter().map(|pair| pair.jwk).collect();
        let (users, bearers) = (BTreeMap::new(), Vec::new());
        let told = Told { mood: Mood::Good, keys, discoveries: 0, fetches: 0, users, lookups: 0, bearers, needed: None };
        let shared = Arc::new(Shared { url: url.clone(), told: Mutex::new(told), gate: Semaphore::new(Semaphore::MAX_PERMITS) });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/moved", get(moved))
            .route("/keys", get(keys_document))
            .route("/apis/user.openshift.io/v1/users/~", get(user))
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared }
    }

    /// As rules name it.
    pub(crate) fn name(&self) -> collie_core::access::Issuer {
        collie_core::access::Issuer::Url(self.url.clone())
    }

    /// As identities name it.
    pub(crate) fn host(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.shared.told.lock().unwrap().mood = mood;
    }

    pub(crate) fn rotate(&self, keys: &[&Pair]) {
        self.shared.told.lock().unwrap().keys = keys.iter().map(|pair| pair.jwk.clone()).collect();
    }

    /// Holds answers of keys back until the returned server is told to [`Self::release`] them.
    pub(crate) fn hold(&self) {
        self.shared.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn release(&self) {
        self.shared.gate.add_permits(1000);
    }

    pub(crate) fn fetches(&self) -> (usize, usize) {
        let told = self.shared.told.lock().unwrap();
        (told.discoveries, told.fetches)
    }

    pub(crate) fn user(&self, token: &str, name: &str, groups: &[&str]) {
        let user = json!({"kind": "User", "metadata": {"name": name}, "groups": groups});
        self.shared.told.lock().unwrap().users.insert(token.into(), user);
    }

    pub(crate) fn forget(&self, token: &str) {
        self.shared.told.lock().unwrap().users.remove(token);
    }

    pub(crate) fn lookups(&self) -> usize {
        self.shared.told.lock().unwrap().lookups
    }

    /// Refuses every request for documents without this token.
    pub(crate) fn need(&self, token: &str) {
        self.shared.told.lock().unwrap().needed = Some(token.into());
    }

    /// The bearer tokens of all requests, in order; empty where there was none.
    pub(crate) fn bearers(&self) -> Vec<String> {
        self.shared.told.lock().unwrap().bearers.clone()
    }
}

fn bearer(headers: &HeaderMap) -> String {
    let value = headers.get("authorization").map(|value| value.to_str().unwrap());
    value.map_or_else(String::new, |value| value.trim_start_matches("Bearer ").to_owned())
}

async fn discovery(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let mut told = shared.told.lock().unwrap();
    told.discoveries += 1;
    told.bearers.push(bearer(&headers));
    if told.needed.as_ref().is_some_and(|needed| *needed != bearer(&headers)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let document = |issuer: &str, keys: &str| axum::Json(json!({"issuer": issuer, "jwks_uri": keys})).into_response();
    let keys = format!("{}/keys", shared.url);
    match &told.mood {
        Mood::Down => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mood::RedirectsTo(place) => (StatusCode::FOUND, [("location", place.clone())]).into_response(),
        Mood::KeysAt(place) => document(&shared.url, place),
        Mood::Says(issuer) => document(issuer, "https://10.0.0.1:6443/keys"),
        Mood::Endless => "x".repeat(1 << 20).into_response(),
        Mood::Garbage => "<html>".into_response(),
        Mood::Good | Mood::NoKeys => document(&shared.url, &keys),
    }
}

/// The discovery document, where a redirect leads.
async fn moved(State(shared): State<Arc<Shared>>) -> Response {
    axum::Json(json!({"issuer": shared.url, "jwks_uri": format!("{}/keys", shared.url)})).into_response()
}

async fn keys_document(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let _permit = shared.gate.acquire().await.unwrap();
    let mut told = shared.told.lock().unwrap();
    told.fetches += 1;
    told.bearers.push(bearer(&headers));
    if told.needed.as_ref().is_some_and(|needed| *needed != bearer(&headers)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match told.mood {
        Mood::Down => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mood::NoKeys => axum::Json(json!({"keys": []})).into_response(),
        _ => axum::Json(json!({"keys": told.keys})).into_response(),
    }
}

async fn user(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let mut told = shared.told.lock().unwrap();
    told.lookups += 1;
    let token = bearer(&headers);
    told.bearers.push(token.clone());
    match told.users.get(&token) {
        _ if told.mood == Mood::Down => StatusCode::BAD_GATEWAY.into_response(),
        Some(user) => axum::Json(user.clone()).into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}
