use super::*;
use crate::item::{BlockedReason, LastError, MAX_CLAIMS, Outage, ResultKind};
use crate::mr::dims;
use crate::sample::{self, NOW, in_seconds, seconds_ago};

mod laws;

/// A row whose lease is held under epoch 3, after enqueue 7 and commit 5.
fn held() -> Item {
    Item {
        rev: 4,
        wake_seq: 7,
        lease_epoch: 3,
        commit_seq: 5,
        claims: 2,
        commit_token: Some(Token::new("commit-5")),
        lease_token: Some(Token::new("claim-3")),
        leased_until: Some(in_seconds(60)),
        ..sample::built()
    }
}

/// The same row with no lease, waiting for `due_at`.
fn idle() -> Item {
    Item { leased_until: None, lease_token: None, claims: 0, actionable: false, due_at: Some(in_seconds(600)), ..held() }
}

fn belief() -> Belief {
    Belief { epoch: 3, wake_seq: 7, commit_seq: 5 }
}

fn mark() -> Token {
    Token::new("mine")
}

fn needs_mr() -> Enqueue {
    Enqueue { dims: vec![(dims::mr(), Dimension::needed())], now: in_seconds(1) }
}

fn claim_at(now: Timestamp) -> Change {
    Change::Claim { now, token: mark() }
}

fn commit_of(next: Item, progress: bool, ending: Ending) -> Change {
    Change::Commit(Box::new(Commit { belief: belief(), token: mark(), next, progress, ending, successor: None }))
}

fn exit_of(belief: Belief) -> Change {
    Change::Exit { belief, token: mark(), due_at: Some(in_seconds(1800)), outbox: vec![sample::audit("kept")] }
}

fn release_of(epoch: u64, commit_seq: u64) -> Change {
    Change::Release { epoch, commit_seq, token: mark(), now: in_seconds(1), died: false }
}

fn update_of(rev: u64, revives: bool) -> Change {
    Change::Update(Box::new(Update {
        rev,
        token: mark(),
        content: sample::content(),
        content_hash: sample::content_hash("3.5.2"),
        metadata_hash: "other".into(),
        target: "stable".into(),
        policy_version: "p2".into(),
        wanted: Document::of(&"wanted"),
        revives,
        enqueue: needs_mr(),
        audit: sample::audit("update"),
    }))
}

fn retry_of(rev: u64) -> Change {
    let head = sample::branch_head();
    let wanted = Document::of(&"wanted");
    Change::Retry(Box::new(Retry { rev, head, token: mark(), wanted, enqueue: needs_mr(), audit: sample::audit("retry") }))
}

fn cancel_of(rev: u64) -> Change {
    let request = sample::cancel_request();
    Change::Cancel(Box::new(Cancel { rev, token: mark(), request, now: in_seconds(1), audit: sample::audit("cancel") }))
}

fn append_of(digest: &str) -> Change {
    Change::Append { entry: Box::new(sample::entry(digest)), now: in_seconds(1) }
}

fn overflow_of(digest: &str) -> Change {
    Change::Overflow { digest: Digest::new(digest), enqueue: needs_mr() }
}

fn after(change: &Change, row: &Item) -> Item {
    assert_eq!(change.judge(row), Verdict::Apply, "{} on {row:?}", change.name());
    let mut next = row.clone();
    change.apply(&mut next);
    next
}

fn check(change: &Change, row: &Item, want: Verdict) {
    assert_eq!(change.judge(row), want, "{change:?} on {row:?}");
}

/// The row with what every enqueue writes.
fn enqueued(row: Item) -> Item {
    Item { wake_seq: row.wake_seq + 1, actionable: true, due_at: Some(in_seconds(1)), ..row }
}

/// The row with `needs_mr` written by this enqueue.
fn with_needs_mr(mut row: Item) -> Item {
    row.dims.insert(dims::mr(), Dimension::needed());
    row.dim_seq.insert(dims::mr(), row.wake_seq);
    row
}

