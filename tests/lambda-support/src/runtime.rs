//! The Runtime API that Lambda offers to a bootstrap: hands out invocations, takes their answers.

use crate::{PATIENCE, serve};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use collie_engine::ports::Clock as _;
use collie_system::SystemClock;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

const ARN: &str = "arn:aws:lambda:eu-central-1:111122223333:function:collie";

/// What a function made of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It answered.
    Response(Value),
    /// It reported an error.
    Error(Value),
}

impl Answer {
    /// The response of a function that did not fail.
    #[must_use]
    pub fn response(self) -> Value {
        match self {
            Self::Response(value) => value,
            Self::Error(error) => panic!("the function failed: {error}"),
        }
    }
}

struct Call {
    event: Value,
    time: Duration,
    answer: oneshot::Sender<Answer>,
}

struct Shared {
    calls: tokio::sync::Mutex<mpsc::UnboundedReceiver<Call>>,
    under_way: Mutex<HashMap<String, oneshot::Sender<Answer>>>,
    count: AtomicU64,
}

/// A running stub.
pub struct RuntimeApi {
    /// Host and port, for `AWS_LAMBDA_RUNTIME_API`.
    pub address: String,
    calls: mpsc::UnboundedSender<Call>,
}

impl RuntimeApi {
    /// Starts it.
    pub async fn start() -> Self {
        let (calls, waiting) = mpsc::unbounded_channel();
        let shared = Shared { calls: tokio::sync::Mutex::new(waiting), under_way: Mutex::default(), count: AtomicU64::new(1) };
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .with_state(Arc::new(shared));
        Self { address: serve(router).await, calls }
    }

    /// Hands an event to the function, which has this much time, and waits for what it makes of it.
    pub async fn invoke(&self, event: Value, time: Duration) -> Answer {
        let (answer, answered) = oneshot::channel();
        assert!(self.calls.send(Call { event, time, answer }).is_ok(), "the stub runs");
        tokio::time::timeout(PATIENCE, answered).await.expect("the function answers").expect("the stub runs")
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    let Some(call) = shared.calls.lock().await.recv().await else { return StatusCode::GONE.into_response() };
    let id = format!("request-{}", shared.count.fetch_add(1, Ordering::SeqCst));
    let deadline = SystemClock.now().after(call.time).as_millis();
    shared.under_way.lock().unwrap().insert(id.clone(), call.answer);
    let headers = [
        ("lambda-runtime-aws-request-id", id),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        ("lambda-runtime-invoked-function-arn", ARN.to_owned()),
        ("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0".to_owned()),
    ];
    (headers, Json(call.event)).into_response()
}

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    answered(&shared, &id, Answer::Response(json(&body)))
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    answered(&shared, &id, Answer::Error(json(&body)))
}

/// An answer to an invocation that is not under way is what Lambda refuses.
fn answered(shared: &Shared, id: &str, answer: Answer) -> StatusCode {
    let Some(caller) = shared.under_way.lock().unwrap().remove(id) else { return StatusCode::BAD_REQUEST };
    let _ = caller.send(answer);
    StatusCode::ACCEPTED
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}
