//! One delivery of the oldest job of a queue: tracks its request's build as far as one batch goes.
//!
//! In this order:
//! 1. A request that is not there, or a build that is not, is for recovery.
//! 2. A checkpoint of a newer request ends the job; one of this request that is over, too. One that recovery has is waited for. One of
//!    an older request that is not over is waited for.
//! 3. Without a build: waited for; never built is for recovery.
//! 4. An analysis that was abandoned, or that is open an hour after the build ended, is for recovery.
//! 5. A pass under way goes on at its cursor; after one that ended, the next begins when there are new reports, or when everything is
//!    known, which makes it the last.
//!
//! A job that would wait for its own request or build for longer than its queue allows is for recovery.
//!
//! Does not walk keys: that is [`Walk`].

use super::id::RequestId;
use super::program::{Answer, Effect, Program};
use super::row::{Analysis, Build, Checkpoint, HistoryEntry, Job, Milestone, Phase, Request, RowKey, Suppression};
use super::table::Edit;
use super::walk::{Alarm, Stop, Walk};
use crate::time::Timestamp;
use std::time::Duration;

/// Bounds of a queue's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How long a job may wait for its own request or build.
    pub max_hold: Duration,
    /// How long an analysis may stay open after the build ended.
    pub analysis_grace: Duration,
    /// Keys of one batch, at least 2: the first of a batch is the last of the one before.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_hold: Duration::from_secs(24 * 60 * 60), analysis_grace: Duration::from_secs(60 * 60), batch: 100 }
    }
}

/// What a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// An older request, whose tracking has not ended.
    Older(RequestId),
    /// Recovery of this request.
    Recovery,
    /// A build.
    Build,
    /// Reports, or the end of the build and its analysis.
    Reports,
}

/// Why a job is for recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Its request is not there.
    RequestMissing,
    /// Its build is not there.
    BuildMissing,
    /// The request ended without a build.
    NeverBuilt,
    /// Nobody knows the issues of the build.
    AnalysisAbandoned,
    /// The build has ended, its analysis has not.
    AnalysisLate,
    /// It has waited for longer than its queue allows.
    HeldTooLong,
    /// History holds another entry under the name of one of its own.
    HistoryConflict,
    /// It has failed too often.
    Failures,
}

impl Reason {
    /// The word of logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequestMissing => "request_missing",
            Self::BuildMissing => "build_missing",
            Self::NeverBuilt => "never_built",
            Self::AnalysisAbandoned => "analysis_abandoned",
            Self::AnalysisLate => "analysis_late",
            Self::HeldTooLong => "held_too_long",
            Self::HistoryConflict => "history_conflict",
            Self::Failures => "failures",
        }
    }
}

/// What kept a delivery from going on; the next one reads again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// Another worker has moved the checkpoint.
    Checkpoint,
    /// Another writer has moved the issue.
    Issue,
    /// A newer request has processed the issue.
    NewerSource,
    /// What began as the last pass is not backed by its build any more.
    NotFinal,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Its issues are in the rows.
    Reconciled,
    /// Recovery had given it up.
    Abandoned,
    /// A newer request is being tracked.
    Outdated,
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The job is done, and its row is gone.
    Ended(Ending),
    /// The batch is full; there are more keys.
    Again,
    /// There is nothing to do yet. Not a failure.
    Hold(Waiting),
    /// Something moved.
    Retry(Conflict),
    /// No worker can end it.
    DeadLetter(Reason),
}

impl Verdict {
    /// The word of metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ended(Ending::Reconciled) => "reconciled",
            Self::Ended(Ending::Abandoned) => "abandoned",
            Self::Ended(Ending::Outdated) => "outdated",
            Self::Again => "batch_full",
            Self::Hold(Waiting::Older(_)) => "waits_for_older",
            Self::Hold(Waiting::Recovery) => "waits_for_recovery",
            Self::Hold(Waiting::Build) => "waits_for_build",
            Self::Hold(Waiting::Reports) => "waits_for_reports",
            Self::Retry(Conflict::Checkpoint) => "checkpoint_moved",
            Self::Retry(Conflict::Issue) => "issue_moved",
            Self::Retry(Conflict::NewerSource) => "newer_source",
            Self::Retry(Conflict::NotFinal) => "not_final",
            Self::DeadLetter(reason) => reason.as_str(),
        }
    }
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The job's request.
    pub request: RequestId,
    /// Since when it is registered.
    pub registered_at: Timestamp,
    /// The queue's bounds.
    pub limits: Limits,
    /// Where it is.
    pub stage: Stage,
}

