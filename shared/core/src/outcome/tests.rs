use super::*;
use crate::mr::dims;
use crate::sample::{self, NOW, in_seconds, seconds_ago};
use proptest::prelude::*;

const MAX_ATTEMPTS: u32 = 5;
const DAY: u64 = 24 * 3600;

fn failure(class: Class) -> Failure {
    Failure::new(class, "some_code", "it went wrong")
}

fn of(class: Class, item: &Item) -> Outcome {
    of_failure(failure(class), item, &dims::mr(), MAX_ATTEMPTS, 1.0, NOW)
}

fn outage(since_seconds: u64, tries: u32) -> Option<Outage> {
    Some(Outage { since: seconds_ago(since_seconds), tries })
}

/// An outcome of a failure with this effort that defers the dimension.
fn deferring(effort: Effort, until: Timestamp, why: &str) -> Outcome {
    let outcome = Outcome::progress("some_code: it went wrong");
    Outcome { effort, ..outcome }.with(dims::mr(), Dimension::deferred(until, why))
}

fn applied(outcome: &Outcome, item: &Item) -> Item {
    let mut next = item.clone();
    outcome.apply(&mut next, item.wake_seq, item.rev, NOW);
    next
}

#[test]
fn what_gives_the_same_answer_again_ends_the_item_at_once() {
    for class in [Class::Rejected, Class::Gone] {
        let want = Outcome::progress("some_code: it went wrong").ending(End::Failed(failure(class)));
        assert_eq!(of(class, &sample::built()), want);
    }
}

#[test]
fn a_refused_credential_blocks_the_item_and_is_looked_at_again_in_half_an_hour() {
    let class = Class::Unauthorized;
    let want = deferring(Effort::Waited(failure(class)), in_seconds(1800), "the forge refuses the credential")
        .blocking(Block::Set(BlockedReason::Auth, "it went wrong".into()));
    assert_eq!(of(class, &sample::built()), want);
}

#[test]
fn a_throttled_call_waits_as_long_as_it_was_told_and_a_little_spread_and_counts_nothing() {
    let class = Class::Throttled { until: in_seconds(77) };
    let exhausted = Item { attempts: MAX_ATTEMPTS - 1, ..sample::built() };
    let want = deferring(Effort::Waited(failure(class)), in_seconds(87), "GitLab asked to slow down");
    assert_eq!(of(class, &exhausted), want);
    assert_eq!(applied(&want, &exhausted).attempts, MAX_ATTEMPTS - 1);
}

#[test]
fn a_host_that_does_not_say_for_how_long_is_left_alone_for_longer_each_time() {
    let refusal = |code| Failure::new(Class::Throttled { until: in_seconds(60) }, code, "Retry later");
    let last = |code: &str, ago| Some(LastError { code: code.into(), message: String::new(), at: crate::sample::seconds_ago(ago) });
    let cases = [
        (THROTTLED_UNTIMED, None, 60),
        (THROTTLED_UNTIMED, last(THROTTLED_UNTIMED, 10), 60),
        (THROTTLED_UNTIMED, last(THROTTLED_UNTIMED, 65), 130),
        (THROTTLED_UNTIMED, last(THROTTLED_UNTIMED, 500), 1000),
        (THROTTLED_UNTIMED, last(THROTTLED_UNTIMED, 90_000), 3600),
        (THROTTLED_UNTIMED, last("forge_unavailable", 500), 60),
        ("forge_throttled", last("forge_throttled", 500), 60),
    ];
    for (code, last_error, seconds) in cases {
        let item = Item { last_error: last_error.clone(), ..sample::built() };
        let want = Class::Throttled { until: in_seconds(seconds) };
        assert_eq!(lengthened(refusal(code), &item, NOW).class, want, "{code} {last_error:?}");
    }
    let other = failure(Class::Bug);
    assert_eq!(lengthened(other.clone(), &sample::built(), NOW), other);
}

#[test]
fn an_unanswered_call_backs_off_by_the_tries_of_its_outage_without_using_up_attempts() {
    let exhausted = Item { attempts: MAX_ATTEMPTS - 1, ..sample::built() };
    for class in [Class::Transient { answered: false }, Class::Indeterminate] {
        for (outage, seconds) in [(None, 5), (outage(60, 1), 10), (outage(60, 3), 40), (outage(DAY - 1, 99), 600)] {
            let item = Item { outage, ..exhausted.clone() };
            assert_eq!(of(class, &item), deferring(Effort::Outage(failure(class)), in_seconds(seconds), "GitLab does not answer"));
        }
    }
}

#[test]
fn an_outage_of_twenty_four_hours_ends_the_item() {
    for (since, ends) in [(DAY - 1, false), (DAY, true), (DAY + 1, true)] {
        let outcome = of(Class::Transient { answered: false }, &Item { outage: outage(since, 3), ..sample::built() });
        let end = Failure::rejected("forge_unreachable", "GitLab has not answered for 24 hours: it went wrong");
        assert_eq!(outcome.end, ends.then_some(End::Failed(end)), "{since}");
    }
}

