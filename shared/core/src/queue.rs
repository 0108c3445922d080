//! The wake, lease and exit protocol as values: every write of an item's row is a [`Change`], and what it may be applied to
//! is decided here (`judge`), for the in-memory store, for models, and as the meaning that the DynamoDB expressions must have.
//!
//! Upholds INV-3, INV-4, INV-7, INV-8 and INV-13 by these rules:
//! 1. Nobody but an enqueue, the exit and the release writes `due_at`; a due item stays discoverable while leased.
//! 2. Every enqueue moves `wake_seq`, and commit and exit name the `wake_seq` they saw.
//! 3. Every holder write moves `commit_seq`, which stops that holder's own delayed write.
//! 4. Every writer marks its write with a token and knows it again ([`Verdict::Landed`]).
//!
//! Does not decide what the next action is: that is the item type's decider.

use crate::files::ContentHash;
use crate::id::{Digest, Token};
use crate::item::{
    AuditEntry, BranchHead, CancelRequest, Content, Dimension, DimensionKey, Document, INBOX_LIMIT, InboxEntry, Item, LEASE, Phase,
    RECENT_LIMIT,
};
use crate::time::{SKEW, Timestamp};

/// The birth of an item: its row, its first content, and the move of the branch head to it, in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Creation {
    /// The row, with `rev` and `wake_seq` 1.
    pub item: Item,
    /// `spec#1`.
    pub content: Content,
    /// The head that is replaced; none for the first life.
    pub replaces: Option<BranchHead>,
}

impl Creation {
    /// The branch head as it will be.
    #[must_use]
    pub fn head(&self) -> BranchHead {
        BranchHead {
            item_id: self.item.id.clone(),
            generation: self.item.generation,
            version: self.replaces.as_ref().map_or(1, |old| old.version + 1),
        }
    }
}

/// Makes an item actionable: names dimensions, moves `wake_seq`, sets `due_at` to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueue {
    /// The dimensions that the event or caller asks for.
    pub dims: Vec<(DimensionKey, Dimension)>,
    /// The writer's time.
    pub now: Timestamp,
}

/// New content for an existing item, and whether it brings a failed one back.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// The `rev` that was seen.
    pub rev: u64,
    /// The mark of this write.
    pub token: Token,
    /// The content of `rev + 1`.
    pub content: Content,
    /// What is wanted: files.
    pub content_hash: ContentHash,
    /// What is wanted: everything else.
    pub metadata_hash: String,
    /// What is wanted: where.
    pub target: String,
    /// The policy that inspected it.
    pub policy_version: String,
    /// What else is wanted.
    pub wanted: Document,
    /// Whether the item was `failed` and becomes active (`retried`).
    pub revives: bool,
    /// What is to be done.
    pub enqueue: Enqueue,
    /// The audit entry of this change.
    pub audit: AuditEntry,
}

/// A caller brings a failed, cancelled or blocked item back.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// The `rev` that was seen.
    pub rev: u64,
    /// The branch head that was seen; the item must still be the current life.
    pub head: BranchHead,
    /// The mark of this write.
    pub token: Token,
    /// Replaces what is wanted, where the caller may overwrite.
    pub wanted: Document,
    /// What is to be done.
    pub enqueue: Enqueue,
    /// The audit entry of this change.
    pub audit: AuditEntry,
}

/// A caller ends an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The `rev` that was seen.
    pub rev: u64,
    /// The mark of this write.
    pub token: Token,
    /// Who, why, and whether the merge request is to be closed.
    pub request: CancelRequest,
    /// The writer's time.
    pub now: Timestamp,
    /// The audit entry of this change.
    pub audit: AuditEntry,
}

/// What a lease holder believes when it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    /// The holder's lease.
    pub epoch: u64,
    /// The last enqueue it saw.
    pub wake_seq: u64,
    /// Its last write.
    pub commit_seq: u64,
}

