//! Issues of a queue, as everybody reads them, and what hooks keep with them.

use super::{key, of_error, reported, shown};
use crate::body::{self, Body};
use crate::code::Code;
use crate::fields::{Errors, Object, typed};
use crate::page::{Parameters, Sent};
use crate::problem::{FieldError, Problem};
use crate::refusal;
use crate::state::ApiState;
use crate::view::{IssueHistory, IssuePage, IssueView, Links, LogView};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use collie_core::issue::id::{BuildId, QueueName};
use collie_core::issue::row::{Event, Issue, Status};
use collie_engine::access::Caller;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;

const MAX_NAME: usize = 128;
const MAX_VALUE: usize = 1024;
/// Bytes of all that hooks keep with one issue: it travels with every write of the issue.
const MAX_METADATA: usize = 4096;

/// A change of what hooks keep with an issue.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the reader of the body takes")]
pub(crate) struct MetadataBody {
    /// The issue's version, as it was read.
    version: u64,
    /// Values by name: `namespace/key`, at most 128 bytes; values have at most 1024, all together 4096.
    set: Option<BTreeMap<String, String>>,
    /// Names that go.
    remove: Option<Vec<String>>,
}

/// Lists issues by task and unit.
#[utoipa::path(get, path = "/v1/queues/{queue}/issues", tag = "CI issues", security(("bearer" = [])),
    params(("queue" = String, Path), ("status" = Option<String>, Query, description = "open or closed; both where it is left out"),
        ("task_prefix" = Option<String>, Query), ("limit" = Option<u32>, Query, description = "1 to 200; 50"), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = IssuePage), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue")))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    query: Sent,
) -> Result<Json<IssuePage>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let mut parameters = Parameters::read(query, &["status", "task_prefix", "limit", "cursor"])?;
    let status =
        parameters.take_as("status", "open or closed", |text| [Status::Open, Status::Closed].into_iter().find(|s| s.as_str() == text));
    let prefix = parameters.take("task_prefix").unwrap_or_default();
    let paging = parameters.paging();
    parameters.finish()?;
    let page = state.tracking.issues(queue, status, &prefix, paging).await.map_err(|failure| refusal::of_failure(&failure))?;
    let links = links(&state, queue, &page.items).await?;
    Ok(Json(IssuePage::of(page, &links)))
}

/// Shows an issue.
#[utoipa::path(get, path = "/v1/queues/{queue}/issue", tag = "CI issues", security(("bearer" = [])),
    params(("queue" = String, Path), ("task" = String, Query), ("unit" = Option<String>, Query, description = "empty for the whole task")),
    responses((status = 200, body = IssueView), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue, unknown_issue")))]
pub(crate) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    query: Sent,
) -> Result<Json<IssueView>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let mut parameters = Parameters::read(query, &["task", "unit"])?;
    let key = key(&mut parameters);
    parameters.finish()?;
    let issue = state.tracking.issue(queue, &key.ok_or_else(missing)?).await.map_err(of_error)?;
    let links = links(&state, queue, std::slice::from_ref(&issue)).await?;
    Ok(Json(IssueView::of(issue, &links)))
}

/// Shows when an issue was opened and closed, oldest first.
#[utoipa::path(get, path = "/v1/queues/{queue}/issue/history", tag = "CI issues", security(("bearer" = [])),
    params(("queue" = String, Path), ("task" = String, Query), ("unit" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50"), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = IssueHistory), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue, unknown_issue")))]
pub(crate) async fn history(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    query: Sent,
) -> Result<Json<IssueHistory>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let mut parameters = Parameters::read(query, &["task", "unit", "limit", "cursor"])?;
    let (key, paging) = (key(&mut parameters), parameters.paging());
    parameters.finish()?;
    let key = key.ok_or_else(missing)?;
    state.tracking.issue(queue, &key).await.map_err(of_error)?;
    let page = state.tracking.issue_history(queue, &key, paging).await.map_err(|failure| refusal::of_failure(&failure))?;
    Ok(Json(IssueHistory::of(page)))
}

