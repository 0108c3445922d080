//! Submitting, and reading items.

use crate::about::About;
use crate::body::{self, Body};
use crate::code::Code;
use crate::openapi::SubmissionBody;
use crate::page::{self, Parameters, Sent};
use crate::problem::Problem;
use crate::routes::blobs;
use crate::state::ApiState;
use crate::submission::{self, Reading};
use crate::view::{ItemPage, Submitted, Validated, WorkItem};
use crate::{plan, refusal};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use collie_core::id::{ItemId, ProjectId};
use collie_core::item::{Content, Item, Phase};
use collie_engine::access::Caller;
use collie_engine::ports::{ListFilter, ListPage};
use collie_engine::settings::Project;
use collie_engine::submit::{self, Outcome, Submission};
use futures::stream::{self, StreamExt, TryStreamExt};

/// Items of a page that are read at once.
const READS: usize = 16;
const PHASES: [Phase; 4] = [Phase::Active, Phase::Completed, Phase::Failed, Phase::Cancelled];
const FILTERS: [&str; 7] = ["phase", "item_type", "project", "source_branch", "caller", "limit", "cursor"];

/// Submits a change. The same one again changes nothing.
#[utoipa::path(post, path = "/v1/work-items", tag = "work items", security(("bearer" = [])), request_body = SubmissionBody,
    responses((status = 201, description = "created", body = Submitted), (status = 200, description = "unchanged, updated or retried", body = Submitted),
        (status = 400, description = "invalid_json, invalid_request"), (status = 403, description = "forbidden"),
        (status = 409, description = "cancel_pending"), (status = 413, description = "too_large"),
        (status = 422, description = "policy, unknown_project, unhandled_item_type")))]
pub(crate) async fn submit(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Extension(about): Extension<About>,
    body: Body,
) -> Result<(StatusCode, Json<Submitted>), Problem> {
    let submission = read(&state, &caller, &about, body).await?;
    let submitted = state.engine.submit(&caller, &submission).await;
    let submit::Submitted { outcome, item, content } =
        submitted.map_err(|e| refusal::of_submit(e, &caller, crate::fields::Errors::default()))?;
    about.item(&item);
    let status = if outcome == Outcome::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Submitted { outcome: outcome.as_str(), work_item: view(&item, &content)? })))
}

/// Says what a submission would do, and writes nothing.
#[utoipa::path(post, path = "/v1/work-items/validate", tag = "work items", security(("bearer" = [])), request_body = SubmissionBody,
    responses((status = 200, body = Validated), (status = 400, description = "invalid_json, invalid_request"),
        (status = 403, description = "forbidden"), (status = 409, description = "cancel_pending"), (status = 413, description = "too_large"),
        (status = 422, description = "policy, unknown_project, unhandled_item_type")))]
pub(crate) async fn validate(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Extension(about): Extension<About>,
    body: Body,
) -> Result<Json<Validated>, Problem> {
    let submission = read(&state, &caller, &about, body).await?;
    let outcome = state.engine.validate(&caller, &submission).await;
    let outcome = outcome.map_err(|e| refusal::of_submit(e, &caller, crate::fields::Errors::default()))?;
    let project = state.engine.settings().project(&submission.project);
    let calls = project.map(|p| plan::calls(outcome, &submission, p.at.id)).unwrap_or_default();
    Ok(Json(Validated { ok: true, would: outcome.as_str(), calls }))
}

/// Reads a submission. Where rules are broken already, the policy adds what else it sees.
async fn read(state: &ApiState, caller: &Caller, about: &About, body: Body) -> Result<Submission, Problem> {
    let mut reading = submission::read(&body::json(body)?)?;
    about.project(&reading.submission.project, state.engine.settings());
    blobs::resolve(state, caller, &mut reading).await?;
    let Reading { submission, broken, .. } = reading;
    if broken.is_empty() {
        return Ok(submission);
    }
    match state.engine.validate(caller, &submission).await {
        Ok(_) => Err(refusal::of_errors(broken)),
        Err(error) => Err(refusal::of_submit(error, caller, broken)),
    }
}

