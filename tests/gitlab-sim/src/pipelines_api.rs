//! `/projects/:id/pipelines`: list, latest, get, create, retry, cancel.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::parse_time;
use crate::jobs::STATUSES;
use crate::pagination::{Totals, paginate};
use crate::pipeline_run::latest_jobs;
use crate::pipelines::{Pipeline, PipelinePlan, Status, pipeline_detail, pipeline_row};
use crate::project::Project;
use crate::reply::{Answer, Reply, error, field_message, forbidden, no_record};
use crate::state::State;

/// The pipeline the path names.
fn find<'a>(project: &'a Project, call: &Call) -> Result<&'a Pipeline, Reply> {
    project.pipelines.get(&call.number("pipeline_id")?).ok_or_else(no_record)
}

const ORDERS: [&str; 5] = ["id", "status", "ref", "updated_at", "user_id"];
const SOURCES: [&str; 12] = [
    "push",
    "web",
    "trigger",
    "schedule",
    "api",
    "external",
    "pipeline",
    "chat",
    "webide",
    "merge_request_event",
    "external_pull_request_event",
    "parent_pipeline",
];

/// One of these words; any other is refused.
fn one_of(call: &Call, name: &str, words: &[&str]) -> Result<Option<String>, Reply> {
    match call.params.text(name) {
        Some(text) if !words.contains(&text.as_str()) => Err(error(400, format!("{name} does not have a valid value"))),
        text => Ok(text),
    }
}

/// A time; what is none is refused.
fn moment(call: &Call, name: &str) -> Result<Option<u64>, Reply> {
    let Some(text) = call.params.text(name) else { return Ok(None) };
    parse_time(&text).map(Some).ok_or_else(|| error(400, format!("{name} is invalid")))
}

/// Which pipelines are asked for.
struct Filter {
    reference: Option<String>,
    sha: Option<String>,
    status: Option<String>,
    source: Option<String>,
    updated_after_ms: Option<u64>,
    updated_before_ms: Option<u64>,
}

impl Filter {
    fn read(call: &Call) -> Result<Self, Reply> {
        Ok(Self {
            reference: call.params.text("ref"),
            sha: call.params.text("sha"),
            status: one_of(call, "status", &STATUSES)?,
            source: one_of(call, "source", &SOURCES)?,
            updated_after_ms: moment(call, "updated_after")?,
            updated_before_ms: moment(call, "updated_before")?,
        })
    }

    /// Children are shown only to who asks for them.
    fn fits(&self, row: &Pipeline) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        let source = self.source.as_deref().map_or(!row.is_child(), |source| source == row.source);
        source
            && is(&self.reference, &row.reference)
            && is(&self.sha, &row.sha)
            && is(&self.status, row.status.text())
            && self.updated_after_ms.is_none_or(|at| row.updated_at_ms > at)
            && self.updated_before_ms.is_none_or(|at| row.updated_at_ms < at)
    }
}

/// `GET …/pipelines`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let (filter, order) = (Filter::read(call)?, one_of(call, "order_by", &ORDERS)?);
    let mut found: Vec<&Pipeline> = project.pipelines.values().filter(|row| filter.fits(row)).collect();
    match order.as_deref() {
        Some("status") => found.sort_by_key(|row| row.status.text()),
        Some("ref") => found.sort_by_key(|row| &row.reference),
        Some("updated_at") => found.sort_by_key(|row| row.updated_at_ms),
        Some("user_id") => found.sort_by_key(|row| row.user),
        _ => {}
    }
    if one_of(call, "sort", &["asc", "desc"])?.as_deref() != Some("asc") {
        found.reverse();
    }
    let rows = found.into_iter().map(|row| pipeline_row(state, project, row)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/pipelines/latest`; none is 403.
pub(crate) fn latest(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let name = call.params.text("ref").unwrap_or_else(|| project.default_branch.clone());
    let head = project.head_id(&name);
    let fits = |row: &&Pipeline| row.reference == name && Some(&row.sha) == head.as_ref() && !row.is_child();
    let found = project.pipelines.values().rev().find(fits).ok_or_else(|| forbidden(None))?;
    Ok(Reply::json(200, &pipeline_detail(state, project, found)))
}

/// `GET …/pipelines/:pipeline_id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    Ok(Reply::json(200, &pipeline_detail(state, project, find(project, call)?)))
}

