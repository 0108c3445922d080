//! About the service and the caller.

use crate::view::{Alive, Me};
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

/// Who calls, and what they may do.
#[utoipa::path(get, path = "/v1/me", tag = "service", security(("bearer" = [])), responses((status = 200, body = Me)))]
pub(crate) async fn me(Extension(caller): Extension<Caller>) -> Json<Me> {
    Json(Me::of(caller))
}
