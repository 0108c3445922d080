//! Stories of issue tracking: what waits, what is given up, what is lost and found again, what it costs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and its counts are read")]

use collie_core::issue::call::Coverage;
use collie_core::issue::delivery::Reason;
use collie_core::issue::hook::Notice;
use collie_core::issue::id::{BuildId, RequestId, Source};
use collie_core::issue::key::IssueKey;
use collie_core::issue::lifecycle::opening;
use collie_core::issue::row::{Analysis, Event, Finding, Issue, Milestone, Outcome, RowKey, Status};
use collie_core::issue::table::{Belief, Edit};
use collie_core::time::Timestamp;
use collie_engine::cost::Meter;
use collie_engine::ports::{TrackingRows as _, Written};
use collie_engine::tracking::calls::Error;
use collie_engine::tracking::read::Paging;
use collie_scenarios::Effects;
use collie_scenarios::tracked::{Tracked, build_of, key};
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn queue() -> Tracked {
    Tracked::new(Effects::default())
}

fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

#[tokio::test]
async fn requests_are_numbered_past_nine_and_ninety_nine_and_tracked_in_that_order() {
    let queue = queue();
    for n in 1..=101 {
        let keys: &[&str] = if n % 2 == 1 { &["t/a"] } else { &[] };
        assert_eq!(queue.built(&format!("commit {n}"), keys, Outcome::Failed).await, id(n));
    }
    queue.settle().await;
    let seen = queue.seen(101).await;
    let history: Vec<_> = (1..=101).map(|n| (if n % 2 == 1 { Event::Opened } else { Event::Closed }, n)).collect();
    assert_eq!((seen.log["t / a"].clone(), seen.open), (history, vec![("t / a".to_owned(), 101)]));
}

#[tokio::test]
async fn a_uri_is_admitted_once_and_a_request_has_one_build() {
    let queue = queue();
    assert_eq!((queue.start("commit").await, queue.admit("commit").await, queue.admit("other").await), (id(1), id(1), id(2)));
    let other = queue.tracking().associate(queue.name(), id(1), &BuildId::new("b9")).await;
    assert_eq!(other.unwrap_err().to_string(), "the request has another build");
    let foreign = queue.tracking().associate(queue.name(), id(2), &build_of(id(1))).await;
    assert_eq!(foreign.unwrap_err().to_string(), "the build belongs to another request");
    assert_eq!(queue.report(id(2), &["t/a"]).await, Err(Error::NoBuild));
    assert_eq!(queue.tracking().associate(queue.name(), id(3), &BuildId::new("b3")).await, Err(Error::NoRequest));
}

#[tokio::test]
async fn reports_are_frozen_with_the_analysis_and_the_refusal_says_how_many_were_taken() {
    let queue = queue();
    let first = queue.start("commit").await;
    assert_eq!(queue.report(first, &["t/a", "t/a", "t/b"]).await, Ok(2));
    queue.end_analysis(first, Analysis::Completed, None).await;
    assert_eq!(queue.report(first, &["t/c"]).await, Err(Error::EndedAfter(0)));
    let again = queue.tracking().end_analysis(queue.name(), &build_of(first), Analysis::Completed, None).await;
    assert_eq!(again, Ok(()), "the same end again is no other end");
    queue.conclude(first, Outcome::Failed).await;
    queue.settle().await;
    assert_eq!(queue.seen(1).await.open, [("t / a".to_owned(), 1), ("t / b".to_owned(), 1)]);
}

