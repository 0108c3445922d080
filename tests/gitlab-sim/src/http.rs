//! Real HTTP: the router, the server with its background tasks, and the sending of hooks.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::response::Response;

use crate::call::ApiRequest;
use crate::control;
use crate::deliveries::Delivery;
use crate::faults::Step;
use crate::reply::{Reply, message};
use crate::sim::Sim;

const BODY_LIMIT: usize = 300 << 20;
const TICK: Duration = Duration::from_millis(20);
const HOOK_TIMEOUT: Duration = Duration::from_secs(10);

impl Sim {
    /// `/api/v4` and `/_sim` as an axum router.
    pub fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }

    /// Serves until the future is dropped; also keeps the wall clock going and sends hooks.
    pub async fn serve(self, listener: tokio::net::TcpListener) -> std::io::Result<()> {
        self.set_base_url(&format!("http://{}", listener.local_addr()?));
        let router = self.router();
        tokio::select! {
            served = async { axum::serve(listener, router).await } => served,
            () = self.run_background() => Ok(()),
        }
    }

    /// What `serve` does beside answering: fires due work and sends hooks, for ever.
    pub async fn run_background(&self) {
        let mut ticks = tokio::time::interval(TICK);
        let mut client = None;
        loop {
            ticks.tick().await;
            for delivery in self.outgoing() {
                match client.get_or_insert_with(hook_client) {
                    Ok(client) => drop(tokio::spawn(send(self.clone(), client.clone(), delivery))),
                    Err(error) => tracing::error!(%error, "no HTTP client, hooks are not sent"),
                }
            }
        }
    }
}

/// Made for the first hook: loading the trust store is most of what a simulator without hooks would spend.
fn hook_client() -> reqwest::Result<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(HOOK_TIMEOUT).redirect(reqwest::redirect::Policy::limited(4)).build()
}

async fn send(sim: Sim, client: reqwest::Client, delivery: Delivery) {
    let headers = delivery.headers.iter();
    let request = headers.fold(client.post(&delivery.url), |request, (name, value)| request.header(name, value));
    let sent = request.body(delivery.body.clone()).send().await;
    let ok = sent.as_ref().is_ok_and(|response| response.status().as_u16() < 400);
    tracing::debug!(url = delivery.url, ok, "hook sent");
    sim.note_delivery(&delivery, ok);
}

async fn handle(Shared(sim): Shared<Sim>, request: Request) -> Response {
    let Some(request) = read(request).await else {
        return response(message(413, "413 Request Entity Too Large"));
    };
    if request.path().starts_with("/_sim") {
        return response(control::handle(&sim, &request));
    }
    match sim.begin(request) {
        Step::Reply(reply) => response(reply),
        Step::Drop => dropped(),
        Step::Wait(receiver) => receiver.await.map_or_else(|_| dropped(), response),
    }
}

async fn read(request: Request) -> Option<ApiRequest> {
    let (parts, body) = request.into_parts();
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Some(ApiRequest {
        method: parts.method.as_str().to_owned(),
        uri: parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        headers: parts.headers.iter().map(header).collect(),
        body: to_bytes(body, BODY_LIMIT).await.ok()?,
    })
}

fn response(reply: Reply) -> Response {
    let mut builder = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        builder = builder.header(name, value);
    }
    builder.body(Body::from(reply.body)).unwrap_or_else(|_| dropped())
}

/// A body that fails before its first byte: the server closes the connection without an answer.
fn dropped() -> Response {
    let broken = futures::stream::once(async { Err::<bytes::Bytes, _>(std::io::Error::other("dropped by a fault")) });
    Response::new(Body::from_stream(broken))
}
