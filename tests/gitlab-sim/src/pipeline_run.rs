//! The machine that makes pipelines and runs their jobs stage by stage, by the project's rules.

use crate::ci_config::{self, CiConfig, JobConfig};
use crate::merge_requests::MergeRequest;
use crate::pipelines::{Job, JobOutcome, JobRule, Pipeline, PipelinePlan, Status};
use crate::project::{PipelineMode, Project};
use crate::repo::CommitDraft;
use crate::state::{State, Task};

const CONFIG_PATH: &str = ".gitlab-ci.yml";

impl State {
    /// Makes a pipeline, if the commit has a configuration.
    pub(crate) fn create_pipeline(&mut self, project: u64, plan: &PipelinePlan) -> Option<u64> {
        let (sha, reference) = self.pipeline_target(project, plan)?;
        self.create_pipeline_on(project, plan, sha, reference)
    }

    /// Makes a pipeline on this commit and ref, if the commit has a configuration.
    pub(crate) fn create_pipeline_on(&mut self, project: u64, plan: &PipelinePlan, sha: String, reference: String) -> Option<u64> {
        let row = self.project(project)?;
        let commit = row.repo.commit(&sha)?;
        if commit.message.contains("[skip ci]") || commit.message.contains("[ci skip]") {
            return None;
        }
        let file = plan.upstream.as_ref().and_then(|upstream| upstream.file.as_deref()).unwrap_or(CONFIG_PATH);
        let text = String::from_utf8_lossy(row.repo.file(&sha, file)?).into_owned();
        let iid = row.pipelines.values().next_back().map_or(0, |pipeline| pipeline.iid) + 1;
        let id = self.ids.next("pipeline");
        let config = ci_config::parse(&text);
        let mut pipeline = self.new_pipeline(plan, (id, iid), sha, reference);
        match &config {
            Ok(config) => pipeline.stages.clone_from(&config.stages),
            Err(text) => {
                pipeline.status = Status::Failed;
                pipeline.yaml_errors = Some(text.clone());
            }
        }
        self.project_mut(project)?.pipelines.insert(id, pipeline);
        self.adopt_pipeline(project, id);
        if let Ok(config) = config {
            self.create_jobs(project, id, plan.user, &config);
        }
        self.emit_pipeline(project, id);
        self.advance_pipeline(project, id);
        Some(id)
    }

    fn new_pipeline(&self, plan: &PipelinePlan, (id, iid): (u64, u64), sha: String, reference: String) -> Pipeline {
        Pipeline {
            id,
            iid,
            reference,
            branch: plan.branch.clone(),
            sha,
            source_sha: plan.sha.clone(),
            source: plan.source,
            mr: plan.mr,
            user: plan.user,
            upstream: plan.upstream.clone(),
            status: Status::Created,
            stages: Vec::new(),
            yaml_errors: None,
            created_at_ms: self.now_ms,
            updated_at_ms: self.now_ms,
            started_at_ms: None,
            finished_at_ms: None,
        }
    }

    /// The commit and ref the pipeline runs on.
    fn pipeline_target(&mut self, project: u64, plan: &PipelinePlan) -> Option<(String, String)> {
        let Some(iid) = plan.mr else { return Some((plan.sha.clone(), plan.branch.clone())) };
        let wants_result = self.project(project)?.settings.pipelines == PipelineMode::MergedResults;
        let result = wants_result.then(|| self.merged_result(project, iid, plan.user)).flatten();
        Some(match result {
            Some(sha) => (sha, format!("refs/merge-requests/{iid}/merge")),
            None => (plan.sha.clone(), format!("refs/merge-requests/{iid}/head")),
        })
    }

    /// The commit that merges source into target, `None` on conflict.
    pub(crate) fn merged_result(&mut self, project: u64, iid: u64, user: u64) -> Option<String> {
        let signature = self.signature(user);
        let row = self.project_mut(project)?;
        let mr = row.mrs.get(&iid)?;
        let (target, source) = (row.head_id(&mr.target_branch)?, mr.sha.clone()?);
        let tree = row.repo.merge(&target, &source).ok()?;
        let message = format!("Merge {source} into {target}");
        let draft = CommitDraft { message, author: signature.clone(), committer: signature, author_user: None };
        Some(row.repo.put_commit(tree, vec![target, source], draft))
    }

    fn create_jobs(&mut self, project: u64, pipeline: u64, user: u64, config: &CiConfig) -> Option<()> {
        for stage in &config.stages {
            for job in config.jobs.iter().filter(|job| job.stage == *stage) {
                let id = self.ids.next("job");
                let job = self.new_job((id, pipeline), user, job);
                self.project_mut(project)?.jobs.insert(id, job);
                self.emit_job(project, id);
            }
        }
        Some(())
    }

