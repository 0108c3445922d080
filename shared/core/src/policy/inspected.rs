//! The proof that a change passed.

use crate::files::{ActionRecord, ContentHash, FileAction};
use std::fmt;

/// A list of file actions as one value.
#[derive(Clone, PartialEq, Eq)]
pub struct FileActions(pub Vec<FileAction>);

impl FileActions {
    /// The actions in the caller's order.
    #[must_use]
    pub fn actions(&self) -> &[FileAction] {
        &self.0
    }

    /// The actions without their bytes.
    #[must_use]
    pub fn records(&self) -> Vec<ActionRecord> {
        self.0.iter().map(FileAction::record).collect()
    }
}

/// Without the bytes of the files (INV-12).
impl fmt::Debug for FileActions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileActions").field(&self.records()).finish()
    }
}

/// A value that passed inspection. Only [`super::Policy::inspect`] makes one, and only one can be pushed (INV-1).
///
/// There is no way to take the value out, change it and keep the proof:
///
/// ```compile_fail,E0451
/// use collie_core::{files::ContentHash, policy::{FileActions, Inspected}};
/// let (value, policy_version, content_hash) = (FileActions(vec![]), String::new(), ContentHash::of(&[]));
/// let forged = Inspected { value, policy_version, content_hash };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected<T> {
    value: T,
    policy_version: String,
    content_hash: ContentHash,
}

impl Inspected<FileActions> {
    pub(super) fn new(value: FileActions, policy_version: &str) -> Self {
        let content_hash = ContentHash::of(&value.records());
        Self { value, policy_version: policy_version.to_owned(), content_hash }
    }
}

impl<T> Inspected<T> {
    /// What was inspected.
    pub const fn get(&self) -> &T {
        &self.value
    }

    /// The version of the policy that inspected it; another policy has to inspect again before the next push.
    #[must_use]
    pub fn policy_version(&self) -> &str {
        &self.policy_version
    }

    /// The hash of exactly what was inspected.
    #[must_use]
    pub const fn content_hash(&self) -> &ContentHash {
        &self.content_hash
    }
}