/// The row with what every API write writes.
fn written(row: Item, audit: &str) -> Item {
    let outbox = row.outbox.iter().cloned().chain([sample::audit(audit)]).collect();
    Item { rev: row.rev + 1, write_token: mark(), updated_at: in_seconds(1), outbox, ..row }
}

#[test]
fn a_claim_takes_a_lease_that_nobody_holds_of_an_item_with_a_reason_to_look() {
    let row = Item { actionable: true, ..idle() };
    let want = Item { leased_until: Some(in_seconds(90)), lease_token: Some(mark()), lease_epoch: 4, claims: 1, ..row.clone() };
    assert_eq!(after(&claim_at(NOW), &row), want);
}

#[test]
fn a_claim_allows_for_skew_on_the_lease_and_on_the_due_time() {
    let leased = |until| Item { leased_until: Some(until), actionable: true, ..idle() };
    let due = |due_at| Item { due_at, ..idle() };
    let cases = [
        (leased(in_seconds(60)), false),
        (leased(seconds_ago(5)), false),
        (leased(seconds_ago(6)), true),
        (due(Some(in_seconds(5))), true),
        (due(Some(in_seconds(6))), false),
        (due(Some(seconds_ago(600))), true),
        (due(None), false),
        (Item { actionable: true, ..due(None) }, true),
    ];
    for (row, takes) in cases {
        check(&claim_at(NOW), &row, if takes { Verdict::Apply } else { Verdict::Refuse });
        assert_eq!(is_claimable(&row, NOW), takes);
    }
}

#[test]
fn a_terminal_item_that_is_due_can_be_claimed_so_that_its_rest_is_done() {
    for phase in [Phase::Completed, Phase::Failed, Phase::Cancelled] {
        check(&claim_at(NOW), &Item { phase, actionable: true, ..idle() }, Verdict::Apply);
    }
}

#[test]
fn claims_count_up_past_the_limit_until_something_resets_them() {
    let crashed = |row: &Item| after(&claim_at(NOW), &Item { leased_until: None, lease_token: None, ..row.clone() });
    let mut row = Item { actionable: true, ..idle() };
    for claims in 1..=MAX_CLAIMS + 1 {
        row = crashed(&row);
        assert_eq!(row.claims, claims);
    }
}

#[test]
fn a_heartbeat_moves_only_the_lease_of_its_own_epoch_and_only_forward() {
    let beat = |epoch, until| Change::Heartbeat { epoch, until };
    let row = held();
    assert_eq!(after(&beat(3, in_seconds(61)), &row), Item { leased_until: Some(in_seconds(61)), ..row.clone() });
    check(&beat(3, in_seconds(60)), &row, Verdict::Landed);
    check(&beat(3, in_seconds(59)), &row, Verdict::Landed);
    check(&beat(2, in_seconds(61)), &row, Verdict::Refuse);
    check(&beat(4, in_seconds(61)), &row, Verdict::Refuse);
    check(&beat(3, in_seconds(61)), &idle(), Verdict::Refuse);
}

/// Beliefs with each field wrong in turn, in both directions.
fn wrong_beliefs() -> Vec<Belief> {
    let right = belief();
    [-1, 1]
        .into_iter()
        .flat_map(|by| {
            let off = |n: u64| n.saturating_add_signed(by);
            [
                Belief { epoch: off(right.epoch), ..right },
                Belief { wake_seq: off(right.wake_seq), ..right },
                Belief { commit_seq: off(right.commit_seq), ..right },
            ]
        })
        .collect()
}

#[test]
fn a_belief_is_what_the_row_shows() {
    assert_eq!(Belief::of(&held()), belief());
}

#[test]
fn a_commit_and_an_exit_need_every_part_of_their_belief() {
    for belief in wrong_beliefs() {
        check(&exit_of(belief), &held(), Verdict::Refuse);
        let Change::Commit(mut commit) = commit_of(held(), true, Ending::Stay) else { unreachable!() };
        commit.belief = belief;
        check(&Change::Commit(commit), &held(), Verdict::Refuse);
    }
    for phase in [Phase::Completed, Phase::Failed, Phase::Cancelled] {
        let row = Item { phase, ..held() };
        check(&commit_of(held(), true, Ending::Stay), &row, Verdict::Refuse);
        check(&exit_of(belief()), &row, Verdict::Apply);
    }
}