#[test]
fn other_failures_are_tried_again_until_the_attempts_are_used_up() {
    for class in [Class::Transient { answered: true }, Class::Conflict, Class::Bug] {
        for (attempts, seconds) in [(0, 5), (1, 10), (2, 20), (3, 40)] {
            let want = deferring(Effort::Attempt(failure(class)), in_seconds(seconds), "trying again after an error");
            assert_eq!(of(class, &Item { attempts, ..sample::built() }), want, "{class:?} {attempts}");
        }
        for attempts in [4, 5, 40] {
            let last = Outcome { effort: Effort::Attempt(failure(class)), ..Outcome::progress("some_code: it went wrong") };
            let want = last.ending(End::Failed(failure(class)));
            assert_eq!(of(class, &Item { attempts, ..sample::built() }), want, "{class:?} {attempts}");
        }
    }
}

#[test]
fn five_failures_in_a_row_end_an_item_with_the_last_one() {
    let mut item = sample::built();
    for attempt in 1..=5 {
        assert!(item.is_active());
        item = applied(&of(Class::Conflict, &item), &item);
        assert_eq!(item.attempts, attempt);
    }
    let error = LastError { code: "some_code".into(), message: "it went wrong".into(), at: NOW };
    assert_eq!((item.phase, item.result, item.last_error), (Phase::Failed, None, Some(error)));
}

#[test]
fn progress_forgets_attempts_outage_and_error() {
    let error = Some(LastError::of(&failure(Class::Bug), seconds_ago(9)));
    let item = Item { attempts: 3, outage: outage(60, 2), last_error: error, ..sample::built() };
    let next = applied(&Outcome::progress("done"), &item);
    assert_eq!(next, Item { attempts: 0, outage: None, last_error: None, updated_at: NOW, ..item });
}

#[test]
fn an_outage_counts_its_tries_from_its_first_failure_and_an_answer_ends_it() {
    let unanswered = Class::Transient { answered: false };
    let item = Item { outage: outage(60, 2), attempts: 1, ..sample::built() };
    let after = |class, item: &Item| {
        let next = applied(&of(class, item), item);
        (next.outage, next.attempts)
    };
    assert_eq!(after(unanswered, &sample::built()), (outage(0, 1), 0));
    assert_eq!(after(unanswered, &item), (outage(60, 3), 1));
    assert_eq!(after(Class::Transient { answered: true }, &item), (None, 2));
    assert_eq!(after(Class::Throttled { until: in_seconds(9) }, &item), (None, 1));
    assert_eq!(after(Class::Unauthorized, &item), (None, 1));
    assert_eq!(after(Class::Indeterminate, &item), (outage(60, 3), 1));
    for unclear in [Class::Conflict, Class::Bug] {
        assert_eq!(after(unclear, &item), (outage(60, 2), 2), "{unclear:?}");
    }
}

#[test]
fn a_dimension_that_an_enqueue_wrote_later_stays_as_the_enqueue_wrote_it() {
    let outcome = Outcome::progress("done").with(dims::mr(), Dimension::done()).with(dims::reconcile(), Dimension::done());
    for (seq, stays) in [(4, false), (5, false), (6, true)] {
        let mut item = sample::built();
        item.dims.extend([(dims::mr(), Dimension::needed()), (dims::reconcile(), Dimension::needed())]);
        item.dim_seq.insert(dims::mr(), seq);
        outcome.apply(&mut item, 5, 1, NOW);
        let needed = (item.dimension(&dims::mr()).is_needed(), item.dimension(&dims::reconcile()).is_needed());
        assert_eq!(needed, (stays, false), "{seq}");
    }
}

#[test]
fn where_a_caller_moved_the_item_neither_attempts_nor_errors_nor_a_failed_end_are_written() {
    let moved = |outcome: &Outcome| {
        let mut item = Item { rev: 2, attempts: 0, ..sample::built() };
        outcome.apply(&mut item, 1, 1, NOW);
        (item.phase, item.attempts, item.last_error, item.outage)
    };
    let untouched = (Phase::Active, 0, None, None);
    for class in [Class::Rejected, Class::Bug, Class::Throttled { until: NOW }, Class::Transient { answered: false }] {
        assert_eq!(moved(&of(class, &Item { attempts: 4, ..sample::built() })), untouched, "{class:?}");
    }
    let merged = Outcome::progress("merged").ending(End::Completed(ResultKind::Merged));
    assert_eq!(moved(&merged).0, Phase::Completed);
    let empty = Outcome::progress("nothing to change").ending(End::Completed(ResultKind::NoChange));
    assert_eq!(moved(&empty), untouched, "new content is not thrown away with the old");
    let resolved = Outcome::progress("nothing is open").ending(End::Completed(ResultKind::Resolved));
    assert_eq!(moved(&resolved).0, Phase::Completed);
    let facts = crate::mr::facts::Facts { rechecks: 7, ..sample::facts() }.document();
    let mut item = Item { rev: 2, ..sample::built() };
    of(Class::Bug, &item).knowing(facts.clone()).apply(&mut item, 0, 1, NOW);
    assert_eq!(item.facts, facts);
}

