//! What reporters write: requests, their builds, issues, and ends.

use super::{is_task, is_unit, of_error, reported, request};
use crate::body::{self, Body};
use crate::code::Code;
use crate::fields::{Errors, Object, typed};
use crate::problem::{FieldError, Problem};
use crate::state::ApiState;
use crate::view::{AcceptedIssues, AdmittedRequest, AnalysisEnd, BuiltRequest, EndedRequest};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use collie_core::issue::id::BuildId;
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Analysis, Outcome};
use collie_engine::access::Caller;
use collie_engine::tracking::calls::Reported;
use serde_json::Value;
use std::collections::BTreeSet;
use utoipa::ToSchema;

const MAX_URI: usize = 2048;
const MAX_BUILD: usize = 256;
const MAX_DETAIL: usize = 4096;
/// Issues of one report.
const MAX_ISSUES: usize = 500;
/// Tasks that one analysis may speak for, and their bytes: they are kept in the build's row.
const MAX_COVERED: usize = 5_000;
const MAX_COVERED_BYTES: usize = 64 << 10;

/// One commit of the queue that is to be built.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct RequestBody {
    /// What is built; names the request once and for all. At most 2048 bytes.
    uri: String,
}

/// A request's build.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct BuildBody {
    /// Its name in the CI; at most 256 bytes.
    build_id: String,
}

/// How a request and its build ended.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct OutcomeBody {
    /// `succeeded`, `failed` or `cancelled`.
    outcome: String,
}

/// Issues of a build.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct IssuesBody {
    /// The build.
    build_id: String,
    /// At most 500.
    issues: Vec<IssueBody>,
}

/// One issue of a build.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct IssueBody {
    /// What failed: a job, say. At most 1024 bytes.
    task_id: String,
    /// What of it: a test case, say. At most 4096 bytes; empty for the whole task.
    unit_id: String,
    /// For people; at most 4096 bytes.
    detail: Option<String>,
}

/// That all issues of a build are reported, or never will be.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct AnalysisBody {
    /// The build.
    build_id: String,
    /// `completed` or `abandoned`.
    state: String,
    /// The tasks that the reports speak for; where it is left out, all.
    covered_tasks: Option<Vec<String>>,
}

/// Admits a request. The same uri again is the same request.
#[utoipa::path(post, path = "/v1/queues/{queue}/requests", tag = "CI issues", security(("bearer" = [])), request_body = RequestBody,
    params(("queue" = String, Path)),
    responses((status = 201, description = "admitted", body = AdmittedRequest), (status = 200, description = "admitted before", body = AdmittedRequest),
        (status = 400, description = "invalid_json, invalid_request"), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue")))]
pub(crate) async fn admit(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    body: Body,
) -> Result<(StatusCode, Json<AdmittedRequest>), Problem> {
    let queue = reported(&state, &caller, &queue)?;
    let uri = fields(&body::json(body)?, &["uri"], |object, errors| text(object, "uri", MAX_URI, errors))?;
    let admitted = state.tracking.admit(queue, &uri).await.map_err(of_error)?;
    let status = if admitted.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(AdmittedRequest::of(admitted.id))))
}

/// Gives a request its build. The first one counts.
#[utoipa::path(put, path = "/v1/queues/{queue}/requests/{id}/build", tag = "CI issues", security(("bearer" = [])), request_body = BuildBody,
    params(("queue" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = BuiltRequest), (status = 400, description = "invalid_json, invalid_request"),
        (status = 403, description = "forbidden"), (status = 404, description = "unknown_queue, unknown_request"),
        (status = 409, description = "build_mismatch, request_ended")))]
pub(crate) async fn associate(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path((queue, id)): Path<(String, String)>,
    body: Body,
) -> Result<Json<BuiltRequest>, Problem> {
    let queue = reported(&state, &caller, &queue)?;
    let build = fields(&body::json(body)?, &["build_id"], build_id)?;
    let request = state.tracking.associate(queue, request(&id)?, &build).await.map_err(of_error)?;
    Ok(Json(BuiltRequest::of(request.id, build)))
}

/// Ends a request, and its build where it has one. The first outcome counts; the answer tells it.
#[utoipa::path(post, path = "/v1/queues/{queue}/requests/{id}/outcome", tag = "CI issues", security(("bearer" = [])), request_body = OutcomeBody,
    params(("queue" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = EndedRequest), (status = 400, description = "invalid_json, invalid_request"),
        (status = 403, description = "forbidden"), (status = 404, description = "unknown_queue, unknown_request")))]
pub(crate) async fn conclude(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path((queue, id)): Path<(String, String)>,
    body: Body,
) -> Result<Json<EndedRequest>, Problem> {
    let queue = reported(&state, &caller, &queue)?;
    let words = [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled].map(|outcome| (outcome.as_str(), outcome));
    let outcome = fields(&body::json(body)?, &["outcome"], |object, errors| word(object, "outcome", &words, errors))?;
    let request = state.tracking.conclude(queue, request(&id)?, outcome).await.map_err(of_error)?;
    Ok(Json(EndedRequest::of(request.id, request.outcome.unwrap_or(outcome))))
}

/// Takes issues of a build. Those that are known stay as they are.
#[utoipa::path(post, path = "/v1/queues/{queue}/issues", tag = "CI issues", security(("bearer" = [])), request_body = IssuesBody,
    params(("queue" = String, Path)),
    responses((status = 200, body = AcceptedIssues), (status = 400, description = "invalid_json, invalid_request"),
        (status = 403, description = "forbidden"), (status = 404, description = "unknown_queue, unknown_build"),
        (status = 409, description = "analysis_ended: the detail tells how many were taken before")))]
