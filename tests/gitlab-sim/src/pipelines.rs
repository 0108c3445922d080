//! Pipelines and jobs as data, the rules that script them, and their JSON.
//! The machine that runs them is in `pipeline_run`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ci_config::Trigger;
use crate::clock::iso;
use crate::commits::commit_json;
use crate::mr_json::time;
use crate::project::Project;
use crate::state::State;
use crate::test_reports::JunitReport;

/// Status of a pipeline or job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Made, not yet its turn.
    Created,
    /// Waits for a runner.
    Pending,
    /// Runs.
    Running,
    /// Went well.
    Success,
    /// Failed.
    Failed,
    /// Stopped.
    Canceled,
    /// Never to run.
    Skipped,
    /// Waits for a person.
    Manual,
}

impl Status {
    /// Still on its way.
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Self::Created | Self::Pending | Self::Running)
    }

    pub(crate) fn is_finished(self) -> bool {
        matches!(self, Self::Success | Self::Failed | Self::Canceled | Self::Skipped)
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Skipped => "skipped",
            Self::Manual => "manual",
        }
    }

    /// The word of the user interface.
    pub(crate) fn label(self) -> &'static str {
        if self == Self::Success { "passed" } else { self.text() }
    }
}

/// How a scripted job ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    /// Succeeds.
    #[default]
    Success,
    /// Fails.
    Failed,
    /// Runs for ever.
    Hang,
    /// Is canceled.
    Canceled,
}

impl JobOutcome {
    /// The status a job ends with; one that hangs and is ended anyhow succeeds.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Success | Self::Hang => Status::Success,
            Self::Failed => Status::Failed,
            Self::Canceled => Status::Canceled,
        }
    }
}

/// What happens to jobs of a name. The rule added last wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobRule {
    /// Job name, or `*`.
    pub job: String,
    /// Only this attempt, from 1 (a retry is the next attempt).
    pub attempt: Option<u32>,
    /// How it ends.
    pub outcome: JobOutcome,
    /// Why it failed; `script_failure` if absent.
    pub failure_reason: Option<String>,
    /// Its log.
    pub trace: Option<String>,
    /// The JUnit report that it uploads, if it is not canceled.
    pub report: Option<JunitReport>,
    /// How long it runs.
    pub seconds: Option<f64>,
    /// Only pipelines whose ref or source branch has this part.
    pub ref_contains: Option<String>,
    /// Only pipelines of this head sha.
    pub sha: Option<String>,
}

impl JobRule {
    /// A rule for a job that succeeds.
    pub fn success(job: &str) -> Self {
        Self { job: job.to_owned(), ..Self::default() }
    }

    /// A rule for a job that fails.
    pub fn failed(job: &str, failure_reason: &str) -> Self {
        Self { outcome: JobOutcome::Failed, failure_reason: Some(failure_reason.to_owned()), ..Self::success(job) }
    }

    pub(crate) fn fits(&self, pipeline: &Pipeline, job: &Job) -> bool {
        let part = |part: &String| pipeline.reference.contains(part.as_str()) || pipeline.branch.contains(part.as_str());
        (self.job == "*" || self.job.is_empty() || self.job == job.name)
            && self.attempt.is_none_or(|attempt| attempt == job.attempt)
            && self.ref_contains.as_ref().is_none_or(part)
            && self.sha.as_ref().is_none_or(|sha| *sha == pipeline.source_sha)
    }
}

/// A pipeline to be made.
#[derive(Clone, Debug)]
pub(crate) struct PipelinePlan {
    pub(crate) branch: String,
    pub(crate) sha: String,
    pub(crate) mr: Option<u64>,
    pub(crate) source: &'static str,
    pub(crate) user: u64,
    /// The bridge that starts it.
    pub(crate) upstream: Option<Upstream>,
}

/// The bridge that started a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upstream {
    pub(crate) project: u64,
    pub(crate) job: u64,
    /// The file that configures it, if it is a child.
    pub(crate) file: Option<String>,
}

