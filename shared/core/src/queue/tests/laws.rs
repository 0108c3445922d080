//! What holds for every row and every change that is admitted to it.

use super::*;
use proptest::prelude::*;

fn any_row() -> impl Strategy<Value = Item> {
    let lease = (any::<bool>(), -20_i64..120).prop_map(|(held, s)| held.then(|| at(s)));
    let due = prop::option::of((-20_i64..20).prop_map(at));
    let flags = prop::array::uniform3(any::<bool>());
    (sample::any_phase(), flags, lease, due, 0_u32..5, 0_usize..25).prop_map(|(phase, flags, leased_until, due_at, claims, events)| {
        let [is_blocked, cancels, actionable] = flags;
        Item {
            phase,
            blocked: is_blocked.then(|| sample::blocked(BlockedReason::Auth)),
            cancel_requested: cancels.then(sample::cancel_request),
            lease_token: leased_until.map(|_| Token::new("claim-3")),
            leased_until,
            due_at,
            claims,
            actionable,
            inbox: (0..events.min(INBOX_LIMIT)).map(|n| sample::entry(&n.to_string())).collect(),
            recent: (0..events).map(|n| Digest::new(n.to_string())).collect(),
            ..held()
        }
    })
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis().saturating_add_signed(seconds * 1000))
}

/// A number that a writer saw: mostly the row's, at times stale.
fn seen(right: u64) -> impl Strategy<Value = u64> + Clone {
    prop_oneof![6 => Just(right), 1 => Just(right - 1), 1 => Just(right + 1)]
}

fn any_belief() -> impl Strategy<Value = Belief> + Clone {
    (seen(3), seen(7), seen(5)).prop_map(|(epoch, wake_seq, commit_seq)| Belief { epoch, wake_seq, commit_seq })
}