#[tokio::test]
async fn a_job_that_waits_for_its_build_is_no_failure_and_after_a_day_it_frees_the_queue() {
    let queue = queue();
    let stuck = queue.start("stuck").await;
    queue.report(stuck, &["t/a"]).await.unwrap();
    queue.built("next", &["t/b"], Outcome::Failed).await;
    let mut waited = Duration::ZERO;
    while queue.letters().is_empty() {
        let hold = queue.look().await.unwrap();
        assert_eq!(hold, Duration::from_secs(30));
        waited += hold;
        queue.pass(hold);
        assert!(waited < 25 * HOUR, "nobody gives the job up");
    }
    assert!(waited > 24 * HOUR, "given up after {waited:?}");
    assert_eq!(queue.letters(), BTreeMap::from([(stuck, vec![Reason::HeldTooLong])]));
    queue.settle().await;
    let seen = queue.seen(2).await;
    assert_eq!(seen.milestones[&1], [Milestone::IssueTrackingAbandoned { job: stuck, build: Some(build_of(stuck)) }]);
    assert_eq!(seen.open, [("t / b".to_owned(), 2)], "the next build closed what the stuck one had opened");
    let standing = queue.tracking().standing(queue.name()).await.unwrap();
    assert_eq!((standing.oldest, standing.checkpoint.map(|c| c.request)), (None, Some(id(2))));
}

#[tokio::test]
async fn a_queue_whose_message_is_lost_is_rung_for_after_two_minutes() {
    let queue = queue();
    queue.admit("commit").await;
    assert!(queue.is_rung());
    queue.pass(Duration::from_secs(120));
    assert_eq!((queue.tracking().ring_stale().await, queue.is_rung()), (Ok(0), false));
    queue.pass(Duration::from_millis(1));
    assert_eq!((queue.tracking().ring_stale().await, queue.is_rung()), (Ok(1), true));
    queue.look().await;
    assert_eq!(queue.tracking().ring_stale().await, Ok(0), "it was looked at");
    let request = id(1);
    queue.conclude(request, Outcome::Failed).await;
    queue.settle().await;
    queue.pass(HOUR);
    assert_eq!(queue.tracking().ring_stale().await, Ok(0), "no job is left");
}

#[tokio::test]
async fn what_a_request_meant_is_told_with_how_far_it_is_known() {
    let queue = queue();
    queue.built("one", &["t/a", "t/b"], Outcome::Failed).await;
    queue.settle().await;
    let second = queue.start("two").await;
    queue.report(second, &["t/a", "u/c"]).await.unwrap();
    queue.look().await;
    let read = |result| {
        let (tracking, name) = (queue.tracking(), queue.name().clone());
        async move {
            let paging = Paging { after: None, limit: 50 };
            let (page, coverage) = tracking.request_issues(&name, second, result, paging).await.unwrap();
            (page.items.into_iter().map(|row| (row.key.to_string(), row.result)).collect::<Vec<_>>(), coverage)
        }
    };
    let (existing, new) = (("t / a".to_owned(), Finding::Existing), ("u / c".to_owned(), Finding::New));
    assert_eq!(read(None).await, (vec![existing.clone(), new.clone()], Coverage::InProgress));
    queue.end_analysis(second, Analysis::Completed, None).await;
    queue.conclude(second, Outcome::Failed).await;
    queue.settle().await;
    let closed = ("t / b".to_owned(), Finding::Closed);
    assert_eq!(read(None).await, (vec![existing, closed.clone(), new], Coverage::Complete));
    assert_eq!(read(Some(Finding::Closed)).await, (vec![closed], Coverage::Complete));
}

