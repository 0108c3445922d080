//! Rules left out, one at a time, by what a program is told and by what becomes of its writes.

use super::{Actor, End, Tracking, Work};
use crate::fixture;
use collie_core::issue::delivery::{Delivery, Stage as Delivering};
use collie_core::issue::id::RequestId;
use collie_core::issue::program::{Answer, Effect};
use collie_core::issue::recovery::{Recovery, Stage as Recovering};
use collie_core::issue::row::{Checkpoint, Issue, Phase, Row, RowKey, Set, Status};
use collie_core::issue::table::{Edit, Table};
use collie_core::issue::walk::{Next, Walk};

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// The cursor is moved before the row is read.
    CursorBeforeRead,
    /// A cursor that is at the key already is not moved again.
    CursorNotRepeated,
    /// Recovery does not touch the cursor's row.
    RowNotTouched,
    /// Recovery does not create a row that is not there.
    AbsentRowNotCreated,
    /// A closed row is removed.
    ClosedRowRemoved,
    /// A newer request takes over from one that is not over.
    NewerTakesOver,
    /// Recovery records nothing.
    HistoryNotRepaired,
    /// Recovery does not move the checkpoint after reading the row.
    FenceNotMoved,
    /// A finalizing pass that resumes does not look at its cursor's key where that is not open.
    CursorNotVisited,
    /// The mark of an open issue is written after its row.
    MarkApart,
    /// A row that does not change is not marked as processed.
    UnchangedNotProcessed,
    /// A row that a newer request has processed is written all the same.
    SourceNotChecked,
}

impl Mutant {
    /// Mutants that must be caught.
    pub const FATAL: [Self; 10] = [
        Self::CursorBeforeRead,
        Self::CursorNotRepeated,
        Self::RowNotTouched,
        Self::AbsentRowNotCreated,
        Self::ClosedRowRemoved,
        Self::NewerTakesOver,
        Self::HistoryNotRepaired,
        Self::FenceNotMoved,
        Self::CursorNotVisited,
        Self::MarkApart,
    ];

    /// Mutants whose rule is a second line of defence.
    pub const REDUNDANT: [Self; 2] = [Self::UnchangedNotProcessed, Self::SourceNotChecked];

    pub(super) const fn splits_marks(self) -> bool {
        matches!(self, Self::MarkApart)
    }

    pub(super) const fn removes_rows(self) -> bool {
        matches!(self, Self::ClosedRowRemoved)
    }
}

/// What a mutant has done ahead of its turn, or has put off.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Debt {
    /// Nothing.
    None,
    /// The cursor was moved already.
    Moved,
    /// A mark is still to be written.
    Mark(Box<Edit>),
}

impl Tracking {
    /// What comes of an effect, after the mutant. None where the program is not told yet.
    pub(super) fn act(&self, actor: &mut Actor, effect: Effect<End>, table: &mut Table) -> Option<Answer> {
        if let Debt::Mark(edit) = &actor.debt {
            let _ = table.write(&[(**edit).clone()]);
            actor.debt = Debt::None;
            return None;
        }
        let Some(mutant) = self.mutant else { return fixture::perform(&effect, table) };
        match (mutant, &effect) {
            (Mutant::CursorBeforeRead, Effect::Read(key)) if key.set == Set::Issues && walk(actor).is_some() => {
                self.read_late(actor, &effect, table)
            }
            (Mutant::NewerTakesOver, Effect::Read(key)) if key.set == Set::Checkpoint => {
                Some(finalized(fixture::perform(&effect, table)?, actor, self))
            }
            (Mutant::SourceNotChecked, Effect::Read(key)) if key.set == Set::Issues => {
                Some(older(fixture::perform(&effect, table)?, actor, self))
            }
            (_, Effect::Write(edits)) => self.write(mutant, actor, edits, table),
            _ => fixture::perform(&effect, table),
        }
    }

    fn write(&self, mutant: Mutant, actor: &mut Actor, edits: &[Edit], table: &mut Table) -> Option<Answer> {
        let issue = written_issue(edits);
        match (mutant, &mut actor.work) {
            (Mutant::CursorNotRepeated, Work::Deliver(delivery)) if repeats(delivery) => {
                return Some(pretend_moved(actor));
            }
            (Mutant::FenceNotMoved, Work::Recover(Recovery { stage: Recovering::Fence(..), .. })) => return Some(pretend_moved(actor)),
            (Mutant::RowNotTouched, Work::Recover(Recovery { stage: Recovering::Touch(..), .. })) => return skip_touch(actor),
            (Mutant::AbsentRowNotCreated, Work::Recover(Recovery { stage: Recovering::Touch(_, None, _), .. })) => {
                return skip_touch(actor);
            }
            (Mutant::HistoryNotRepaired, Work::Recover(Recovery { stage: Recovering::Record(..), .. })) => return Some(Answer::Written),
            (Mutant::UnchangedNotProcessed, Work::Deliver(_)) if issue.is_some_and(|new| is_unchanged(table, new)) => {
                return Some(Answer::Written);
            }
            (Mutant::MarkApart, _) if edits.len() == 2 && issue.is_some() => return Some(write_apart(actor, edits, table)),
            _ => {}
        }
        let answer = table.write(edits).map_or(Answer::Refused, |()| Answer::Written);
        if let (Mutant::ClosedRowRemoved, Some(issue), Answer::Written) = (mutant, issue.filter(|i| i.status == Status::Closed), &answer) {
            table.force(RowKey::issue(&issue.key), None);
        }
        Some(answer)
    }

