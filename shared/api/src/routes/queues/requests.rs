//! Requests of a queue, and where its tracking stands.

use super::{of_error, request, shown};
use crate::page::{Parameters, Sent};
use crate::problem::Problem;
use crate::refusal;
use crate::state::ApiState;
use crate::view::{RequestHistory, RequestIssuePage, TrackingView};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use collie_core::issue::row::Finding;
use collie_engine::access::Caller;
use std::collections::BTreeSet;

/// Lists what a request meant for issues. An empty page says nothing without its coverage.
#[utoipa::path(get, path = "/v1/queues/{queue}/requests/{id}/issues", tag = "CI issues", security(("bearer" = [])),
    params(("queue" = String, Path), ("id" = String, Path), ("result" = Option<String>, Query, description = "new, existing or closed"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50"), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = RequestIssuePage), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue, unknown_request")))]
pub(crate) async fn issues(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path((queue, id)): Path<(String, String)>,
    query: Sent,
) -> Result<Json<RequestIssuePage>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let mut parameters = Parameters::read(query, &["result", "limit", "cursor"])?;
    let words = [Finding::New, Finding::Existing, Finding::Closed];
    let result = parameters.take_as("result", "new, existing or closed", |text| words.into_iter().find(|word| word.as_str() == text));
    let paging = parameters.paging();
    parameters.finish()?;
    let (page, coverage) = state.tracking.request_issues(queue, request(&id)?, result, paging).await.map_err(of_error)?;
    Ok(Json(RequestIssuePage::of(page, coverage)))
}

/// Shows a request, and what happened to it.
#[utoipa::path(get, path = "/v1/queues/{queue}/requests/{id}/history", tag = "CI issues", security(("bearer" = [])),
    params(("queue" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = RequestHistory), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue, unknown_request")))]
pub(crate) async fn history(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path((queue, id)): Path<(String, String)>,
) -> Result<Json<RequestHistory>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let request = state.tracking.tracked_request(queue, request(&id)?).await.map_err(of_error)?;
    let history = state.tracking.request_history(queue, request.id).await.map_err(of_error)?;
    let links = state.tracking.links(queue, BTreeSet::from([request.id])).await.map_err(|failure| refusal::of_failure(&failure))?;
    Ok(Json(RequestHistory::of(request, history, &links)))
}

/// Shows where the tracking of a queue stands: its checkpoint, and the oldest job that has not ended.
#[utoipa::path(get, path = "/v1/queues/{queue}/tracking", tag = "CI issues", security(("bearer" = [])), params(("queue" = String, Path)),
    responses((status = 200, body = TrackingView), (status = 403, description = "forbidden"), (status = 404, description = "unknown_queue")))]
pub(crate) async fn tracking(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
) -> Result<Json<TrackingView>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let standing = state.tracking.standing(queue).await.map_err(|failure| refusal::of_failure(&failure))?;
    Ok(Json(TrackingView::of(standing, state.tracking.now())))
}