pub(crate) async fn report(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    body: Body,
) -> Result<Json<AcceptedIssues>, Problem> {
    let queue = reported(&state, &caller, &queue)?;
    let (build, issues) = fields(&body::json(body)?, &["build_id", "issues"], |object, errors| {
        let (build, issues) = (build_id(object, errors), issues(object, errors));
        Some((build?, issues?))
    })?;
    let accepted = state.tracking.report(queue, &build, &issues).await.map_err(of_error)?;
    Ok(Json(AcceptedIssues { accepted }))
}

/// Ends the analysis of a build: its issues are then frozen.
#[utoipa::path(post, path = "/v1/queues/{queue}/analysis", tag = "CI issues", security(("bearer" = [])), request_body = AnalysisBody,
    params(("queue" = String, Path)),
    responses((status = 200, body = AnalysisEnd), (status = 400, description = "invalid_json, invalid_request"),
        (status = 403, description = "forbidden"), (status = 404, description = "unknown_queue, unknown_build"),
        (status = 409, description = "analysis_ended: otherwise")))]
pub(crate) async fn end_analysis(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    body: Body,
) -> Result<Json<AnalysisEnd>, Problem> {
    let queue = reported(&state, &caller, &queue)?;
    let (build, ended, covered) = fields(&body::json(body)?, &["build_id", "state", "covered_tasks"], |object, errors| {
        let words = [("completed", Analysis::Completed), ("abandoned", Analysis::Abandoned)];
        let (build, ended) = (build_id(object, errors), word(object, "state", &words, errors));
        let covered = covered(object, errors);
        Some((build?, ended?, covered))
    })?;
    state.tracking.end_analysis(queue, &build, ended, covered).await.map_err(of_error)?;
    Ok(Json(AnalysisEnd::of(build, ended)))
}

/// What a body holds, or everything that is wrong with it.
fn fields<T>(value: &Value, known: &[&str], read: impl FnOnce(&Object<'_>, &mut Errors) -> Option<T>) -> Result<T, Problem> {
    let mut errors = Errors::default();
    let found = Object::read(value, String::new(), known, &mut errors).and_then(|object| read(&object, &mut errors));
    errors.problem(Code::InvalidRequest)?;
    found.ok_or_else(|| Problem::new(Code::InvalidRequest, "the body cannot be read"))
}

/// A word that has to be there.
fn word<T: Copy>(object: &Object<'_>, name: &str, words: &[(&str, T)], errors: &mut Errors) -> Option<T> {
    object.required::<&str>(name, errors)?;
    object.word(name, words, errors)
}

/// Text of so many bytes at most, and of one at least.
fn text(object: &Object<'_>, name: &str, max: usize, errors: &mut Errors) -> Option<String> {
    let text: &str = object.required(name, errors)?;
    let fits = (1..=max).contains(&text.len()) && !text.chars().any(char::is_control);
    if !fits {
        errors.push(FieldError::new(
            object.pointer(name),
            "invalid_value",
            "is empty, too long or holds control characters",
            format!("send 1 to {max} bytes"),
        ));
    }
    fits.then(|| text.to_owned())
}

fn build_id(object: &Object<'_>, errors: &mut Errors) -> Option<BuildId> {
    text(object, "build_id", MAX_BUILD, errors).map(BuildId::new)
}

fn issues(object: &Object<'_>, errors: &mut Errors) -> Option<Reported> {
    let rows: &[Value] = object.required("issues", errors)?;
    if rows.len() > MAX_ISSUES {
        let hint = format!("send at most {MAX_ISSUES} at once");
        errors.push(FieldError::new(object.pointer("issues"), "too_many", "holds too many issues", hint));
        return None;
    }
    let read = |(index, row)| issue(row, object.pointer(&format!("issues/{index}")), errors);
    Some(rows.iter().enumerate().filter_map(read).collect())
}

fn issue(row: &Value, path: String, errors: &mut Errors) -> Option<(IssueKey, Option<String>)> {
    let object = Object::read(row, path, &["task_id", "unit_id", "detail"], errors)?;
    let task: Option<&str> = object.required("task_id", errors);
    let unit: Option<&str> = object.required("unit_id", errors);
    let detail: Option<&str> = object.optional("detail", errors);
    let bounds = [
        ("task_id", task.is_none_or(is_task), "send 1 to 1024 bytes"),
        ("unit_id", unit.is_none_or(is_unit), "send at most 4096 bytes"),
        ("detail", detail.is_none_or(|detail| detail.len() <= MAX_DETAIL), "send at most 4096 bytes"),
    ];
    for (name, _, hint) in bounds.into_iter().filter(|(_, fits, _)| !fits) {
        errors.push(FieldError::new(object.pointer(name), "invalid_value", "is empty or too long", hint));
    }
    Some((IssueKey::new(task?, unit?), detail.map(str::to_owned)))
}

fn covered(object: &Object<'_>, errors: &mut Errors) -> Option<BTreeSet<String>> {
    let rows: &[Value] = object.optional("covered_tasks", errors)?;
    let path = object.pointer("covered_tasks");
    let read = |(index, row)| typed::<&str>(row, &format!("{path}/{index}"), errors).map(str::to_owned);
    let tasks: BTreeSet<String> = rows.iter().enumerate().filter_map(read).collect();
    if tasks.len() > MAX_COVERED || tasks.iter().map(String::len).sum::<usize>() > MAX_COVERED_BYTES {
        let hint = format!("send at most {MAX_COVERED} tasks and {MAX_COVERED_BYTES} bytes, or leave it out where all tasks ran");
        errors.push(FieldError::new(path, "too_many", "names too many tasks", hint));
    }
    Some(tasks)
}
