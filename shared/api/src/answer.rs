//! The layer around all routes: every request gets an id, every refusal becomes a document, and one line is logged ([`crate::about`]),
//! with another where it was our fault.
//!
//! No line holds a header, a query or a body (INV-12). A panic ends the one request that it happened in.

use crate::about::About;
use crate::code::Code;
use crate::problem::Problem;
use crate::state::ApiState;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use collie_engine::refusals::Refused;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request, as logs and audit entries name it.
struct Asked {
    id: String,
    /// Method and pattern of the route, so that a caller puts nothing into it.
    call: String,
    about: About,
}

pub(crate) async fn finish(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let (asked, request) = Asked::of(request, state.request_ids.token().as_str()).await;
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|_| Problem::new(Code::Internal, "a handler panicked").into_response());
    let problem = response.extensions_mut().remove::<Problem>().or_else(|| unreadable(response.status()));
    asked.log(response.status(), problem.as_ref());
    if let Some(problem) = problem.as_ref().filter(|problem| problem.refuses_the_caller()) {
        asked.audit(&state, problem).await;
    }
    if let Some(problem) = problem {
        response = problem.answer(&asked.id);
    }
    if let Ok(id) = HeaderValue::from_str(&asked.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// A refusal that the router made by itself: of a path that is not UTF-8, say.
fn unreadable(status: StatusCode) -> Option<Problem> {
    status.is_client_error().then(|| Problem::new(Code::InvalidRequest, "the request cannot be read"))
}

impl Asked {
    async fn of(request: Request, id: &str) -> (Self, Request) {
        let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str);
        let call = format!("{} {route}", request.method());
        let (about, request) = About::begin(request).await;
        (Self { id: id.to_owned(), call, about }, request)
    }

    /// Keeps a refusal of the caller.
    async fn audit(&self, state: &ApiState, problem: &Problem) {
        let identity = self.about.known_identity();
        let why = problem.cause.as_deref().unwrap_or(&problem.detail);
        let refused = Refused { identity: identity.as_deref(), call: &self.call, code: problem.code.as_str(), why };
        state.engine.audit_refusal(&refused).await;
    }

    fn log(&self, status: StatusCode, problem: Option<&Problem>) {
        self.about.log(&self.id, &self.call, status, problem);
        if let Some(problem) = problem.filter(|_| status.is_server_error()) {
            let cause = problem.cause.as_deref().unwrap_or(&problem.detail);
            let (request, call, code) = (&self.id, &self.call, problem.code.as_str());
            tracing::error!(request, call, status = status.as_u16(), code, cause, "failed");
        }
    }
}
