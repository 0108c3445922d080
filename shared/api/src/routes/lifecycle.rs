//! Callers end items and bring them back.

use crate::body::{self, Body};
use crate::code::Code;
use crate::fields::{Errors, Object};
use crate::problem::Problem;
use crate::refusal;
use crate::routes::work_items::{found, shown};
use crate::state::ApiState;
use crate::view::WorkItem;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use collie_engine::access::Caller;
use serde_json::Value;
use utoipa::ToSchema;

/// How an item is brought back.
#[derive(Debug, Default, PartialEq, Eq, ToSchema)]
pub(crate) struct RetryRequest {
    /// Whether commits of others on the branch may be replaced, once. Needs the permission to overwrite.
    #[schema(required = false, default = false)]
    overwrite: bool,
}

/// How an item is ended.
#[derive(Debug, PartialEq, Eq, ToSchema)]
pub(crate) struct CancelRequest {
    /// Why, for people.
    reason: Option<String>,
    /// Whether the merge request is closed.
    #[schema(required = false, default = true)]
    close_mr: bool,
}

impl RetryRequest {
    fn read(value: &Value) -> Result<Self, Problem> {
        let mut errors = Errors::default();
        let object = Object::read(value, String::new(), &["overwrite"], &mut errors);
        let overwrite = object.and_then(|o| o.optional("overwrite", &mut errors)).unwrap_or(false);
        errors.problem(Code::InvalidRequest)?;
        Ok(Self { overwrite })
    }
}

impl CancelRequest {
    fn read(value: &Value) -> Result<Self, Problem> {
        let mut errors = Errors::default();
        let object = Object::read(value, String::new(), &["reason", "close_mr"], &mut errors);
        let reason = object.as_ref().and_then(|o| o.optional::<&str>("reason", &mut errors)).map(str::to_owned);
        let close_mr = object.and_then(|o| o.optional("close_mr", &mut errors)).unwrap_or(true);
        errors.problem(Code::InvalidRequest)?;
        Ok(Self { reason, close_mr })
    }
}

/// Brings a failed, cancelled or blocked item back.
#[utoipa::path(post, path = "/v1/work-items/{id}/retry", tag = "work items", security(("bearer" = [])),
    params(("id" = String, Path)), request_body = Option<RetryRequest>,
    responses((status = 200, description = "active again", body = WorkItem), (status = 400, description = "invalid_json, invalid_request"),
        (status = 403, description = "forbidden"), (status = 404, description = "not_found"),
        (status = 409, description = "not_retryable, superseded, cancel_pending"), (status = 413, description = "too_large")))]
pub(crate) async fn retry(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<WorkItem>, Problem> {
    let request = RetryRequest::read(&body::optional_json(body)?)?;
    let id = found(&id)?;
    let retried = state.engine.retry(&caller, &id, request.overwrite).await;
    let item = retried.map_err(|e| refusal::of_lifecycle(e, Code::NotRetryable))?;
    shown(&state, &caller, item).await.map(Json)
}

/// Ends an item: at once where it has failed, else once its merge request is closed.
#[utoipa::path(post, path = "/v1/work-items/{id}/cancel", tag = "work items", security(("bearer" = [])),
    params(("id" = String, Path)), request_body = Option<CancelRequest>,
    responses((status = 202, description = "will be cancelled", body = WorkItem), (status = 200, description = "cancelled", body = WorkItem),
        (status = 400, description = "invalid_json, invalid_request"), (status = 404, description = "not_found"),
        (status = 409, description = "not_cancellable, cancel_pending"), (status = 413, description = "too_large")))]
pub(crate) async fn cancel(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<WorkItem>), Problem> {
    let request = CancelRequest::read(&body::optional_json(body)?)?;
    let id = found(&id)?;
    let cancelled = state.engine.cancel(&caller, &id, request.reason, request.close_mr).await;
    let item = cancelled.map_err(|e| refusal::of_lifecycle(e, Code::NotCancellable))?;
    let status = if item.is_active() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(shown(&state, &caller, item).await?)))
}
