//! Bridges: jobs that run on no runner but start another pipeline, a child of the same project or one of another project.
//!
//! One with `strategy: depend` ends as its pipeline does, and runs again when that does; any other is done once it has started it.

use crate::ci_config::{Target, Trigger};
use crate::pipelines::{PipelinePlan, Status, Upstream};
use crate::state::State;

impl State {
    /// Starts the pipeline of a bridge whose turn has come.
    pub(crate) fn start_bridge(&mut self, project: u64, id: u64) -> Option<()> {
        let trigger = self.project(project)?.jobs.get(&id)?.trigger.clone()?;
        match self.start_downstream(project, id, &trigger) {
            Err(reason) => self.end_job(project, id, Status::Failed, Some(reason.to_owned())),
            Ok(_) if !trigger.depends => self.end_job(project, id, Status::Success, None),
            Ok((other, pipeline)) => {
                let parent = self.project(project)?.jobs.get(&id)?.pipeline;
                self.emit_job(project, id);
                self.advance_pipeline(project, parent);
                let status = self.project(other)?.pipelines.get(&pipeline)?.status;
                self.tell_bridge(other, pipeline, status)
            }
        }
    }

    fn start_downstream(&mut self, project: u64, id: u64, trigger: &Trigger) -> Result<(u64, u64), &'static str> {
        let (other, plan, reference) = self.downstream_plan(project, id, trigger)?;
        let sha = plan.sha.clone();
        let made = self.create_pipeline_on(other, &plan, sha, reference).ok_or("downstream_pipeline_creation_failed")?;
        if let Some(job) = self.project_mut(project).and_then(|row| row.jobs.get_mut(&id)) {
            job.downstream = Some((other, made));
        }
        Ok((other, made))
    }

    fn downstream_plan(&self, project: u64, id: u64, trigger: &Trigger) -> Result<(u64, PipelinePlan, String), &'static str> {
        const LOST: &str = "downstream_pipeline_creation_failed";
        let row = self.project(project).ok_or(LOST)?;
        let job = row.jobs.get(&id).ok_or(LOST)?;
        let parent = row.pipelines.get(&job.pipeline).ok_or(LOST)?;
        let upstream = |file: Option<&String>| Some(Upstream { project, job: id, file: file.cloned() });
        match &trigger.target {
            Target::Child(file) => {
                let (branch, sha) = (parent.branch.clone(), parent.sha.clone());
                let plan =
                    PipelinePlan { branch, sha, mr: None, source: "parent_pipeline", user: job.user, upstream: upstream(Some(file)) };
                Ok((project, plan, parent.reference.clone()))
            }
            Target::Project(path, branch) => {
                let other = self.projects.values().find(|row| row.path == *path).ok_or("downstream_bridge_project_not_found")?;
                let branch = branch.clone().unwrap_or_else(|| other.default_branch.clone());
                let sha = other.head_id(&branch).ok_or(LOST)?;
                let plan =
                    PipelinePlan { branch: branch.clone(), sha, mr: None, source: "pipeline", user: job.user, upstream: upstream(None) };
                Ok((other.id, plan, branch))
            }
        }
    }

    /// Tells the bridge that waits for a pipeline how that stands.
    pub(crate) fn tell_bridge(&mut self, project: u64, pipeline: u64, status: Status) -> Option<()> {
        let upstream = self.project(project)?.pipelines.get(&pipeline)?.upstream.clone()?;
        let job = self.project(upstream.project)?.jobs.get(&upstream.job)?;
        let waits = job.trigger.as_ref().is_some_and(|trigger| trigger.depends) && job.downstream == Some((project, pipeline));
        if !waits || job.retried || job.status == status {
            return None;
        }
        if status.is_finished() {
            let reason = (status == Status::Failed).then(|| "unknown_failure".to_owned());
            return self.end_job(upstream.project, upstream.job, status, reason);
        }
        let is_over = job.status.is_finished();
        if is_over { self.reopen_bridge(&upstream) } else { None }
    }

    fn reopen_bridge(&mut self, upstream: &Upstream) -> Option<()> {
        let job = self.project_mut(upstream.project)?.jobs.get_mut(&upstream.job)?;
        job.status = Status::Running;
        job.finished_at_ms = None;
        job.failure_reason = None;
        let pipeline = job.pipeline;
        self.emit_job(upstream.project, upstream.job);
        self.advance_pipeline(upstream.project, pipeline)
    }
}
