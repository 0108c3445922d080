//! The change a caller asks for: structured file actions (DDR-9), their hashes and the blob ids GitLab will show.
//!
//! Decides nothing about whether a change is allowed: that is [`crate::policy`]. Upholds INV-9 by giving the same
//! change the same [`ContentHash`], however it was encoded or ordered.

use serde::{Deserialize, Serialize};
use sha1::Digest as _;
use std::fmt;

/// What is to happen to one file; the verbs of GitLab's Commits API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// The file must not exist and is written.
    Create,
    /// The file must exist and is replaced.
    Update,
    /// The file must exist and is removed.
    Delete,
    /// The file at `previous_path` gets a new path, and new bytes where the action has any.
    Move,
    /// The file's executable bit is set or cleared.
    Chmod,
}

impl Verb {
    /// Every verb, in the order error messages name them.
    pub const ALL: [Self; 5] = [Self::Create, Self::Update, Self::Delete, Self::Move, Self::Chmod];

    /// The word callers and GitLab use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Chmod => "chmod",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the caller believes the target branch holds at a path; checked before any write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Nothing is there.
    Absent,
    /// A file with this SHA-256 (hex) is there.
    Sha256(String),
}

/// One file action with its bytes decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAction {
    /// What is to happen.
    pub verb: Verb,
    /// The path as it will be afterwards.
    pub file_path: String,
    /// Where a moved file comes from.
    pub previous_path: Option<String>,
    /// The bytes; present for create and update, optional for move.
    pub content: Option<Vec<u8>>,
    /// The executable bit; required for chmod.
    pub execute_filemode: Option<bool>,
    /// What the caller believes is there now.
    pub expect: Option<Expect>,
}

/// A file action without its bytes: what a row, the API and the audit record show (DDR-9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// What is to happen.
    pub action: Verb,
    /// The path as it will be afterwards.
    pub file_path: String,
    /// Where a moved file comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_path: Option<String>,
    /// The executable bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_filemode: Option<bool>,
    /// Length of the content in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// SHA-256 of the content, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The git blob id of the content, so that a tree listing can be compared without reading the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_id: Option<String>,
    /// What the caller believes is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

impl FileAction {
    /// The record of this action: everything but the bytes.
    #[must_use]
    pub fn record(&self) -> ActionRecord {
        let content = self.content.as_deref();
        ActionRecord {
            action: self.verb,
            file_path: self.file_path.clone(),
            previous_path: self.previous_path.clone(),
            execute_filemode: self.execute_filemode,
            size: content.map(|bytes| bytes.len() as u64),
            sha256: content.map(sha256_hex),
            blob_id: content.map(blob_id),
            expect: self.expect.clone(),
        }
    }
}

impl ActionRecord {
    /// The path whose present content `expect` is about: where a moved file comes from, else the file itself.
    #[must_use]
    pub fn expected_path(&self) -> &str {
        self.previous_path.as_deref().unwrap_or(&self.file_path)
    }

    /// Every path this action touches: the new one, and the old one of a move.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.file_path.as_str()).chain(self.previous_path.as_deref())
    }
}

/// The identity of a change: the same actions give the same hash, whatever their order or encoding.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentHash(String);

impl ContentHash {
    /// Hashes verbs, paths, modes and content digests, sorted by path then verb, as compact JSON.
    #[must_use]
    pub fn of(actions: &[ActionRecord]) -> Self {
        let mut lines: Vec<_> = actions.iter().collect();
        lines.sort_by(|a, b| (&a.file_path, a.action).cmp(&(&b.file_path, b.action)));
        let canonical: Vec<_> = lines.iter().map(|a| (a.action, &a.file_path, &a.previous_path, a.execute_filemode, &a.sha256)).collect();
        Self(sha256_hex(serde_json::json!(canonical).to_string().as_bytes()))
    }

    /// The hash as lower-case hex.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// SHA-256 as lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(sha2::Sha256::digest(bytes))
}

/// The id git gives to a blob of these bytes: SHA-1 of `blob <size>\0` and the bytes.
#[must_use]
pub fn blob_id(bytes: &[u8]) -> String {
    let mut hash = sha1::Sha1::new();
    hash.update(format!("blob {}\0", bytes.len()).as_bytes());
    hash.update(bytes);
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(verb: Verb, path: &str, content: Option<&[u8]>) -> FileAction {
        FileAction {
            verb,
            file_path: path.into(),
            previous_path: None,
            content: content.map(<[u8]>::to_vec),
            execute_filemode: None,
            expect: None,
        }
    }

    #[test]
    fn a_blob_id_is_what_git_hash_object_prints() {
        assert_eq!(blob_id(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(blob_id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn order_does_not_change_the_content_hash_and_every_part_does() {
        let a = action(Verb::Create, "a", Some(b"1")).record();
        let b = action(Verb::Update, "b", Some(b"2")).record();
        let hash = ContentHash::of(&[a.clone(), b.clone()]);
        assert_eq!(hash, ContentHash::of(&[b.clone(), a.clone()]));
        let others = [
            vec![a.clone()],
            vec![a.clone(), action(Verb::Create, "b", Some(b"2")).record()],
            vec![a.clone(), action(Verb::Update, "c", Some(b"2")).record()],
            vec![a.clone(), action(Verb::Update, "b", Some(b"3")).record()],
            vec![a, ActionRecord { execute_filemode: Some(true), ..b }],
        ];
        for other in &others {
            assert_ne!(hash, ContentHash::of(other));
        }
    }
}
