//! Records what a row says: its history entry, then what is derived from it. Finished for a key before the next key is looked at, and
//! safe to repeat: the entry that was stored first wins, and what is derived only moves forward.
//!
//! 1. The entry of the history; one with other content under its name is a broken invariant.
//! 2. The summary: moves to the transition of the newest request.
//! 3. What the request meant: `closed` outranks `new`, which outranks `existing`. Entries that do not say which build had opened the
//!    issue make none.

use super::id::Source;
use super::program::{Answer, Effect};
use super::row::{Event, Finding, Issue, LogEntry, RequestIssue, RowKey, Status, Summary};
use super::table::Edit;
use crate::time::Timestamp;

/// Records one event of one issue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// The entry; once it is stored, as it was stored first.
    pub entry: LogEntry,
    /// What comes next.
    pub step: Step,
}

/// Where the recording is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// Stores the entry.
    Log,
    /// Reads the entry that was there.
    Compare,
    /// Reads the summary.
    Summary,
    /// Moves the summary.
    MoveSummary(Option<Box<Summary>>),
    /// Reads what the request meant.
    Finding,
    /// Writes what the request meant.
    MoveFinding(Option<Box<RequestIssue>>),
    /// Everything is recorded.
    Recorded,
    /// Another entry has this one's name.
    Conflict,
}

impl Record {
    /// Records what a source did to an issue, as its row says. `now` is the time of an event that the row has no time of.
    #[must_use]
    pub fn new(row: &Issue, event: Event, source: &Source, now: Timestamp) -> Self {
        let at = if event == Event::Reported { now } else { row.changed_at };
        let (key, source, first_seen) = (row.key.clone(), source.clone(), Some(row.first_seen.clone()));
        Self { entry: LogEntry { key, event, source, at, first_seen }, step: Step::Log }
    }

    /// What it does next; none at the end.
    #[must_use]
    pub fn effect<D>(&self) -> Option<Effect<D>> {
        let (key, request) = (&self.entry.key, self.entry.source.request);
        Some(match &self.step {
            Step::Log => Effect::Write(vec![Edit::create(self.log_key(), self.entry.clone())]),
            Step::Compare => Effect::Read(self.log_key()),
            Step::Summary => Effect::Read(RowKey::summary(key)),
            Step::MoveSummary(seen) => {
                let seen = seen.as_ref().map(|row| row.version);
                Effect::Write(vec![Edit::replace(RowKey::summary(key), self.summary(seen), seen)])
            }
            Step::Finding => Effect::Read(RowKey::request_issue(request, key)),
            Step::MoveFinding(seen) => {
                let seen = seen.as_ref().map(|row| row.version);
                Effect::Write(vec![Edit::replace(RowKey::request_issue(request, key), self.finding(seen)?, seen)])
            }
            Step::Recorded | Step::Conflict => return None,
        })
    }

    /// Goes on with what came of it.
    pub fn resume(&mut self, answer: Answer) {
        let written = answer.is_written();
        self.step = match &self.step {
            Step::Log if written => self.after_log(),
            Step::Log => Step::Compare,
            Step::Compare => self.compared(answer.row()),
            Step::Summary => self.judge_summary(answer.row()),
            Step::MoveSummary(_) if written => Step::Finding,
            Step::MoveSummary(_) => Step::Summary,
            Step::Finding => self.judge_finding(answer.row()),
            Step::MoveFinding(_) if written => Step::Recorded,
            Step::MoveFinding(_) => Step::Finding,
            Step::Recorded => Step::Recorded,
            Step::Conflict => Step::Conflict,
        };
    }

    /// Whether there is nothing more to do.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.step, Step::Recorded | Step::Conflict)
    }

    fn log_key(&self) -> RowKey {
        RowKey::log(&self.entry.key, &self.entry.source, self.entry.event)
    }

    fn after_log(&self) -> Step {
        if self.entry.event == Event::Reported { Step::Finding } else { Step::Summary }
    }

    /// Entries of older versions do not say who had opened the issue; times are the first writer's.
    fn compared(&mut self, stored: Option<LogEntry>) -> Step {
        let Some(stored) = stored else { return Step::Log };
        if stored.first_seen.is_some() && stored.first_seen != self.entry.first_seen {
            return Step::Conflict;
        }
        self.entry = stored;
        self.after_log()
    }

    fn judge_summary(&self, seen: Option<Summary>) -> Step {
        let is_newer = seen.as_ref().is_none_or(|seen| order(seen) < order(&self.summary(None)));
        if is_newer { Step::MoveSummary(seen.map(Box::new)) } else { Step::Finding }
    }

    fn judge_finding(&self, seen: Option<RequestIssue>) -> Step {
        let own = self.finding(None);
        let is_more = own.is_some_and(|own| seen.as_ref().is_none_or(|seen| seen.result < own.result));
        if is_more { Step::MoveFinding(seen.map(Box::new)) } else { Step::Recorded }
    }

    fn summary(&self, seen: Option<u64>) -> Summary {
        let entry = &self.entry;
        Summary {
            key: entry.key.clone(),
            status: if entry.event == Event::Closed { Status::Closed } else { Status::Open },
            changed_by: entry.source.clone(),
            changed_at: entry.at,
            first_seen: entry.first_seen.clone(),
            version: seen.unwrap_or_default() + 1,
        }
    }

    fn finding(&self, seen: Option<u64>) -> Option<RequestIssue> {
        let result = match self.entry.event {
            Event::Opened => Finding::New,
            Event::Closed => Finding::Closed,
            Event::Reported => Finding::Existing,
        };
        Some(RequestIssue {
            key: self.entry.key.clone(),
            result,
            build: self.entry.source.build.clone(),
            first_seen: self.entry.first_seen.as_ref()?.build.clone(),
            at: self.entry.at,
            version: seen.unwrap_or_default() + 1,
        })
    }
}

/// Of one request, closing comes after opening.
fn order(summary: &Summary) -> (u64, bool) {
    (summary.changed_by.request.number(), summary.status == Status::Closed)
}