#[test]
fn a_commit_is_known_again_by_its_epoch_and_token_alone() {
    let landed = Item { commit_seq: 6, commit_token: Some(mark()), ..held() };
    let next_lease = Item { lease_epoch: 4, ..landed.clone() };
    for change in [commit_of(held(), true, Ending::Stay), exit_of(belief()), release_of(3, 5)] {
        check(&change, &landed, Verdict::Landed);
        check(&change, &next_lease, Verdict::Refuse);
    }
}

/// A next state in which every field differs from [`held`].
fn everything_else() -> Item {
    Item {
        phase: Phase::Completed,
        result: Some(ResultKind::Merged),
        blocked: Some(sample::blocked(BlockedReason::Conflict)),
        last_error: Some(LastError { code: "c".into(), message: "m".into(), at: NOW }),
        attempts: 9,
        outage: Some(Outage { since: NOW, tries: 1 }),
        cancel_requested: Some(sample::cancel_request()),
        retried_at: Some(NOW),
        last_event_at: Some(NOW),
        updated_at: in_seconds(3),
        rev: 99,
        wake_seq: 99,
        lease_epoch: 99,
        commit_seq: 99,
        claims: 99,
        write_token: Token::new("x"),
        commit_token: None,
        lease_token: None,
        leased_until: None,
        actionable: false,
        due_at: None,
        due_shard: 3,
        dims: dims::seed(NOW),
        dim_seq: std::collections::BTreeMap::from([(dims::mr(), 99)]),
        inbox: vec![sample::entry("in")],
        recent: vec![Digest::new("in")],
        outbox: vec![sample::audit("out")],
        content_hash: sample::content_hash("other"),
        metadata_hash: "x".into(),
        target: "x".into(),
        policy_version: "x".into(),
        wanted: Document::of(&"x"),
        facts: Document::of(&"x"),
        generation: 99,
        created_at: in_seconds(3),
        ..sample::item()
    }
}

#[test]
fn a_commit_writes_the_holders_fields_and_nothing_that_others_own() {
    let (row, next) = (held(), everything_else());
    let want = Item {
        phase: next.phase,
        result: next.result,
        blocked: next.blocked.clone(),
        last_error: next.last_error.clone(),
        attempts: next.attempts,
        outage: next.outage,
        cancel_requested: next.cancel_requested.clone(),
        last_event_at: next.last_event_at,
        updated_at: next.updated_at,
        dims: next.dims.clone(),
        inbox: next.inbox.clone(),
        recent: next.recent.clone(),
        outbox: next.outbox.clone(),
        facts: next.facts.clone(),
        commit_seq: 6,
        commit_token: Some(mark()),
        ..row.clone()
    };
    assert_eq!(after(&commit_of(next.clone(), false, Ending::Stay), &row), want);
    assert_eq!(after(&commit_of(next.clone(), true, Ending::Stay), &row), Item { claims: 0, ..want.clone() });
    let ended = Item { claims: 0, actionable: false, due_at: None, leased_until: None, lease_token: None, ..want };
    assert_eq!(after(&commit_of(next, false, Ending::Exit { due_at: None }), &row), ended);
}

#[test]
fn an_exit_drops_the_lease_and_lets_the_item_sleep_until_it_is_due() {
    let row = held();
    let want = Item {
        actionable: false,
        due_at: Some(in_seconds(1800)),
        claims: 0,
        leased_until: None,
        lease_token: None,
        commit_seq: 6,
        commit_token: Some(mark()),
        outbox: vec![sample::audit("kept")],
        ..row.clone()
    };
    assert_eq!(after(&exit_of(belief()), &row), want);
}

