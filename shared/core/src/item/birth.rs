//! An item as it is born: active, actionable, due at once, known to nobody's lease.

use super::{AuditEntry, DUE_SHARDS, Dimension, DimensionKey, Document, Item, Phase};
use crate::files::ContentHash;
use crate::id::{BranchIdentity, ItemId, Token};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// What a submission, or a life before, gives a new item.
#[derive(Debug, Clone, PartialEq)]
pub struct Birth {
    /// The item.
    pub id: ItemId,
    /// Its type.
    pub item_type: String,
    /// The natural identity it is one life of.
    pub branch: BranchIdentity,
    /// The project's path.
    pub project: String,
    /// Who submitted it.
    pub caller_identity: String,
    /// Which life it is, from 1.
    pub generation: u64,
    /// The life before.
    pub previous_item_id: Option<ItemId>,
    /// When.
    pub at: Timestamp,
    /// The mark of this write.
    pub token: Token,
    /// The dimensions its type is born with.
    pub dims: BTreeMap<DimensionKey, Dimension>,
    /// The audit entry of its submission.
    pub audit: AuditEntry,
    /// What is wanted: files.
    pub content_hash: ContentHash,
    /// What is wanted: everything but files and target.
    pub metadata_hash: String,
    /// What is wanted: where.
    pub target: String,
    /// The policy that inspected it.
    pub policy_version: String,
    /// What else is wanted.
    pub wanted: Document,
    /// What its type knows at birth.
    pub facts: Document,
}

impl Birth {
    /// The row.
    #[must_use]
    pub fn item(self) -> Item {
        Item {
            due_shard: shard_of(&self.id),
            id: self.id,
            item_type: self.item_type,
            branch: self.branch,
            project: self.project,
            caller_identity: self.caller_identity,
            generation: self.generation,
            previous_item_id: self.previous_item_id,
            created_at: self.at,
            updated_at: self.at,
            phase: Phase::Active,
            result: None,
            blocked: None,
            last_error: None,
            attempts: 0,
            outage: None,
            cancel_requested: None,
            retried_at: None,
            last_event_at: None,
            rev: 1,
            wake_seq: 1,
            lease_epoch: 0,
            commit_seq: 0,
            claims: 0,
            write_token: self.token,
            commit_token: None,
            lease_token: None,
            leased_until: None,
            actionable: true,
            due_at: Some(self.at),
            dims: self.dims,
            dim_seq: BTreeMap::new(),
            inbox: Vec::new(),
            recent: Vec::new(),
            outbox: vec![self.audit],
            content_hash: self.content_hash,
            metadata_hash: self.metadata_hash,
            target: self.target,
            policy_version: self.policy_version,
            wanted: self.wanted,
            facts: self.facts,
        }
    }
}

/// Spreads items over the shards of the due index.
fn shard_of(id: &ItemId) -> u8 {
    id.as_str().bytes().fold(0u8, u8::wrapping_add) % DUE_SHARDS
}
