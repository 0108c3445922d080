//! Recording what a run did: commit, exit, and what becomes of both where callers or events moved the item meanwhile.
//!
//! An acknowledged update or event is never lost (INV-4): a commit names the `wake_seq` it saw, and one that is refused is
//! made again on the row as it is now, with the action's facts, leaving alone what later enqueues wrote.

use super::run::{Flow, Ran, Run, Stop};
use crate::metric;
use crate::ports::ChangeError;
use crate::submit::successor;
use collie_core::decision::{Action, Next};
use collie_core::error::Failure;
use collie_core::id::Digest;
use collie_core::item::{AuditEntry, INBOX_LIMIT, Item, ResultKind, StateChange, Step, Trigger};
use collie_core::outcome::{Effort, End, Outcome};
use collie_core::queue::{Belief, Change, Commit, Creation, Ending};
use collie_core::time::Timestamp;
use std::time::Duration;

/// Wake-ups that a queue can delay.
const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);

impl Run<'_> {
    /// Writes a change and takes over the row it leaves; false where it was refused and the row is now as it stands.
    pub(super) async fn write(&mut self, change: &Change) -> Result<bool, Stop> {
        match self.engine.change(&self.row.id, change).await {
            Ok(row) => {
                self.row = row;
                Ok(true)
            }
            Err(ChangeError::Refused(Some(row))) if row.lease_epoch == self.row.lease_epoch => {
                self.row = *row;
                Ok(false)
            }
            Err(ChangeError::Refused(_)) => Err(Stop::LeaseLost),
            Err(ChangeError::Failed(failure)) => Err(Stop::Store(failure)),
            Err(ChangeError::TooLarge) => Err(Stop::Failed(Failure::rejected("row_too_large", "the item's row has no room for this"))),
        }
    }

    /// Reads the row again after it was moved.
    pub(super) async fn reload(&mut self) -> Result<Flow, Failure> {
        let row = self.engine.ports.items.item(&self.row.id).await?;
        match row.filter(|row| row.lease_epoch == self.row.lease_epoch) {
            Some(row) => {
                self.row = row;
                Ok(Flow::On)
            }
            None => Ok(Flow::End(Ran::LeaseLost)),
        }
    }

    /// Writes facts before a side effect. Never resets claims.
    pub(super) async fn write_intent(&mut self, intent: &Outcome) -> Result<(), Stop> {
        let mut next = self.work.clone();
        intent.apply(&mut next, self.row.wake_seq, self.row.rev, self.now());
        let commit = self.commit_of(next, false, Ending::Stay, None);
        if !self.write(&commit).await? {
            return Err(Stop::Superseded);
        }
        self.work = self.row.clone();
        Ok(())
    }

    /// Records an action's outcome, on the row as it is then, and ends the run in the same write where nothing is left to do.
    pub(super) async fn record(&mut self, action: Action, outcome: &Outcome) -> Result<Flow, Stop> {
        let (seen, rev) = (self.row.wake_seq, self.row.rev);
        let applied: Vec<Digest> = self.row.inbox.iter().map(|entry| entry.digest.clone()).collect();
        loop {
            let next = self.next_row(action, outcome, &applied, seen, rev)?;
            let successor = self.successor_of(&next, outcome).await?;
            let ending = self.ending_of(&next)?;
            let commit = self.commit_of(next, true, ending, successor);
            if self.write(&commit).await? {
                if !self.row.is_active() {
                    metric::phase(self.row.phase.as_str());
                }
                self.note_what_is_left(action, outcome, rev);
                return self.after_commit(ending).await;
            }
            if !self.row.is_active() {
                return Ok(Flow::On);
            }
        }
    }

    /// A close by someone else ends the item also where an update arrived at that moment: the timeline says so.
    fn note_what_is_left(&mut self, action: Action, outcome: &Outcome, rev: u64) {
        if self.row.rev != rev && matches!(outcome.end, Some(End::Cancelled(ResultKind::Closed))) {
            let text = "the update submitted since was not carried out".to_owned();
            self.steps.push(Step { action: action.0.to_owned(), outcome: text, gitlab_calls: 0, sha: None });
        }
    }

    fn next_row(&self, action: Action, outcome: &Outcome, applied: &[Digest], seen: u64, rev: u64) -> Result<Item, Failure> {
        let mut base = self.row.clone();
        let (old, new): (Vec<_>, Vec<_>) = base.inbox.drain(..).partition(|entry| applied.contains(&entry.digest));
        base.inbox = old;
        let hopeless = matches!(outcome.end, Some(End::Failed(_)));
        let mut next = if hopeless { base } else { self.item_type()?.apply_inbox(&base)? };
        next.inbox = new;
        outcome.apply(&mut next, seen, rev, self.now());
        if !next.is_active() {
            leave_events(&mut next);
        }
        let entries = audit_entries(&self.row, &next, action, outcome, self.now());
        next.outbox.extend(entries);
        Ok(next)
    }

    fn commit_of(&self, mut next: Item, progress: bool, ending: Ending, successor: Option<Box<Creation>>) -> Change {
        next.outbox.retain(|entry| !self.shipped.contains(&entry.id));
        let surplus = next.recent.len().saturating_sub(INBOX_LIMIT);
        next.recent.drain(..surplus);
        let belief = Belief::of(&self.row);
        Change::Commit(Box::new(Commit { belief, token: self.engine.ports.ids.token(), next, progress, ending, successor }))
    }

    /// Stays where there is more to do; exits where there is only waiting. A terminal item exits after its entries are shipped.
    fn ending_of(&self, next: &Item) -> Result<Ending, Failure> {
        if !next.inbox.is_empty() || !next.is_active() {
            return Ok(Ending::Stay);
        }
        Ok(match self.item_type()?.decide(next, self.now())?.next {
            Next::Wait { until } => Ending::Exit { due_at: until },
            Next::Act(_) | Next::Rest => Ending::Stay,
        })
    }

    async fn after_commit(&mut self, ending: Ending) -> Result<Flow, Stop> {
        match ending {
            Ending::Stay => Ok(Flow::On),
            Ending::Exit { due_at } => {
                self.ring_at(due_at).await;
                Ok(Flow::End(Ran::Settled))
            }
        }
    }

    /// Content that arrived while this life was being merged becomes the next life, in the same transaction.
    async fn successor_of(&self, next: &Item, outcome: &Outcome) -> Result<Option<Box<Creation>>, Stop> {
        let merged = matches!(outcome.end, Some(End::Completed(ResultKind::Merged)));
        if !merged || !self.item_type()?.has_more(next)? {
            return Ok(None);
        }
        let items = &self.engine.ports.items;
        let Some(head) = items.head(&next.branch).await.map_err(Stop::Store)?.filter(|head| head.item_id == next.id) else {
            return Ok(None);
        };
        let (_, content) = self.engine.latest_content(next).await.map_err(Stop::Store)?;
        let creation = successor(self.engine, next, content, head, self.now());
        let actions = &creation.content.actions;
        self.engine.copy_bytes(&next.id, &creation.item.id, actions).await.map_err(Stop::Store)?;
        Ok(Some(Box::new(creation)))
    }

    /// Ends the run: nothing is to do before `until`. Events that were applied go into the same write.
    pub(super) async fn exit(&mut self, until: Option<Timestamp>) -> Result<Flow, Stop> {
        let change = if self.work == self.row {
            let outbox = self.row.outbox.iter().filter(|e| !self.shipped.contains(&e.id)).cloned().collect();
            Change::Exit { belief: Belief::of(&self.row), token: self.engine.ports.ids.token(), due_at: until, outbox }
        } else {
            self.commit_of(self.work.clone(), false, Ending::Exit { due_at: until }, None)
        };
        if !self.write(&change).await? {
            return Ok(Flow::On);
        }
        self.ring_at(until).await;
        Ok(Flow::End(Ran::Settled))
    }

    /// Ends the run over a terminal item: first its audit entries are shipped, then it stops being due.
    pub(super) async fn settle(&mut self) -> Result<Flow, Stop> {
        let shipped = self.ship().await;
        let due_at = (!shipped).then(|| self.now().after(Duration::from_secs(60)));
        let outbox = if shipped { Vec::new() } else { self.row.outbox.clone() };
        let change = Change::Exit { belief: Belief::of(&self.row), token: self.engine.ports.ids.token(), due_at, outbox };
        if !self.write(&change).await? {
            return Ok(Flow::On);
        }
        if let Some(successor) = self.next_life().await {
            self.engine.ring(&successor, Duration::ZERO).await;
        }
        Ok(Flow::End(Ran::Settled))
    }

    async fn next_life(&self) -> Option<collie_core::id::ItemId> {
        if self.row.result != Some(ResultKind::Merged) || !self.item_type().ok()?.has_more(&self.row).ok()? {
            return None;
        }
        let head = self.engine.ports.items.head(&self.row.branch).await.ok()??;
        Some(head.item_id)
    }

    /// A wait that a queue can delay is rung for; longer ones are the schedule's.
    async fn ring_at(&self, due_at: Option<Timestamp>) {
        let delay = due_at.map(|due| due.since(self.now()));
        if let Some(delay) = delay.filter(|delay| *delay <= LONGEST_DELAY) {
            self.engine.ring(&self.row.id, delay).await;
        }
    }
}