#[test]
fn a_release_drops_the_lease_of_an_item_that_stays_actionable_and_is_due_now() {
    let row = held();
    let want = Item {
        due_at: Some(in_seconds(1)),
        claims: 0,
        leased_until: None,
        lease_token: None,
        commit_seq: 6,
        commit_token: Some(mark()),
        ..row.clone()
    };
    assert_eq!(after(&release_of(3, 5), &row), want);
    let orphan = Change::Release { epoch: 3, commit_seq: 5, token: mark(), now: in_seconds(1), died: true };
    assert_eq!(after(&orphan, &row), Item { claims: row.claims, ..want });
    check(&release_of(3, 5), &Item { wake_seq: 8, ..held() }, Verdict::Apply);
    for (epoch, commit_seq) in [(2, 5), (4, 5), (3, 4), (3, 6)] {
        check(&release_of(epoch, commit_seq), &row, Verdict::Refuse);
    }
}

#[test]
fn an_update_writes_what_is_wanted_and_enqueues() {
    let row = Item { attempts: 3, last_error: everything_else().last_error, blocked: everything_else().blocked, ..held() };
    let content = Item {
        content_hash: sample::content_hash("3.5.2"),
        metadata_hash: "other".into(),
        target: "stable".into(),
        policy_version: "p2".into(),
        wanted: Document::of(&"wanted"),
        attempts: 0,
        last_error: None,
        ..row.clone()
    };
    assert_eq!(after(&update_of(4, false), &row), with_needs_mr(enqueued(written(content.clone(), "update"))));
    let failed = Item { phase: Phase::Failed, outage: everything_else().outage, ..row };
    let revived = Item { retried_at: Some(in_seconds(1)), claims: 0, blocked: None, ..content };
    assert_eq!(after(&update_of(4, true), &failed), with_needs_mr(enqueued(written(revived, "update"))));
}

#[test]
fn an_update_needs_the_rev_it_saw_and_the_phase_it_is_for() {
    let cancelling = |phase| Item { cancel_requested: Some(sample::cancel_request()), phase, ..held() };
    let phase = |phase| Item { phase, ..held() };
    let cases = [
        (held(), true, false),
        (cancelling(Phase::Active), false, false),
        (phase(Phase::Failed), false, true),
        (cancelling(Phase::Failed), false, true),
        (phase(Phase::Completed), false, false),
        (phase(Phase::Cancelled), false, false),
    ];
    let verdict = |applies| if applies { Verdict::Apply } else { Verdict::Refuse };
    for (row, updates, revives) in cases {
        check(&update_of(4, false), &row, verdict(updates));
        check(&update_of(4, true), &row, verdict(revives));
        for rev in [3, 5] {
            check(&update_of(rev, false), &row, Verdict::Refuse);
            check(&update_of(rev, true), &row, Verdict::Refuse);
        }
        check(&update_of(4, false), &Item { rev: 5, write_token: mark(), ..row }, Verdict::Landed);
    }
}

#[test]
fn a_retry_brings_back_what_failed_was_cancelled_or_is_blocked_and_nothing_else() {
    let blocked = Item { blocked: Some(sample::blocked(BlockedReason::ForeignCommits)), ..held() };
    let cancelling = Item { cancel_requested: Some(sample::cancel_request()), ..blocked.clone() };
    let cases = [
        (Item { phase: Phase::Failed, ..held() }, true),
        (Item { phase: Phase::Cancelled, result: Some(ResultKind::Cancelled), ..held() }, true),
        (blocked, true),
        (cancelling, false),
        (held(), false),
        (Item { phase: Phase::Completed, ..held() }, false),
    ];
    for (row, retries) in cases {
        assert_eq!(is_retryable(&row), retries);
        check(&retry_of(3), &row, Verdict::Refuse);
        if !retries {
            check(&retry_of(4), &row, Verdict::Refuse);
            continue;
        }
        let back = Item {
            phase: Phase::Active,
            wanted: Document::of(&"wanted"),
            attempts: 0,
            last_error: None,
            retried_at: Some(in_seconds(1)),
            claims: 0,
            result: None,
            blocked: None,
            cancel_requested: None,
            outage: None,
            ..row.clone()
        };
        assert_eq!(after(&retry_of(4), &row), with_needs_mr(enqueued(written(back, "retry"))));
    }
}