impl Belief {
    /// What the holder of this row's lease believes after reading it.
    #[must_use]
    pub const fn of(item: &Item) -> Self {
        Self { epoch: item.lease_epoch, wake_seq: item.wake_seq, commit_seq: item.commit_seq }
    }
}

/// Whether a commit keeps the lease or ends the run with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The run goes on.
    Stay,
    /// The run ends, the item is to be looked at again at `due_at`.
    Exit {
        /// When; never where the item is done.
        due_at: Option<Timestamp>,
    },
}

/// A holder's new state.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// What the holder believes.
    pub belief: Belief,
    /// The mark of this write.
    pub token: Token,
    /// The row as it is to be; only the holder's fields are taken from it.
    pub next: Item,
    /// Whether an action's outcome is recorded, which resets `claims`; never with an intent alone.
    pub progress: bool,
    /// Whether the run ends with it.
    pub ending: Ending,
    /// The next life, where content arrived that this one did not merge.
    pub successor: Option<Box<Creation>>,
}

/// Every write of an item's row after its birth.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Takes the lease.
    Claim {
        /// The writer's time.
        now: Timestamp,
        /// The mark of the lease.
        token: Token,
    },
    /// Keeps the lease.
    Heartbeat {
        /// The holder's lease.
        epoch: u64,
        /// Until when.
        until: Timestamp,
    },
    /// Records a holder's new state.
    Commit(Box<Commit>),
    /// Ends a run: nothing to do before `due_at`.
    Exit {
        /// What the holder believes.
        belief: Belief,
        /// The mark of this write.
        token: Token,
        /// When the item is to be looked at again.
        due_at: Option<Timestamp>,
        /// Audit entries not yet shipped.
        outbox: Vec<AuditEntry>,
    },
    /// Ends a run that ran out of time, or one whose worker is known to be dead; the item stays actionable and due.
    Release {
        /// The holder's lease.
        epoch: u64,
        /// Its last write.
        commit_seq: u64,
        /// The mark of this write.
        token: Token,
        /// The writer's time.
        now: Timestamp,
        /// Whether its worker died, so that the lease counts as one without progress.
        died: bool,
    },
    /// A caller's new content (`updated`, `retried`).
    Update(Box<Update>),
    /// A caller's retry.
    Retry(Box<Retry>),
    /// A caller's cancel: a request on an active item, the end of a failed one.
    Cancel(Box<Cancel>),
    /// Stores an event.
    Append {
        /// The event with its delivery's digest.
        entry: Box<InboxEntry>,
        /// The writer's time.
        now: Timestamp,
    },
    /// An event for a full inbox: the truth is to be read again.
    Overflow {
        /// The delivery.
        digest: Digest,
        /// What is to be done.
        enqueue: Enqueue,
    },
}

/// What a change means for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its condition holds.
    Apply,
    /// The row shows that this very write has been applied before.
    Landed,
    /// Its condition does not hold.
    Refuse,
}

