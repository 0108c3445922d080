//! A server that gives canned answers in turn and remembers what it was asked.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test helper that fails fails its test")]

pub(crate) mod demo;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use collie_core::id::ProjectId;
use collie_core::time::Timestamp;
use collie_engine::ports::{Clock, ProjectRef};
use collie_gitlab::{Connection, GitLab, Limits};
use secrecy::SecretString;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// The time at which all tests play.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_000);

/// The credential that must never be seen.
pub(crate) const CANARY: &str = "glpat-canary-5f0b6f1e";

/// The project of the tests.
pub(crate) const PROJECT: u64 = 4242;

/// A clock that stands still.
pub(crate) struct Still;

#[async_trait::async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    async fn sleep(&self, _: Duration) {}
}

/// What the server was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Method and target as sent, `GET /api/v4/…?…`.
    pub(crate) line: String,
    /// The token.
    pub(crate) token: String,
    /// The body as text.
    pub(crate) body: String,
}

/// One canned answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Canned {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// An answer without headers.
pub(crate) fn answer(status: u16, body: impl Into<String>) -> Canned {
    Canned { status, headers: vec![], body: body.into() }
}

impl Canned {
    /// The same with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

#[derive(Default)]
struct Shared {
    answers: Mutex<VecDeque<Canned>>,
    asked: Mutex<Vec<Asked>>,
    user_agents: Mutex<Vec<String>>,
}

/// The server.
pub(crate) struct Stub {
    pub(crate) host: String,
    shared: Arc<Shared>,
}

impl Stub {
    /// Starts a server with these answers; asked more often, it never answers.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Canned>) -> Self {
        let shared = Arc::new(Shared { answers: Mutex::new(answers.into_iter().collect()), ..Shared::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let router = axum::Router::new().fallback(serve).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { host, shared }
    }

    /// Adds an answer.
    pub(crate) fn push(&self, answer: Canned) {
        self.shared.answers.lock().unwrap().push_back(answer);
    }

    /// Waits until this many requests have come in.
    pub(crate) async fn until_asked(&self, count: usize) {
        while self.asked().len() < count {
            tokio::task::yield_now().await;
        }
    }

    /// Everything asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The request lines so far, without the route prefix of the project.
    pub(crate) fn lines(&self) -> Vec<String> {
        let prefix = format!("/api/v4/projects/{PROJECT}");
        self.asked().into_iter().map(|asked| asked.line.replace(&prefix, "…")).collect()
    }

    /// The only body sent so far, as JSON.
    pub(crate) fn sent(&self) -> serde_json::Value {
        let asked = self.asked();
        assert_eq!(asked.len(), 1);
        serde_json::from_str(&asked[0].body).unwrap()
    }

    /// The user agents seen.
    pub(crate) fn user_agents(&self) -> Vec<String> {
        self.shared.user_agents.lock().unwrap().clone()
    }

    /// An adapter for this server.
    pub(crate) fn gitlab(&self) -> GitLab {
        gitlab(&self.host)
    }

    /// The project of the tests on this server.
    pub(crate) fn project(&self) -> ProjectRef {
        project(&self.host)
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| parts.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let (token, user_agent) = (header("private-token"), header("user-agent"));
    let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
    shared.asked.lock().unwrap().push(Asked { line: format!("{} {}", parts.method, parts.uri), token, body });
    shared.user_agents.lock().unwrap().push(user_agent);
    let next = shared.answers.lock().unwrap().pop_front();
    let Some(canned) = next else { return std::future::pending().await };
    let mut response = Response::builder().status(canned.status);
    for (name, value) in canned.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(canned.body)).unwrap()
}

/// A connection with the canary as its token.
pub(crate) fn connection(host: &str) -> Connection {
    Connection {
        host: host.to_owned(),
        base_url: format!("http://{host}").parse().unwrap(),
        token: SecretString::from(CANARY).into(),
        project_tokens: HashMap::new(),
        concurrency: 2,
    }
}

/// Bounds small enough to be reached.
pub(crate) fn small_limits() -> Limits {
    Limits { read_timeout: Duration::from_millis(300), commit_timeout: Duration::from_millis(300), max_pages: 3, max_answer_bytes: 8 << 10 }
}

/// An adapter for a host, with small bounds.
pub(crate) fn gitlab(host: &str) -> GitLab {
    GitLab::with_limits(vec![connection(host)], Arc::new(Still), small_limits()).unwrap()
}

/// The project of the tests on a host.
pub(crate) fn project(host: &str) -> ProjectRef {
    ProjectRef { host: host.to_owned(), id: ProjectId(PROJECT) }
}

/// `{"message": text}` with a status.
pub(crate) fn refusal(status: u16, text: &str) -> Canned {
    answer(status, serde_json::json!({ "message": text }).to_string())
}
