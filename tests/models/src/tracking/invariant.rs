//! What must hold after every step, by the numbers of the invariants of issue tracking.

use super::{Actor, Role, State, Tracking, Work};
use crate::fixture::{key, row};
use collie_core::issue::id::{RequestId, Source};
use collie_core::issue::row::{BuildIssue, Checkpoint, Event, Issue, Milestone, Outcome, Phase, Row, RowKey, Set, Status};
use collie_core::issue::table::Table;
use std::collections::BTreeSet;

/// The checkpoint.
pub(super) fn checkpoint(table: &Table) -> Option<Checkpoint> {
    row(table, &RowKey::checkpoint())
}

fn issues(table: &Table) -> impl Iterator<Item = &Issue> {
    table.rows().filter_map(|(_, row)| match row {
        Row::Issue(issue) => Some(issue),
        _ => None,
    })
}

/// Compares the tables before and after a step.
pub(super) fn judge(model: &Tracking, actor: &Actor, before: &Table, state: &mut State) {
    if state.table == *before {
        return;
    }
    let broken = judge_checkpoint(model, before, &state.table).or_else(|| judge_rows(model, actor, before, state));
    state.broken = broken.map(str::to_owned);
}

fn judge_checkpoint(model: &Tracking, before: &Table, after: &Table) -> Option<&'static str> {
    use Phase::{Abandoned, Abandoning, Finalized, Finalizing, Refreshed, Refreshing};
    let (old, new) = (checkpoint(before)?, checkpoint(after)?);
    if old == new {
        return None;
    }
    if new.request < old.request {
        return Some("S2: the checkpoint went back");
    }
    let leaves = !old.phase.is_over() && (new.phase.is_over() || new.request != old.request);
    if leaves && !is_recorded(model, after, old.request) {
        return Some("S3: a change is not in the history of a request that is over");
    }
    let along = matches!(
        (old.phase, new.phase),
        (Refreshing, Refreshing | Refreshed | Finalizing | Finalized | Abandoning)
            | (Refreshed, Refreshing | Abandoning)
            | (Finalizing, Finalizing | Finalized | Abandoning)
            | (Abandoning, Abandoning | Abandoned)
    );
    let takes_over = old.phase.is_over() && new.request > old.request && matches!(new.phase, Refreshing | Abandoning);
    if !(along && new.request == old.request || takes_over) {
        return Some("S6: a phase came after one that it may not");
    }
    if old.request >= model.old
        && (takes_over && old.phase == Finalized && !is_told(after, &old) || new.phase == Abandoned && !is_told(after, &new))
    {
        return Some("S11: the end of a request is not in its history");
    }
    (new.version <= old.version).then_some("the checkpoint's version did not grow")
}

fn is_told(table: &Table, checkpoint: &Checkpoint) -> bool {
    let milestone = match (checkpoint.phase, checkpoint.build.clone()) {
        (Phase::Finalized, Some(build)) => Milestone::IssuesReconciled { build, suppressed: checkpoint.suppressed },
        (_, build) => Milestone::IssueTrackingAbandoned { job: checkpoint.request, build },
    };
    table.get(&RowKey::history(checkpoint.request, &milestone)).is_some()
}

/// Whether the history has every change, and every report that was accepted.
fn is_recorded(model: &Tracking, table: &Table, request: RequestId) -> bool {
    issues(table).all(|issue| {
        let event = if issue.changed_by.request == request {
            Some(if issue.status == Status::Open { Event::Opened } else { Event::Closed })
        } else {
            let accepted =
                issue.processed.request == request && issue.status == Status::Open && is_reported(model, &issue.processed, issue);
            accepted.then_some(Event::Reported)
        };
        let source = |event| if event == Event::Reported { &issue.processed } else { &issue.changed_by };
        event.is_none_or(|event| table.get(&RowKey::log(&issue.key, source(event), event)).is_some())
    })
}

fn is_reported(model: &Tracking, source: &Source, issue: &Issue) -> bool {
    row::<BuildIssue>(&model.base, &RowKey::build_issue(&source.build, &issue.key)).is_some()
}

