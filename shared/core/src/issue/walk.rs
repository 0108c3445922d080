//! One pass over the keys of a build, key by key, from where the checkpoint says.
//!
//! For each key:
//! 1. Its row is read, and while closing, whether the build reported it.
//! 2. The checkpoint's cursor is moved to it, also where it is there already. This comes after the reading: whoever wrote in between is
//!    noticed, here by the checkpoint or next by the row's version.
//! 3. The row is written ([`lifecycle::decide`]), with its mark.
//! 4. What happened is recorded ([`Record`]), then told.
//!
//! While refreshing, what the build reported is walked; while finalizing, what is open. Closed issues that were not reported are not
//! visited. A pass that resumes looks at its cursor's key first, open or not: the worker before may have written its row and nothing else.
//!
//! At the end of the keys: a refreshing pass that met any offers repairs; it is the end, unless it was the last pass and may close,
//! then finalizing begins. A whole task that failed, or a cancelled build, closes nothing (INV-5).

use super::delivery::Conflict;
use super::hook::{Hook, Notice, Repair};
use super::id::Source;
use super::key::IssueKey;
use super::lifecycle::{self, Word};
use super::program::{Answer, Effect};
use super::record::{Record, Step};
use super::row::{Build, BuildIssue, Checkpoint, Issue, OpenMark, Outcome, Phase, RowKey, Set, Status, Suppression};
use super::table::{Edit, Range};
use crate::time::Timestamp;
use std::collections::VecDeque;

/// A pass, somewhere on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Walk {
    /// The checkpoint as this worker wrote or read it last.
    pub checkpoint: Checkpoint,
    /// The build as it was read when the delivery began.
    pub build: Build,
    /// Keys that come next.
    pub keys: VecDeque<IssueKey>,
    /// Whether there may be more behind them.
    pub more: bool,
    /// How many keys this batch may still look at.
    pub left: usize,
    /// What comes next.
    pub next: Next,
    /// Why it stopped, if it did.
    pub stop: Option<Stop>,
    /// What must not happen, and did.
    pub alarm: Option<Alarm>,
}

/// What comes next in a pass.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// Reads which keys there are.
    Fetch,
    /// Reads the key's row.
    Look,
    /// Reads whether the build reported it.
    Ask(Option<Box<Issue>>),
    /// Moves the cursor to the key.
    Advance(Option<Box<Issue>>, Word),
    /// Writes the row.
    Write(Option<Box<Issue>>, Box<Issue>, Word),
    /// Records what the row says.
    Record(Box<Issue>, Record),
    /// Tells it.
    Tell(Box<Issue>),
    /// Offers repairs.
    Offer,
    /// Ends the phase.
    Save(Box<Checkpoint>),
}

/// Why a pass stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The batch is full.
    Full,
    /// All that was reported so far is open.
    Refreshed,
    /// All is done.
    Finalized,
    /// Something moved.
    Conflict(Conflict),
    /// History holds another entry under this one's name.
    HistoryConflict,
}

/// A broken invariant: somebody has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alarm {
    /// A reported issue was closed when closing began.
    ReopenedWhileFinalizing,
}

impl Alarm {
    /// The word of metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReopenedWhileFinalizing => "reopened_while_finalizing",
        }
    }
}

impl Walk {
    /// Goes on where the checkpoint says, over at most `batch` keys.
    #[must_use]
    pub fn resume(checkpoint: Checkpoint, build: Build, batch: usize) -> Self {
        let keys = checkpoint.cursor.iter().cloned().collect();
        let mut walk = Self { checkpoint, build, keys, more: true, left: batch, next: Next::Fetch, stop: None, alarm: None };
        walk.pick();
        walk
    }

    fn source(&self) -> Source {
        self.build.source()
    }

    /// The set that this phase walks.
    fn range(&self) -> Range {
        let set = match self.checkpoint.phase {
            Phase::Finalizing => Set::Open,
            _ => Set::BuildIssues(self.build.id.clone()),
        };
        Range::behind(set, self.checkpoint.cursor.as_ref().map(|key| key.encoded().to_owned()), self.left)
    }