    /// Moves the cursor first; the reading is the next step, and the write that the program then wants has happened.
    fn read_late(&self, actor: &mut Actor, effect: &Effect<End>, table: &mut Table) -> Option<Answer> {
        if actor.debt == Debt::Moved {
            return fixture::perform(effect, table);
        }
        let mut ahead = actor.clone();
        ahead.work.resume(Answer::Row(None));
        self.settle(&mut ahead);
        let moved = match ahead.work.effect() {
            Some(Effect::Write(edits)) => table.write(&edits).is_ok(),
            _ => false,
        };
        if moved {
            actor.debt = Debt::Moved;
        } else {
            actor.work = Work::Gone;
        }
        None
    }

    /// What a mutant makes of a program between two steps.
    pub(super) fn after(&self, actor: &mut Actor, table: &Table) {
        match self.mutant {
            Some(Mutant::CursorNotVisited) => self.skip_cursor(actor, table),
            Some(Mutant::CursorBeforeRead) if actor.debt == Debt::Moved => {
                self.settle(actor);
                if walk(actor).is_some_and(|walk| matches!(walk.next, Next::Advance(..))) {
                    actor.debt = Debt::None;
                    actor.work.resume(Answer::Written);
                }
            }
            _ => {}
        }
    }

    fn skip_cursor(&self, actor: &mut Actor, table: &Table) {
        self.settle(actor);
        let Some(walk) = walk_mut(actor) else { return };
        let resumes =
            walk.left + 1 == fixture::limits().batch && walk.next == Next::Look && walk.keys.front() == walk.checkpoint.cursor.as_ref();
        let is_open = walk.keys.front().is_some_and(|key| table.get(&RowKey::open(key)).is_some());
        if resumes && walk.checkpoint.phase == Phase::Finalizing && !is_open {
            walk.keys.clear();
            walk.left += 1;
            walk.next = Next::Fetch;
        }
    }
}

fn walk(actor: &Actor) -> Option<&Walk> {
    match &actor.work {
        Work::Deliver(Delivery { stage: Delivering::Walk(walk), .. }) => Some(walk),
        _ => None,
    }
}

fn walk_mut(actor: &mut Actor) -> Option<&mut Walk> {
    match &mut actor.work {
        Work::Deliver(Delivery { stage: Delivering::Walk(walk), .. }) => Some(walk),
        _ => None,
    }
}

fn written_issue(edits: &[Edit]) -> Option<&Issue> {
    match edits.first() {
        Some(Edit::Put(_, Row::Issue(issue), _)) => Some(issue),
        _ => None,
    }
}

fn is_unchanged(table: &Table, new: &Issue) -> bool {
    let old: Option<Issue> = fixture::row(table, &RowKey::issue(&new.key));
    old.is_some_and(|old| old.status == new.status && old.changed_by == new.changed_by && old.version + 1 == new.version)
}

fn repeats(delivery: &Delivery) -> bool {
    match &delivery.stage {
        Delivering::Walk(walk) => matches!(walk.next, Next::Advance(..)) && walk.keys.front() == walk.checkpoint.cursor.as_ref(),
        _ => false,
    }
}

/// The program goes on as if the checkpoint had moved, and knows the version that it has.
fn pretend_moved(actor: &mut Actor) -> Answer {
    match &mut actor.work {
        Work::Deliver(Delivery { stage: Delivering::Walk(walk), .. }) => walk.checkpoint.version -= 1,
        Work::Recover(Recovery { stage: Recovering::Fence(target, _), .. }) => target.version -= 1,
        _ => {}
    }
    Answer::Written
}

/// Recovery goes on as if it had touched the row; where there is none, as if there were nothing to record.
fn skip_touch(actor: &mut Actor) -> Option<Answer> {
    if let Work::Recover(recovery) = &mut actor.work
        && let Recovering::Touch(target, None, _) = &recovery.stage
    {
        recovery.stage = Recovering::Tell(target.clone());
        return None;
    }
    Some(Answer::Written)
}

fn write_apart(actor: &mut Actor, edits: &[Edit], table: &mut Table) -> Answer {
    if table.write(&edits[..1]).is_err() {
        return Answer::Refused;
    }
    actor.debt = Debt::Mark(Box::new(edits[1].clone()));
    Answer::Written
}

fn own(actor: &Actor, model: &Tracking) -> RequestId {
    if actor.role == super::Role::Old { model.old } else { model.new }
}

/// An older checkpoint as if its request were over.
fn finalized(answer: Answer, actor: &Actor, model: &Tracking) -> Answer {
    let Some(seen) = answer.clone().row::<Checkpoint>() else { return answer };
    let is_worker = matches!(actor.work, Work::Deliver(_));
    if !is_worker || seen.request >= own(actor, model) || seen.phase.is_over() {
        return answer;
    }
    Answer::Row(Some(Box::new(Row::Checkpoint(Checkpoint { phase: Phase::Finalized, ..seen }))))
}

/// A row as if no newer request had processed it.
fn older(answer: Answer, actor: &Actor, model: &Tracking) -> Answer {
    let Some(mut seen) = answer.clone().row::<Issue>() else { return answer };
    let request = own(actor, model);
    if seen.processed.request > request {
        seen.processed.request = request;
    }
    Answer::Row(Some(Box::new(Row::Issue(seen))))
}