    fn new_job(&self, (id, pipeline): (u64, u64), user: u64, config: &JobConfig) -> Job {
        Job {
            id,
            pipeline,
            name: config.name.clone(),
            stage: config.stage.clone(),
            status: Status::Created,
            allow_failure: config.allow_failure,
            manual: config.manual,
            attempt: 1,
            retried: false,
            user,
            created_at_ms: self.now_ms,
            queued_at_ms: None,
            started_at_ms: None,
            finished_at_ms: None,
            failure_reason: None,
            trace: String::new(),
            retries: config.retries,
            report: None,
            trigger: config.trigger.clone(),
            downstream: None,
        }
    }

    /// Makes the pipeline the head pipeline of the merge requests it is for.
    fn adopt_pipeline(&mut self, project: u64, id: u64) -> Option<()> {
        let row = self.project_mut(project)?;
        let pipeline = row.pipelines.get(&id)?;
        for mr in row.mrs.values_mut().filter(|mr| is_for(pipeline, mr)) {
            mr.head_pipeline = Some(id);
        }
        Some(())
    }

    /// Lets a new merge request take the branch pipeline that is already there.
    pub(crate) fn adopt_branch_pipeline(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project_mut(project)?;
        let mr = row.mrs.get_mut(&iid)?;
        let newest = row.pipelines.values().rfind(|pipeline| is_for(pipeline, mr))?;
        mr.head_pipeline = Some(newest.id);
        Some(())
    }

    fn rule_for(&self, project: u64, job: u64) -> Option<JobRule> {
        let row = self.project(project)?;
        let job = row.jobs.get(&job)?;
        let pipeline = row.pipelines.get(&job.pipeline)?;
        row.rules.iter().rev().find(|rule| rule.fits(pipeline, job)).cloned()
    }

    /// A runner takes a pending job.
    pub(crate) fn start_job(&mut self, project: u64, id: u64) -> Option<()> {
        let now_ms = self.now_ms;
        let rule = self.rule_for(project, id).unwrap_or_default();
        let job = self.project_mut(project)?.jobs.get_mut(&id).filter(|job| job.status == Status::Pending)?;
        job.status = Status::Running;
        job.started_at_ms = Some(now_ms);
        if job.trigger.is_some() {
            return self.start_bridge(project, id);
        }
        job.trace = format!("Running with gitlab-runner\n$ run {}\n", job.name);
        let pipeline = job.pipeline;
        let ms = rule.seconds.map_or(self.timing.job_run_ms, milliseconds);
        if rule.outcome != JobOutcome::Hang {
            self.schedule(ms, Task::FinishJob { project, job: id });
        }
        self.emit_job(project, id);
        self.advance_pipeline(project, pipeline)
    }

    /// A running job ends as its rule says.
    pub(crate) fn finish_job(&mut self, project: u64, id: u64) -> Option<()> {
        let rule = self.rule_for(project, id).unwrap_or_default();
        let status = rule.outcome.status();
        let job = self.project_mut(project)?.jobs.get_mut(&id).filter(|job| job.status == Status::Running)?;
        match (rule.trace, status) {
            (Some(trace), _) => job.trace = trace,
            (None, Status::Failed) => job.trace.push_str("ERROR: Job failed: exit code 1\n"),
            (None, _) => job.trace.push_str("Job succeeded\n"),
        }
        let reason = rule.failure_reason.unwrap_or_else(|| "script_failure".to_owned());
        self.end_job(project, id, status, (status == Status::Failed).then_some(reason))
    }

    /// Ends a job with a status; what it reports is uploaded before, and a failed try is tried again by GitLab where its
    /// configuration says so.
    pub(crate) fn end_job(&mut self, project: u64, id: u64, status: Status, reason: Option<String>) -> Option<()> {
        let now_ms = self.now_ms;
        let report = self.rule_for(project, id).and_then(|rule| rule.report);
        let job = self.project_mut(project)?.jobs.get_mut(&id)?;
        job.status = status;
        job.finished_at_ms = Some(now_ms);
        job.failure_reason = reason;
        let has_run = job.trigger.is_none() && matches!(status, Status::Success | Status::Failed);
        job.report = report.filter(|_| has_run);
        let (pipeline, user, goes_on) = (job.pipeline, job.user, status == Status::Failed && job.attempt <= job.retries);
        self.emit_job(project, id);
        if goes_on {
            self.retry_job(project, id, user);
        }
        self.advance_pipeline(project, pipeline)
    }

    fn set_job(&mut self, project: u64, id: u64, status: Status) -> Option<()> {
        let now_ms = self.now_ms;
        let job = self.project_mut(project)?.jobs.get_mut(&id)?;
        job.status = status;
        if status == Status::Pending {
            job.queued_at_ms = Some(now_ms);
            self.schedule(self.timing.job_pickup_ms, Task::StartJob { project, job: id });
        }
        self.emit_job(project, id)
    }

