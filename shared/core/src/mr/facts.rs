//! What Collie knows about a merge request item; written by lease holders alone.

use crate::error::Failure;
use crate::files::ContentHash;
use crate::id::{MrIid, NoteId, PipelineId, Sha, UserId};
use crate::item::{Document, Item};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Builds a row remembers, so that a late push of an earlier one is known as ours.
const BUILDS_KEPT: usize = 5;
/// Blockers a row keeps.
pub const BLOCKERS_KEPT: usize = 20;

/// One build: an intended, and then made, commit of (content, target, base).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Counts builds of the item, from 1; part of the commit's trailer.
    pub number: u64,
    /// The revision whose content it holds.
    pub rev: u64,
    /// The commit it is built on.
    pub start_sha: Sha,
    /// The files.
    pub content_hash: ContentHash,
    /// The target.
    pub target: String,
    /// The commit, once it is known to exist; an intent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha: Option<Sha>,
}

/// The merge request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MrRef {
    /// Its number.
    pub iid: MrIid,
    /// Who opened it: Collie's own user.
    pub author: UserId,
    /// For people.
    pub url: String,
    /// The hash of the metadata it was last given.
    pub metadata: String,
    /// A digest of the description as GitLab showed it then.
    pub described: String,
}

/// The dashboard note: an intent first, then its id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NoteRef {
    /// The note; none while it is only intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NoteId>,
    /// The lease under which it was intended; a later one must look for the note before it posts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// A digest of what it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub says: String,
}

/// The head pipeline as last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineRef {
    /// The pipeline.
    pub id: PipelineId,
    /// Its status, verbatim.
    pub status: String,
    /// The commit it ran for.
    pub sha: Sha,
    /// Whether its failed jobs have been listed.
    #[serde(default)]
    pub listed: bool,
}

/// One unmet condition of the merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// What is missing, snake_case.
    pub code: String,
    /// For people.
    pub detail: String,
    /// Where it was seen: `merge_request`, `pipeline`, `approvals` or `submission`.
    pub source: String,
    /// When it was seen.
    pub seen_at: Timestamp,
}

/// How often a conflict with one target head has been answered by a rebuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilds {
    /// The target's head.
    pub target_head: Sha,
    /// Rebuilds on it.
    pub count: u32,
}

/// Everything known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// The last builds, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<Build>,
    /// The merge request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mr: Option<MrRef>,
    /// The dashboard note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteRef>,
    /// The head pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineRef>,
    /// Unmet conditions of the merge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// Reads in a row that found GitLab still checking.
    #[serde(default)]
    pub rechecks: u32,
    /// Whether the current build is to be made anew on the target's head.
    #[serde(default)]
    pub rebuild: bool,
    /// Rebuilds on one target head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilds: Option<Rebuilds>,
    /// The head about which a note on foreign commits was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_noted: Option<Sha>,
    /// The retry whose permission to overwrite commits of others has been used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrote_at: Option<Timestamp>,
    /// The retry for which a closed merge request was reopened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened_at: Option<Timestamp>,
    /// Whether the end without a change (`no_change`) has been decided and is being carried out.
    #[serde(default)]
    pub emptied: bool,
}

impl Facts {
    /// The facts of an item.
    ///
    /// # Errors
    /// A `Bug` where the row does not hold what this module writes.
    pub fn of(item: &Item) -> Result<Self, Failure> {
        item.facts.read()
    }

    /// The document to store.
    #[must_use]
    pub fn document(&self) -> Document {
        Document::of(self)
    }

    /// The newest build, made or intended.
    #[must_use]
    pub fn latest(&self) -> Option<&Build> {
        self.builds.last()
    }

    /// The newest build if it is made and is what the item wants now.
    #[must_use]
    pub fn current(&self, item: &Item) -> Option<&Build> {
        self.latest().filter(|b| b.sha.is_some() && !self.rebuild && b.is_of(item))
    }

    /// The newest build if it is only intended, and is what the item wants now.
    #[must_use]
    pub fn intent(&self, item: &Item) -> Option<&Build> {
        self.latest().filter(|b| b.sha.is_none() && b.is_of(item))
    }

    /// The head that Collie verified as its own.
    #[must_use]
    pub fn verified_head(&self) -> Option<&Sha> {
        self.builds.iter().rev().find_map(|b| b.sha.as_ref())
    }

    /// Whether Collie made this commit, by record.
    #[must_use]
    pub fn has_made(&self, sha: &Sha) -> bool {
        self.builds.iter().any(|b| b.sha.as_ref() == Some(sha))
    }

    /// The build with this number.
    #[must_use]
    pub fn build(&self, number: u64) -> Option<&Build> {
        self.builds.iter().find(|b| b.number == number)
    }

    /// Adds an intended build of the content of `rev` and forgets the oldest beyond the limit. Its number is one more than the last.
    pub fn intend(&mut self, item: &Item, rev: u64, start_sha: Sha) -> &Build {
        let number = self.latest().map_or(1, |b| b.number + 1);
        let build = Build { number, rev, start_sha, content_hash: item.content_hash.clone(), target: item.target.clone(), sha: None };
        self.rebuild = false;
        self.builds.push(build);
        let surplus = self.builds.len().saturating_sub(BUILDS_KEPT);
        self.builds.drain(..surplus);
        &self.builds[self.builds.len() - 1]
    }

    /// Records the commit of a build, and the parent it turned out to have.
    pub fn made(&mut self, number: u64, sha: Sha, parent: Option<Sha>) {
        if let Some(build) = self.builds.iter_mut().find(|b| b.number == number) {
            build.sha = Some(sha);
            if let Some(parent) = parent {
                build.start_sha = parent;
            }
        }
    }
}

impl Build {
    /// Whether this build holds what the item wants now.
    #[must_use]
    pub fn is_of(&self, item: &Item) -> bool {
        self.content_hash == item.content_hash && self.target == item.target
    }
}
