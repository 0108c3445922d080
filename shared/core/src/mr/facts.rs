//! What Collie knows about a merge request item; written by lease holders alone.

use super::train::Ride;
use crate::error::Failure;
use crate::files::ContentHash;
use crate::id::{MrIid, NoteId, PipelineId, Sha, UserId};
use crate::item::{Document, Item};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Builds a row remembers, so that a late push of an earlier one is known as ours.
const BUILDS_KEPT: usize = 5;
/// Looks at the project's events for what a forced push replaced; GitLab writes them a little later than the push.
const PROOFS: u32 = 3;
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
    /// The head it was pushed over, as verified just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Sha>,
}

/// A head of someone else that a push of Collie replaced, because it came between the look at the branch and the push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The commit to restore.
    pub sha: Sha,
    /// When it happened.
    pub at: Timestamp,
    /// Whether it is on the branch again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}

/// A note about a head of someone else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// The head.
    pub head: Sha,
    /// Whether the note is known to be there.
    pub posted: bool,
}

/// What was wanted when the target was found to hold all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emptied {
    /// The files.
    pub content_hash: ContentHash,
    /// The target.
    pub target: String,
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

/// An inspection after the one of the submission, by a policy that is another by now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The policy's version.
    pub version: String,
    /// The files.
    pub content_hash: ContentHash,
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
    /// The head about which a note on foreign commits was, or is to be, posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_noted: Option<Noted>,
    /// The retry whose permission to overwrite commits of others has been used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrote_at: Option<Timestamp>,
    /// The retry for which a closed merge request was reopened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened_at: Option<Timestamp>,
    /// The end without a change (`no_change`) that has been decided and is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emptied: Option<Emptied>,
    /// Tries in a row in which GitLab did not see the branch that was just pushed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u32,
    /// Looks at the project's events that are left, to find what the last forced push replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unproven: u32,
    /// The last head of someone else that a push of Collie replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// The target's head for which a pipeline of the merged result was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piped: Option<Sha>,
    /// What was done to get the merge request on a merge train.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<Ride>,
    /// The commit that the merge made on the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_commit: Option<Sha>,
    /// The last inspection by another policy than that of the submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<Passed>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(n: &u32) -> bool {
    *n == 0
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
        self.latest().filter(|b| b.sha.is_none() && !self.rebuild && b.is_of(item))
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

    /// Whether Collie made this commit, or verified it before it pushed over it.
    #[must_use]
    pub fn has_verified(&self, sha: &Sha) -> bool {
        self.builds.iter().any(|b| b.sha.as_ref() == Some(sha) || b.over.as_ref() == Some(sha))
    }

    /// Whether this head is a build of Collie's, or may be one whose push has not been recorded yet.
    #[must_use]
    pub fn may_have_pushed(&self, head: Option<&Sha>) -> bool {
        head.is_some_and(|head| self.has_made(head)) || self.latest().is_some_and(|b| b.sha.is_none())
    }

    /// The commit of someone else that a push of Collie replaced, until it is restored or someone retries the item.
    #[must_use]
    pub fn lost(&self, item: &Item) -> Option<&Lost> {
        self.lost.as_ref().filter(|lost| !lost.restored && item.retried_at.is_none_or(|at| at < lost.at))
    }

    /// Whether Collie is ending the item without a change, and the item still wants the same.
    #[must_use]
    pub fn is_emptied(&self, item: &Item) -> bool {
        self.emptied.as_ref().is_some_and(|e| e.content_hash == item.content_hash && e.target == item.target)
    }

    /// Decides the end without a change.
    pub fn set_emptied(&mut self, item: &Item) {
        self.emptied = Some(Emptied { content_hash: item.content_hash.clone(), target: item.target.clone() });
    }

    /// Whether the item's files passed the policy of this version, at the submission or since.
    #[must_use]
    pub fn has_passed(&self, item: &Item, version: &str) -> bool {
        let again = |passed: &Passed| passed.version == version && passed.content_hash == item.content_hash;
        item.policy_version == version || self.passed.as_ref().is_some_and(again)
    }

    /// Records that the item's files passed a policy.
    pub fn note_passed(&mut self, item: &Item, version: &str) {
        let passed = || Passed { version: version.to_owned(), content_hash: item.content_hash.clone() };
        self.passed = (item.policy_version != version).then(passed);
    }

    /// The build with this number.
    #[must_use]
    pub fn build(&self, number: u64) -> Option<&Build> {
        self.builds.iter().find(|b| b.number == number)
    }

    /// Adds an intended build of the content of `rev` and forgets the oldest beyond the limit, but never the verified head: without
    /// its record the branch would look like someone else's. Its number is one more than the last.
    pub fn intend(&mut self, item: &Item, rev: u64, start_sha: Sha) -> &Build {
        let number = self.latest().map_or(1, |b| b.number + 1);
        let build =
            Build { number, rev, start_sha, content_hash: item.content_hash.clone(), target: item.target.clone(), sha: None, over: None };
        self.rebuild = false;
        self.builds.push(build);
        while self.builds.len() > BUILDS_KEPT {
            let head = self.verified_head();
            let oldest = self.builds.iter().position(|b| b.sha.is_none() || b.sha.as_ref() != head).unwrap_or_default();
            self.builds.remove(oldest);
        }
        &self.builds[self.builds.len() - 1]
    }

    /// Records the verified head that a build is about to be pushed over.
    pub fn pushes_over(&mut self, number: u64, head: &Sha) {
        if let Some(build) = self.builds.iter_mut().find(|b| b.number == number) {
            build.over = Some(head.clone());
            self.unproven = PROOFS;
        }
    }

    /// The head whose push is to be looked up in the project's events; each look is one less.
    pub fn next_proof(&mut self) -> Option<Sha> {
        let head = self.latest().filter(|build| build.over.is_some())?.sha.clone()?;
        self.unproven = self.unproven.checked_sub(1)?;
        Some(head)
    }

    /// Records what a forced push replaced: a commit of someone else is remembered, once.
    pub fn replaced(&mut self, sha: Sha, at: Timestamp) {
        self.unproven = 0;
        if !self.has_verified(&sha) && self.lost.as_ref().is_none_or(|lost| lost.sha != sha) {
            self.lost = Some(Lost { sha, at, restored: false });
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, HEAD, build};

    fn facts(builds: impl IntoIterator<Item = (u64, Option<&'static str>)>) -> Facts {
        Facts { builds: builds.into_iter().map(|(n, sha)| build(n, sha)).collect(), ..Facts::default() }
    }

    fn shown(facts: &Facts) -> Vec<(u64, Option<&str>)> {
        facts.builds.iter().map(|b| (b.number, b.sha.as_ref().map(Sha::as_str))).collect()
    }

    #[test]
    fn the_first_build_is_number_one_and_holds_what_the_item_wants() {
        let mut facts = Facts { rebuild: true, ..Facts::default() };
        let intended = facts.intend(&sample::item(), 3, Sha::new("base")).clone();
        let want = Build {
            number: 1,
            rev: 3,
            start_sha: Sha::new("base"),
            content_hash: sample::content_hash("3.5.1"),
            target: "main".into(),
            sha: None,
            over: None,
        };
        assert_eq!((intended, facts.rebuild), (want.clone(), false));
        assert_eq!((facts.intent(&sample::item()), facts.current(&sample::item())), (Some(&want), None));
    }

    #[test]
    fn each_build_counts_on_and_five_are_remembered() {
        let mut facts = Facts::default();
        for n in 1..=8 {
            let number = facts.intend(&sample::item(), n, Sha::new("base")).number;
            facts.made(number, Sha::new(format!("sha{n}")), None);
        }
        let want = [(4, Some("sha4")), (5, Some("sha5")), (6, Some("sha6")), (7, Some("sha7")), (8, Some("sha8"))];
        assert_eq!(shown(&facts), want);
    }

    #[test]
    fn the_verified_head_is_remembered_through_any_number_of_builds_that_were_never_made() {
        let mut facts = facts([(1, Some("old")), (2, Some(HEAD))]);
        for n in 3..=12 {
            assert_eq!(facts.intend(&sample::item(), n, Sha::new("base")).number, n);
            assert_eq!(facts.verified_head().map(Sha::as_str), Some(HEAD));
        }
        assert_eq!(shown(&facts), [(2, Some(HEAD)), (9, None), (10, None), (11, None), (12, None)]);
        assert!(facts.has_made(&Sha::new(HEAD)) && !facts.has_made(&Sha::new("old")));
    }

    #[test]
    fn a_made_build_is_known_by_its_commit_and_takes_the_parent_it_turned_out_to_have() {
        let mut facts = facts([(1, Some("a")), (2, None)]);
        facts.made(2, Sha::new("b"), Some(Sha::new("moved")));
        facts.made(7, Sha::new("c"), None);
        assert_eq!(shown(&facts), [(1, Some("a")), (2, Some("b"))]);
        assert_eq!(facts.build(2).map(|b| b.start_sha.as_str()), Some("moved"));
        assert_eq!(facts.build(1).map(|b| b.start_sha.as_str()), Some(build(1, None).start_sha.as_str()));
        assert_eq!(facts.build(7), None);
    }

    #[test]
    fn the_current_build_is_the_newest_if_it_is_made_wanted_and_not_to_be_rebuilt() {
        let other_content = Item { content_hash: sample::content_hash("3.5.2"), ..sample::item() };
        let other_target = Item { target: "stable".into(), ..sample::item() };
        let current = |facts: &Facts, item: &Item| facts.current(item).map(|b| b.number);
        let made = facts([(1, Some("a")), (2, Some("b"))]);
        assert_eq!(current(&made, &sample::item()), Some(2));
        assert_eq!(current(&made, &other_content), None);
        assert_eq!(current(&made, &other_target), None);
        assert_eq!(current(&Facts { rebuild: true, ..made }, &sample::item()), None);
        assert_eq!(current(&facts([(1, Some("a")), (2, None)]), &sample::item()), None);
        assert_eq!(current(&facts([]), &sample::item()), None);
    }

    #[test]
    fn an_intent_is_the_newest_build_if_it_is_wanted_and_not_made() {
        let other = Item { target: "stable".into(), ..sample::item() };
        let intent = |facts: &Facts, item: &Item| facts.intent(item).map(|b| b.number);
        let pending = facts([(1, Some("a")), (2, None)]);
        assert_eq!(intent(&pending, &sample::item()), Some(2));
        assert_eq!(intent(&pending, &other), None);
        assert_eq!(intent(&Facts { rebuild: true, ..pending.clone() }, &sample::item()), None);
        assert_eq!(intent(&facts([(1, None), (2, Some("b"))]), &sample::item()), None);
    }

    #[test]
    fn the_verified_head_is_the_newest_commit_that_is_known_to_exist() {
        let head = |facts: Facts| facts.verified_head().map(|sha| sha.as_str().to_owned());
        assert_eq!(head(facts([(1, Some("a")), (2, Some("b")), (3, None)])), Some("b".into()));
        assert_eq!(head(facts([(1, None)])), None);
    }

    #[test]
    fn a_head_that_was_pushed_over_knowingly_is_verified_and_not_made() {
        let mut facts = facts([(1, Some("a")), (2, None)]);
        facts.pushes_over(2, &Sha::new("theirs"));
        facts.pushes_over(9, &Sha::new("nobody's"));
        let of = |sha| (facts.has_made(&Sha::new(sha)), facts.has_verified(&Sha::new(sha)));
        assert_eq!((of("a"), of("theirs"), of("nobody's")), ((true, true), (false, true), (false, false)));
    }

    #[test]
    fn what_a_forced_push_replaced_is_looked_up_a_few_times_or_until_it_is_known() {
        let forced = || {
            let mut facts = facts([(1, Some("a")), (2, None)]);
            facts.pushes_over(2, &Sha::new("a"));
            assert_eq!(facts.next_proof(), None, "the push is not known yet");
            facts.made(2, Sha::new("b"), None);
            facts
        };
        let mut facts = forced();
        let looks = std::iter::from_fn(|| facts.next_proof()).take(9).collect::<Vec<_>>();
        assert_eq!(looks, [Sha::new("b"), Sha::new("b"), Sha::new("b")]);
        for (replaced, lost) in [("a", None), ("person's", Some("person's"))] {
            let mut facts = forced();
            facts.replaced(Sha::new(replaced), sample::NOW);
            assert_eq!(facts.next_proof(), None);
            assert_eq!(facts.lost.as_ref().map(|lost| lost.sha.as_str()), lost);
        }
    }

    #[test]
    fn a_lost_commit_is_remembered_until_it_is_restored_or_someone_retries() {
        let lost = |restored| Lost { sha: Sha::new("p"), at: sample::NOW, restored };
        let retried = |at| Item { retried_at: Some(at), ..sample::item() };
        let cases = [
            (lost(false), sample::item(), true),
            (lost(false), retried(sample::seconds_ago(1)), true),
            (lost(false), retried(sample::NOW), false),
            (lost(true), sample::item(), false),
        ];
        for (lost, item, want) in cases {
            assert_eq!(Facts { lost: Some(lost), ..Facts::default() }.lost(&item).is_some(), want);
        }
    }

    #[test]
    fn the_end_without_a_change_is_of_the_content_it_was_decided_for() {
        let mut facts = Facts::default();
        facts.set_emptied(&sample::item());
        let other = Item { target: "stable".into(), ..sample::item() };
        assert!(facts.is_emptied(&sample::item()) && !facts.is_emptied(&other) && !Facts::default().is_emptied(&other));
    }

    #[test]
    fn facts_come_back_from_the_row_as_they_were_and_the_empty_ones_are_short() {
        let lost = Lost { sha: Sha::new("p"), at: sample::NOW, restored: true };
        let mut facts = Facts { rechecks: 2, unseen: 1, lost: Some(lost), piped: Some(Sha::new("t")), ..sample::facts() };
        facts.set_emptied(&sample::item());
        facts.pushes_over(1, &Sha::new("o"));
        assert_eq!(Facts::of(&Item { facts: facts.document(), ..sample::item() }), Ok(facts));
        let empty = serde_json::to_string(&Facts::default().document()).unwrap();
        assert_eq!(empty, r#"{"rebuild":false,"rechecks":0}"#);
    }
}
