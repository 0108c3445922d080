//! The hot row of a work item: all that a decision needs, in one read (`ARCHITECTURE.md`, storage).
//!
//! The generic layer (queue, lease, events, dimensions, audit) reads the typed fields; what one item type knows is in
//! [`Item::wanted`] and [`Item::facts`], two documents that only that type's code opens (DDR-2, DDR-7).

mod audit;
mod birth;
mod dimension;

pub use audit::{AuditEntry, StateChange, Trigger};
pub use birth::Birth;
pub use dimension::{Dimension, DimensionKey, Status};

use crate::error::Failure;
use crate::event::Event;
use crate::files::{ActionRecord, ContentHash};
use crate::id::{BranchIdentity, Digest, ItemId, Sha, Token};
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Events an inbox holds before it overflows into "look at the truth again".
pub const INBOX_LIMIT: usize = 20;
/// Recent delivery digests a row may hold before commits trim them.
pub const RECENT_LIMIT: usize = 40;
/// How long a lease lasts from its claim or last heartbeat.
pub const LEASE: Duration = Duration::from_secs(90);
/// Leases taken without progress that are still allowed; the next one ends the item (`worker_died`).
pub const MAX_CLAIMS: u32 = 3;
/// How many shards the due index has; stored in each row, so it may grow and never shrink.
pub const DUE_SHARDS: u8 = 4;

/// The coarse life cycle (DDR-2). Only active items act and accept events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Being driven to its end.
    Active,
    /// Ended as wanted; see the result.
    Completed,
    /// Ended by an error that needs someone; see `last_error`.
    Failed,
    /// Ended because someone said so.
    Cancelled,
}

impl Phase {
    /// The word rows and the API use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether a new submission begins a new life.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

/// How a terminal item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// Its merge request was merged.
    Merged,
    /// The target already held everything.
    NoChange,
    /// Its merge request was closed by someone else.
    Closed,
    /// It was cancelled.
    Cancelled,
    /// What it was about is gone.
    Resolved,
}

/// Why an active item neither pushes nor merges, until its cause is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The cause.
    pub reason: BlockedReason,
    /// Since when.
    pub since: Timestamp,
    /// For people.
    pub detail: String,
}

/// The causes that block an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedReason {
    /// The branch holds commits that are not Collie's.
    ForeignCommits,
    /// The target changed what this item changes.
    Conflict,
    /// The credential does not work or may not do this.
    Auth,
    /// The project merges by train and the configuration says direct.
    MergeTrainRequired,
}

impl BlockedReason {
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::ForeignCommits, Self::Conflict, Self::Auth, Self::MergeTrainRequired];
}

/// The last error of an item, at most [`LastError::LIMIT`] bytes of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// The public code.
    pub code: String,
    /// For people.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

impl LastError {
    /// Bytes of message that a row keeps.
    pub const LIMIT: usize = 512;

    /// The error of a failure, cut to the limit.
    #[must_use]
    pub fn of(failure: &Failure, at: Timestamp) -> Self {
        let end = failure.message.floor_char_boundary(Self::LIMIT);
        Self { code: failure.code.to_owned(), message: failure.message[..end].to_owned(), at }
    }
}

/// Someone asked to end the item; the lease holder carries it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// The caller.
    pub by: String,
    /// What they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the merge request is to be closed.
    pub close_mr: bool,
}

/// A forge that cannot be reached or answers 5xx: how often in a row, since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The first failure of this outage.
    pub since: Timestamp,
    /// Failures since then.
    pub tries: u32,
}

/// An event waiting to be applied, with the digest by which a repeated delivery is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxEntry {
    /// The delivery.
    pub digest: Digest,
    /// What it says.
    pub event: Event,
}

/// What one item type keeps in the row; only that type's code opens it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Document(serde_json::Value);

impl Document {
    /// The document of a value. A value that JSON cannot hold becomes the empty document and fails when read.
    pub fn of<T: Serialize>(value: &T) -> Self {
        Self(serde_json::to_value(value).unwrap_or_default())
    }

    /// The value of the document.
    ///
    /// # Errors
    /// A [`Failure`] of class `Bug` where the row does not hold what its type writes.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        T::deserialize(&self.0).map_err(|e| Failure::bug(format!("the item's document cannot be read: {e}")))
    }
}