#[test]
fn a_cancel_is_a_request_on_an_active_item_and_the_end_of_a_failed_one() {
    let requested = Item { cancel_requested: Some(sample::cancel_request()), ..held() };
    assert_eq!(after(&cancel_of(4), &held()), enqueued(written(requested.clone(), "cancel")));
    let failed = Item { phase: Phase::Failed, ..held() };
    let ended = Item { phase: Phase::Cancelled, result: Some(ResultKind::Cancelled), ..held() };
    assert_eq!(after(&cancel_of(4), &failed), enqueued(written(ended.clone(), "cancel")));
    for row in [requested, ended, Item { phase: Phase::Completed, ..held() }] {
        assert!(!is_cancellable(&row));
        check(&cancel_of(4), &row, Verdict::Refuse);
    }
    check(&cancel_of(5), &held(), Verdict::Refuse);
    check(&cancel_of(3), &failed, Verdict::Refuse);
}

#[test]
fn an_event_is_stored_with_its_digest_and_enqueues_no_dimension_of_its_own() {
    let row = Item { recent: vec![Digest::new("old")], ..held() };
    let stored = Item { inbox: vec![sample::entry("d")], recent: vec![Digest::new("old"), Digest::new("d")], ..row.clone() };
    assert_eq!(after(&append_of("d"), &row), enqueued(stored));
    check(&append_of("old"), &row, Verdict::Landed);
}

#[test]
fn an_event_needs_an_active_item_with_room_and_one_for_a_full_inbox_only_an_active_item() {
    let entries = |n: usize| (0..n).map(|n| sample::entry(&n.to_string())).collect();
    let digests = |n: usize| (0..n).map(|n| Digest::new(n.to_string())).collect();
    let cases = [
        (Item { inbox: entries(19), ..held() }, Verdict::Apply, Verdict::Apply),
        (Item { inbox: entries(20), ..held() }, Verdict::Refuse, Verdict::Apply),
        (Item { recent: digests(39), ..held() }, Verdict::Apply, Verdict::Apply),
        (Item { recent: digests(40), ..held() }, Verdict::Refuse, Verdict::Apply),
        (Item { phase: Phase::Completed, ..held() }, Verdict::Refuse, Verdict::Refuse),
        (Item { phase: Phase::Failed, ..held() }, Verdict::Refuse, Verdict::Refuse),
        (Item { phase: Phase::Cancelled, ..held() }, Verdict::Refuse, Verdict::Refuse),
    ];
    for (row, appends, overflows) in cases {
        check(&append_of("new"), &row, appends);
        check(&overflow_of("new"), &row, overflows);
    }
    let seen = Item { recent: digests(40), ..held() };
    check(&append_of("7"), &seen, Verdict::Landed);
    check(&overflow_of("7"), &seen, Verdict::Landed);
    assert_eq!(after(&overflow_of("new"), &held()), with_needs_mr(enqueued(held())));
}

#[test]
fn a_birth_puts_the_branch_head_one_version_on() {
    let creation = |replaces| Creation { item: Item { generation: 3, ..sample::item() }, content: sample::content(), replaces };
    let head = |version| BranchHead { item_id: sample::item().id, generation: 3, version };
    assert_eq!(creation(None).head(), head(1));
    assert_eq!(creation(Some(BranchHead { version: 8, ..sample::branch_head() })).head(), head(9));
}

#[test]
fn every_change_has_a_name_of_its_own() {
    let changes = [
        claim_at(NOW),
        Change::Heartbeat { epoch: 1, until: NOW },
        commit_of(held(), true, Ending::Stay),
        exit_of(belief()),
        release_of(3, 5),
        update_of(4, true),
        retry_of(4),
        cancel_of(4),
        append_of("d"),
        overflow_of("d"),
    ];
    let names = changes.map(|change| change.name());
    assert_eq!(names, ["claim", "heartbeat", "commit", "exit", "release", "update", "retry", "cancel", "append", "overflow"]);
}