fn any_commit() -> impl Strategy<Value = Change> {
    let ending = prop_oneof![Just(Ending::Stay), prop::option::of(Just(in_seconds(600))).prop_map(|due_at| Ending::Exit { due_at })];
    (any_belief(), sample::any_phase(), any::<bool>(), ending).prop_map(|(belief, phase, progress, ending)| {
        let next = Item { phase, ..everything_else() };
        Change::Commit(Box::new(Commit { belief, token: mark(), next, progress, ending, successor: None }))
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (-20_i64..120).prop_map(|s| claim_at(at(s))),
        (seen(3), -20_i64..200).prop_map(|(epoch, s)| Change::Heartbeat { epoch, until: at(s) }),
        any_commit(),
        any_commit(),
        any_belief().prop_map(exit_of),
        (seen(3), seen(5)).prop_map(|(epoch, commit_seq)| release_of(epoch, commit_seq)),
        (seen(4), any::<bool>()).prop_map(|(rev, revives)| update_of(rev, revives)),
        seen(4).prop_map(retry_of),
        seen(4).prop_map(cancel_of),
        (0_u32..40).prop_map(|n| append_of(&n.to_string())),
        (0_u32..40).prop_map(|n| overflow_of(&n.to_string())),
    ]
}

/// The same change under the mark of another writer.
fn by_another(change: &Change) -> Change {
    let mut change = change.clone();
    let token = Token::new("theirs");
    match &mut change {
        Change::Claim { token: t, .. } | Change::Exit { token: t, .. } | Change::Release { token: t, .. } => *t = token,
        Change::Commit(c) => c.token = token,
        Change::Update(u) => u.token = token,
        Change::Retry(r) => r.token = token,
        Change::Cancel(c) => c.token = token,
        Change::Heartbeat { .. } | Change::Append { .. } | Change::Overflow { .. } => {}
    }
    change
}

/// A row, a change that is admitted to it, and the row after it.
fn any_step() -> impl Strategy<Value = (Item, Change, Item)> {
    (any_row(), any_change()).prop_filter_map("the change is not admitted", |(row, change)| {
        (change.judge(&row) == Verdict::Apply).then(|| {
            let mut next = row.clone();
            change.apply(&mut next);
            (row, change, next)
        })
    })
}

fn is_enqueue(change: &Change) -> bool {
    matches!(change, Change::Update(_) | Change::Retry(_) | Change::Cancel(_) | Change::Append { .. } | Change::Overflow { .. })
}

fn is_by_caller(change: &Change) -> bool {
    matches!(change, Change::Update(_) | Change::Retry(_) | Change::Cancel(_))
}

/// Whether the change is a holder's write that a later one must not precede.
fn is_by_holder(change: &Change) -> bool {
    matches!(change, Change::Commit(_) | Change::Exit { .. } | Change::Release { .. })
}

fn is_exit(change: &Change) -> bool {
    match change {
        Change::Exit { .. } => true,
        Change::Commit(commit) => commit.ending != Ending::Stay,
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn only_an_enqueue_an_exit_and_a_release_write_due_at((row, change, next) in any_step()) {
        let may = is_enqueue(&change) || is_exit(&change) || matches!(change, Change::Release { .. });
        prop_assert!(may || next.due_at == row.due_at, "{}", change.name());
        prop_assert!(!is_enqueue(&change) || next.due_at == Some(in_seconds(1)), "{}", change.name());
    }

    #[test]
    fn only_an_exit_lets_an_item_sleep_and_every_enqueue_wakes_it((row, change, next) in any_step()) {
        let want = if is_exit(&change) { false } else { row.actionable || is_enqueue(&change) };
        prop_assert_eq!(next.actionable, want, "{}", change.name());
    }

    #[test]
    fn each_counter_moves_by_one_with_its_own_writers_and_with_nobody_else((row, change, next) in any_step()) {
        let moved = [
            next.wake_seq - row.wake_seq,
            next.commit_seq - row.commit_seq,
            next.rev - row.rev,
            next.lease_epoch - row.lease_epoch,
        ];
        let own = [is_enqueue(&change), is_by_holder(&change), is_by_caller(&change), matches!(change, Change::Claim { .. })];
        prop_assert_eq!(moved, own.map(u64::from), "{}", change.name());
    }

    #[test]
    fn claims_start_anew_only_with_progress_the_end_of_a_run_and_a_new_life((row, change, next) in any_step()) {
        let resets = match &change {
            Change::Commit(commit) => commit.progress || commit.ending != Ending::Stay,
            Change::Update(update) => update.revives,
            Change::Exit { .. } | Change::Release { died: false, .. } | Change::Retry(_) => true,
            _ => false,
        };
        let want = if resets { 0 } else { row.claims + u32::from(matches!(change, Change::Claim { .. })) };
        prop_assert_eq!(next.claims, want, "{}", change.name());
    }

    #[test]
    fn a_terminal_phase_is_left_only_by_a_retry_a_reviving_update_or_the_cancel_of_a_failed_item((row, change, next) in any_step()) {
        if row.phase == Phase::Active || next.phase == row.phase {
            return Ok(());
        }
        let allowed = match (row.phase, &change, next.phase) {
            (Phase::Failed | Phase::Cancelled, Change::Retry(_), Phase::Active) => true,
            (Phase::Failed, Change::Update(update), Phase::Active) => update.revives,
            (Phase::Failed, Change::Cancel(_), Phase::Cancelled) => true,
            _ => false,
        };
        prop_assert!(allowed, "{} from {:?} to {:?}", change.name(), row.phase, next.phase);
    }

    #[test]
    fn a_change_made_twice_is_known_to_have_landed((_, change, next) in any_step()) {
        // One for a full inbox leaves no mark: made twice it asks twice for the truth to be read, which changes nothing.
        let want = if matches!(change, Change::Overflow { .. }) { Verdict::Apply } else { Verdict::Landed };
        prop_assert_eq!(change.judge(&next), want, "{}", change.name());
    }

    #[test]
    fn two_writers_who_saw_the_same_never_both_write((row, first, next) in any_step(), second in any_change()) {
        let second = by_another(&second);
        let exclusive = (is_by_holder(&first) && is_by_holder(&second)) || (is_by_caller(&first) && is_by_caller(&second));
        if exclusive && second.judge(&row) == Verdict::Apply {
            prop_assert_eq!(second.judge(&next), Verdict::Refuse, "{} then {}", first.name(), second.name());
        }
    }

    #[test]
    fn an_enqueue_is_never_slept_through((_, enqueue, next) in any_step()) {
        if is_enqueue(&enqueue) {
            prop_assert_eq!(by_another(&exit_of(belief())).judge(&next), Verdict::Refuse);
            prop_assert_eq!(by_another(&commit_of(everything_else(), true, Ending::Exit { due_at: None })).judge(&next), Verdict::Refuse);
        }
    }

    #[test]
    fn a_lease_is_taken_only_by_a_claim_and_never_from_its_holder((row, change, next) in any_step()) {
        let (before, after) = (row.leased_until, next.leased_until);
        match &change {
            Change::Claim { now, .. } => {
                prop_assert!(before.is_none_or(|until| until < now.before(SKEW)));
                prop_assert_eq!(after, Some(now.after(LEASE)));
            }
            Change::Heartbeat { .. } => prop_assert!(before < after && before.is_some()),
            Change::Release { .. } => prop_assert_eq!(after, None),
            change if is_exit(change) => prop_assert_eq!(after, None),
            change => prop_assert_eq!(after, before, "{}", change.name()),
        }
    }

    #[test]
    fn identity_and_birth_never_change((row, _, next) in any_step()) {
        let same = |item: &Item| {
            (item.id.clone(), item.branch.clone(), item.generation, item.created_at, item.due_shard, item.item_type.clone())
        };
        prop_assert_eq!(same(&row), same(&next));
    }

    #[test]
    fn a_write_of_state_always_carries_its_audit_entry((row, change, next) in any_step()) {
        if is_by_caller(&change) {
            prop_assert_eq!(next.outbox.len(), row.outbox.len() + 1);
        } else if next.phase != row.phase {
            prop_assert!(matches!(&change, Change::Commit(commit) if next.outbox == commit.next.outbox), "{}", change.name());
        }
    }
}
