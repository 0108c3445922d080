//! The decider of the `mr` type: (item, now) to the one next action or a wait.
//!
//! The first rule that fits wins:
//! 0. A terminal item rests.
//! 1. A cancel request: `close`. Nothing else runs while it is pending.
//! 2. `needs_mr`, or a difference between what is built and what is wanted: `ensure_mr`. A gate: while it is needed,
//!    deferred or not, nothing below runs. A blocked item neither takes it nor is gated by it.
//! 3. `needs_dashboard`: `post_dashboard`. 4. `needs_ci_retry`: `retry_ci_jobs`.
//! 5. `needs_empty_check`: `check_empty_diff`. 6. `needs_reconcile`: `reconcile_mr`.
//!
//! Upholds INV-7 (a terminal item never acts) and INV-10 (what is not done waits with a time). Whether a merge may be made
//! is not decided here: [`super::gate`] does, from a reading of the merge request.

use super::dims;
use super::facts::Facts;
use crate::decision::{self, Action, Candidate, Decision, Finding, Next};
use crate::error::Failure;
use crate::item::{DimensionKey, Item};
use crate::time::Timestamp;

/// Ends the merge request of an item that is to be cancelled.
pub const CLOSE: Action = Action("close");
/// Makes branch, commit and merge request what the item wants.
pub const ENSURE_MR: Action = Action("ensure_mr");
/// Posts or edits the note that shows the item's state.
pub const POST_DASHBOARD: Action = Action("post_dashboard");
/// Records failed jobs, and retries those that a matcher names.
pub const RETRY_CI_JOBS: Action = Action("retry_ci_jobs");
/// Ends the item where the target already holds everything.
pub const CHECK_EMPTY_DIFF: Action = Action("check_empty_diff");
/// Reads the merge request and merges it where it may be merged.
pub const RECONCILE_MR: Action = Action("reconcile_mr");

/// Decides for an item as it is at `now`.
///
/// # Errors
/// A `Bug` where the row does not hold what this type writes.
pub fn decide(item: &Item, now: Timestamp) -> Result<Decision, Failure> {
    if !item.is_active() {
        return Ok(Decision { next: Next::Rest, report: Vec::new() });
    }
    let facts = Facts::of(item)?;
    let rules = [
        cancel(item, now),
        ensure(item, &facts, now),
        plain(item, dims::dashboard(), POST_DASHBOARD, now),
        plain(item, dims::ci_retry(), RETRY_CI_JOBS, now),
        plain(item, dims::empty_check(), CHECK_EMPTY_DIFF, now),
        plain(item, dims::reconcile(), RECONCILE_MR, now),
    ];
    Ok(decision::pick(rules.into()))
}

/// The dimension whose turn it is when an action runs; a failure defers it.
#[must_use]
pub fn dimension_of(action: Action) -> DimensionKey {
    match action {
        CLOSE => dims::close(),
        ENSURE_MR => dims::mr(),
        POST_DASHBOARD => dims::dashboard(),
        RETRY_CI_JOBS => dims::ci_retry(),
        CHECK_EMPTY_DIFF => dims::empty_check(),
        _ => dims::reconcile(),
    }
}

fn cancel(item: &Item, now: Timestamp) -> Candidate {
    let finding = match &item.cancel_requested {
        None => Finding::NotNeeded,
        Some(_) => deferral(item, &dims::close(), now).unwrap_or(Finding::Chosen),
    };
    Candidate { dimension: dims::close(), action: CLOSE, finding, gate: true }
}

fn ensure(item: &Item, facts: &Facts, now: Timestamp) -> Candidate {
    let dimension = dims::mr();
    let needed = item.dimension(&dimension).is_needed() || facts.mr.is_none() || facts.current(item).is_none();
    let finding = match deferral(item, &dimension, now) {
        _ if !needed => Finding::NotNeeded,
        _ if item.blocked.is_some() => Finding::Blocked,
        Some(deferred) => deferred,
        None => Finding::Chosen,
    };
    Candidate { dimension, action: ENSURE_MR, finding, gate: true }
}

fn plain(item: &Item, key: DimensionKey, action: Action, now: Timestamp) -> Candidate {
    let dimension = item.dimension(&key);
    let finding = match deferral(item, &key, now) {
        _ if !dimension.is_needed() => Finding::NotNeeded,
        Some(deferred) => deferred,
        None => Finding::Chosen,
    };
    Candidate { dimension: key, action, finding, gate: false }
}

fn deferral(item: &Item, key: &DimensionKey, now: Timestamp) -> Option<Finding> {
    let dimension = item.dims.get(key)?;
    let until = dimension.waits_until(now)?;
    Some(Finding::Deferred { until, why: dimension.why().to_owned() })
}