/// Where a delivery is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reads the request.
    Request,
    /// Reads the checkpoint.
    Checkpoint(Box<Request>),
    /// Makes sure that history tells that a finalized checkpoint's request is reconciled.
    Reconciled(Box<Checkpoint>, Box<Stage>),
    /// Reads the build.
    Build(Box<Request>, Option<Box<Checkpoint>>),
    /// Begins a pass.
    Begin(Box<Checkpoint>, Option<u64>, Box<Build>),
    /// Walks keys.
    Walk(Box<Walk>),
    /// Removes the job.
    Leave(Ending),
    /// It is over.
    Done(Verdict),
}

impl Delivery {
    /// A delivery of a job.
    #[must_use]
    pub const fn new(job: &Job, limits: Limits) -> Self {
        Self { request: job.request, registered_at: job.registered_at, limits, stage: Stage::Request }
    }

    fn loaded(&self, request: Box<Request>, seen: Option<Checkpoint>) -> Stage {
        let Some(seen) = seen.map(Box::new) else { return self.associated(request, None) };
        let older = seen.request < self.request;
        match seen.phase {
            _ if seen.request > self.request => Stage::Leave(Ending::Outdated),
            Phase::Finalized if older => {
                let then = self.associated(request, Some(seen.clone()));
                Stage::Reconciled(seen, Box::new(then))
            }
            Phase::Abandoned if older => self.associated(request, Some(seen)),
            _ if older => Stage::Done(Verdict::Hold(Waiting::Older(seen.request))),
            Phase::Finalized => Stage::Reconciled(seen, Box::new(Stage::Leave(Ending::Reconciled))),
            Phase::Abandoned => Stage::Leave(Ending::Abandoned),
            Phase::Abandoning => Stage::Done(Verdict::Hold(Waiting::Recovery)),
            Phase::Refreshing | Phase::Refreshed | Phase::Finalizing => self.associated(request, Some(seen)),
        }
    }

    /// What the request itself says, before its build is read.
    fn associated(&self, request: Box<Request>, seen: Option<Box<Checkpoint>>) -> Stage {
        match (&request.build, request.outcome) {
            (Some(_), _) => Stage::Build(request, seen),
            (None, Some(_)) => Stage::Done(Verdict::DeadLetter(Reason::NeverBuilt)),
            (None, None) => Stage::Done(Verdict::Hold(Waiting::Build)),
        }
    }

    fn built(&self, build: Box<Build>, seen: Option<Box<Checkpoint>>, now: Timestamp) -> Stage {
        if build.analysis == Analysis::Abandoned {
            return Stage::Done(Verdict::DeadLetter(Reason::AnalysisAbandoned));
        }
        let is_final = build.analysis == Analysis::Completed && build.status.is_some();
        let late = build.ended_at.is_some_and(|ended| now.since(ended) > self.limits.analysis_grace);
        if late && !is_final {
            return Stage::Done(Verdict::DeadLetter(Reason::AnalysisLate));
        }
        let own = seen.as_ref().filter(|c| c.request == self.request);
        match own.map(|c| c.phase) {
            Some(Phase::Refreshing | Phase::Finalizing) => self.resumed(seen, *build, is_final),
            Some(Phase::Refreshed) if !is_final && own.is_some_and(|c| c.report_seq == build.report_seq) => {
                Stage::Done(Verdict::Hold(Waiting::Reports))
            }
            _ => self.begun(seen.as_deref(), build, is_final, now),
        }
    }

    fn resumed(&self, seen: Option<Box<Checkpoint>>, build: Build, is_final: bool) -> Stage {
        match seen {
            Some(seen) if is_final || !seen.finalize => Stage::Walk(Box::new(Walk::resume(*seen, build, self.limits.batch))),
            _ => Stage::Done(Verdict::Retry(Conflict::NotFinal)),
        }
    }

    fn begun(&self, seen: Option<&Checkpoint>, build: Box<Build>, finalize: bool, now: Timestamp) -> Stage {
        let version = seen.map_or(0, |c| c.version) + 1;
        let began_at = seen.filter(|c| c.request == self.request).map_or(now, |c| c.began_at);
        let next = Checkpoint {
            version,
            phase: Phase::Refreshing,
            request: self.request,
            build: Some(build.id.clone()),
            finalize,
            has_task_wide: false,
            cursor: None,
            pass: version,
            report_seq: build.report_seq,
            suppressed: Suppression::None,
            began_at,
        };
        Stage::Begin(Box::new(next), seen.map(|c| c.version), build)
    }