/// A terminal item accepts no events; those that arrived with its end are noted as seen.
fn leave_events(item: &mut Item) {
    let newest = item.inbox.drain(..).map(|entry| entry.event.at()).max();
    item.last_event_at = item.last_event_at.max(newest);
}

/// The entries of one commit, under ids that the same commit always has.
fn audit_entries(old: &Item, new: &Item, action: Action, outcome: &Outcome, now: Timestamp) -> Vec<AuditEntry> {
    let error = match (&outcome.effort, &outcome.end) {
        (_, Some(End::Failed(f))) | (Effort::Attempt(f) | Effort::Outage(f) | Effort::Waited(f), _) => Some(f.code.to_owned()),
        (Effort::Progress, _) => None,
    };
    let reason = outcome.summary.chars().take(100).collect();
    let kind = if old.phase == new.phase { "action" } else { "phase_change" };
    vec![AuditEntry {
        id: format!("{}/run/{}/{}", old.id, old.lease_epoch, old.commit_seq + 1),
        ts: now,
        event_type: kind.to_owned(),
        actor: "execute".to_owned(),
        old_state: Some(StateChange { phase: old.phase, action: Some(action.0.to_owned()) }),
        new_state: Some(StateChange { phase: new.phase, action: None }),
        trigger: Trigger { source: "worker".into(), action: Some(action.0.to_owned()), reason: Some(reason), error },
        metadata: None,
    }]
}