/// A work item's hot row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The item.
    pub id: ItemId,
    /// Its type (DDR-12).
    pub item_type: String,
    /// The natural identity it is one life of.
    pub branch: BranchIdentity,
    /// The project's path when it was submitted; for people, never for keys.
    pub project: String,
    /// Who submitted it.
    pub caller_identity: String,
    /// Which life of its identity this is, from 1.
    pub generation: u64,
    /// The life before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_item_id: Option<ItemId>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,

    /// The coarse life cycle.
    pub phase: Phase,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultKind>,
    /// Why it neither pushes nor merges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// Consecutive failures of actions (DDR-14).
    pub attempts: u32,
    /// The current outage of the forge, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// A pending request to end the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<CancelRequest>,
    /// When it was last brought back from an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<Timestamp>,
    /// The newest event applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_at: Option<Timestamp>,

    /// Counts writes of API callers.
    pub rev: u64,
    /// Counts every enqueue; an exit that did not see the latest is refused.
    pub wake_seq: u64,
    /// Counts claims.
    pub lease_epoch: u64,
    /// Counts writes of lease holders; stops a holder's own delayed write.
    pub commit_seq: u64,
    /// Leases taken without progress.
    pub claims: u32,
    /// The mark of the last API write.
    pub write_token: Token,
    /// The mark of the last holder write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_token: Option<Token>,
    /// The mark of the current lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_token: Option<Token>,
    /// Until when the current lease lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_until: Option<Timestamp>,
    /// The wake-up signal (DDR-49): set by every enqueue, cleared by the exit alone.
    pub actionable: bool,
    /// When the item is to be looked at; written by enqueue, exit and release alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// The shard of the due index this row lives in.
    pub due_shard: u8,

    /// What is needed, by dimension and variant (DDR-1, DDR-3).
    pub dims: BTreeMap<DimensionKey, Dimension>,
    /// The `wake_seq` at which an enqueue last wrote a dimension.
    pub dim_seq: BTreeMap<DimensionKey, u64>,
    /// Events to apply.
    pub inbox: Vec<InboxEntry>,
    /// Deliveries seen.
    pub recent: Vec<Digest>,
    /// Audit entries of changes made, not yet known to be shipped (INV-8).
    pub outbox: Vec<AuditEntry>,

    /// What is wanted: files.
    pub content_hash: ContentHash,
    /// What is wanted: everything but files and target.
    pub metadata_hash: String,
    /// What is wanted: where.
    pub target: String,
    /// The version of the policy that inspected the content.
    pub policy_version: String,
    /// What else is wanted; opened by the item's type.
    pub wanted: Document,
    /// What is known; opened by the item's type, written by lease holders alone.
    pub facts: Document,
}

impl Item {
    /// Whether the item is active.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    /// The key callers see.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.branch.key(&self.item_type, self.generation)
    }

    /// A dimension; an absent one is actionable.
    #[must_use]
    pub fn dimension(&self, key: &DimensionKey) -> Dimension {
        self.dims.get(key).cloned().unwrap_or_default()
    }
}

/// The cold part of one revision: long text and the action list (DDR-9). File bytes live in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The merge request's title, without a draft prefix.
    pub title: String,
    /// Its description, as the caller sent it.
    pub description: String,
    /// Labels the caller wants.
    pub labels: Vec<String>,
    /// The commit message, without trailer.
    pub commit_message: String,
    /// What happens to which file.
    pub actions: Vec<ActionRecord>,
}

/// The row that says which item is the current life of an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchHead {
    /// The current item.
    pub item_id: ItemId,
    /// Its generation.
    pub generation: u64,
    /// Counts writes of this row.
    pub version: u64,
}

/// Which item a merge request belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MrLink {
    /// The item.
    pub item_id: ItemId,
    /// Its generation.
    pub generation: u64,
}

/// A wait that GitLab asked for, shared by all functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWait {
    /// Until when.
    pub until: Timestamp,
    /// Why, for people.
    pub reason: String,
}

/// What one run did, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// When the run began.
    pub at: Timestamp,
    /// The lease under which it ran; orders runs that began in one millisecond.
    pub epoch: u64,
    /// Who ran it.
    pub actor: String,
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// What the item waits for afterwards.
    pub waits_for: String,
    /// Calls to GitLab.
    pub gitlab_calls: u32,
    /// DynamoDB write units.
    pub write_units: u32,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The action, or `events` for events applied.
    pub action: String,
    /// What came of it, for people.
    pub outcome: String,
    /// Calls to GitLab in this step.
    pub gitlab_calls: u32,
    /// The head commit it left, where it pushed or merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha: Option<Sha>,
}

#[cfg(test)]
mod tests;
