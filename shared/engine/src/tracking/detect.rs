//! Collie reads GitLab's pipelines by itself: those of a queue's ref become its requests, in the order of their numbers, and what they
//! show becomes the issues of their builds.
//!
//! Nothing is kept: what is in progress is the queue's jobs and their requests, what is new is every pipeline with a greater number than
//! the newest request's. A queue that was never looked at starts with its newest pipeline. Looking again, at any time, does what is left
//! to do. What a pipeline says is judged by [`collie_core::issue::detect`], and only once it is over: issues of tries that are repeated
//! could not be taken back.
//!
//! A build's outcome is told before its issues, so that its job stays until all is told; the end of its analysis comes last.
//!
//! One look makes at most [`MAX_CALLS`] calls to GitLab; what is left then is done by the next.

use super::Tracking;
use super::calls::Error;
use crate::ports::{CiReports, ProjectRef};
use crate::settings::{Detector as Kind, Queue};
use collie_core::error::{Class, Failure};
use collie_core::id::PipelineId;
use collie_core::issue::ci::{Pipeline, TestReport};
use collie_core::issue::detect::{self, Findings, MAX_PIPELINES, MAX_REPORT_BYTES, Parts, Run, Unknown};
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::row::{Analysis, Build, Job, Outcome, QueueHead, Request, RowKey, Set};
use collie_core::issue::table::Range;
use std::collections::VecDeque;
use std::sync::Arc;

/// Calls to GitLab of one look, listings counted once. Enough for the largest build that is read.
pub const MAX_CALLS: usize = 200;
/// Pipelines that one look admits.
const MAX_ADMISSIONS: usize = 50;
/// Jobs that one look goes on with, oldest first; those behind them are tracked after them anyway.
const MAX_JOBS: usize = 100;

/// What one look did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Pipelines that became requests.
    pub admitted: usize,
    /// Builds whose analysis ended, completed or not.
    pub ended: usize,
    /// Builds that go on.
    pub waiting: usize,
    /// Whether there is more to do now.
    pub is_cut: bool,
}

/// The use case. Cheap to clone; holds no state.
#[derive(Clone)]
pub struct Detector {
    tracking: Tracking,
    ci: Arc<dyn CiReports>,
}

/// Why a build is not judged now.
enum Stop {
    /// Something in it goes on.
    Waiting,
    /// This look has made all its calls.
    Spent,
    /// Nobody will know all its issues.
    Unknown(Unknown),
    /// A read or a write failed.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Detector {
    /// Detection for tracked queues.
    #[must_use]
    pub fn new(tracking: Tracking, ci: Arc<dyn CiReports>) -> Self {
        Self { tracking, ci }
    }

