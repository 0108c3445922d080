//! The layer around all routes: every request gets an id, every refusal becomes a document, and one line is logged.
//!
//! The line holds method, route, status and code; never a header, a query or a body (INV-12). A panic ends the one request
//! that it happened in.

use crate::code::Code;
use crate::gate::Actor;
use crate::problem::Problem;
use crate::state::ApiState;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use collie_engine::refusals::Refused;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What is logged of a request.
struct Asked {
    id: String,
    method: Method,
    route: String,
}

pub(crate) async fn finish(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let asked = Asked::of(&request, state.request_ids.token().as_str());
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|_| Problem::new(Code::Internal, "a handler panicked").into_response());
    let problem = response.extensions_mut().remove::<Problem>().or_else(|| unreadable(response.status()));
    asked.log(response.status(), problem.as_ref());
    let actor = response.extensions_mut().remove::<Actor>();
    if let Some(problem) = problem.as_ref().filter(|problem| is_refusal(problem.code.status())) {
        asked.audit(&state, problem, actor.as_ref()).await;
    }
    if let Some(problem) = problem {
        response = problem.answer(&asked.id);
    }
    if let Ok(id) = HeaderValue::from_str(&asked.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Whether the caller, and not only the request, is refused.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// A refusal that the router made by itself: of a path that is not UTF-8, say.
fn unreadable(status: StatusCode) -> Option<Problem> {
    status.is_client_error().then(|| Problem::new(Code::InvalidRequest, "the request cannot be read"))
}

impl Asked {
    fn of(request: &Request, id: &str) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
        Self { id: id.to_owned(), method: request.method().clone(), route }
    }

    /// Keeps a refusal of the caller. The route is named by its pattern, so that a caller puts nothing into the trail.
    async fn audit(&self, state: &ApiState, problem: &Problem, actor: Option<&Actor>) {
        let call = format!("{} {}", self.method, self.route);
        let identity = actor.map(|Actor(identity)| identity.as_str());
        state.engine.audit_refusal(&Refused { identity, call: &call, code: problem.code.as_str(), why: &problem.detail }).await;
    }

    fn log(&self, status: StatusCode, problem: Option<&Problem>) {
        let (id, method, route, status) = (&self.id, &self.method, &self.route, status.as_u16());
        match problem {
            None => tracing::info!(request = %id, %method, route, status, "answered"),
            Some(p) if status < 500 => tracing::info!(request = %id, %method, route, status, code = p.code.as_str(), "refused"),
            Some(p) => {
                let cause = p.cause.as_deref().unwrap_or(&p.detail);
                tracing::error!(request = %id, %method, route, status, code = p.code.as_str(), cause, "failed");
            }
        }
    }
}