fn judge_rows(model: &Tracking, actor: &Actor, before: &Table, state: &mut State) -> Option<&'static str> {
    let stays = model.mutant.is_none_or(|mutant| !mutant.removes_rows());
    if stays && issues(before).any(|issue| state.table.get(&RowKey::issue(&issue.key)).is_none()) {
        return Some("S7: a row is gone");
    }
    let changed: Vec<Issue> =
        issues(&state.table).filter(|issue| row(before, &RowKey::issue(&issue.key)).as_ref() != Some(*issue)).cloned().collect();
    for issue in changed {
        let old: Option<Issue> = row(before, &RowKey::issue(&issue.key));
        let broken = judge_row(model, actor, before, old.as_ref(), &issue).or_else(|| judge_turn(state, old.as_ref(), &issue));
        if broken.is_some() {
            return broken;
        }
    }
    let marks = model.mutant.is_none_or(|mutant| !mutant.splits_marks());
    (marks && open(&state.table) != marked(&state.table)).then_some("the marks are not the open issues")
}

fn judge_row(model: &Tracking, actor: &Actor, table: &Table, old: Option<&Issue>, new: &Issue) -> Option<&'static str> {
    let checkpoint = checkpoint(table)?;
    if old.is_some_and(|old| old.version >= new.version) {
        return Some("S7: a row's version did not grow");
    }
    if old.is_some_and(|old| old.processed.request > new.processed.request) {
        return Some("S2: a row went back");
    }
    if actor.role == Role::Edit {
        let edited = old.is_some_and(|old| *new == Issue { metadata: new.metadata.clone(), version: old.version + 1, ..old.clone() });
        return (!edited).then_some("S13: an edit changed more than metadata");
    }
    if old.is_some_and(|old| old.metadata != new.metadata) {
        return Some("S13: metadata is lost");
    }
    let closes = old.is_some_and(|old| old.status == Status::Open) && new.status == Status::Closed;
    if let Work::Recover(_) = actor.work {
        let holds = checkpoint.phase == Phase::Abandoning && checkpoint.cursor.as_ref() == Some(&new.key);
        let opens = old.is_none_or(|old| old.status == Status::Closed) && new.status == Status::Open;
        return (!holds || closes || opens && old.is_some()).then_some("S10: recovery wrote what it must not");
    }
    let own = if actor.role == Role::Old { model.old } else { model.new };
    if checkpoint.request != own || checkpoint.phase.is_over() {
        return Some("S1: a row was written past its checkpoint");
    }
    (closes && !may_close(model, table, own)).then_some("S5: absence closed an issue before everything was applied")
}

fn may_close(model: &Tracking, table: &Table, request: RequestId) -> bool {
    let (reports, outcome) =
        if request == model.old { (model.scenario.old, model.scenario.outcome) } else { (model.scenario.new, Outcome::Failed) };
    let applied = |name: &&str| row::<Issue>(table, &RowKey::issue(&key(name))).is_some_and(|issue| issue.processed.request == request);
    outcome != Outcome::Cancelled && !reports.iter().any(|name| name.ends_with('*')) && reports.iter().all(applied)
}

/// Openings and closings of one issue take turns, in the order of requests.
fn judge_turn(state: &mut State, old: Option<&Issue>, new: &Issue) -> Option<&'static str> {
    if old.is_some_and(|old| old.changed_by == new.changed_by && old.status == new.status) {
        return None;
    }
    let event = if new.status == Status::Open { Event::Opened } else { Event::Closed };
    let last = state.last.insert(new.key.clone(), (new.changed_by.request, event));
    let broken = last.is_some_and(|(request, before)| before == event || request >= new.changed_by.request);
    broken.then_some("S4: transitions do not take turns in the order of requests")
}

fn open(table: &Table) -> BTreeSet<String> {
    issues(table).filter(|issue| issue.status == Status::Open).map(|issue| issue.key.encoded().to_owned()).collect()
}

fn marked(table: &Table) -> BTreeSet<String> {
    table.rows().filter(|(key, _)| key.set == Set::Open).map(|(key, _)| key.at.clone()).collect()
}

/// What must hold when both requests are over: the rows are those of the builds one after the other.
pub(super) fn judge_end(model: &Tracking, table: &Table) -> Option<String> {
    let checkpoint = checkpoint(table)?;
    if checkpoint.request != model.new || !checkpoint.phase.is_over() {
        return Some(format!("L1: the newest request does not end: {:?}", checkpoint.phase));
    }
    if open(table) != marked(table) {
        return Some("S8: the marks are not the open issues".into());
    }
    let reported: BTreeSet<_> = model.scenario.new.iter().map(|name| key(name).encoded().to_owned()).collect();
    let may_close = !model.scenario.new.iter().any(|name| name.ends_with('*'));
    let same = if may_close { open(table) == reported } else { open(table).is_superset(&reported) };
    (checkpoint.phase == Phase::Finalized && !same)
        .then(|| format!("the open issues are not what the last build reported: {:?}", open(table)))
}