    /// Turns to the next key, to more keys, or to the end of the phase.
    fn pick(&mut self) {
        match (self.keys.is_empty(), self.more) {
            (true, false) => self.exhausted(),
            _ if self.left == 0 => self.stop = Some(Stop::Full),
            (true, true) => self.next = Next::Fetch,
            (false, _) => {
                self.left -= 1;
                self.next = Next::Look;
            }
        }
    }

    fn exhausted(&mut self) {
        let has_met_any = self.checkpoint.cursor.is_some();
        self.next = match self.checkpoint.phase {
            Phase::Refreshing if has_met_any => Next::Offer,
            _ => Next::Save(Box::new(self.ended())),
        };
    }

    /// The checkpoint after the end of its phase.
    fn ended(&self) -> Checkpoint {
        let mut next = Checkpoint { version: self.checkpoint.version + 1, ..self.checkpoint.clone() };
        let suppressed = self.suppression();
        next.phase = match self.checkpoint.phase {
            Phase::Refreshing if !self.checkpoint.finalize => Phase::Refreshed,
            Phase::Refreshing if suppressed == Suppression::None => Phase::Finalizing,
            _ => Phase::Finalized,
        };
        match next.phase {
            Phase::Finalizing => next.cursor = None,
            Phase::Finalized if self.checkpoint.phase == Phase::Refreshing => next.suppressed = suppressed,
            _ => {}
        }
        next
    }

    fn suppression(&self) -> Suppression {
        match (self.build.status, self.checkpoint.has_task_wide) {
            (Some(Outcome::Cancelled), _) => Suppression::Canceled,
            (_, true) => Suppression::TaskWide,
            (_, false) => Suppression::None,
        }
    }

    /// What it does next; none where it has stopped.
    #[must_use]
    pub fn effect<D>(&self) -> Option<Effect<D>> {
        if self.stop.is_some() {
            return None;
        }
        let key = self.keys.front();
        Some(match &self.next {
            Next::Fetch => Effect::Range(self.range()),
            Next::Look => Effect::Read(RowKey::issue(key?)),
            Next::Ask(_) => Effect::Read(RowKey::build_issue(&self.build.id, key?)),
            Next::Advance(..) => Effect::Write(vec![move_to(&self.advanced(key?))]),
            Next::Write(before, next, _) => Effect::Write(lifecycle::edits(before.as_deref(), next)),
            Next::Record(_, record) => record.effect()?,
            Next::Tell(row) => Effect::Publish(Notice::Hook(Hook::of(row))),
            Next::Offer => Effect::Publish(Notice::Repair(self.repair())),
            Next::Save(next) => Effect::Write(vec![move_to(next)]),
        })
    }

    /// Goes on with what came of it.
    pub fn resume_with(&mut self, answer: Answer, now: Timestamp) {
        match std::mem::replace(&mut self.next, Next::Fetch) {
            Next::Fetch => self.fetched(answer),
            Next::Look => self.looked(answer.row().map(Box::new)),
            Next::Ask(row) => {
                let word = self.word(answer.row::<BuildIssue>().is_some());
                self.next = Next::Advance(row, word);
            }
            Next::Advance(row, word) if answer.is_written() => self.advance(row, word, now),
            Next::Write(_, next, word) if answer.is_written() => self.record(next, word, now),
            Next::Write(..) => self.stop = Some(Stop::Conflict(Conflict::Issue)),
            Next::Record(row, mut record) => {
                record.resume(answer);
                self.recorded(row, record);
            }
            Next::Tell(_) => self.finish_key(),
            Next::Offer => self.next = Next::Save(Box::new(self.ended())),
            Next::Save(next) if answer.is_written() => self.saved(*next),
            Next::Advance(..) | Next::Save(_) => self.stop = Some(Stop::Conflict(Conflict::Checkpoint)),
        }
    }