    fn walked(walk: Box<Walk>) -> Stage {
        match &walk.stop {
            None => Stage::Walk(walk),
            Some(Stop::Full) => Stage::Done(Verdict::Again),
            Some(Stop::Refreshed) => Stage::Done(Verdict::Hold(Waiting::Reports)),
            Some(Stop::Conflict(conflict)) => Stage::Done(Verdict::Retry(*conflict)),
            Some(Stop::HistoryConflict) => Stage::Done(Verdict::DeadLetter(Reason::HistoryConflict)),
            Some(Stop::Finalized) => Stage::Reconciled(Box::new(walk.checkpoint), Box::new(Stage::Leave(Ending::Reconciled))),
        }
    }

    /// Waiting for what is the job's own ends some time; what is in front of it does not count.
    fn bounded(&self, stage: Stage, now: Timestamp) -> Stage {
        match stage {
            Stage::Done(Verdict::Hold(Waiting::Build | Waiting::Reports)) if now.since(self.registered_at) > self.limits.max_hold => {
                Stage::Done(Verdict::DeadLetter(Reason::HeldTooLong))
            }
            other => other,
        }
    }
}

/// Tells history that a finalized checkpoint's request is reconciled; told before, it stays as it is.
#[must_use]
pub fn reconciled(checkpoint: &Checkpoint, now: Timestamp) -> Option<Edit> {
    let milestone = Milestone::IssuesReconciled { build: checkpoint.build.clone()?, suppressed: checkpoint.suppressed };
    let entry = HistoryEntry { request: checkpoint.request, milestone, at: now };
    Some(Edit::Keep(RowKey::history(entry.request, &entry.milestone), entry.into()))
}

impl Program for Delivery {
    type Done = Verdict;

    fn effect(&self, now: Timestamp) -> Effect<Verdict> {
        match &self.stage {
            Stage::Request => Effect::Read(RowKey::request(self.request)),
            Stage::Checkpoint(_) => Effect::Read(RowKey::checkpoint()),
            Stage::Reconciled(checkpoint, _) => Effect::Write(reconciled(checkpoint, now).into_iter().collect()),
            Stage::Build(request, _) => {
                request.build.as_ref().map_or(Effect::Done(Verdict::Hold(Waiting::Build)), |b| Effect::Read(RowKey::build(b)))
            }
            Stage::Begin(next, seen, _) => Effect::Write(vec![Edit::replace(RowKey::checkpoint(), (**next).clone(), *seen)]),
            Stage::Walk(walk) => walk.effect().unwrap_or(Effect::Done(Verdict::Again)),
            Stage::Leave(_) => Effect::Write(vec![Edit::Remove(RowKey::job(self.request))]),
            Stage::Done(verdict) => Effect::Done(*verdict),
        }
    }

    fn resume(&mut self, answer: Answer, now: Timestamp) {
        let stage = std::mem::replace(&mut self.stage, Stage::Request);
        let next = match stage {
            Stage::Request => match answer.row::<Request>() {
                Some(request) => Stage::Checkpoint(Box::new(request)),
                None => Stage::Done(Verdict::DeadLetter(Reason::RequestMissing)),
            },
            Stage::Checkpoint(request) => self.loaded(request, answer.row()),
            Stage::Reconciled(_, then) => *then,
            Stage::Build(_, seen) => match answer.row::<Build>() {
                Some(build) => self.built(Box::new(build), seen, now),
                None => Stage::Done(Verdict::DeadLetter(Reason::BuildMissing)),
            },
            Stage::Begin(next, _, build) if answer.is_written() => Stage::Walk(Box::new(Walk::resume(*next, *build, self.limits.batch))),
            Stage::Begin(..) => Stage::Done(Verdict::Retry(Conflict::Checkpoint)),
            Stage::Walk(mut walk) => {
                walk.resume_with(answer, now);
                Self::walked(walk)
            }
            Stage::Leave(ending) => Stage::Done(Verdict::Ended(ending)),
            Stage::Done(verdict) => Stage::Done(verdict),
        };
        self.stage = self.bounded(next, now);
    }

    fn alarm(&self) -> Option<Alarm> {
        match &self.stage {
            Stage::Walk(walk) => walk.alarm,
            _ => None,
        }
    }
}