#[tokio::test]
async fn lists_go_on_behind_their_pages_and_a_prefix_is_a_prefix_of_the_task() {
    let queue = queue();
    let names: Vec<String> = (0..25).map(|n| format!("unit {n:02}/x")).chain(["unit/y".into(), "unit tests/z".into()]).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    queue.built("one", &keys, Outcome::Failed).await;
    queue.built("two", &keys[..20], Outcome::Failed).await;
    queue.settle().await;
    for (status, prefix, count) in [
        (Some(Status::Open), "", 20),
        (Some(Status::Closed), "", 7),
        (None, "", 27),
        (Some(Status::Open), "unit 1", 10),
        (Some(Status::Closed), "unit t", 1),
        (None, "Unit", 0),
    ] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = queue.tracking().issues(queue.name(), status, prefix, Paging { after, limit: 4 }).await.unwrap();
            assert!(page.items.len() <= 4);
            found.extend(page.items.into_iter().map(|issue| issue.key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(found.is_sorted() && found.iter().all(|key| key.task().starts_with(prefix)), "{found:?}");
        assert_eq!(found.len(), count, "{status:?} {prefix:?}");
    }
}

/// Units that a finalizing pass takes, over so many open issues and so many closed ones.
async fn cost_of_a_pass(open: usize, closed: usize) -> (u32, usize) {
    let queue = queue();
    let source = Source { request: id(1), build: BuildId::new("old") };
    for n in 0..closed {
        let row = Issue { status: Status::Closed, ..opening(&key(&format!("old/{n:06}")), &source, Timestamp::from_millis(1)) };
        let edit = Edit::Put(RowKey::issue(&row.key), row.into(), Belief::Absent);
        assert_eq!(queue.rows.write(queue.name(), &[edit]).await, Ok(Written::Yes));
    }
    let names: Vec<String> = (0..open).map(|n| format!("t/{n:06}")).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    queue.built("one", &keys, Outcome::Failed).await;
    queue.settle().await;
    queue.built("two", &[], Outcome::Succeeded).await;
    let meter = Meter::default();
    meter.scope(queue.settle()).await;
    assert_eq!(queue.seen(0).await.open, []);
    (meter.write_units(), queue.told().len())
}

#[tokio::test]
async fn a_pass_costs_what_is_open_and_nothing_for_what_is_closed() {
    let (small, _) = cost_of_a_pass(1_000, 0).await;
    let (large, told) = cost_of_a_pass(10_000, 100_000).await;
    println!("closing 1 000 issues takes {small} write units, closing 10 000 beside 100 000 closed ones {large}");
    assert!(small <= 10 * 1_000 + 100, "{small}");
    assert!(large <= 10 * 10_000 + 600, "{large}");
    assert!(f64::from(large) / f64::from(small) <= 10.2, "{large} / {small}");
    assert!(told >= 20_000, "every opening and closing is told: {told}");
}

#[tokio::test]
async fn opening_costs_at_most_ten_units_a_key() {
    let queue = queue();
    let names: Vec<String> = (0..500).map(|n| format!("t/{n:06}")).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    queue.built("one", &keys, Outcome::Failed).await;
    let meter = Meter::default();
    meter.scope(queue.settle()).await;
    println!("opening 500 issues takes {} write units", meter.write_units());
    assert!(meter.write_units() <= 10 * 500, "{}", meter.write_units());
}

#[tokio::test]
async fn odd_keys_are_tracked_like_others() {
    let queue = queue();
    let odd = ["a b/c!d", "a/\u{0}", "a/\"", "A/x", "a/#%", "ä/~", "a!/x", "a/ "];
    queue.built("one", &odd, Outcome::Failed).await;
    queue.settle().await;
    queue.built("two", &odd[..4], Outcome::Failed).await;
    queue.settle().await;
    let open: Vec<_> = queue.seen(0).await.open.into_iter().map(|(key, _)| key).collect();
    let mut want: Vec<IssueKey> = odd[..4].iter().map(|name| key(name)).collect();
    want.sort();
    assert_eq!(open, want.iter().map(ToString::to_string).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_redriven_dead_letter_of_a_request_that_has_ended_changes_nothing_however_often() {
    let queue = queue();
    queue.built("one", &["t/a"], Outcome::Failed).await;
    queue.built("two", &[], Outcome::Succeeded).await;
    queue.settle().await;
    let (before, told) = (queue.seen(2).await, queue.told().len());
    for _ in 0..2 {
        for request in [1, 2] {
            queue.tracking().recover(queue.name(), id(request)).await.unwrap();
        }
    }
    assert_eq!((queue.seen(2).await, queue.told().len()), (before, told));
}

#[tokio::test]
async fn what_opened_is_offered_for_repair_once_for_each_pass_that_met_it() {
    let queue = queue();
    queue.built("one", &["t/a"], Outcome::Failed).await;
    queue.built("two", &[], Outcome::Succeeded).await;
    queue.settle().await;
    let offers: Vec<_> = queue.told().into_iter().filter(|notice| matches!(notice, Notice::Repair(_))).collect();
    assert_eq!(offers.len(), 1, "a build without issues offers nothing: {offers:?}");
}
