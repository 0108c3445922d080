//! `retry_ci_jobs`: retries the failed jobs of the head pipeline that the project's rules name (DDR-47).
//!
//! What the row records is a hint: which jobs have failed is read from GitLab, once per run, and so is whether the merge request
//! still wants them. A lost hook, a repeated one and a crash after a retry therefore all come to the same. That a try is retried
//! once is GitLab's word: it refuses the second retry of one id, which is an answer and no failure. Logs are read only where
//! rules ask for them, cleaned and matched off the threads that answer others, and never kept.
//!
//! Without rules, failed jobs are recorded and none is retried.

use super::Work;
use crate::execute::Stop;
use crate::ports::JobRetry;
use collie_core::ci::plan::{self, fields};
use collie_core::ci::{Halt, JobPlan, Judged, Judgement, Plan, RetryRules, Trace, trace};
use collie_core::error::{Class, Failure};
use collie_core::item::{Dimension, Status};
use collie_core::mr::dims;
use collie_core::mr::events::failed_jobs;
use collie_core::mr::facts::PipelineRef;
use collie_core::mr::view::{Job, Pipeline};
use collie_core::outcome::Outcome;
use collie_core::time::Timestamp;
use std::time::Duration;

/// Logs read in one run; what is left is read a second later.
const LOGS_PER_RUN: usize = 10;
/// How soon a run goes on where it left work.
const SOON: Duration = Duration::from_secs(1);
/// How soon a merge request is read again that has failed jobs and shows no pipeline.
const FIRST_PIPELINE: Duration = Duration::from_secs(60);
/// Characters of the texts that a row keeps.
const WHY_SHOWN: usize = 200;

impl Work<'_, '_> {
    pub(super) async fn retry_ci_jobs(&mut self) -> Result<Outcome, Stop> {
        let rules = self.run.project()?.ci_retry.clone();
        if rules.is_empty() {
            return Ok(self.record_alone());
        }
        let pipeline = match self.pipeline_to_retry().await? {
            Ok(pipeline) => pipeline,
            Err(halt) => return Ok(self.halted(halt)),
        };
        let Some(tries) = gone_is_none(self.forge().jobs_with_retried(&self.at, pipeline.id).await)? else {
            return Ok(self.halted(Halt::NoPipeline));
        };
        let mut judged = Judged::read(self.item().dimension(&dims::ci_retry()).detail.as_ref());
        let has_read = self.judge_by_logs(&rules, &tries, &mut judged).await?;
        let mut plan = plan::decide(&rules, &tries, &judged, self.now());
        if has_read && plan.due().next().is_some() {
            // Reading took its time: the merge request is asked once more, right before it matters.
            match self.pipeline_to_retry().await? {
                Ok(now) if now.id == pipeline.id => {}
                Ok(_) => return Ok(self.halted(Halt::OldPipeline)),
                Err(halt) => return Ok(self.halted(halt)),
            }
        }
        let done = self.retry_due(&mut plan, &pipeline, &mut judged).await?;
        Ok(concluded(&plan, &judged, &done, self.now()))
    }

    /// What was known before there were rules.
    fn record_alone(&self) -> Outcome {
        let jobs = failed_jobs(self.item());
        let names: Vec<_> = jobs.iter().map(|job| job.name.escape_debug().to_string()).collect();
        let detail = serde_json::json!({ "why": "no retry rule is configured", "jobs": jobs });
        let recorded = Dimension { status: Status::False, pending_until: None, detail: Some(detail) };
        Outcome::progress(format!("failed, and no rule retries: {}", names.join(", "))).with(dims::ci_retry(), recorded)
    }