/// A pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) id: u64,
    pub(crate) iid: u64,
    pub(crate) reference: String,
    pub(crate) branch: String,
    /// What it runs on: for merged results, the merge commit.
    pub(crate) sha: String,
    /// The head it is for.
    pub(crate) source_sha: String,
    pub(crate) source: &'static str,
    pub(crate) mr: Option<u64>,
    pub(crate) user: u64,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) status: Status,
    pub(crate) stages: Vec<String>,
    pub(crate) yaml_errors: Option<String>,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    pub(crate) started_at_ms: Option<u64>,
    pub(crate) finished_at_ms: Option<u64>,
}

/// One attempt of a job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) pipeline: u64,
    pub(crate) name: String,
    pub(crate) stage: String,
    pub(crate) status: Status,
    pub(crate) allow_failure: bool,
    pub(crate) manual: bool,
    pub(crate) attempt: u32,
    /// A newer attempt exists.
    pub(crate) retried: bool,
    pub(crate) user: u64,
    pub(crate) created_at_ms: u64,
    pub(crate) queued_at_ms: Option<u64>,
    pub(crate) started_at_ms: Option<u64>,
    pub(crate) finished_at_ms: Option<u64>,
    pub(crate) failure_reason: Option<String>,
    pub(crate) trace: String,
    /// How often GitLab itself tries again.
    pub(crate) retries: u32,
    /// What its runner uploaded.
    pub(crate) report: Option<JunitReport>,
    /// What it starts, if it is a bridge.
    pub(crate) trigger: Option<Trigger>,
    /// The project and the id of the pipeline that it started.
    pub(crate) downstream: Option<(u64, u64)>,
}

/// Seconds between two times, if both are known.
pub(crate) fn seconds_between(from_ms: Option<u64>, to_ms: Option<u64>) -> Value {
    #[allow(clippy::cast_precision_loss, reason = "durations are far below 2^52 ms")]
    let seconds = |ms: u64| ms as f64 / 1000.0;
    from_ms.zip(to_ms).map_or(Value::Null, |(from, to)| json!(seconds(to.saturating_sub(from))))
}

fn whole_seconds(from_ms: Option<u64>, to_ms: Option<u64>) -> Value {
    from_ms.zip(to_ms).map_or(Value::Null, |(from, to)| json!(to.saturating_sub(from) / 1000))
}

impl Pipeline {
    /// Whether a bridge of the same project started it. Lists and merge requests do not show those.
    pub(crate) fn is_child(&self) -> bool {
        self.source == "parent_pipeline"
    }

    pub(crate) fn duration(&self) -> Value {
        whole_seconds(self.started_at_ms, self.finished_at_ms)
    }

    pub(crate) fn queued_duration(&self) -> Value {
        whole_seconds(Some(self.created_at_ms), self.started_at_ms)
    }
}

/// A pipeline as lists show it.
pub(crate) fn pipeline_row(state: &State, project: &Project, pipeline: &Pipeline) -> Value {
    json!({
        "id": pipeline.id, "iid": pipeline.iid, "project_id": project.id, "sha": pipeline.sha, "ref": pipeline.reference,
        "status": pipeline.status, "source": pipeline.source, "created_at": iso(pipeline.created_at_ms),
        "updated_at": iso(pipeline.updated_at_ms), "web_url": format!("{}/-/pipelines/{}", state.web_url(project), pipeline.id),
    })
}

