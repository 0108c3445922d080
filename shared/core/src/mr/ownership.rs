//! Whose commit is at the head of the branch? A trailer claims, the tree proves.
//!
//! Upholds INV-1 (a tree nobody inspected is never adopted) and keeps people's commits from being overwritten. Decides from
//! what was read; reading is the executor's.

use super::facts::Build;
use super::tree::{self, Listing};
use super::view::{ChangedPaths, Commit};
use crate::files::ActionRecord;
use crate::item::Item;

/// Whose a head is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// Ours, and what the item wants: adopt it as this build.
    Current(u64),
    /// Ours, of an earlier build or life: rebuild over it.
    Stale,
    /// Someone else's: never overwritten.
    Foreign(&'static str),
}

/// What was read about a head that is not on record, to verify the claim of its trailer.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The head.
    pub head: &'a Commit,
    /// The build that the trailer names, of this life or the one before.
    pub build: &'a Build,
    /// Whether that build is of this life.
    pub own_life: bool,
    /// The actions of that build.
    pub actions: &'a [ActionRecord],
    /// Whether the head's only parent is on the target branch.
    pub parent_on_target: bool,
    /// The paths that differ between parent and head.
    pub changed: &'a ChangedPaths,
    /// The directories those actions touch, at the head.
    pub at_head: &'a Listing,
    /// The same at the parent.
    pub at_parent: &'a Listing,
}

/// Judges a head by its evidence.
#[must_use]
pub fn judge(item: &Item, evidence: &Evidence<'_>) -> Ownership {
    if evidence.head.parents.len() != 1 || !evidence.parent_on_target {
        return Ownership::Foreign("the branch holds more than Collie's one commit");
    }
    let ChangedPaths::Complete(changed) = evidence.changed else {
        return Ownership::Foreign("the head changes more than GitLab can list");
    };
    let wanted = |path: &String| evidence.actions.iter().any(|a| a.paths().any(|p| p == path));
    if !changed.iter().all(wanted) {
        return Ownership::Foreign("the head changes files that the item does not");
    }
    if !tree::holds(evidence.actions, evidence.at_head, evidence.at_parent) {
        return Ownership::Foreign("the head's files are not what Collie pushed");
    }
    if evidence.own_life && evidence.build.is_of(item) { Ownership::Current(evidence.build.number) } else { Ownership::Stale }
}