/// Lists items, newest first.
#[utoipa::path(get, path = "/v1/work-items", tag = "work items", security(("bearer" = [])),
    params(("phase" = Option<String>, Query, description = "active, completed, failed or cancelled"), ("item_type" = Option<String>, Query),
        ("project" = Option<String>, Query, description = "the project's path; ~ may stand for /"), ("source_branch" = Option<String>, Query),
        ("caller" = Option<String>, Query, description = "an identity"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50"), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = ItemPage), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden"),
        (status = 422, description = "unknown_project")))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Extension(about): Extension<About>,
    query: Sent,
) -> Result<Json<ItemPage>, Problem> {
    let mut parameters = Parameters::read(query, &FILTERS)?;
    let phase = |text: &str| PHASES.into_iter().find(|phase| phase.as_str() == text);
    let project = parameters.take("project").map(|path| path.replace('~', "/"));
    about.project(project.as_deref().unwrap_or_default(), state.engine.settings());
    let filter = ListFilter {
        projects: Vec::new(),
        phase: parameters.take_as("phase", "active, completed, failed or cancelled", phase),
        item_type: parameters.take("item_type"),
        source_branch: parameters.take("source_branch"),
        caller: parameters.take("caller"),
        seen_by: None,
    };
    let (limit, before) = (parameters.limit(), parameters.cursor().map(ItemId::new));
    parameters.finish()?;
    let filter = ListFilter { projects: projects(&state, &caller, project)?, ..filter };
    let page = state.engine.list(&caller, filter, before.as_ref(), limit).await.map_err(refusal::of_read)?;
    rows(&state, &caller, page).await.map(Json)
}

/// The named project, or all of which the caller may see something.
fn projects(state: &ApiState, caller: &Caller, path: Option<String>) -> Result<Vec<(String, ProjectId)>, Problem> {
    let shown = state.engine.settings().projects.iter().filter(|project| caller.grants.show_project(&project.path));
    let at = |project: &Project| (project.at.host.clone(), project.at.id);
    let Some(path) = path else { return Ok(shown.map(at).collect()) };
    let named: Vec<_> = shown.filter(|project| project.path == path).map(at).collect();
    if named.is_empty() { Err(refusal::unknown_project(caller, "project")) } else { Ok(named) }
}

/// The page with what rows leave out: title, labels and actions.
async fn rows(state: &ApiState, caller: &Caller, page: ListPage) -> Result<ItemPage, Problem> {
    let reads = page.items.into_iter().map(|item| shown(state, caller, item));
    let items = stream::iter(reads).buffered(READS).try_collect().await?;
    Ok(ItemPage { items, next_cursor: page.next.map(|id| page::cursor(id.as_str())) })
}

/// Shows an item.
#[utoipa::path(get, path = "/v1/work-items/{id}", tag = "work items", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = WorkItem), (status = 404, description = "not_found")))]
pub(crate) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<WorkItem>, Problem> {
    let (item, content) = state.engine.get(&caller, &found(&id)?).await.map_err(refusal::of_read)?;
    view(&item, &content).map(Json)
}

/// A row that was read, with its content.
pub(super) async fn shown(state: &ApiState, caller: &Caller, item: Item) -> Result<WorkItem, Problem> {
    let (_, content) = state.engine.get(caller, &item.id).await.map_err(refusal::of_read)?;
    view(&item, &content)
}

fn view(item: &Item, content: &Content) -> Result<WorkItem, Problem> {
    WorkItem::of(item, content).map_err(|failure| refusal::of_failure(&failure))
}

/// The id in a path. What cannot be an id is one that no item has.
pub(super) fn found(id: &str) -> Result<ItemId, Problem> {
    page::item_id(id).ok_or_else(|| refusal::of_lifecycle(collie_engine::lifecycle::Error::NotFound, Code::NotFound))
}