    /// Looks at every queue that is detected here; one that fails does not keep the others.
    ///
    /// # Errors
    /// The first failure.
    pub async fn look_at_all(&self) -> Result<(), Failure> {
        let mut failed = None;
        for queue in self.tracking.queues().iter().filter(|queue| queue.detector == Kind::Gitlab) {
            let Some(project) = self.tracking.settings.project(&queue.project) else { continue };
            if let Err(failure) = self.look(queue, &project.at).await {
                tracing::warn!(queue = %queue.name, code = failure.code, message = failure.message, "a queue's pipelines cannot be read");
                failed = failed.or(Some(failure));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// One look at a queue's pipelines.
    ///
    /// # Errors
    /// The store's or GitLab's; the next look goes on.
    pub async fn look(&self, queue: &Queue, at: &ProjectRef) -> Result<Looked, Failure> {
        let mut look = Look { detector: self, queue, at, calls: 0, done: Looked::default() };
        look.admit_new().await?;
        look.go_on().await?;
        if look.done != Looked::default() {
            let Looked { admitted, ended, waiting, is_cut } = look.done;
            tracing::info!(queue = %queue.name, admitted, ended, waiting, is_cut, calls = look.calls, "looked at pipelines");
        }
        Ok(look.done)
    }
}

/// One look under way.
struct Look<'l> {
    detector: &'l Detector,
    queue: &'l Queue,
    at: &'l ProjectRef,
    calls: usize,
    done: Looked,
}

/// What was read of a build.
#[derive(Default)]
struct Survey {
    /// Its pipelines, its own first.
    pipelines: Vec<Surveyed>,
    /// Whether it has more.
    is_cut: bool,
}

/// A pipeline that was read, and where it is.
struct Surveyed {
    run: Run,
    at: ProjectRef,
    id: PipelineId,
}

impl Look<'_> {
    fn tracking(&self) -> &Tracking {
        &self.detector.tracking
    }

    fn name(&self) -> &QueueName {
        &self.queue.name
    }

    /// GitLab, if this look may ask it once more.
    fn ask(&mut self) -> Result<Arc<dyn CiReports>, Stop> {
        if self.calls >= MAX_CALLS {
            return Err(Stop::Spent);
        }
        self.calls += 1;
        Ok(Arc::clone(&self.detector.ci))
    }

    /// New pipelines become requests, each right behind the one before: where another look, or a caller, was faster, the next look
    /// goes on, so that their order is never another.
    async fn admit_new(&mut self) -> Result<(), Failure> {
        let mut head = self.tracking().head(self.name()).await?;
        let new = self.new_pipelines(head.as_ref()).await?;
        self.done.is_cut |= new.len() > MAX_ADMISSIONS;
        for pipeline in new.iter().take(MAX_ADMISSIONS) {
            let uri = detect::uri(&self.at.host, self.at.id, pipeline.id);
            let admitted = self.tracking().admit_behind(self.name(), &uri, head.as_ref()).await;
            let Some(Some(admitted)) = self.taken("admit", admitted)? else {
                self.done.is_cut = true;
                return Ok(());
            };
            if admitted.is_new {
                self.done.admitted += 1;
                head = Some(QueueHead { latest: admitted.id, version: head.map_or(0, |head| head.version) + 1 });
            }
        }
        Ok(())
    }

    async fn new_pipelines(&mut self, head: Option<&QueueHead>) -> Result<Vec<Pipeline>, Failure> {
        let known = self.newest_known(head).await?;
        let (ci, reference) = (&self.detector.ci, self.queue.reference.as_str());
        self.calls += 1;
        let Some(known) = known else {
            return Ok(ci.newest_pipeline(self.at, reference).await?.into_iter().collect());
        };
        let newer = ci.pipelines_after(self.at, reference, known).await?;
        if newer.is_cut {
            tracing::warn!(queue = %self.queue.name, %known, "more pipelines are new than are listed; the oldest of them are left out");
        }
        Ok(newer.pipelines)
    }

    /// The pipeline of the newest request; none where there is none, or where a caller admitted it.
    async fn newest_known(&self, head: Option<&QueueHead>) -> Result<Option<PipelineId>, Failure> {
        let Some(head) = head else { return Ok(None) };
        let newest = self.request(head.latest).await?;
        Ok(newest.and_then(|request| self.pipeline_of(&request)))
    }

    async fn request(&self, id: RequestId) -> Result<Option<Request>, Failure> {
        self.tracking().row(self.name(), &RowKey::request(id)).await
    }

    fn pipeline_of(&self, request: &Request) -> Option<PipelineId> {
        detect::pipeline_of(&request.uri, &self.at.host, self.at.id)
    }

    /// A refusal means that somebody else has decided: nothing is left to do here.
    fn taken<T>(&self, call: &str, result: Result<T, Error>) -> Result<Option<T>, Failure> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Failed(failure)) => Err(failure),
            Err(refused) => {
                tracing::info!(queue = %self.queue.name, call, reason = %refused, "a pipeline's build is not as it was");
                Ok(None)
            }
        }
    }

    /// Goes on with every job whose request is a pipeline. A failure that is about one pipeline does not keep the others.
    async fn go_on(&mut self) -> Result<(), Failure> {
        let page = self.tracking().ports.rows.range(self.name(), &Range::first(Set::Jobs, MAX_JOBS)).await?;
        let mut failed = None;
        for job in page.rows.into_iter().filter_map(|(_, row)| Job::try_from(row).ok()) {
            match self.go_on_with(job.request).await {
                Ok(()) => {}
                Err(Stop::Waiting) => self.done.waiting += 1,
                Err(Stop::Spent) => {
                    self.done.is_cut = true;
                    break;
                }
                Err(Stop::Unknown(_)) => self.done.ended += 1,
                Err(Stop::Failed(failure)) if is_of_one(&failure) => failed = failed.or(Some(failure)),
                Err(Stop::Failed(failure)) => return Err(failure),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn go_on_with(&mut self, id: RequestId) -> Result<(), Stop> {
        let Some(request) = self.request(id).await? else { return Ok(()) };
        let Some(pipeline) = self.pipeline_of(&request) else { return Ok(()) };
        let Some(build) = self.build_of(&request, pipeline).await? else { return Ok(()) };
        let is_told = build.analysis != Analysis::Open && request.outcome.is_some();
        if is_told { Ok(()) } else { self.judge(&request, &build, pipeline).await }
    }

    /// The build of a pipeline's request; none where a caller gave it another.
    async fn build_of(&self, request: &Request, pipeline: PipelineId) -> Result<Option<Build>, Failure> {
        let id = BuildId::new(pipeline.to_string());
        if request.build.as_ref().is_some_and(|own| *own != id) {
            return Ok(None);
        }
        if request.build.is_none() {
            let associated = self.tracking().associate(self.name(), request.id, &id).await;
            if self.taken("associate", associated)?.is_none() {
                return Ok(None);
            }
        }
        self.tracking().row(self.name(), &RowKey::build(&id)).await
    }

    async fn judge(&mut self, request: &Request, build: &Build, pipeline: PipelineId) -> Result<(), Stop> {
        let survey = match self.survey(pipeline).await {
            Err(Stop::Unknown(why)) => {
                self.conclude(request, Outcome::Cancelled).await?;
                return Err(self.give_up(build, why).await);
            }
            survey => survey?,
        };
        let Some(root) = survey.pipelines.first() else { return Ok(()) };
        self.conclude(request, detect::outcome(&root.run)).await?;
        if build.analysis != Analysis::Open {
            return Ok(());
        }
        match self.findings(survey).await {
            Ok(found) => self.tell(build, found).await,
            Err(Stop::Unknown(why)) => Err(self.give_up(build, why).await),
            Err(stop) => Err(stop),
        }
    }

    async fn conclude(&self, request: &Request, outcome: Outcome) -> Result<(), Failure> {
        self.taken("conclude", self.tracking().conclude(self.name(), request.id, outcome).await).map(drop)
    }

    async fn give_up(&self, build: &Build, why: Unknown) -> Stop {
        tracing::warn!(queue = %self.queue.name, build = %build.id, why = why.as_str(), "a pipeline's issues are not known; nothing is closed by it");
        let ended = self.tracking().end_analysis(self.name(), &build.id, Analysis::Abandoned, None).await;
        match self.taken("end_analysis", ended) {
            Ok(_) => Stop::Unknown(why),
            Err(failure) => Stop::Failed(failure),
        }
    }

    async fn tell(&mut self, build: &Build, found: Findings) -> Result<(), Stop> {
        let (tracking, name) = (self.tracking(), self.name());
        if !found.issues.is_empty() {
            self.taken("report", tracking.report(name, &build.id, &found.issues).await)?;
        }
        let ended = tracking.end_analysis(name, &build.id, Analysis::Completed, Some(found.covered)).await;
        self.taken("end_analysis", ended)?;
        self.done.ended += 1;
        Ok(())
    }

    /// Reads a pipeline and all that its bridges started, if all of it is over.
    async fn survey(&mut self, root: PipelineId) -> Result<Survey, Stop> {
        let Some(pipeline) = self.ask()?.pipeline(self.at, root).await? else { return Err(Stop::Unknown(Unknown::Gone)) };
        let mut next = VecDeque::from([(String::new(), pipeline)]);
        let mut survey = Survey::default();
        while let Some((prefix, pipeline)) = next.pop_front() {
            if survey.pipelines.len() == MAX_PIPELINES {
                survey.is_cut = true;
                break;
            }
            let read = self.read(prefix, &pipeline).await?;
            if !read.run.is_over() {
                return Err(Stop::Waiting);
            }
            next.extend(read.run.children().map(|(prefix, child)| (prefix, child.clone())));
            survey.pipelines.push(read);
        }
        Ok(survey)
    }

    async fn read(&mut self, prefix: String, pipeline: &Pipeline) -> Result<Surveyed, Stop> {
        let at = ProjectRef { host: self.at.host.clone(), id: pipeline.project };
        let (id, standing) = (pipeline.id, pipeline.standing);
        if !standing.is_over() {
            return Err(Stop::Waiting);
        }
        let parts = match self.parts(&at, id).await {
            Ok(parts) => Some(parts),
            Err(Stop::Failed(failure)) if failure.class == Class::Gone && prefix.is_empty() => return Err(Stop::Unknown(Unknown::Gone)),
            Err(Stop::Failed(failure)) if is_hidden(&failure) && !prefix.is_empty() => None,
            Err(stop) => return Err(stop),
        };
        Ok(Surveyed { run: Run { prefix, standing, parts }, at, id })
    }

    async fn parts(&mut self, at: &ProjectRef, id: PipelineId) -> Result<Parts, Stop> {
        let jobs = self.ask()?.pipeline_jobs(at, id).await?;
        let bridges = self.ask()?.bridges(at, id).await?;
        Ok(Parts { jobs, bridges })
    }

    async fn findings(&mut self, survey: Survey) -> Result<Findings, Stop> {
        if survey.is_cut {
            return Err(Stop::Unknown(Unknown::TooManyPipelines));
        }
        let mut runs = Vec::with_capacity(survey.pipelines.len());
        for Surveyed { run, at, id } in survey.pipelines {
            let report = if run.has_report() { Some(self.report(&at, id).await?) } else { None };
            runs.push((run, report));
        }
        detect::findings(&runs).map_err(Stop::Unknown)
    }

    /// A report that is refused, or is none, stays so: asking again answers the same.
    async fn report(&mut self, at: &ProjectRef, id: PipelineId) -> Result<TestReport, Stop> {
        match self.ask()?.test_report(at, id, MAX_REPORT_BYTES).await {
            Ok(report) => Ok(report),
            Err(failure) if matches!(failure.class, Class::Rejected | Class::Gone | Class::Bug) => {
                Err(Stop::Unknown(Unknown::ReportBroken))
            }
            Err(failure) => Err(Stop::Failed(failure)),
        }
    }
}

/// Whether a pipeline is not ours to read, or not there.
fn is_hidden(failure: &Failure) -> bool {
    matches!(failure.class, Class::Gone | Class::Unauthorized)
}

/// Whether a failure says nothing about other pipelines.
fn is_of_one(failure: &Failure) -> bool {
    matches!(failure.class, Class::Rejected | Class::Conflict | Class::Gone | Class::Bug)
}
