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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{BlockedReason, Dimension, Phase};
    use crate::mr::facts::Facts;
    use crate::sample::{self, NOW, in_seconds, seconds_ago};
    use proptest::prelude::*;

    /// The decision in one line: what comes next, then what each rule found, in order.
    fn show(decision: &Decision) -> String {
        let at = |t: Timestamp| format!("+{}", t.since(NOW).as_secs());
        let next = match &decision.next {
            Next::Act(Action(name)) => (*name).to_owned(),
            Next::Wait { until } => format!("wait {}", until.map_or("for ever".to_owned(), at)),
            Next::Rest => "rest".to_owned(),
        };
        let findings = decision.report.iter().map(|rule| match &rule.finding {
            Finding::Chosen => " chosen".to_owned(),
            Finding::Deferred { until, why } => format!(" {}({why})", at(*until)),
            Finding::NotNeeded => " -".to_owned(),
            Finding::Blocked => " blocked".to_owned(),
            Finding::Gated => " gated".to_owned(),
        });
        format!("{next} |{}", findings.collect::<String>())
    }

    fn check(cases: impl IntoIterator<Item = (Item, &'static str)>) {
        for (item, want) in cases {
            assert_eq!(show(&decide(&item, NOW).unwrap()), want, "{:?} blocked {:?}", item.dims, item.blocked);
        }
    }

    fn built(dims: impl IntoIterator<Item = (DimensionKey, Dimension)>) -> Item {
        let mut item = sample::built();
        item.dims.extend(dims);
        item
    }

    fn later(seconds: u64, why: &str) -> Dimension {
        Dimension::deferred(in_seconds(seconds), why)
    }

    #[test]
    fn the_report_names_every_rule_with_its_action_in_the_order_of_priority() {
        let report = decide(&sample::built(), NOW).unwrap().report;
        let rules: Vec<_> = report.iter().map(|rule| (rule.dimension.as_str(), rule.action.0)).collect();
        let want = [
            ("needs_close", "close"),
            ("needs_mr", "ensure_mr"),
            ("needs_dashboard", "post_dashboard"),
            ("needs_ci_retry", "retry_ci_jobs"),
            ("needs_empty_check", "check_empty_diff"),
            ("needs_reconcile", "reconcile_mr"),
        ];
        assert_eq!(rules, want);
        for rule in report {
            assert_eq!(dimension_of(rule.action), rule.dimension);
        }
    }

    #[test]
    fn the_first_needed_rule_wins_and_gates_everything_below_it() {
        let order = [dims::mr(), dims::dashboard(), dims::ci_retry(), dims::empty_check(), dims::reconcile()];
        let from = |n: usize| built(order[n..].iter().map(|key| (key.clone(), Dimension::needed())));
        check([
            (Item { cancel_requested: Some(sample::cancel_request()), ..from(0) }, "close | chosen gated gated gated gated gated"),
            (from(0), "ensure_mr | - chosen gated gated gated gated"),
            (from(1), "post_dashboard | - - chosen gated gated gated"),
            (from(2), "retry_ci_jobs | - - - chosen gated gated"),
            (from(3), "check_empty_diff | - - - - chosen gated"),
            (from(4), "reconcile_mr | - - - - - chosen"),
            (from(5), "wait for ever | - - - - - -"),
        ]);
    }

    #[test]
    fn an_absent_dimension_means_actionable() {
        let without = |key: DimensionKey| {
            let mut item = sample::built();
            item.dims.remove(&key);
            item
        };
        check([
            (without(dims::mr()), "ensure_mr | - chosen gated gated gated gated"),
            (without(dims::dashboard()), "post_dashboard | - - chosen gated gated gated"),
            (without(dims::reconcile()), "reconcile_mr | - - - - - chosen"),
        ]);
    }

    #[test]
    fn a_deferred_needs_mr_closes_the_gate_and_is_the_only_wait() {
        let item =
            built([(dims::mr(), later(60, "an error")), (dims::dashboard(), Dimension::needed()), (dims::reconcile(), later(9, "x"))]);
        check([(item, "wait +60 | - +60(an error) gated gated gated gated")]);
    }

    #[test]
    fn a_deferral_below_the_gate_lets_the_next_rule_run_and_the_earliest_one_is_the_wait() {
        let deferred = [(dims::dashboard(), later(30, "a")), (dims::ci_retry(), later(20, "b")), (dims::reconcile(), later(25, "c"))];
        let due = (dims::reconcile(), Dimension::deferred(NOW, "due"));
        check([
            (built(deferred.clone()), "wait +20 | - - +30(a) +20(b) - +25(c)"),
            (built(deferred.into_iter().chain([due])), "reconcile_mr | - - +30(a) +20(b) - chosen"),
        ]);
    }

    #[test]
    fn a_blocked_item_neither_ensures_its_merge_request_nor_waits_behind_it() {
        let blocked = |dims: Vec<_>| Item { blocked: Some(sample::blocked(BlockedReason::ForeignCommits)), ..built(dims) };
        let unbuilt = |item: Item| Item { facts: Facts::default().document(), ..item };
        check([
            (blocked(vec![(dims::mr(), Dimension::needed())]), "wait for ever | - blocked - - - -"),
            (blocked(vec![(dims::mr(), later(5, "x")), (dims::reconcile(), Dimension::needed())]), "reconcile_mr | - blocked - - - chosen"),
            (unbuilt(blocked(vec![(dims::reconcile(), later(1800, "re-check"))])), "wait +1800 | - blocked - - - +1800(re-check)"),
            (blocked(vec![]), "wait for ever | - - - - - -"),
        ]);
    }

    #[test]
    fn a_cancel_request_comes_first_even_blocked_and_deferred_it_is_still_a_gate() {
        let cancelling = |item: Item| Item { cancel_requested: Some(sample::cancel_request()), ..item };
        let blocked = Item { blocked: Some(sample::blocked(BlockedReason::Auth)), ..sample::item() };
        check([
            (cancelling(blocked), "close | chosen gated gated gated gated gated"),
            (cancelling(built([(dims::close(), later(40, "an error"))])), "wait +40 | +40(an error) gated gated gated gated gated"),
            (
                cancelling(built([(dims::close(), Dimension::deferred(seconds_ago(1), "x"))])),
                "close | chosen gated gated gated gated gated",
            ),
            (built([(dims::close(), later(40, "no request any more"))]), "wait for ever | - - - - - -"),
        ]);
    }

    #[test]
    fn a_difference_between_built_and_wanted_counts_as_needed() {
        let with = |change: fn(&mut Facts)| {
            let mut facts = sample::facts();
            change(&mut facts);
            Item { facts: facts.document(), ..sample::built() }
        };
        let ensures = "ensure_mr | - chosen gated gated gated gated";
        check([
            (Item { content_hash: sample::content_hash("3.5.2"), ..sample::built() }, ensures),
            (Item { target: "stable".into(), ..sample::built() }, ensures),
            (with(|facts| facts.rebuild = true), ensures),
            (with(|facts| facts.mr = None), ensures),
            (with(|facts| facts.builds.clear()), ensures),
            (with(|facts| facts.builds.push(sample::build(2, None))), ensures),
            (with(|facts| facts.set_emptied(&sample::item())), "wait for ever | - - - - - -"),
            (Item { metadata_hash: "other".into(), ..sample::built() }, "wait for ever | - - - - - -"),
        ]);
    }

    #[test]
    fn a_terminal_item_rests_without_a_report() {
        for phase in [Phase::Completed, Phase::Failed, Phase::Cancelled] {
            let item = Item { phase, cancel_requested: Some(sample::cancel_request()), ..sample::item() };
            assert_eq!(decide(&item, NOW), Ok(Decision { next: Next::Rest, report: Vec::new() }));
        }
    }

    #[test]
    fn a_row_that_does_not_hold_the_facts_of_this_type_is_a_bug() {
        let failure = decide(&Item { facts: Default::default(), ..sample::item() }, NOW).unwrap_err();
        assert_eq!((failure.class, failure.code), (crate::error::Class::Bug, "internal"));
    }

    /// Every time at which a dimension of this item stops waiting.
    fn deferrals(item: &Item) -> Vec<Timestamp> {
        item.dims.values().filter_map(|d| d.waits_until(NOW)).collect()
    }

    proptest! {
        #[test]
        fn it_acts_exactly_on_active_items_and_never_on_terminal_ones(item in sample::any_item()) {
            let decision = decide(&item, NOW).unwrap();
            prop_assert_eq!(decision.next == Next::Rest, item.phase != Phase::Active);
        }

        #[test]
        fn a_wait_ends_in_the_future_and_nothing_is_chosen_before_its_end(item in sample::any_item()) {
            let Next::Wait { until } = decide(&item, NOW).unwrap().next else { return Ok(()) };
            for at in deferrals(&item).into_iter().filter(|&at| until.is_none_or(|until| at < until)) {
                prop_assert_eq!(decide(&item, at).unwrap().next, Next::Wait { until });
            }
            if let Some(until) = until {
                prop_assert!(until > NOW);
                prop_assert!(matches!(decide(&item, until).unwrap().next, Next::Act(_)), "nothing to do when the wait ends");
            }
        }

        #[test]
        fn exactly_the_chosen_rule_is_the_action(item in sample::any_item()) {
            let decision = decide(&item, NOW).unwrap();
            let chosen: Vec<_> = decision.report.iter().filter(|r| r.finding == Finding::Chosen).map(|r| Next::Act(r.action)).collect();
            let acts: Vec<_> = Some(decision.next).into_iter().filter(|next| matches!(next, Next::Act(_))).collect();
            prop_assert_eq!(chosen, acts);
        }

        #[test]
        fn a_blocked_item_never_ensures_its_merge_request(item in sample::any_item()) {
            let item = Item { blocked: Some(sample::blocked(BlockedReason::Auth)), ..item };
            prop_assert_ne!(decide(&item, NOW).unwrap().next, Next::Act(ENSURE_MR));
        }
    }
}