/// Shows one entry of an issue's log.
#[utoipa::path(get, path = "/v1/queues/{queue}/issue/log", tag = "CI issues", security(("bearer" = [])),
    params(("queue" = String, Path), ("task" = String, Query), ("unit" = Option<String>, Query), ("build" = String, Query),
        ("event" = String, Query, description = "opened, closed or reported")),
    responses((status = 200, body = LogView), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden"),
        (status = 404, description = "unknown_queue, unknown_issue")))]
pub(crate) async fn log_entry(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    query: Sent,
) -> Result<Json<LogView>, Problem> {
    let queue = shown(&state, &caller, &queue)?;
    let mut parameters = Parameters::read(query, &["task", "unit", "build", "event"])?;
    let key = key(&mut parameters);
    let build = parameters.required_as("build", "a build's id", |text| (!text.is_empty()).then(|| BuildId::new(text)));
    let event = parameters.required_as("event", "opened, closed or reported", Event::parse);
    parameters.finish()?;
    let (Some(key), Some(build), Some(event)) = (key, build, event) else { return Err(missing()) };
    let entry = state.tracking.log_entry(queue, &key, &build, event).await.map_err(|failure| refusal::of_failure(&failure))?;
    entry.map(|entry| Json(LogView::of(entry))).ok_or_else(|| Problem::new(Code::UnknownIssue, "the issue's log has no such entry"))
}

/// Changes what hooks keep with an issue, if it still has the version that they saw. Tells nobody.
#[utoipa::path(patch, path = "/v1/queues/{queue}/issue/metadata", tag = "CI issues", security(("bearer" = [])), request_body = MetadataBody,
    params(("queue" = String, Path), ("task" = String, Query), ("unit" = Option<String>, Query)),
    responses((status = 200, body = IssueView), (status = 400, description = "invalid_json, invalid_query, invalid_request"),
        (status = 403, description = "forbidden"), (status = 404, description = "unknown_queue, unknown_issue"),
        (status = 409, description = "stale_version")))]
pub(crate) async fn edit_metadata(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    query: Sent,
    body: Body,
) -> Result<Json<IssueView>, Problem> {
    let queue = reported(&state, &caller, &queue)?;
    let mut parameters = Parameters::read(query, &["task", "unit"])?;
    let key = key(&mut parameters);
    parameters.finish()?;
    let edit = MetadataEdit::read(&body::json(body)?)?;
    let key = key.ok_or_else(missing)?;
    edit.check_size(&state.tracking.issue(queue, &key).await.map_err(of_error)?.metadata)?;
    let issue = state.tracking.edit_metadata(queue, &key, edit.version, &edit.set, &edit.remove).await.map_err(of_error)?;
    let links = links(&state, queue, std::slice::from_ref(&issue)).await?;
    Ok(Json(IssueView::of(issue, &links)))
}

/// Where people find the builds that opened these issues.
async fn links(state: &ApiState, queue: &QueueName, issues: &[Issue]) -> Result<Links, Problem> {
    let requests = issues.iter().map(|issue| issue.first_seen.request).collect();
    state.tracking.links(queue, requests).await.map_err(|failure| refusal::of_failure(&failure))
}

fn missing() -> Problem {
    Problem::new(Code::InvalidQuery, "the query names no issue")
}

struct MetadataEdit {
    version: u64,
    set: BTreeMap<String, String>,
    remove: Vec<String>,
}

