//! Gives a job up, after its dead letter: fences whatever its workers may still write, completes what they left half-recorded, and
//! frees the queue. Closes nothing, opens nothing but what a worker was about to, publishes nothing, never touches a newer request.
//!
//! 1. A checkpoint of a newer request, or one of this request that is over, ends it.
//! 2. An older request that is not over is given up first; the dead letter comes again for its own.
//! 3. A request without a checkpoint gets one, unless an older job is still there.
//! 4. The phase `abandoning` stops every worker that has yet to move the cursor or the phase.
//! 5. Where there is a cursor: its row is read, the checkpoint is moved once more, which stops a recovery that was replaced, and the row's
//!    version is moved, or the row created, which stops a worker that had moved the cursor but not written the row. What the row says of
//!    the build is recorded.
//! 6. History is told, and only then the phase becomes `abandoned`; last, the job goes.

use super::id::{RequestId, Source};
use super::lifecycle::{self, Word};
use super::program::{Answer, Effect, Program};
use super::record::{Record, Step as RecordStep};
use super::row::{BuildIssue, Checkpoint, Event, HistoryEntry, Issue, Job, Milestone, Phase, Request, RowKey, Set, Status, Suppression};
use super::table::{Edit, Range};
use crate::time::Timestamp;

/// How a recovery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recovered {
    /// The job is given up.
    Abandoned,
    /// It had ended before.
    HadEnded,
    /// Its request is not there; only its job went.
    Missing,
    /// An older request is given up; now it is this one's turn.
    Again,
    /// Something moved, or an older job comes first.
    Retry,
    /// History holds another entry under the name of one of its own: somebody has to look.
    HistoryConflict,
}

impl Recovered {
    /// The word of metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::HadEnded => "had_ended",
            Self::Missing => "request_missing",
            Self::Again => "older_first",
            Self::Retry => "moved",
            Self::HistoryConflict => "history_conflict",
        }
    }
}

/// A recovery.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recovery {
    /// The request that the dead letter names.
    pub request: RequestId,
    /// Where it is.
    pub stage: Stage,
}

/// Where a recovery is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reads the request.
    Request,
    /// Reads the checkpoint.
    Checkpoint(Box<Request>),
    /// Makes sure that history tells that a finalized checkpoint's request is reconciled.
    Reconciled(Box<Checkpoint>, Box<Stage>),
    /// Reads the oldest job, before a checkpoint is taken over.
    Oldest(Box<Request>, Option<Box<Checkpoint>>),
    /// Writes the phase `abandoning`.
    Enter(Box<Checkpoint>, Option<u64>),
    /// Reads the cursor's row.
    Look(Box<Checkpoint>),
    /// Moves the checkpoint after the reading.
    Fence(Box<Checkpoint>, Option<Box<Issue>>),
    /// Moves or creates the row.
    Touch(Box<Checkpoint>, Option<Box<Issue>>, Box<Issue>),
    /// Reads whether the build reported it.
    Ask(Box<Checkpoint>, Box<Issue>),
    /// Records what the row says.
    Record(Box<Checkpoint>, Record),
    /// Tells history.
    Tell(Box<Checkpoint>),
    /// Writes the phase `abandoned`.
    Close(Box<Checkpoint>),
    /// Removes a job.
    Leave(RequestId, Recovered),
    /// It is over.
    Done(Recovered),
}

impl Recovery {
    /// The recovery of a job.
    #[must_use]
    pub const fn new(request: RequestId) -> Self {
        Self { request, stage: Stage::Request }
    }

    fn loaded(&self, request: Box<Request>, seen: Option<Checkpoint>) -> Stage {
        let Some(seen) = seen.map(Box::new) else { return Stage::Oldest(request, None) };
        let older = seen.request < self.request;
        match seen.phase {
            _ if seen.request > self.request => Stage::Leave(self.request, Recovered::HadEnded),
            Phase::Finalized if older => Stage::Reconciled(seen.clone(), Box::new(Stage::Oldest(request, Some(seen)))),
            Phase::Abandoned if older => Stage::Oldest(request, Some(seen)),
            Phase::Finalized => Stage::Reconciled(seen, Box::new(Stage::Leave(self.request, Recovered::HadEnded))),
            Phase::Abandoned => Stage::Tell(seen),
            Phase::Abandoning => fenced(seen),
            Phase::Refreshing | Phase::Refreshed | Phase::Finalizing => {
                let version = seen.version;
                Stage::Enter(Box::new(Checkpoint { version: version + 1, phase: Phase::Abandoning, ..*seen }), Some(version))
            }
        }
    }

    fn taken_over(&self, request: &Request, seen: Option<Box<Checkpoint>>, oldest: Option<&Job>, now: Timestamp) -> Stage {
        if oldest.is_some_and(|job| job.request < self.request) {
            return Stage::Done(Recovered::Retry);
        }
        let seen = seen.map(|c| c.version);
        let version = seen.unwrap_or_default() + 1;
        let next = Checkpoint {
            version,
            phase: Phase::Abandoning,
            request: self.request,
            build: request.build.clone(),
            finalize: false,
            has_task_wide: false,
            cursor: None,
            pass: version,
            report_seq: 0,
            suppressed: Suppression::None,
            began_at: now,
        };
        Stage::Enter(Box::new(next), seen)
    }

    fn touched(target: Box<Checkpoint>, row: Box<Issue>, now: Timestamp) -> Stage {
        let Some(source) = source(&target) else { return Stage::Tell(target) };
        match lifecycle::event_of(&row, Word::Silent, &source) {
            Some(event) => Stage::Record(target, Record::new(&row, event, &source, now)),
            None if row.processed == source && row.status == Status::Open => Stage::Ask(target, row),
            None => Stage::Tell(target),
        }
    }