    async fn pipeline_to_retry(&self) -> Result<Result<Pipeline, Halt>, Stop> {
        let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) else { return Ok(Err(Halt::NotOpen)) };
        let Some(mr) = self.forge().merge_request(&self.at, iid).await? else { return Ok(Err(Halt::NotOpen)) };
        Ok(plan::pipeline_of(&mr, self.facts.verified_head()).cloned())
    }

    /// Reads the logs without which rules cannot tell. Says whether there were any.
    async fn judge_by_logs(&self, rules: &RetryRules, tries: &[Job], judged: &mut Judged) -> Result<bool, Stop> {
        let unread = plan::decide(rules, tries, judged, self.now());
        let mut has_read = false;
        for wanted in unread.unread().take(LOGS_PER_RUN) {
            let Some(job) = tries.iter().find(|job| job.id == wanted.id) else { continue };
            judged.note(job.id, self.judge_by_log(rules, job, wanted.is_settled).await?);
            has_read = true;
        }
        Ok(has_read)
    }

    /// A job without a log is judged like one with an empty log.
    async fn judge_by_log(&self, rules: &RetryRules, job: &Job, is_settled: bool) -> Result<Judgement, Stop> {
        let tail = self.forge().trace_tail(&self.at, job.id, trace::MAX_BYTES).await?;
        let (rules, job) = (rules.clone(), job.clone());
        let judging = tokio::task::spawn_blocking(move || {
            let trace = tail.map_or_else(|| Trace::settled(b""), |tail| Trace::of_tail(&tail.bytes, tail.is_cut, is_settled));
            rules.judge(&fields(&job), Some(&trace))
        });
        Ok(judging.await.map_err(|error| Failure::bug(format!("matching a log did not end: {error}")))?)
    }

    /// Retries what is due. A try that GitLab does not retry is done with, and is no failure of the item.
    async fn retry_due(&mut self, plan: &mut Plan, pipeline: &Pipeline, judged: &mut Judged) -> Result<Vec<String>, Stop> {
        let due: Vec<JobPlan> = plan.due().cloned().collect();
        let mut done = Vec::new();
        for job in due {
            self.run.before_write().await?;
            self.expect_pipeline_to_run(pipeline);
            let (name, rule) = (job.shown_name(), job.rule.as_deref().unwrap_or_default());
            match self.forge().retry_job(&self.at, job.id).await {
                Ok(JobRetry::Made(new)) => {
                    done.push(format!("retried {name} by rule {rule}: job {} is now {new}", job.id));
                    plan.jobs.retain(|other| other.id != job.id);
                }
                Ok(JobRetry::NotRetryable(why)) => done.push(plan.refuse(job.id, judged, &why)),
                Err(failure) if matches!(failure.class, Class::Gone | Class::Rejected) => {
                    done.push(plan.refuse(job.id, judged, &failure.message));
                }
                Err(failure) if failure.is_indeterminate() => return Err(super::ensure::unanswered(&failure).into()),
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(done)
    }

    /// Nothing is retried, and nothing stays on record: jobs that were not judged are to be found again. The merge request is read
    /// where it has moved on, or soon where GitLab does not show its pipeline yet.
    fn halted(&self, halt: Halt) -> Outcome {
        let detail = serde_json::json!({ "why": halt.why() });
        let rested = Dimension { status: Status::False, pending_until: None, detail: Some(detail) };
        let outcome = Outcome::progress(format!("nothing is retried: {}", halt.why())).with(dims::ci_retry(), rested);
        match halt {
            Halt::NotOpen | Halt::ForeignHead => outcome.with(dims::reconcile(), Dimension::needed()),
            Halt::NoPipeline => outcome.with(dims::reconcile(), Dimension::deferred(self.now().after(FIRST_PIPELINE), halt.why())),
            Halt::OldPipeline => outcome,
        }
    }

    /// The same pipeline goes on, and may fail once more: its failed jobs are then to be listed again, whether or not a look in
    /// between saw it run.
    fn expect_pipeline_to_run(&mut self, pipeline: &Pipeline) {
        self.facts.pipeline = Some(PipelineRef { id: pipeline.id, status: "running".into(), sha: pipeline.sha.clone(), listed: false });
    }
}

fn concluded(plan: &Plan, judged: &Judged, done: &[String], now: Timestamp) -> Outcome {
    let rests: Vec<_> = plan.jobs.iter().map(JobPlan::text).collect();
    let all: Vec<_> = done.iter().cloned().chain(rests).collect();
    let summary = if all.is_empty() { "no failed job is left".to_owned() } else { all.join("; ") };
    let next = plan.next_look(now);
    let why: String = next.as_ref().map_or(summary.as_str(), |(_, why)| why).chars().take(WHY_SHOWN).collect();
    let status = if next.is_some() { Status::True } else { Status::False };
    let pending_until = next.map(|(at, _)| at.max(now.after(SOON)));
    let dimension = Dimension { status, pending_until, detail: Some(plan.record(&why, judged)) };
    Outcome::progress(summary.chars().take(2 * WHY_SHOWN).collect::<String>()).with(dims::ci_retry(), dimension)
}

/// A pipeline that was deleted has no jobs.
fn gone_is_none<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.class == Class::Gone => Ok(None),
        Err(failure) => Err(failure),
    }
}
