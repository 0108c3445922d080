//! The table: an emulator in the test's process, and in front of it an address for functions whose requests can be made to fail.

use crate::serve;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use collie_dynamo::{DynamoItems, DynamoTracking, local, schema};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// The table's name.
pub(crate) const TABLE: &str = "collie";

/// What becomes of a request that speaks of a given item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is never answered.
    Hold,
    /// It is refused.
    Refuse,
}

#[derive(Clone)]
struct Front {
    behind: String,
    client: reqwest::Client,
    faults: Arc<Mutex<Vec<(String, Fault)>>>,
}

/// The running store.
pub struct Table {
    /// Where functions find it.
    pub endpoint: String,
    /// The same rows, without faults.
    pub items: DynamoItems,
    /// Those of issue tracking.
    pub tracking: DynamoTracking,
    faults: Arc<Mutex<Vec<(String, Fault)>>>,
}

impl Table {
    /// Starts an empty one.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
        let client = local::client(&behind);
        schema::create_table(&client, TABLE).await.unwrap();
        let faults = Arc::<Mutex<Vec<_>>>::default();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let front = Front { behind, client: reqwest::Client::new(), faults: Arc::clone(&faults) };
        let endpoint = format!("http://{}", serve(Router::new().fallback(pass_on).with_state(front)).await);
        let (items, tracking) = (DynamoItems::new(client.clone(), TABLE.to_owned()), DynamoTracking::new(client, TABLE.to_owned()));
        Self { endpoint, items, tracking, faults }
    }

    /// From now on, requests of functions that contain this text meet a fault.
    pub fn fail(&self, text: &str, fault: Fault) {
        self.faults.lock().unwrap().push((text.to_owned(), fault));
    }

    /// From now on, none do.
    pub fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }
}

impl Front {
    fn fault(&self, body: &[u8]) -> Option<Fault> {
        let text = String::from_utf8_lossy(body);
        self.faults.lock().unwrap().iter().find(|(needle, _)| text.contains(needle)).map(|(_, fault)| *fault)
    }
}

async fn pass_on(State(front): State<Front>, mut headers: HeaderMap, body: Bytes) -> Response {
    match front.fault(&body) {
        Some(Fault::Hold) => std::future::pending().await,
        Some(Fault::Refuse) => (StatusCode::BAD_REQUEST, r#"{"__type":"ValidationException","message":"refused"}"#).into_response(),
        None => {
            headers.remove("host");
            headers.remove("content-length");
            let answer = front.client.post(&front.behind).headers(headers).body(body).send().await.unwrap();
            let (status, headers) = (answer.status(), answer.headers().clone());
            (status, headers, answer.bytes().await.unwrap()).into_response()
        }
    }
}