#[test]
fn an_item_that_is_rung_for_after_it_was_found_resolved_is_not() {
    let resolved = Outcome::progress("nothing is open").ending(End::Completed(ResultKind::Resolved));
    let phase = |at| {
        let mut item = Item { dim_seq: [(DimensionKey::new("needs_issue"), at)].into(), ..sample::built() };
        let rev = item.rev;
        resolved.apply(&mut item, 4, rev, NOW);
        item.phase
    };
    assert_eq!((phase(4), phase(5)), (Phase::Completed, Phase::Active));
}

#[test]
fn a_block_keeps_its_since_while_the_reason_stays() {
    let set = |reason, item: &Item| applied(&Outcome::progress("x").blocking(Block::Set(reason, "new".into())), item).blocked;
    let want = |reason, since| Some(Blocked { reason, since, detail: "new".into() });
    let blocked = Item { blocked: Some(sample::blocked(BlockedReason::Auth)), ..sample::built() };
    assert_eq!(set(BlockedReason::Auth, &sample::built()), want(BlockedReason::Auth, NOW));
    assert_eq!(set(BlockedReason::Auth, &blocked), want(BlockedReason::Auth, seconds_ago(60)));
    assert_eq!(set(BlockedReason::Conflict, &blocked), want(BlockedReason::Conflict, NOW));
    assert_eq!(applied(&Outcome::progress("x"), &blocked).blocked, blocked.blocked);
    assert_eq!(applied(&Outcome::progress("x").blocking(Block::Clear), &blocked).blocked, None);
}

#[test]
fn an_end_sets_phase_and_result_and_leaves_neither_block_nor_cancel_request() {
    let item =
        Item { blocked: Some(sample::blocked(BlockedReason::Auth)), cancel_requested: Some(sample::cancel_request()), ..sample::built() };
    let cases = [
        (End::Completed(ResultKind::Merged), (Phase::Completed, Some(ResultKind::Merged))),
        (End::Completed(ResultKind::NoChange), (Phase::Completed, Some(ResultKind::NoChange))),
        (End::Cancelled(ResultKind::Closed), (Phase::Cancelled, Some(ResultKind::Closed))),
        (End::Failed(failure(Class::Gone)), (Phase::Failed, None)),
    ];
    for (end, want) in cases {
        let next = applied(&Outcome::progress("x").ending(end), &item);
        assert_eq!(((next.phase, next.result), next.blocked, next.cancel_requested), (want, None, None));
    }
}

#[test]
fn the_backoff_doubles_from_five_seconds_to_ten_minutes() {
    let ceilings: Vec<_> = (0..9).map(|tries| backoff(tries, 1.0).as_secs()).collect();
    assert_eq!(ceilings, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
    assert_eq!(backoff(u32::MAX, 1.0), Duration::from_secs(600));
    assert_eq!(backoff(2, 0.5), Duration::from_secs(10));
    assert_eq!((backoff(0, 0.0), backoff(9, -3.0)), (Duration::from_secs(1), Duration::from_secs(1)));
}

proptest! {
    #[test]
    fn a_backoff_is_between_one_second_and_its_ceiling_and_grows_with_both(tries: u32, jitter in -1.0..2.0) {
        let wait = backoff(tries, jitter);
        prop_assert!(wait >= Duration::from_secs(1) && wait <= backoff(tries, 1.0) && wait <= Duration::from_secs(600));
        prop_assert!(wait <= backoff(tries.saturating_add(1), jitter) && wait <= backoff(tries, jitter + 0.1));
    }

    #[test]
    fn every_failure_either_ends_the_item_or_defers_exactly_the_dimension_whose_turn_it_was(
        class in prop::sample::select(vec![
            Class::Rejected, Class::Conflict, Class::Indeterminate, Class::Unauthorized, Class::Gone, Class::Bug,
            Class::Transient { answered: true }, Class::Transient { answered: false }, Class::Throttled { until: in_seconds(3) },
        ]),
        attempts in 0_u32..7, since in prop::option::of(0..2 * DAY), jitter in 0.0..=1.0,
    ) {
        let item = Item { attempts, outage: since.and_then(|s| outage(s, 1)), ..sample::built() };
        let outcome = of_failure(failure(class), &item, &dims::ci_retry(), MAX_ATTEMPTS, jitter, NOW);
        if outcome.end.is_some() {
            prop_assert!(outcome.dims.is_empty() && matches!(outcome.end, Some(End::Failed(_))));
        } else {
            let [(key, dimension)] = outcome.dims.as_slice() else { panic!("{:?}", outcome.dims) };
            prop_assert_eq!(key, &dims::ci_retry());
            prop_assert!(dimension.waits_until(NOW).is_some() && !dimension.why().is_empty());
        }
    }
}
