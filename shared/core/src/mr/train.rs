//! Merge trains: what Collie knows of a merge request's ride, and what it does next where GitLab shows none.
//!
//! A train never weakens INV-2: joining takes the same [`MergeTicket`](super::ticket::MergeTicket) as a merge, and the train's own
//! pipeline gives none. A merge request that its train dropped joins again once for one pair of its head and the target's; after
//! that it waits for either to move.

use super::facts::Blocker;
use crate::id::Sha;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The code of the blocker of a merge request that waits on a train.
pub const IN_TRAIN: &str = "in_merge_train";
/// The code of the blocker of a merge request that its train dropped, and that does not join again as it is.
pub const DROPPED: &str = "merge_train_dropped";
/// Times that one head joins a train on one head of the target.
const MAX_JOINS: u32 = 2;
/// Pipelines that are started for a merge request that was dropped, and the time that each has to show.
const MAX_PIPELINES: u32 = 3;
const PIPELINE_WAIT: Duration = Duration::from_secs(20 * 60);

/// How a project's merges are made (`projects.*.merge`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeMode {
    /// Collie calls for the merge.
    #[default]
    Direct,
    /// Collie puts the merge request on the merge train, which merges it.
    Train,
}

/// Where the car of a merge request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarState {
    /// On its way: `idle`, `stale`, `fresh`, or a word that Collie does not know.
    Waiting,
    /// At its end: `merging`, `merged` or `skip_merged`.
    Arriving,
}

impl CarState {
    /// The meaning of GitLab's word.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        if matches!(word, "merging" | "merged" | "skip_merged") { Self::Arriving } else { Self::Waiting }
    }
}

/// What Collie did to get one head on a train to one head of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ride {
    /// The merge request's head.
    pub head: Sha,
    /// The target's head when it joined.
    pub target_head: Sha,
    /// How often it has joined, or is about to.
    pub joins: u32,
    /// Whether the last join is known to have happened; an intent until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// Pipelines of the merge request that were started since it was dropped.
    #[serde(default)]
    pub pipelines: u32,
    /// When the last of them was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piped_at: Option<Timestamp>,
}

impl Ride {
    /// One that has not begun.
    #[must_use]
    pub const fn new(head: Sha, target_head: Sha) -> Self {
        Self { head, target_head, joins: 0, joined: false, pipelines: 0, piped_at: None }
    }

    /// This ride where it is of these heads, else a new one.
    #[must_use]
    pub fn for_heads(known: Option<&Self>, head: &Sha, target_head: &Sha) -> Self {
        let same = known.filter(|ride| ride.head == *head && ride.target_head == *target_head);
        same.cloned().unwrap_or_else(|| Self::new(head.clone(), target_head.clone()))
    }

    /// The ride with one more join intended; none where it was dropped as often as it may be. A join of which nothing is known is
    /// tried again and not counted twice.
    #[must_use]
    pub fn joining(self) -> Option<Self> {
        if self.joins > 0 && !self.joined {
            return Some(self);
        }
        self.may_join().then(|| Self { joins: self.joins + 1, joined: false, ..self })
    }

    /// The ride with one more pipeline intended; none where the last one has not had its time, or enough were started.
    #[must_use]
    pub fn piping(self, now: Timestamp) -> Option<Self> {
        let waits = self.piped_at.is_some_and(|at| now.since(at) < PIPELINE_WAIT);
        let allowed = !waits && self.pipelines < MAX_PIPELINES;
        allowed.then(|| Self { pipelines: self.pipelines + 1, piped_at: Some(now), ..self })
    }

    /// Whether another join is left.
    #[must_use]
    pub const fn may_join(&self) -> bool {
        self.joins < MAX_JOINS || !self.joined
    }
}

/// What a merge request on a train waits for.
#[must_use]
pub fn waiting(now: Timestamp) -> Blocker {
    blocker(IN_TRAIN, "it is on the merge train, which merges it when its pipeline succeeds", now)
}

/// Why a merge request that its train dropped does not join again.
#[must_use]
pub fn dropped(now: Timestamp) -> Blocker {
    let detail = "the merge train dropped it twice; it joins again when it or the target branch changes, or a person adds it";
    blocker(DROPPED, detail, now)
}

fn blocker(code: &str, detail: &str, seen_at: Timestamp) -> Blocker {
    Blocker { code: code.into(), detail: detail.into(), source: "merge_request".into(), seen_at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::NOW;

    fn ride(joins: u32, joined: bool) -> Ride {
        Ride { joins, joined, ..Ride::new(Sha::new("head"), Sha::new("target")) }
    }

    #[test]
    fn it_joins_twice_and_a_join_in_doubt_is_not_counted_again() {
        let cases = [
            (ride(0, false), Some(ride(1, false))),
            (ride(1, false), Some(ride(1, false))),
            (ride(1, true), Some(ride(2, false))),
            (ride(2, false), Some(ride(2, false))),
            (ride(2, true), None),
        ];
        for (before, after) in cases {
            assert_eq!((before.may_join(), before.clone().joining()), (after.is_some(), after), "{before:?}");
        }
    }

    #[test]
    fn another_head_of_either_side_begins_anew() {
        let known = Ride { pipelines: 1, ..ride(2, true) };
        let of = |head: &str, target: &str| Ride::for_heads(Some(&known), &Sha::new(head), &Sha::new(target));
        assert_eq!(of("head", "target"), known);
        for (head, target) in [("other", "target"), ("head", "other")] {
            assert_eq!(of(head, target), Ride::new(Sha::new(head), Sha::new(target)));
        }
        assert_eq!(Ride::for_heads(None, &known.head, &known.target_head), ride(0, false));
    }

    #[test]
    fn a_dropped_one_gets_three_pipelines_one_after_the_other() {
        let mut ride = ride(1, true);
        for n in 0..3 {
            let at = NOW.after(PIPELINE_WAIT * n);
            ride = ride.piping(at).unwrap();
            assert_eq!((ride.pipelines, ride.piped_at), (n + 1, Some(at)));
            assert_eq!(ride.clone().piping(at.after(Duration::from_secs(60))), None);
        }
        assert_eq!(ride.piping(NOW.after(PIPELINE_WAIT * 9)), None);
    }

    #[test]
    fn an_unknown_word_means_that_it_is_still_on_its_way() {
        for (word, state) in [
            ("idle", CarState::Waiting),
            ("stale", CarState::Waiting),
            ("fresh", CarState::Waiting),
            ("coupled", CarState::Waiting),
            ("merging", CarState::Arriving),
            ("merged", CarState::Arriving),
            ("skip_merged", CarState::Arriving),
        ] {
            assert_eq!(CarState::of_word(word), state, "{word}");
        }
    }

    #[test]
    fn a_row_holds_only_what_happened() {
        let text = serde_json::to_string(&ride(1, false)).unwrap();
        assert_eq!(text, r#"{"head":"head","target_head":"target","joins":1,"pipelines":0}"#);
        assert_eq!(serde_json::from_str::<Ride>(&text).unwrap(), ride(1, false));
    }
}
