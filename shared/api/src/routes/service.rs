//! About the service and the caller.

use crate::gate;
use crate::state::ApiState;
use crate::view::{Alive, Me};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use collie_engine::access::Caller;
use utoipa::openapi::OpenApi;

/// Whether the API answers. Asks nobody else.
#[utoipa::path(get, path = "/v1/health", tag = "service", responses((status = 200, body = Alive)))]
pub(crate) async fn health() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "service", responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub(crate) async fn openapi() -> Json<OpenApi> {
    Json(crate::openapi::document())
}

/// Who calls, and what they may do. Where an OAuth proxy protects it, it takes X-Forwarded-Access-Token instead of a bearer token, and
/// returns that token.
#[utoipa::path(get, path = "/v1/me", tag = "service", security(("bearer" = [])), responses((status = 200, body = Me), (status = 403, description = "no_rule")))]
pub(crate) async fn me(State(state): State<ApiState>, Extension(caller): Extension<Caller>, headers: HeaderMap) -> Json<Me> {
    let token = if state.oauth_proxy { gate::forwarded(&headers) } else { None };
    Json(Me::of(caller, token))
}