    fn asked(target: Box<Checkpoint>, row: &Issue, reported: bool, now: Timestamp) -> Stage {
        match source(&target).filter(|_| reported) {
            Some(source) => {
                let record = Record::new(row, Event::Reported, &source, now);
                Stage::Record(target, record)
            }
            None => Stage::Tell(target),
        }
    }

    fn told(&self, target: &Checkpoint) -> Stage {
        if target.phase == Phase::Abandoned {
            return Stage::Leave(target.request, Recovered::HadEnded);
        }
        Stage::Close(Box::new(Checkpoint { version: target.version + 1, phase: Phase::Abandoned, ..target.clone() }))
    }

    /// The row as it is to be: nothing but its version moves.
    fn touch(target: Box<Checkpoint>, row: Option<Box<Issue>>, now: Timestamp) -> Stage {
        let next = match (&row, source(&target), &target.cursor) {
            (Some(row), ..) => Issue { version: row.version + 1, ..(**row).clone() },
            (None, Some(source), Some(key)) => lifecycle::opening(key, &source, now),
            (None, ..) => return Stage::Tell(target),
        };
        Stage::Touch(target, row, Box::new(next))
    }
}

/// After the phase is `abandoning`.
fn fenced(target: Box<Checkpoint>) -> Stage {
    if target.cursor.is_some() { Stage::Look(target) } else { Stage::Tell(target) }
}

fn source(target: &Checkpoint) -> Option<Source> {
    target.build.clone().map(|build| Source { request: target.request, build })
}

fn abandoned(target: &Checkpoint, now: Timestamp) -> Edit {
    let milestone = Milestone::IssueTrackingAbandoned { job: target.request, build: target.build.clone() };
    let entry = HistoryEntry { request: target.request, milestone, at: now };
    Edit::Keep(RowKey::history(entry.request, &entry.milestone), entry.into())
}

fn moved(target: &Checkpoint) -> Checkpoint {
    Checkpoint { version: target.version + 1, ..target.clone() }
}

impl Program for Recovery {
    type Done = Recovered;

    fn effect(&self, now: Timestamp) -> Effect<Recovered> {
        let write = |next: &Checkpoint, seen: Option<u64>| Effect::Write(vec![Edit::replace(RowKey::checkpoint(), next.clone(), seen)]);
        match &self.stage {
            Stage::Request => Effect::Read(RowKey::request(self.request)),
            Stage::Checkpoint(_) => Effect::Read(RowKey::checkpoint()),
            Stage::Reconciled(checkpoint, _) => Effect::Write(super::delivery::reconciled(checkpoint, now).into_iter().collect()),
            Stage::Oldest(..) => Effect::Range(Range::first(Set::Jobs, 1)),
            Stage::Enter(next, seen) => write(next, *seen),
            Stage::Look(target) => target.cursor.as_ref().map_or(Effect::Done(Recovered::Retry), |key| Effect::Read(RowKey::issue(key))),
            Stage::Fence(target, _) => write(&moved(target), Some(target.version)),
            Stage::Touch(_, before, next) => Effect::Write(lifecycle::edits(before.as_deref(), next)),
            Stage::Ask(target, row) => {
                target.build.as_ref().map_or(Effect::Done(Recovered::Retry), |build| Effect::Read(RowKey::build_issue(build, &row.key)))
            }
            Stage::Record(_, record) => record.effect().unwrap_or(Effect::Done(Recovered::Retry)),
            Stage::Tell(target) => Effect::Write(vec![abandoned(target, now)]),
            Stage::Close(next) => write(next, Some(next.version - 1)),
            Stage::Leave(request, _) => Effect::Write(vec![Edit::Remove(RowKey::job(*request))]),
            Stage::Done(recovered) => Effect::Done(*recovered),
        }
    }

    fn resume(&mut self, answer: Answer, now: Timestamp) {
        let written = answer.is_written();
        let stage = std::mem::replace(&mut self.stage, Stage::Request);
        self.stage = match stage {
            Stage::Request => match answer.row::<Request>() {
                Some(request) => Stage::Checkpoint(Box::new(request)),
                None => Stage::Leave(self.request, Recovered::Missing),
            },
            Stage::Checkpoint(request) => self.loaded(request, answer.row()),
            Stage::Reconciled(_, then) => *then,
            Stage::Oldest(request, seen) => self.taken_over(&request, seen, answer.page::<Job>().0.first().map(|(_, job)| job), now),
            Stage::Enter(next, _) if written => fenced(next),
            Stage::Look(target) => Stage::Fence(target, answer.row().map(Box::new)),
            Stage::Fence(target, row) if written => Self::touch(Box::new(moved(&target)), row, now),
            Stage::Touch(target, _, next) if written => Self::touched(target, next, now),
            Stage::Ask(target, row) => Self::asked(target, &row, answer.row::<BuildIssue>().is_some(), now),
            Stage::Record(target, mut record) => {
                record.resume(answer);
                match record.step {
                    RecordStep::Recorded => Stage::Tell(target),
                    RecordStep::Conflict => Stage::Done(Recovered::HistoryConflict),
                    _ => Stage::Record(target, record),
                }
            }
            Stage::Tell(target) => self.told(&target),
            Stage::Close(next) if written => {
                let own = next.request == self.request;
                Stage::Leave(next.request, if own { Recovered::Abandoned } else { Recovered::Again })
            }
            Stage::Leave(_, recovered) => Stage::Done(recovered),
            Stage::Done(recovered) => Stage::Done(recovered),
            Stage::Enter(..) | Stage::Fence(..) | Stage::Touch(..) | Stage::Close(_) => Stage::Done(Recovered::Retry),
        };
    }
}