impl MetadataEdit {
    fn read(value: &Value) -> Result<Self, Problem> {
        let mut errors = Errors::default();
        let object = Object::read(value, String::new(), &["version", "set", "remove"], &mut errors);
        let version = object.as_ref().and_then(|o| o.required("version", &mut errors)).unwrap_or_default();
        let set = object.as_ref().and_then(|o| o.optional::<&Map<_, _>>("set", &mut errors)).map(|set| values(set, &mut errors));
        let remove = object.as_ref().and_then(|o| o.optional::<&[Value]>("remove", &mut errors)).map(|list| names(list, &mut errors));
        errors.problem(Code::InvalidRequest)?;
        Ok(Self { version, set: set.unwrap_or_default(), remove: remove.unwrap_or_default() })
    }

    /// What would be kept is bounded.
    fn check_size(&self, now: &BTreeMap<String, String>) -> Result<(), Problem> {
        let kept = now.iter().filter(|(name, _)| !self.remove.contains(name) && !self.set.contains_key(*name));
        let size: usize = kept.chain(&self.set).map(|(name, value)| name.len() + value.len()).sum();
        if size <= MAX_METADATA {
            return Ok(());
        }
        let hint = format!("an issue keeps at most {MAX_METADATA} bytes; remove some, or keep them elsewhere");
        let error = FieldError::new("/set", "too_large", "would make the issue's metadata too large", hint);
        Err(Problem::new(Code::InvalidRequest, "1 error; see errors").with_errors(vec![error]))
    }
}

fn values(set: &Map<String, Value>, errors: &mut Errors) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for (name, value) in set {
        let Some(text) = typed::<&str>(value, "/set", errors) else { continue };
        if !is_name(name) || text.len() > MAX_VALUE {
            let hint = "a name is namespace/key, of at most 128 letters, digits and . _ -; a value has at most 1024 bytes";
            errors.push(FieldError::new("/set", "invalid_value", "holds a name or a value that cannot be kept", hint));
        }
        values.insert(name.clone(), text.to_owned());
    }
    values
}

fn names(list: &[Value], errors: &mut Errors) -> Vec<String> {
    list.iter().filter_map(|name| typed::<&str>(name, "/remove", errors)).map(str::to_owned).collect()
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    name.len() <= MAX_NAME && name.split_once('/').is_some_and(|(namespace, key)| is_part(namespace) && is_part(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_a_namespace_and_a_key() {
        assert!(["a/b", "jira.cloud/issue_key", "A-1/2"].into_iter().all(is_name));
        assert!(!["", "a", "/b", "a/", "a/b/c", "a b/c", "ä/b", &format!("a/{}", "x".repeat(127))].into_iter().any(is_name));
    }

    #[test]
    fn what_an_issue_keeps_is_bounded_as_it_would_be_afterwards() {
        let now = BTreeMap::from([("a/old".to_owned(), "x".repeat(1000)), ("a/other".to_owned(), "y".repeat(1000))]);
        let edit = |value: Value| MetadataEdit::read(&value).unwrap();
        let big = "z".repeat(1000);
        let set = json!({"b/1": big, "b/2": big, "b/3": big});
        assert!(edit(json!({"version": 1, "set": set, "remove": ["a/old"]})).check_size(&now).is_ok());
        let refused = edit(json!({"version": 1, "set": set})).check_size(&now).unwrap_err();
        assert_eq!((refused.code, refused.errors[0].code), (Code::InvalidRequest, "too_large"));
        assert!(edit(json!({"version": 1, "set": {"a/old": ""}})).check_size(&now).is_ok());
    }

    #[test]
    fn everything_wrong_with_an_edit_is_told() {
        let problem = MetadataEdit::read(&json!({"set": {"a": 1, "b": "x"}, "remove": [2], "delete": []})).err().unwrap();
        let told: Vec<_> = problem.errors.iter().map(|e| (e.path.as_str(), e.code)).collect();
        let want = [
            ("/delete", "unknown_field"),
            ("/version", "missing_field"),
            ("/set", "wrong_type"),
            ("/set", "invalid_value"),
            ("/remove", "wrong_type"),
        ];
        assert_eq!(told, want);
    }
}
