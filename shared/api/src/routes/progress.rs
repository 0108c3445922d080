//! How an item is doing, and why.

use crate::page::{Parameters, Sent};
use crate::problem::Problem;
use crate::refusal;
use crate::routes::work_items::found;
use crate::state::ApiState;
use crate::view::{ExplanationView, TimelineView};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use collie_engine::access::Caller;

/// What the item's runs did, oldest first, and what they cost.
#[utoipa::path(get, path = "/v1/work-items/{id}/timeline", tag = "work items", security(("bearer" = [])),
    params(("id" = String, Path), ("limit" = Option<u32>, Query, description = "1 to 200; 50"), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = TimelineView), (status = 400, description = "invalid_query"), (status = 404, description = "not_found")))]
pub(crate) async fn timeline(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: Sent,
) -> Result<Json<TimelineView>, Problem> {
    let mut parameters = Parameters::read(query, &["limit", "cursor"])?;
    let (limit, after) = (parameters.limit(), parameters.cursor());
    parameters.finish()?;
    let page = state.engine.timeline(&caller, &found(&id)?, after.as_deref(), limit).await;
    Ok(Json(TimelineView::of(page.map_err(refusal::of_read)?)))
}

/// Why the item is not merging, and when it is looked at next.
#[utoipa::path(get, path = "/v1/work-items/{id}/explain", tag = "work items", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = ExplanationView), (status = 404, description = "not_found")))]
pub(crate) async fn explain(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<ExplanationView>, Problem> {
    let explanation = state.engine.explain(&caller, &found(&id)?).await.map_err(refusal::of_read)?;
    Ok(Json(ExplanationView::of(explanation)))
}
