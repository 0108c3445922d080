//! Inspection of what callers ask for, before any write.

use crate::files::{ActionRecord, ContentHash, FileAction};

/// Placeholder until the policy lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileActions(pub Vec<FileAction>);

impl FileActions {
    /// Records.
    #[must_use]
    pub fn records(&self) -> Vec<ActionRecord> {
        self.0.iter().map(FileAction::record).collect()
    }
}

/// Proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected<T> {
    value: T,
    hash: ContentHash,
    version: String,
}

impl<T> Inspected<T> {
    /// Value.
    pub fn get(&self) -> &T {
        &self.value
    }
    /// Hash.
    pub fn content_hash(&self) -> &ContentHash {
        &self.hash
    }
    /// Version.
    pub fn policy_version(&self) -> &str {
        &self.version
    }
}
