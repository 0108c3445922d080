//! The decider of the `issue` type: (item, now) to the one next action or a wait.
//!
//! The first rule that fits wins:
//! 0. A terminal item rests.
//! 1. A cancel request: `close_issue`. Nothing else runs while it is pending.
//! 2. `needs_issue`: `sync_issue`, which also sets when it is looked at next (INV-10).

use crate::decision::{self, Action, Candidate, Decision, Finding, Next};
use crate::error::Failure;
use crate::item::{Dimension, DimensionKey, Item};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Makes the GitLab issue say what is open.
pub const SYNC_ISSUE: Action = Action("sync_issue");
/// Closes the GitLab issue of an item that is to be cancelled.
pub const CLOSE_ISSUE: Action = Action("close_issue");

/// The GitLab issue is to be compared with what is open.
#[must_use]
pub fn needs_issue() -> DimensionKey {
    DimensionKey::new("needs_issue")
}

/// Stands in for the cancel request where its action is deferred.
#[must_use]
pub fn needs_close() -> DimensionKey {
    DimensionKey::new("needs_close")
}

/// The dimensions a new item is born with.
#[must_use]
pub fn seed() -> BTreeMap<DimensionKey, Dimension> {
    BTreeMap::from([(needs_issue(), Dimension::needed())])
}

/// The dimension whose turn it is when an action runs; a failure defers it.
#[must_use]
pub fn dimension_of(action: Action) -> DimensionKey {
    if action == CLOSE_ISSUE { needs_close() } else { needs_issue() }
}

/// Decides for an item as it is at `now`.
///
/// # Errors
/// None; the signature is every type's.
pub fn decide(item: &Item, now: Timestamp) -> Result<Decision, Failure> {
    if !item.is_active() {
        return Ok(Decision { next: Next::Rest, report: Vec::new() });
    }
    let close = candidate(item, needs_close(), CLOSE_ISSUE, item.cancel_requested.is_some(), now);
    let needed = item.dimension(&needs_issue()).is_needed();
    let sync = candidate(item, needs_issue(), SYNC_ISSUE, needed, now);
    Ok(decision::pick(vec![Candidate { gate: true, ..close }, sync]))
}

fn candidate(item: &Item, dimension: DimensionKey, action: Action, needed: bool, now: Timestamp) -> Candidate {
    let known = item.dims.get(&dimension);
    let deferred = known.and_then(|d| Some(Finding::Deferred { until: d.waits_until(now)?, why: d.why().to_owned() }));
    let finding = match deferred {
        _ if !needed => Finding::NotNeeded,
        Some(deferred) => deferred,
        None => Finding::Chosen,
    };
    Candidate { dimension, action, finding, gate: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{CancelRequest, Phase};
    use crate::sample::{self, NOW, in_seconds};

    fn item(dims: BTreeMap<DimensionKey, Dimension>) -> Item {
        Item { item_type: super::super::ITEM_TYPE.to_owned(), dims, ..sample::item() }
    }

    #[test]
    fn the_issue_is_synced_until_the_item_is_cancelled_or_over() {
        let next = |item: &Item| decide(item, NOW).unwrap().next;
        let new = item(seed());
        assert_eq!(next(&new), Next::Act(SYNC_ISSUE));
        let waiting = item(BTreeMap::from([(needs_issue(), Dimension::deferred(in_seconds(9), "regular look"))]));
        assert_eq!(next(&waiting), Next::Wait { until: Some(in_seconds(9)) });
        let cancel = Some(CancelRequest { by: "local|a".into(), reason: None, close_mr: true });
        assert_eq!(next(&Item { cancel_requested: cancel, ..waiting }), Next::Act(CLOSE_ISSUE));
        assert_eq!(next(&Item { phase: Phase::Completed, ..new }), Next::Rest);
    }
}
