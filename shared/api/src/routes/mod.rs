//! The routes: each reads its request, makes one call of a use case and shows the answer.

pub(crate) mod blobs;
pub(crate) mod errors;
pub(crate) mod hooks;
pub(crate) mod letters;
pub(crate) mod lifecycle;
pub(crate) mod progress;
pub(crate) mod queues;
pub(crate) mod service;
pub(crate) mod work_items;

use crate::body::{MAX_BODY, MAX_HOOK};
use crate::code::Code;
use crate::problem::Problem;
use crate::state::ApiState;
use crate::{answer, gate, pace};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post, put};

/// The API over its state.
pub fn router(state: ApiState) -> Router {
    let v1 = open().merge(callers(&state)).merge(hook_door(&state));
    Router::new()
        .nest("/v1", v1)
        .route("/errors/{code}", get(errors::page))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(state.clone(), answer::finish))
        .with_state(state)
}

/// What anyone may read.
fn open() -> Router<ApiState> {
    Router::new().route("/health", get(service::health)).route("/openapi.json", get(service::openapi))
}

/// What callers with a token may do.
fn callers(state: &ApiState) -> Router<ApiState> {
    Router::new()
        .route("/me", get(service::me))
        .route("/work-items", post(work_items::submit).get(work_items::list))
        .route("/work-items/validate", post(work_items::validate))
        .route("/work-items/{id}", get(work_items::show))
        .route("/work-items/{id}/timeline", get(progress::timeline))
        .route("/work-items/{id}/explain", get(progress::explain))
        .route("/work-items/{id}/retry", post(lifecycle::retry))
        .route("/work-items/{id}/cancel", post(lifecycle::cancel))
        .route("/blobs", post(blobs::announce))
        .route("/dead-letters", get(letters::list))
        .route("/dead-letters/{id}", get(letters::show))
        .route("/dead-letters/{id}/redrive", post(letters::redrive))
        .route("/dead-letters/{id}/abandon", post(letters::abandon))
        .nest("/queues/{queue}", queues())
        .route_layer(map_response(private))
        .route_layer(from_fn_with_state(state.clone(), pace::changes))
        .route_layer(from_fn_with_state(state.clone(), gate::callers))
        .layer(DefaultBodyLimit::max(MAX_BODY))
}

/// CI issues of one queue.
fn queues() -> Router<ApiState> {
    use queues::{issues, report, requests};
    Router::new()
        .route("/requests", post(report::admit))
        .route("/requests/{id}/build", put(report::associate))
        .route("/requests/{id}/outcome", post(report::conclude))
        .route("/requests/{id}/issues", get(requests::issues))
        .route("/requests/{id}/history", get(requests::history))
        .route("/issues", post(report::report).get(issues::list))
        .route("/analysis", post(report::end_analysis))
        .route("/issue", get(issues::show))
        .route("/issue/history", get(issues::history))
        .route("/issue/log", get(issues::log_entry))
        .route("/issue/metadata", patch(issues::edit_metadata))
        .route("/tracking", get(requests::tracking))
}

/// What hooks may bring.
fn hook_door(state: &ApiState) -> Router<ApiState> {
    Router::new()
        .route("/hooks/gitlab/{webhook_id}", post(hooks::take))
        .route_layer(from_fn_with_state(state.clone(), gate::hooks))
        .layer(DefaultBodyLimit::max(MAX_HOOK))
}

/// What one caller sees is kept by nobody in between.
async fn private(response: Response) -> Response {
    ([(axum::http::header::CACHE_CONTROL, "no-store")], response).into_response()
}

async fn no_route() -> Problem {
    Problem::new(Code::RouteNotFound, "see /v1/openapi.json for the routes")
}

async fn no_method() -> Problem {
    Problem::new(Code::MethodNotAllowed, "see /v1/openapi.json for the methods")
}
