//! `/projects/:id/pipelines`: list, latest, get, create, retry, cancel.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::pagination::{Totals, paginate};
use crate::pipeline_run::latest_jobs;
use crate::pipelines::{Pipeline, PipelinePlan, Status, pipeline_detail, pipeline_row};
use crate::project::Project;
use crate::reply::{Answer, Reply, field_message, forbidden, no_record};
use crate::state::State;

/// The pipeline the path names.
fn find<'a>(project: &'a Project, call: &Call) -> Result<&'a Pipeline, Reply> {
    project.pipelines.get(&call.number("pipeline_id")?).ok_or_else(no_record)
}

/// `GET …/pipelines`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let params = &call.params;
    let is = |name: &str, value: &str| params.text(name).is_none_or(|wanted| wanted == value);
    let fits =
        |row: &&Pipeline| is("ref", &row.reference) && is("sha", &row.sha) && is("status", row.status.text()) && is("source", row.source);
    let mut rows: Vec<Value> = project.pipelines.values().filter(fits).map(|row| pipeline_row(state, project, row)).collect();
    if params.text("sort").as_deref() != Some("asc") {
        rows.reverse();
    }
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/pipelines/latest`; none is 403.
pub(crate) fn latest(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let name = call.params.text("ref").unwrap_or_else(|| project.default_branch.clone());
    let head = project.head_id(&name);
    let fits = |row: &&Pipeline| row.reference == name && Some(&row.sha) == head.as_ref();
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
    let plan = PipelinePlan { branch, sha, mr: None, source: "api", user: call.user_id()? };
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
        row.mr == Some(iid) || (row.mr.is_none() && row.branch == mr.source_branch && mr.created_at_ms <= row.created_at_ms + 60_000)
    };
    project.pipelines.values().rev().filter(own).map(|row| pipeline_row(state, project, row)).collect()
}
