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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Verb, blob_id};
    use crate::id::Sha;
    use crate::mr::view::{EntryKind, TreeEntry};
    use crate::sample::{self, HEAD, action};

    /// All that was read about a head, in a form that a test can change.
    struct Read {
        item: Item,
        head: Commit,
        build: Build,
        own_life: bool,
        actions: Vec<ActionRecord>,
        parent_on_target: bool,
        changed: ChangedPaths,
        at_head: Listing,
        at_parent: Listing,
    }

    fn file(path: &str, bytes: &str, executable: bool) -> TreeEntry {
        TreeEntry { path: path.into(), id: blob_id(bytes.as_bytes()), kind: EntryKind::File { executable } }
    }

    fn root(entries: Vec<TreeEntry>) -> Listing {
        Listing::from([(String::new(), Some(entries))])
    }

    /// A head that is exactly Collie's one commit of what the item wants.
    fn ours() -> Read {
        Read {
            item: sample::built(),
            head: Commit { sha: Sha::new(HEAD), parents: vec![Sha::new("base")], message: String::new() },
            build: sample::build(4, None),
            own_life: true,
            actions: vec![action(Verb::Create, "versions.txt", Some("3.5.1"))],
            parent_on_target: true,
            changed: ChangedPaths::Complete(vec!["versions.txt".into()]),
            at_head: root(vec![file("README", "hi", false), file("versions.txt", "3.5.1", false)]),
            at_parent: root(vec![file("README", "hi", false)]),
        }
    }

    fn judged(change: impl FnOnce(&mut Read)) -> Ownership {
        let mut read = ours();
        change(&mut read);
        let evidence = Evidence {
            head: &read.head,
            build: &read.build,
            own_life: read.own_life,
            actions: &read.actions,
            parent_on_target: read.parent_on_target,
            changed: &read.changed,
            at_head: &read.at_head,
            at_parent: &read.at_parent,
        };
        judge(&read.item, &evidence)
    }

    type Change = fn(&mut Read);

    #[test]
    fn exactly_our_one_commit_of_what_is_wanted_is_adopted_as_its_build() {
        assert_eq!(judged(|_| ()), Ownership::Current(4));
        let changed_less: Change = |read| read.changed = ChangedPaths::Complete(vec![]);
        assert_eq!(judged(changed_less), Ownership::Current(4));
    }

    #[test]
    fn our_commit_of_something_else_is_stale() {
        let cases: [Change; 3] = [
            |read| read.own_life = false,
            |read| read.item.content_hash = sample::content_hash("3.5.2"),
            |read| read.item.target = "stable".into(),
        ];
        for change in cases {
            assert_eq!(judged(change), Ownership::Stale);
        }
    }

    #[test]
    fn anything_that_the_evidence_does_not_prove_is_foreign() {
        let more = "the branch holds more than Collie's one commit";
        let files = "the head's files are not what Collie pushed";
        let cases: [(Change, &str); 10] = [
            (|read| read.head.parents.push(Sha::new("other")), more),
            (|read| read.head.parents.clear(), more),
            (|read| read.parent_on_target = false, more),
            (|read| read.changed = ChangedPaths::Truncated, "the head changes more than GitLab can list"),
            (
                |read| read.changed = ChangedPaths::Complete(vec!["versions.txt".into(), "evil.sh".into()]),
                "the head changes files that the item does not",
            ),
            (|read| read.at_head = root(vec![file("versions.txt", "3.5.1 and more", false)]), files),
            (|read| read.at_head = root(vec![file("versions.txt", "3.5.1", true)]), files),
            (|read| read.at_head = root(vec![TreeEntry { kind: EntryKind::Symlink, ..file("versions.txt", "3.5.1", false) }]), files),
            (|read| read.at_head = root(vec![]), files),
            (|read| read.at_head = Listing::from([(String::new(), None)]), files),
        ];
        for (change, why) in cases {
            assert_eq!(judged(change), Ownership::Foreign(why));
        }
        let of_another_life: Change = |read| (read.own_life, read.changed) = (false, ChangedPaths::Truncated);
        assert_eq!(judged(of_another_life), Ownership::Foreign("the head changes more than GitLab can list"));
    }

    #[test]
    fn both_paths_of_a_move_are_the_items_own() {
        let moved = judged(|read| {
            read.actions = vec![ActionRecord { previous_path: Some("old".into()), ..action(Verb::Move, "new", None) }];
            read.changed = ChangedPaths::Complete(vec!["old".into(), "new".into()]);
            read.at_parent = root(vec![file("old", "x", true)]);
            read.at_head = root(vec![file("new", "x", true)]);
        });
        assert_eq!(moved, Ownership::Current(4));
    }
}