    fn fetched(&mut self, answer: Answer) {
        self.more = matches!(&answer, Answer::Page(page) if page.more);
        self.keys = match self.checkpoint.phase {
            Phase::Finalizing => answer.page::<OpenMark>().0.into_iter().map(|(_, mark)| mark.key).collect(),
            _ => answer.page::<BuildIssue>().0.into_iter().map(|(_, issue)| issue.key).collect(),
        };
        self.pick();
    }

    fn looked(&mut self, row: Option<Box<Issue>>) {
        if row.as_ref().is_some_and(|row| row.processed.request > self.checkpoint.request) {
            self.stop = Some(Stop::Conflict(Conflict::NewerSource));
        }
        self.next = match self.checkpoint.phase {
            Phase::Finalizing => Next::Ask(row),
            _ => Next::Advance(row, Word::Reported),
        };
    }

    fn word(&self, reported: bool) -> Word {
        match self.keys.front() {
            _ if reported => Word::Reported,
            Some(key) if self.build.covers(key) => Word::Absent,
            _ => Word::Silent,
        }
    }

    fn advanced(&self, key: &IssueKey) -> Checkpoint {
        let meets_task = self.checkpoint.phase == Phase::Refreshing && key.is_task_wide();
        Checkpoint {
            version: self.checkpoint.version + 1,
            cursor: Some(key.clone()),
            has_task_wide: self.checkpoint.has_task_wide || meets_task,
            ..self.checkpoint.clone()
        }
    }

    fn advance(&mut self, row: Option<Box<Issue>>, word: Word, now: Timestamp) {
        let Some(key) = self.keys.front().cloned() else { return };
        self.checkpoint = self.advanced(&key);
        match (lifecycle::decide(&key, row.as_deref(), word, &self.source(), now), row) {
            (Some(next), before) => {
                self.check_reopening(before.as_deref(), &next);
                self.next = Next::Write(before, Box::new(next), word);
            }
            (None, Some(row)) if self.is_recorded(&row) => self.finish_key(),
            (None, Some(row)) => self.record(row, word, now),
            (None, None) => self.finish_key(),
        }
    }

    /// An open issue that the build reported was recorded and told before closing began: the refreshing phase ended with it.
    fn is_recorded(&self, row: &Issue) -> bool {
        self.checkpoint.phase == Phase::Finalizing && row.status == Status::Open
    }

    fn check_reopening(&mut self, before: Option<&Issue>, next: &Issue) {
        let reopens = next.status == Status::Open && before.is_none_or(|row| row.status == Status::Closed);
        if reopens && self.checkpoint.phase == Phase::Finalizing {
            self.alarm = Some(Alarm::ReopenedWhileFinalizing);
        }
    }

    fn record(&mut self, row: Box<Issue>, word: Word, now: Timestamp) {
        let source = self.source();
        match lifecycle::event_of(&row, word, &source) {
            Some(event) => {
                let record = Record::new(&row, event, &source, now);
                self.next = Next::Record(row, record);
            }
            None => self.finish_key(),
        }
    }

    fn recorded(&mut self, row: Box<Issue>, record: Record) {
        match record.step {
            Step::Conflict => self.stop = Some(Stop::HistoryConflict),
            Step::Recorded if row.changed_by == self.source() => self.next = Next::Tell(row),
            Step::Recorded => self.finish_key(),
            _ => self.next = Next::Record(row, record),
        }
    }

    fn finish_key(&mut self) {
        self.keys.pop_front();
        self.pick();
    }

    fn saved(&mut self, next: Checkpoint) {
        self.checkpoint = next;
        match self.checkpoint.phase {
            Phase::Refreshed => self.stop = Some(Stop::Refreshed),
            Phase::Finalizing => {
                self.more = true;
                self.pick();
            }
            _ => self.stop = Some(Stop::Finalized),
        }
    }

    fn repair(&self) -> Repair {
        Repair { build_id: self.build.id.clone(), request_id: self.checkpoint.request, pass_id: self.checkpoint.pass }
    }
}

/// Replaces the checkpoint that is one version older.
fn move_to(next: &Checkpoint) -> Edit {
    Edit::replace(RowKey::checkpoint(), next.clone(), Some(next.version - 1))
}