/// A pipeline in full.
pub(crate) fn pipeline_detail(state: &State, project: &Project, pipeline: &Pipeline) -> Value {
    let mut body = pipeline_row(state, project, pipeline);
    let status = pipeline.status;
    body["before_sha"] = json!("0".repeat(40));
    body["tag"] = json!(false);
    body["yaml_errors"] = json!(pipeline.yaml_errors);
    body["user"] = state.user_json(Some(pipeline.user));
    body["started_at"] = time(pipeline.started_at_ms);
    body["finished_at"] = time(pipeline.finished_at_ms);
    body["committed_at"] = Value::Null;
    body["duration"] = pipeline.duration();
    body["queued_duration"] = pipeline.queued_duration();
    body["coverage"] = Value::Null;
    body["archived"] = json!(false);
    body["detailed_status"] = json!({
        "icon": format!("status_{}", status.text()), "text": status.label(), "label": status.label(), "group": status.text(),
        "tooltip": status.label(), "has_details": true, "details_path": format!("/{}/-/pipelines/{}", project.path, pipeline.id),
        "illustration": null, "favicon": format!("/assets/ci_favicons/favicon_status_{}.png", status.text()),
    });
    body
}

/// What jobs and bridges have in common; `failure_reason` only if it failed.
fn attempt_json(state: &State, project: &Project, job: &Job) -> Value {
    let pipeline = project.pipelines.get(&job.pipeline);
    let commit = pipeline.and_then(|pipeline| project.repo.commit(&pipeline.sha));
    let mut body = json!({
        "id": job.id, "status": job.status, "stage": job.stage, "name": job.name, "ref": pipeline.map(|row| &row.reference), "tag": false,
        "coverage": null, "allow_failure": job.allow_failure, "created_at": iso(job.created_at_ms), "started_at": time(job.started_at_ms),
        "finished_at": time(job.finished_at_ms), "erased_at": null, "duration": seconds_between(job.started_at_ms, job.finished_at_ms),
        "queued_duration": seconds_between(job.queued_at_ms, job.started_at_ms), "user": state.job_user_json(job.user),
        "commit": commit.map(|commit| commit_json(state, project, commit)),
        "pipeline": pipeline.map(|row| pipeline_row(state, project, row)),
        "web_url": format!("{}/-/jobs/{}", state.web_url(project), job.id), "project": { "ci_job_token_scope_enabled": false },
    });
    if job.status == Status::Failed {
        body["failure_reason"] = json!(job.failure_reason);
    }
    body
}

/// A job as the API shows it.
pub(crate) fn job_json(state: &State, project: &Project, job: &Job) -> Value {
    let mut body = attempt_json(state, project, job);
    body["artifacts"] = artifacts(job);
    body["runner"] = runner(job);
    body["runner_manager"] = Value::Null;
    body["artifacts_expire_at"] = Value::Null;
    body["archived"] = json!(false);
    body["tag_list"] = json!([]);
    body
}

fn artifacts(job: &Job) -> Value {
    let trace = (!job.trace.is_empty())
        .then(|| json!({ "file_type": "trace", "size": job.trace.len(), "filename": "job.log", "file_format": null }));
    let junit = job
        .report
        .as_ref()
        .map(|report| json!({ "file_type": "junit", "size": report.stored_bytes(), "filename": "junit.xml.gz", "file_format": "gzip" }));
    json!(junit.into_iter().chain(trace).collect::<Vec<Value>>())
}

/// A bridge as the API shows it.
pub(crate) fn bridge_json(state: &State, project: &Project, job: &Job) -> Value {
    let downstream = job.downstream.and_then(|(project, pipeline)| {
        let project = state.project(project)?;
        Some(pipeline_row(state, project, project.pipelines.get(&pipeline)?))
    });
    let mut body = attempt_json(state, project, job);
    body["downstream_pipeline"] = downstream.unwrap_or_default();
    body
}

/// The runner that took the job, or null.
pub(crate) fn runner(job: &Job) -> Value {
    if job.started_at_ms.is_none() {
        return Value::Null;
    }
    json!({ "id": 12, "description": "shared-runner-1", "ip_address": null, "active": true, "paused": false, "is_shared": true,
            "runner_type": "instance_type", "name": "gitlab-runner", "online": true, "status": "online" })
}