impl Change {
    /// The name of the change, for people and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claim { .. } => "claim",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Commit(_) => "commit",
            Self::Exit { .. } => "exit",
            Self::Release { .. } => "release",
            Self::Update(_) => "update",
            Self::Retry(_) => "retry",
            Self::Cancel(_) => "cancel",
            Self::Append { .. } => "append",
            Self::Overflow { .. } => "overflow",
        }
    }

    /// What the change means for this row. Branch heads of `Retry` and of successors are the store's to check.
    #[must_use]
    pub fn judge(&self, row: &Item) -> Verdict {
        if self.has_landed(row) {
            Verdict::Landed
        } else if self.is_admitted(row) {
            Verdict::Apply
        } else {
            Verdict::Refuse
        }
    }

    /// Whether the row shows that this very write was applied: its token, or for events their digest.
    #[must_use]
    pub fn has_landed(&self, row: &Item) -> bool {
        let held = |epoch: u64, token: &Token| row.lease_epoch == epoch && row.commit_token.as_ref() == Some(token);
        match self {
            Self::Claim { token, .. } => row.lease_token.as_ref() == Some(token),
            Self::Heartbeat { epoch, until } => row.lease_epoch == *epoch && row.leased_until.is_some_and(|have| have >= *until),
            Self::Commit(c) => held(c.belief.epoch, &c.token),
            Self::Exit { belief, token, .. } => held(belief.epoch, token),
            Self::Release { epoch, token, .. } => held(*epoch, token),
            Self::Update(u) => row.write_token == u.token,
            Self::Retry(r) => row.write_token == r.token,
            Self::Cancel(c) => row.write_token == c.token,
            Self::Append { entry, .. } => row.recent.contains(&entry.digest),
            Self::Overflow { digest, .. } => row.recent.contains(digest),
        }
    }

    fn is_admitted(&self, row: &Item) -> bool {
        match self {
            Self::Claim { now, .. } => is_claimable(row, *now),
            Self::Heartbeat { epoch, until } => row.lease_epoch == *epoch && row.leased_until.is_some_and(|have| have < *until),
            Self::Commit(c) => Belief::of(row) == c.belief && row.is_active(),
            Self::Exit { belief, .. } => Belief::of(row) == *belief,
            Self::Release { epoch, commit_seq, .. } => row.lease_epoch == *epoch && row.commit_seq == *commit_seq,
            Self::Update(u) if u.revives => row.rev == u.rev && row.phase == Phase::Failed,
            Self::Update(u) => row.rev == u.rev && row.is_active() && row.cancel_requested.is_none(),
            Self::Retry(r) => row.rev == r.rev && is_retryable(row),
            Self::Cancel(c) => row.rev == c.rev && is_cancellable(row),
            Self::Append { .. } => row.is_active() && row.inbox.len() < INBOX_LIMIT && row.recent.len() < RECENT_LIMIT,
            Self::Overflow { .. } => row.is_active(),
        }
    }

    /// The row after the change; the caller has judged that it applies.
    pub fn apply(&self, row: &mut Item) {
        match self {
            Self::Claim { now, token } => claim(row, *now, token),
            Self::Heartbeat { until, .. } => row.leased_until = Some(*until),
            Self::Commit(c) => commit(row, c),
            Self::Exit { token, due_at, outbox, .. } => {
                row.outbox.clone_from(outbox);
                exit(row, token, *due_at);
            }
            Self::Release { token, now, died, .. } => release(row, token, *now, *died),
            Self::Update(u) => update(row, u),
            Self::Retry(r) => retry(row, r),
            Self::Cancel(c) => cancel(row, c),
            Self::Append { entry, now } => {
                row.inbox.push((**entry).clone());
                row.recent.push(entry.digest.clone());
                enqueue(row, &Enqueue { dims: Vec::new(), now: *now });
            }
            Self::Overflow { enqueue: e, .. } => enqueue(row, e),
        }
    }
}

/// Whether a claim at `now` may take the lease: nobody holds it, allowing for skew, and there is a reason to look.
#[must_use]
pub fn is_claimable(row: &Item, now: Timestamp) -> bool {
    let free = row.leased_until.is_none_or(|until| until < now.before(SKEW));
    free && (row.actionable || row.due_at.is_some_and(|due| due <= now.after(SKEW)))
}

/// Whether the retry call may bring this item back.
#[must_use]
pub fn is_retryable(row: &Item) -> bool {
    match row.phase {
        Phase::Failed | Phase::Cancelled => true,
        Phase::Active => row.blocked.is_some() && row.cancel_requested.is_none(),
        Phase::Completed => false,
    }
}

/// Whether the cancel call may end this item.
#[must_use]
pub fn is_cancellable(row: &Item) -> bool {
    match row.phase {
        Phase::Failed => true,
        Phase::Active => row.cancel_requested.is_none(),
        Phase::Completed | Phase::Cancelled => false,
    }
}