/// `POST …/pipeline`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let branch = call.params.required("ref")?;
    let sha = project.head_id(&branch).ok_or_else(|| field_message(400, "base", "Reference not found"))?;
    let plan = PipelinePlan { branch, sha, mr: None, source: "api", user: call.user_id()?, upstream: None };
    let id = project.id;
    let made = state.create_pipeline(id, &plan).ok_or_else(|| field_message(400, "base", "Missing CI config file"))?;
    shown(state, id, made, 201)
}

fn shown(state: &State, project: u64, id: u64, status: u16) -> Answer {
    let row = state.project(project).ok_or_else(no_record)?;
    let pipeline = row.pipelines.get(&id).ok_or_else(no_record)?;
    Ok(Reply::json(status, &pipeline_detail(state, row, pipeline)))
}

/// `POST …/pipelines/:pipeline_id/retry`; 201 even if nothing was to retry.
pub(crate) fn retry(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let (project_id, id) = (project.id, find(project, call)?.id);
    let failed = |status: Status| matches!(status, Status::Failed | Status::Canceled);
    let jobs: Vec<u64> = latest_jobs(project, id).into_iter().filter(|job| failed(job.status)).map(|job| job.id).collect();
    for job in jobs {
        state.retry_job(project_id, job, call.user_id()?);
    }
    shown(state, project_id, id, 201)
}

/// `POST …/pipelines/:pipeline_id/cancel`
pub(crate) fn cancel(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let (project_id, id) = (project.id, find(project, call)?.id);
    state.cancel_pipeline(project_id, id);
    shown(state, project_id, id, 200)
}

impl State {
    /// Stops every job that is not finished.
    pub(crate) fn cancel_pipeline(&mut self, project: u64, id: u64) -> Option<()> {
        let jobs = latest_jobs(self.project(project)?, id);
        let open: Vec<u64> =
            jobs.into_iter().filter(|job| job.status.is_active() || job.status == Status::Manual).map(|job| job.id).collect();
        for job in open.into_iter().rev() {
            self.end_job(project, job, Status::Canceled, None);
        }
        Some(())
    }
}

/// A list of pipelines of one merge request, newest first.
pub(crate) fn rows_of_mr(state: &State, project: &Project, iid: u64) -> Vec<Value> {
    let Some(mr) = project.mrs.get(&iid) else { return json!([]).as_array().cloned().unwrap_or_default() };
    let own = |row: &&Pipeline| {
        let is_branchs = row.mr.is_none() && row.branch == mr.source_branch && mr.created_at_ms <= row.created_at_ms + 60_000;
        !row.is_child() && (row.mr == Some(iid) || is_branchs)
    };
    project.pipelines.values().rev().filter(own).map(|row| pipeline_row(state, project, row)).collect()
}

/// `DELETE …/pipelines/:pipeline_id`, for owners.
pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Owner)?;
    let (project_id, id) = (project.id, find(project, call)?.id);
    state.delete_pipeline(project_id, id);
    Ok(Reply::empty(204))
}

impl State {
    /// Deletes a pipeline with its jobs.
    pub(crate) fn delete_pipeline(&mut self, project: u64, id: u64) -> Option<()> {
        let row = self.project_mut(project)?;
        row.pipelines.remove(&id)?;
        row.jobs.retain(|_, job| job.pipeline != id);
        for mr in row.mrs.values_mut().filter(|mr| mr.head_pipeline == Some(id)) {
            mr.head_pipeline = None;
        }
        Some(())
    }
}
