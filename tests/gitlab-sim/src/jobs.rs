//! `/projects/:id/jobs`: lists, get, trace, retry, play, cancel.

use serde_json::Value;

use crate::access::Role;
use crate::call::Call;
use crate::pagination::{Totals, paginate};
use crate::pipelines::{Job, Status, bridge_json, job_json};
use crate::project::Project;
use crate::reply::{Answer, Reply, bad_request, error, forbidden, no_record};
use crate::state::State;

/// Every status of a job or a pipeline; not all are modelled.
pub(crate) const STATUSES: [&str; 13] = [
    "created",
    "waiting_for_resource",
    "preparing",
    "waiting_for_callback",
    "pending",
    "running",
    "success",
    "failed",
    "canceling",
    "canceled",
    "skipped",
    "manual",
    "scheduled",
];

fn scopes(call: &Call) -> Result<Option<Vec<String>>, Reply> {
    let Some(wanted) = call.params.list("scope") else { return Ok(None) };
    match wanted.iter().position(|scope| !STATUSES.contains(&scope.as_str())) {
        Some(index) => Err(error(400, format!("scope[{index}] does not have a valid value"))),
        None => Ok(Some(wanted)),
    }
}

fn in_scope(job: &Job, scopes: Option<&Vec<String>>) -> bool {
    scopes.is_none_or(|scopes| scopes.iter().any(|scope| scope == job.status.text()))
}

/// `GET …/pipelines/:pipeline_id/jobs`, id descending, old attempts hidden.
pub(crate) fn list_of_pipeline(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let id = call.number("pipeline_id")?;
    project.pipelines.get(&id).ok_or_else(no_record)?;
    let (scopes, all) = (scopes(call)?, call.params.is_set("include_retried"));
    let fits = |job: &&Job| is_build(job) && job.pipeline == id && (all || !job.retried) && in_scope(job, scopes.as_ref());
    let rows: Vec<Value> = project.jobs.values().rev().filter(fits).map(|job| job_json(state, project, job)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/pipelines/:pipeline_id/bridges`, id descending, old attempts hidden.
pub(crate) fn bridges(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let id = call.number("pipeline_id")?;
    project.pipelines.get(&id).ok_or_else(no_record)?;
    let scopes = scopes(call)?;
    let fits = |job: &&Job| !is_build(job) && job.pipeline == id && !job.retried && in_scope(job, scopes.as_ref());
    let rows: Vec<Value> = project.jobs.values().rev().filter(fits).map(|job| bridge_json(state, project, job)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// Whether it runs on a runner. Bridges are in lists of their own.
fn is_build(job: &Job) -> bool {
    job.trigger.is_none()
}

/// `GET …/jobs`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let scopes = scopes(call)?;
    let fits = |job: &&Job| is_build(job) && in_scope(job, scopes.as_ref());
    let rows: Vec<Value> = project.jobs.values().rev().filter(fits).map(|job| job_json(state, project, job)).collect();
    paginate(state, call, rows, Totals::Missing)
}

fn find<'a>(project: &'a Project, call: &Call) -> Result<&'a Job, Reply> {
    project.jobs.get(&call.number("job_id")?).ok_or_else(no_record)
}

fn find_build<'a>(project: &'a Project, call: &Call) -> Result<&'a Job, Reply> {
    find(project, call).and_then(|job| if is_build(job) { Ok(job) } else { Err(no_record()) })
}

fn shown(state: &State, call: &Call, id: u64, status: u16) -> Answer {
    let project = call.project(state)?;
    let job = project.jobs.get(&id).ok_or_else(no_record)?;
    Ok(Reply::json(status, &job_json(state, project, job)))
}

/// `GET …/jobs/:job_id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    Ok(Reply::json(200, &job_json(state, project, find_build(project, call)?)))
}

/// `GET …/jobs/:job_id/trace`
pub(crate) fn trace(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    Ok(Reply::text(200, find_build(project, call)?.trace.clone()))
}

/// `POST …/jobs/:job_id/retry`: a new job; the second retry of the same id is refused.
pub(crate) fn retry(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let (project_id, id) = (project.id, find(project, call)?.id);
    let refused = || forbidden(Some("Job is not retryable"));
    let new = state.retry_job(project_id, id, call.user_id()?).ok_or_else(refused)?;
    shown(state, call, new, 201)
}

/// `POST …/jobs/:job_id/play`
pub(crate) fn play(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let (project_id, job) = (project.id, find(project, call)?);
    let id = job.id;
    if job.status != Status::Manual {
        return Err(bad_request("Unplayable Job"));
    }
    state.play_job(project_id, id);
    shown(state, call, id, 200)
}

/// `POST …/jobs/:job_id/cancel`
pub(crate) fn cancel(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let (project_id, job) = (project.id, find(project, call)?);
    let id = job.id;
    if job.status.is_active() {
        state.end_job(project_id, id, Status::Canceled, None);
    }
    shown(state, call, id, 201)
}

fn is_retryable(job: &Job) -> bool {
    !job.retried && matches!(job.status, Status::Success | Status::Failed | Status::Canceled)
}

impl State {
    fn play_job(&mut self, project: u64, id: u64) -> Option<()> {
        let job = self.project_mut(project)?.jobs.get_mut(&id)?;
        job.manual = false;
        job.status = Status::Created;
        let pipeline = job.pipeline;
        self.advance_pipeline(project, pipeline)
    }

    /// Makes a new attempt of a job; `None` if it is not retryable.
    pub(crate) fn retry_job(&mut self, project: u64, id: u64, user: u64) -> Option<u64> {
        let row = self.project(project)?;
        let old = row.jobs.get(&id).filter(|job| row.settings.jobs_retryable && is_retryable(job))?.clone();
        let new_id = self.ids.next("job");
        let new = Job {
            id: new_id,
            status: Status::Created,
            manual: false,
            attempt: old.attempt + 1,
            user,
            created_at_ms: self.now_ms,
            queued_at_ms: None,
            started_at_ms: None,
            finished_at_ms: None,
            failure_reason: None,
            trace: String::new(),
            report: None,
            downstream: None,
            ..old.clone()
        };
        let jobs = &mut self.project_mut(project)?.jobs;
        jobs.insert(new_id, new);
        jobs.get_mut(&id)?.retried = true;
        jobs.values_mut()
            .filter(|job| job.pipeline == old.pipeline && job.status == Status::Skipped)
            .for_each(|job| job.status = Status::Created);
        self.emit_job(project, new_id);
        self.advance_pipeline(project, old.pipeline);
        Some(new_id)
    }
}
