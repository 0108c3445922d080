//! A stage on which programs take turns: each goes to a named point and pauses before the effect that is there. For interleavings that
//! have a name; the models look at all of them.

use crate::fixture::{NOW, limits, perform, row};
use collie_core::issue::delivery::Delivery;
use collie_core::issue::hook::Notice;
use collie_core::issue::id::RequestId;
use collie_core::issue::program::{Effect, Program};
use collie_core::issue::recovery::Recovery;
use collie_core::issue::row::{Checkpoint, Phase, Row, RowKey, Set};
use collie_core::issue::table::{Edit, Range, Table};

/// What a program is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Reads the checkpoint.
    Load,
    /// Begins a pass.
    Start,
    /// Reads an issue's row.
    Look,
    /// Moves the cursor, or the checkpoint of a recovery past its reading.
    Cursor,
    /// Writes an issue's row.
    Row,
    /// Writes an entry of an issue's history.
    Log,
    /// Moves a summary.
    Summary,
    /// Writes what the request meant.
    Finding,
    /// Tells an opening or closing.
    Hook,
    /// Offers repairs.
    Repair,
    /// Ends a phase.
    Phase,
    /// Writes that a request's issues are reconciled.
    Reconciled,
    /// Writes the phase `abandoning`.
    Abandoning,
    /// Writes that tracking was given up.
    GivenUp,
    /// Writes the phase `abandoned`.
    Abandoned,
    /// Removes the job.
    Leave,
    /// Another reading.
    Read,
    /// Nothing more.
    End,
}

impl Point {
    fn of<D>(effect: &Effect<D>, table: &Table) -> Self {
        match effect {
            Effect::Read(key) => match key.set {
                Set::Checkpoint => Self::Load,
                Set::Issues => Self::Look,
                _ => Self::Read,
            },
            Effect::Range(_) => Self::Read,
            Effect::Publish(Notice::Hook(_)) => Self::Hook,
            Effect::Publish(Notice::Repair(_)) => Self::Repair,
            Effect::Done(_) => Self::End,
            Effect::Write(edits) => edits.first().map_or(Self::Read, |edit| Self::of_edit(edit, table)),
        }
    }

    fn of_edit(edit: &Edit, table: &Table) -> Self {
        match (edit, edit.key().set) {
            (Edit::Put(_, Row::Checkpoint(next), _), _) => Self::of_checkpoint(next, row(table, &RowKey::checkpoint()).as_ref()),
            (_, Set::Issues) => Self::Row,
            (_, Set::Log(_)) => Self::Log,
            (_, Set::Summaries) => Self::Summary,
            (_, Set::RequestIssues(_)) => Self::Finding,
            (Edit::Keep(key, _), Set::History(_)) if key.at.contains("abandoned") => Self::GivenUp,
            (_, Set::History(_)) => Self::Reconciled,
            (_, Set::Jobs) => Self::Leave,
            _ => Self::Read,
        }
    }

    fn of_checkpoint(next: &Checkpoint, now: Option<&Checkpoint>) -> Self {
        match next.phase {
            Phase::Refreshing if next.pass == next.version => Self::Start,
            Phase::Abandoned => Self::Abandoned,
            Phase::Abandoning if now.is_none_or(|now| now.phase != Phase::Abandoning) => Self::Abandoning,
            phase if now.is_some_and(|now| now.phase == phase) || phase == Phase::Refreshing => Self::Cursor,
            _ => Self::Phase,
        }
    }
}

/// Rows, and what was told.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// The rows.
    pub table: Table,
    /// What was told, in order.
    pub told: Vec<Notice>,
}

impl Stage {
    /// Goes on until the next effect is at this point; what it ended with, if it ended before.
    pub fn until<P: Program>(&mut self, program: &mut P, point: Point) -> Option<P::Done> {
        loop {
            let effect = program.effect(NOW);
            if Point::of(&effect, &self.table) == point {
                return None;
            }
            if let Some(done) = self.step(program) {
                return Some(done);
            }
        }
    }

    /// The one next effect; what it ended with, if there is none.
    pub fn step<P: Program>(&mut self, program: &mut P) -> Option<P::Done> {
        let effect = program.effect(NOW);
        if let Effect::Publish(notice) = &effect {
            self.told.push(notice.clone());
        }
        match perform(&effect, &mut self.table) {
            Some(answer) => program.resume(answer, NOW),
            None => {
                if let Effect::Done(done) = effect {
                    return Some(done);
                }
            }
        }
        None
    }

    /// Goes on to the end.
    pub fn finish<P: Program>(&mut self, program: &mut P) -> P::Done {
        loop {
            if let Some(done) = self.step(program) {
                return done;
            }
        }
    }

    /// A worker of the oldest job, whichever that is.
    #[must_use]
    pub fn worker(&self) -> Option<Delivery> {
        let (_, job) = self.table.range(&Range::first(Set::Jobs, 1)).rows.into_iter().next()?;
        Some(Delivery::new(&job.try_into().ok()?, limits()))
    }

    /// A worker of this job, whatever else there is.
    #[must_use]
    pub fn worker_of(&self, request: RequestId) -> Option<Delivery> {
        row(&self.table, &RowKey::job(request)).map(|job| Delivery::new(&job, limits()))
    }

    /// A recovery of this job, to its end.
    pub fn recover(&mut self, request: RequestId) -> collie_core::issue::recovery::Recovered {
        self.finish(&mut Recovery::new(request))
    }
}
