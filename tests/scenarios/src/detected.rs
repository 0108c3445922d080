//! A tracked queue whose builds are GitLab's pipelines: people push, jobs fail and report, the detector looks, and what is open is read
//! back. GitLab and the queue each have a clock of their own.

use crate::effects::Effects;
use crate::ports::serve;
use crate::tracked::Tracked;
use collie_core::error::Failure;
use collie_core::id::ProjectId;
use collie_core::issue::row::{Build, Request, Set};
use collie_engine::cost::Meter;
use collie_engine::ports::{CiReports, ProjectRef};
use collie_engine::tracking::detect::{Detector, Looked};
use collie_gitlab::GitLab;
use gitlab_sim::{Clock, DEMO_PROJECT_ID, JobRule, JunitCase, JunitReport, Sim};
use std::sync::Arc;

/// Looks that one story may take until there is nothing to do.
const MOST_LOOKS: usize = 50;
/// How long pipelines take that do not hang.
const PIPELINE_MS: u64 = 600_000;

/// A project on GitLab, and the queue of its main branch.
pub struct Detected {
    /// The queue.
    pub queue: Tracked,
    /// GitLab.
    pub sim: Sim,
    ci: Arc<GitLab>,
    at: ProjectRef,
    /// What looks have cost.
    pub meter: Meter,
}

impl Detected {
    /// A project whose pipelines have this configuration, and no pipeline yet.
    pub async fn new(effects: Effects, config: &str) -> Self {
        let sim = Sim::demo(Clock::Manual);
        sim.clear_personas(DEMO_PROJECT_ID);
        sim.capture_hooks(true);
        let (host, ci) = serve(&sim).await;
        sim.push(DEMO_PROJECT_ID, "main", &[(".gitlab-ci.yml", Some(config))], "Configure CI [skip ci]", "root");
        sim.advance_by(PIPELINE_MS);
        let at = ProjectRef { host, id: ProjectId(DEMO_PROJECT_ID) };
        Self { queue: Tracked::new(effects), sim, ci, at, meter: Meter::default() }
    }

    /// Jobs of this name end well from now on.
    pub fn passes(&self, job: &str) {
        self.rule(JobRule::success(job));
    }

    /// Jobs of this name fail from now on, and leave a report in which these cases of class `C` failed.
    pub fn fails(&self, job: &str, cases: &[&str]) {
        self.reports(job, JunitReport::of(cases.iter().map(|name| JunitCase::failed("C", name))));
    }

    /// Jobs of this name fail from now on, and leave this report.
    pub fn reports(&self, job: &str, report: JunitReport) {
        self.rule(JobRule { report: Some(report), ..JobRule::failed(job, "script_failure") });
    }

    /// Jobs of this name fail from now on, and leave nothing.
    pub fn breaks(&self, job: &str) {
        self.rule(JobRule::failed(job, "script_failure"));
    }

    /// Adds a rule for jobs.
    pub fn rule(&self, rule: JobRule) {
        self.sim.add_job_rule(DEMO_PROJECT_ID, rule);
    }

    /// Somebody pushes; the answer is the pipeline, which is made.
    pub fn push(&self) -> u64 {
        let known = self.sim.pipelines(DEMO_PROJECT_ID).len();
        let at = self.sim.now_ms().to_string();
        self.sim.push(DEMO_PROJECT_ID, "main", &[("pushed", Some(&at))], "Work", "root");
        self.sim.advance_by(2_000);
        self.sim.pipelines(DEMO_PROJECT_ID)[known].id
    }

    /// Pipelines end.
    pub fn run(&self) {
        self.sim.advance_by(PIPELINE_MS);
    }

    /// One look of the detector; none where its process died.
    pub async fn look(&self) -> Option<Result<Looked, Failure>> {
        let (queue, at) = (self.queue.queue(), &self.at);
        let look = self.queue.process(|tracking| async move {
            let detector = Detector::new(tracking, Arc::clone(&self.ci) as Arc<dyn CiReports>);
            detector.look(queue, at).await
        });
        self.meter.scope(look).await
    }

    /// Looks until there is nothing to do.
    pub async fn detect(&self) {
        for _ in 0..MOST_LOOKS {
            if let Some(Ok(Looked { admitted: 0, ended: 0, is_cut: false, .. })) = self.look().await {
                return;
            }
        }
        panic!("after {MOST_LOOKS} looks there is still something to do");
    }

    /// Somebody pushes, the pipeline runs, and it is tracked.
    pub async fn pushed(&self) -> u64 {
        let pipeline = self.push();
        self.run();
        self.tracked().await;
        pipeline
    }

    /// What is there is detected and tracked.
    pub async fn tracked(&self) {
        self.detect().await;
        self.queue.settle().await;
    }

    /// Open issues, each with the request that opened it.
    pub async fn open(&self) -> Vec<(String, u64)> {
        self.queue.seen(0).await.open
    }

    /// The pipelines that became requests, each with its outcome's word, oldest first.
    pub async fn requests(&self) -> Vec<(String, String)> {
        let word = |request: &Request| request.outcome.map_or("-".to_owned(), |outcome| format!("{outcome:?}").to_lowercase());
        let short = |request: &Request| request.uri.rsplit('/').next().unwrap_or_default().to_owned();
        self.queue.rows::<Request>(Set::Requests).await.iter().map(|(_, request)| (short(request), word(request))).collect()
    }

    /// The build of a pipeline.
    pub async fn build(&self, pipeline: u64) -> Build {
        let set = Set::Build(collie_core::issue::id::BuildId::new(pipeline.to_string()));
        self.queue.rows::<Build>(set).await.remove(0).1
    }
}