fn enqueue(row: &mut Item, e: &Enqueue) {
    row.wake_seq += 1;
    row.actionable = true;
    row.due_at = Some(e.now);
    for (key, dimension) in &e.dims {
        row.dims.insert(key.clone(), dimension.clone());
        row.dim_seq.insert(key.clone(), row.wake_seq);
    }
}

fn claim(row: &mut Item, now: Timestamp, token: &Token) {
    row.leased_until = Some(now.after(LEASE));
    row.lease_token = Some(token.clone());
    row.lease_epoch += 1;
    row.claims += 1;
}

fn commit(row: &mut Item, c: &Commit) {
    let next = c.next.clone();
    row.phase = next.phase;
    row.result = next.result;
    row.blocked = next.blocked;
    row.last_error = next.last_error;
    row.attempts = next.attempts;
    row.outage = next.outage;
    row.cancel_requested = next.cancel_requested;
    row.last_event_at = next.last_event_at;
    row.updated_at = next.updated_at;
    row.dims = next.dims;
    row.inbox = next.inbox;
    row.recent = next.recent;
    row.outbox = next.outbox;
    row.facts = next.facts;
    if c.progress {
        row.claims = 0;
    }
    match c.ending {
        Ending::Stay => mark_commit(row, &c.token),
        Ending::Exit { due_at } => exit(row, &c.token, due_at),
    }
}

fn mark_commit(row: &mut Item, token: &Token) {
    row.commit_seq += 1;
    row.commit_token = Some(token.clone());
}

fn exit(row: &mut Item, token: &Token, due_at: Option<Timestamp>) {
    row.actionable = false;
    row.due_at = due_at;
    row.claims = 0;
    drop_lease(row, token);
}

fn release(row: &mut Item, token: &Token, now: Timestamp, died: bool) {
    row.due_at = Some(now);
    if !died {
        row.claims = 0;
    }
    drop_lease(row, token);
}

fn drop_lease(row: &mut Item, token: &Token) {
    row.leased_until = None;
    row.lease_token = None;
    mark_commit(row, token);
}

fn update(row: &mut Item, u: &Update) {
    row.content_hash = u.content_hash.clone();
    row.metadata_hash.clone_from(&u.metadata_hash);
    row.target.clone_from(&u.target);
    row.policy_version.clone_from(&u.policy_version);
    row.wanted = u.wanted.clone();
    row.attempts = 0;
    row.last_error = None;
    if u.revives {
        revive(row, u.enqueue.now);
    }
    write_of_caller(row, &u.token, &u.audit, u.enqueue.now);
    enqueue(row, &u.enqueue);
}

fn retry(row: &mut Item, r: &Retry) {
    row.wanted = r.wanted.clone();
    row.attempts = 0;
    row.last_error = None;
    revive(row, r.enqueue.now);
    write_of_caller(row, &r.token, &r.audit, r.enqueue.now);
    enqueue(row, &r.enqueue);
}

fn revive(row: &mut Item, now: Timestamp) {
    row.phase = Phase::Active;
    row.retried_at = Some(now);
    row.claims = 0;
    row.result = None;
    row.blocked = None;
    row.cancel_requested = None;
    row.outage = None;
}

fn cancel(row: &mut Item, c: &Cancel) {
    if row.is_active() {
        row.cancel_requested = Some(c.request.clone());
    } else {
        row.phase = Phase::Cancelled;
        row.result = Some(crate::item::ResultKind::Cancelled);
    }
    write_of_caller(row, &c.token, &c.audit, c.now);
    enqueue(row, &Enqueue { dims: Vec::new(), now: c.now });
}

fn write_of_caller(row: &mut Item, token: &Token, audit: &AuditEntry, now: Timestamp) {
    row.rev += 1;
    row.write_token = token.clone();
    row.outbox.push(audit.clone());
    row.updated_at = now;
}

#[cfg(test)]
mod tests;