    /// Starts or skips the jobs whose turn has come, then settles the pipeline's status.
    pub(crate) fn advance_pipeline(&mut self, project: u64, id: u64) -> Option<()> {
        let moves = planned_moves(self.project(project)?, id)?;
        for (job, status) in moves {
            self.set_job(project, job, status);
        }
        self.settle_pipeline(project, id)
    }

    fn settle_pipeline(&mut self, project: u64, id: u64) -> Option<()> {
        let now_ms = self.now_ms;
        let status = overall(self.project(project)?, id)?;
        let pipeline = self.project_mut(project)?.pipelines.get_mut(&id)?;
        if pipeline.status == status || pipeline.yaml_errors.is_some() {
            return Some(());
        }
        pipeline.status = status;
        pipeline.updated_at_ms = now_ms;
        if status == Status::Running {
            pipeline.started_at_ms.get_or_insert(now_ms);
        }
        pipeline.finished_at_ms = status.is_finished().then_some(now_ms);
        self.emit_pipeline(project, id);
        self.tell_bridge(project, id, status);
        self.train_pipeline_ended(project, id, status);
        if status == Status::Success {
            self.auto_merge_after(project, id);
        }
        Some(())
    }

    fn auto_merge_after(&mut self, project: u64, pipeline: u64) -> Option<()> {
        let row = self.project(project)?;
        let waits = |mr: &&MergeRequest| mr.auto_merge && mr.head_pipeline == Some(pipeline) && row.car(mr.iid).is_none();
        let waiting: Vec<u64> = row.mrs.values().filter(waits).map(|mr| mr.iid).collect();
        for iid in waiting {
            self.run_auto_merge(project, iid);
        }
        Some(())
    }
}

/// Whether the pipeline is for the merge request's current head.
fn is_for(pipeline: &Pipeline, mr: &MergeRequest) -> bool {
    let same_mr = pipeline.mr.map_or(pipeline.branch == mr.source_branch, |iid| iid == mr.iid);
    mr.is_open() && same_mr && !pipeline.is_child() && mr.sha.as_ref() == Some(&pipeline.source_sha)
}

fn milliseconds(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to be a small non-negative number")]
    let ms = (seconds.max(0.0) * 1000.0).round() as u64;
    ms
}

/// The latest attempt of each job, in order of creation.
pub(crate) fn latest_jobs(project: &Project, pipeline: u64) -> Vec<&Job> {
    project.jobs.values().filter(|job| job.pipeline == pipeline && !job.retried).collect()
}

fn fails(job: &Job) -> bool {
    matches!(job.status, Status::Failed | Status::Canceled) && !job.allow_failure
}

fn is_done(job: &Job) -> bool {
    job.status.is_finished() || (job.status == Status::Manual && job.allow_failure)
}

/// Which created jobs now start, wait for a person, or are skipped.
fn planned_moves(project: &Project, id: u64) -> Option<Vec<(u64, Status)>> {
    let jobs = latest_jobs(project, id);
    let mut moves = Vec::new();
    let mut failed = false;
    for stage in &project.pipelines.get(&id)?.stages {
        let in_stage: Vec<&&Job> = jobs.iter().filter(|job| job.stage == *stage).collect();
        for job in in_stage.iter().filter(|job| job.status == Status::Created) {
            let status = match (failed, job.manual) {
                (true, _) => Status::Skipped,
                (false, true) => Status::Manual,
                (false, false) => Status::Pending,
            };
            moves.push((job.id, status));
        }
        let settled = |job: &&&Job| is_done(job) || (job.status == Status::Created && (failed || (job.manual && job.allow_failure)));
        if !in_stage.iter().all(settled) {
            break;
        }
        failed |= in_stage.iter().any(|job| fails(job));
    }
    Some(moves)
}

/// The pipeline's status from its jobs.
fn overall(project: &Project, id: u64) -> Option<Status> {
    let jobs = latest_jobs(project, id);
    let pipeline = project.pipelines.get(&id)?;
    let any = |status: Status| jobs.iter().any(|job| job.status == status);
    let started = jobs.iter().any(|job| job.started_at_ms.is_some()) || pipeline.started_at_ms.is_some();
    let blocked = jobs.iter().any(|job| job.status == Status::Manual && !job.allow_failure);
    Some(if any(Status::Running) || ((any(Status::Pending) || any(Status::Created)) && started && !blocked) {
        Status::Running
    } else if any(Status::Pending) {
        Status::Pending
    } else if jobs.iter().any(|job| job.status == Status::Failed && !job.allow_failure) {
        Status::Failed
    } else if jobs.iter().any(|job| job.status == Status::Canceled && !job.allow_failure) {
        Status::Canceled
    } else if blocked {
        Status::Manual
    } else if any(Status::Created) {
        Status::Created
    } else {
        Status::Success
    })
}
