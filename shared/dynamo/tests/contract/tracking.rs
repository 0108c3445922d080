//! What writes of issue tracking mean: every edit, every belief, all or nothing, and writers at the same time.

use crate::fixture::at;
use crate::stores::Tracking;
use crate::tracked::{Queue, build_id, build_issue, checkpoint, create, issue, mark, open_build, queue, request, rows, unit};
use collie_core::error::Class;
use collie_core::issue::call::{self, MAX_CHUNK};
use collie_core::issue::row::{Analysis, Build, HistoryEntry, Milestone, Outcome, Row, RowKey, Status};
use collie_core::issue::table::{Belief, BuildChange, Edit, Range};
use collie_engine::ports::Written;
use std::collections::{BTreeMap, BTreeSet};

fn change(change: BuildChange) -> Edit {
    Edit::Change(build_id(1), change)
}

fn ended(ended: Analysis, covered: Option<&[&str]>) -> Edit {
    let covered = covered.map(|tasks| tasks.iter().map(|task| (*task).to_owned()).collect());
    change(BuildChange::EndAnalysis { ended, covered })
}

fn concluded(status: Outcome) -> Edit {
    change(BuildChange::End { status, at: at(60) })
}

async fn with_build(store: Tracking) -> Queue {
    let mut queue = Queue::new(store);
    queue.done(&[Edit::create(RowKey::build(&build_id(1)), open_build(1))]).await;
    queue
}

async fn build(queue: &Queue) -> Build {
    let row = queue.store.read(&queue.name, &RowKey::build(&build_id(1))).await.unwrap().unwrap();
    Build::try_from(row).unwrap()
}

pub(crate) async fn every_kind_of_row_comes_back_the_same(store: Tracking) {
    for full in [true, false] {
        let mut queue = Queue::named(store.clone(), if full { "full" } else { "sparse" });
        for (key, row) in rows(full) {
            queue.compare(&key).await;
            queue.done(&[create((key.clone(), row))]).await;
            queue.compare_sets(&[key.set]).await;
        }
        let (keys, rows): (Vec<_>, Vec<_>) = rows(full).into_iter().unzip();
        let again = keys.iter().zip(&rows).map(|(key, row)| Edit::Put(key.clone(), row.clone(), Belief::Anything));
        queue.done(&again.collect::<Vec<_>>()).await;
    }
}

pub(crate) async fn a_row_is_put_on_what_is_believed_of_it(store: Tracking) {
    let mut queue = Queue::new(store);
    let put = |version, belief| [Edit::Put(RowKey::checkpoint(), checkpoint(version).into(), belief)];
    queue.refused(&put(2, Belief::Version(1))).await;
    queue.refused(&put(2, Belief::Version(0))).await;
    queue.done(&put(1, Belief::Absent)).await;
    queue.refused(&put(2, Belief::Absent)).await;
    for other in [0, 2, 10, u64::MAX] {
        queue.refused(&put(2, Belief::Version(other))).await;
    }
    queue.done(&put(2, Belief::Version(1))).await;
    queue.refused(&put(2, Belief::Version(1))).await;
    queue.done(&put(7, Belief::Anything)).await;
    let (key, row) = (RowKey::open(&unit("a")), mark(&unit("a")));
    queue.done(&[Edit::Put(key.clone(), row.clone(), Belief::Anything)]).await;
    queue.refused(&[Edit::Put(key, row, Belief::Version(1))]).await;
}

/// A reporter that says more than the first does not add to what the first said.
pub(crate) async fn a_row_that_is_kept_stays_as_it_is_in_whole(store: Tracking) {
    let mut queue = Queue::new(store);
    let keep = |detail| Edit::Keep(RowKey::build_issue(&build_id(1), &unit("a")), build_issue(&unit("a"), detail));
    for (later, detail) in [(0, None), (1, Some("more")), (2, None)] {
        let told = HistoryEntry { request: request(1), milestone: Milestone::BuildAnalysisCompleted { build: build_id(1) }, at: at(later) };
        queue.done(&[keep(detail)]).await;
        let told = Edit::Keep(RowKey::history(request(1), &told.milestone), told.clone().into());
        queue.done(&[keep(detail), told]).await;
    }
    assert_eq!(queue.pages(&Range::first(queue_set(), 10)).await, [(unit("a").encoded().to_owned(), build_issue(&unit("a"), None))]);
    let both = [keep(Some("more")), Edit::Keep(RowKey::build_issue(&build_id(1), &unit("b")), build_issue(&unit("b"), Some("new")))];
    queue.done(&both).await;
}

fn queue_set() -> collie_core::issue::row::Set {
    RowKey::build_issue(&build_id(1), &unit("a")).set
}

pub(crate) async fn a_removal_is_a_success_whether_or_not_the_row_is_there(store: Tracking) {
    let mut queue = Queue::new(store);
    let (key, row) = (RowKey::open(&unit("a")), mark(&unit("a")));
    queue.done(&[Edit::Remove(key.clone())]).await;
    queue.done(&[create((key.clone(), row.clone()))]).await;
    queue.done(&[Edit::Remove(key.clone())]).await;
    queue.done(&[create((key.clone(), row))]).await;
    queue.done(&[Edit::Remove(key), Edit::Remove(RowKey::open(&unit("b")))]).await;
}

pub(crate) async fn a_report_counts_and_leaves_the_version_alone(store: Tracking) {
    let mut queue = with_build(store).await;
    queue.done(&[change(BuildChange::Report)]).await;
    queue.done(&[change(BuildChange::Report), create((RowKey::open(&unit("a")), mark(&unit("a"))))]).await;
    assert_eq!(build(&queue).await, Build { report_seq: 2, ..open_build(1) });
}

pub(crate) async fn nothing_is_reported_after_the_end_of_the_analysis(store: Tracking) {
    for end in [Analysis::Completed, Analysis::Abandoned] {
        let mut queue = Queue::named(store.clone(), if end == Analysis::Completed { "completed" } else { "abandoned" });
        queue.done(&[Edit::create(RowKey::build(&build_id(1)), open_build(1))]).await;
        queue.done(&[ended(end, None)]).await;
        queue.refused(&[change(BuildChange::Report)]).await;
        let late = call::report(&build_id(1), &BTreeMap::from([(unit("late"), None)]), at(61));
        queue.refused(&late).await;
        assert_eq!(queue.pages(&Range::first(queue_set(), 10)).await, []);
    }
}

pub(crate) async fn an_analysis_ends_once(store: Tracking) {
    let mut queue = with_build(store).await;
    queue.done(&[ended(Analysis::Completed, Some(&["lint", "unit tests"]))]).await;
    queue.refused(&[ended(Analysis::Completed, Some(&["lint", "unit tests"]))]).await;
    queue.refused(&[ended(Analysis::Abandoned, None)]).await;
    let tasks = BTreeSet::from(["lint".to_owned(), "unit tests".to_owned()]);
    let expected = Build { analysis: Analysis::Completed, covered_tasks: Some(tasks), version: 2, ..open_build(1) };
    assert_eq!(build(&queue).await, expected);
}

pub(crate) async fn a_build_ends_once_and_may_be_reported_of_afterwards(store: Tracking) {
    let mut queue = with_build(store).await;
    queue.done(&[concluded(Outcome::Cancelled)]).await;
    queue.refused(&[concluded(Outcome::Cancelled)]).await;
    queue.refused(&[concluded(Outcome::Succeeded)]).await;
    queue.done(&[change(BuildChange::Report)]).await;
    queue.done(&[ended(Analysis::Completed, Some(&[]))]).await;
    let expected = Build {
        status: Some(Outcome::Cancelled),
        ended_at: Some(at(60)),
        analysis: Analysis::Completed,
        covered_tasks: Some(BTreeSet::new()),
        report_seq: 1,
        version: 3,
        ..open_build(1)
    };
    assert_eq!(build(&queue).await, expected);
}

pub(crate) async fn a_build_that_is_not_there_does_not_change(store: Tracking) {
    let mut queue = Queue::new(store);
    for edit in [change(BuildChange::Report), ended(Analysis::Completed, None), concluded(Outcome::Failed)] {
        queue.refused(std::slice::from_ref(&edit)).await;
        queue.refused(&[edit, create((RowKey::open(&unit("a")), mark(&unit("a"))))]).await;
    }
    queue.compare_sets(&[queue_set()]).await;
}

/// Whichever it is: one that cannot happen keeps each of the others from happening.
pub(crate) async fn one_refused_edit_refuses_all(store: Tracking) {
    let mut queue = with_build(store).await;
    queue.done(&[Edit::create(RowKey::checkpoint(), checkpoint(1))]).await;
    let possible = [
        Edit::create(RowKey::issue(&unit("a")), issue(&unit("a"), Status::Open, 1)),
        Edit::Put(RowKey::open(&unit("a")), mark(&unit("a")), Belief::Anything),
        Edit::Keep(RowKey::build_issue(&build_id(1), &unit("a")), build_issue(&unit("a"), None)),
        Edit::Remove(RowKey::job(request(1))),
        change(BuildChange::Report),
    ];
    let impossible = Edit::replace(RowKey::checkpoint(), checkpoint(3), Some(2));
    for place in 0..=possible.len() {
        let mut edits = possible.to_vec();
        edits.insert(place, impossible.clone());
        queue.refused(&edits).await;
    }
    queue.done(&possible).await;
}

pub(crate) async fn a_full_chunk_of_reports_is_one_write(store: Tracking) {
    let mut queue = with_build(store).await;
    let issues = |from: usize| (from..from + MAX_CHUNK).map(|n| (unit(&format!("test {n}")), Some(format!("line {n}")))).collect();
    for from in [0, 0, 45] {
        let edits = call::report(&build_id(1), &issues(from), at(from as u64));
        assert_eq!(edits.len(), 91);
        queue.done(&edits).await;
    }
    assert_eq!(build(&queue).await.report_seq, 3);
    assert_eq!(queue.pages(&Range::first(queue_set(), 100)).await.len(), 135);
}

pub(crate) async fn a_write_has_a_hundred_edits_at_most_and_no_row_twice(store: Tracking) {
    let mut queue = Queue::new(store);
    let marks = |n: usize| (0..n).map(|n| unit(&n.to_string())).map(|key| create((RowKey::open(&key), mark(&key)))).collect::<Vec<_>>();
    queue.done(&[]).await;
    let refused = queue.store.write(&queue.name, &marks(101)).await.unwrap_err();
    assert_eq!((refused.class, refused.message.as_str()), (Class::Bug, "a write has 101 edits, and 100 at most are possible"));
    let twice = [marks(1), vec![Edit::Remove(RowKey::open(&unit("0")))]].concat();
    let refused = queue.store.write(&queue.name, &twice).await.unwrap_err();
    assert_eq!((refused.class, refused.message.as_str()), (Class::Bug, "two edits of one write are about the same row"));
    queue.compare(&RowKey::open(&unit("0"))).await;
    queue.done(&marks(100)).await;
}

/// Sends a write until others let it through, as callers do.
async fn insist(store: Tracking, edits: Vec<Edit>) -> Written {
    loop {
        match store.write(&queue(), &edits).await {
            Ok(written) => return written,
            Err(failure) => assert_eq!(failure.code, "store_contended"),
        }
    }
}

pub(crate) async fn reporters_at_once_all_land(store: Tracking) {
    let queue = with_build(store.clone()).await;
    let mut reporters = tokio::task::JoinSet::new();
    for n in 0..12 {
        let issues =
            if n % 3 == 0 { BTreeMap::new() } else { BTreeMap::from([(unit(&format!("test {n}")), None), (unit("shared"), None)]) };
        reporters.spawn(insist(store.clone(), call::report(&build_id(1), &issues, at(n))));
    }
    assert_eq!(reporters.join_all().await, [Written::Yes; 12]);
    assert_eq!(build(&queue).await.report_seq, 12);
    let reported = store.range(&queue.name, &Range::first(queue_set(), 100)).await.unwrap().rows;
    assert_eq!(reported.len(), 9);
}

pub(crate) async fn of_two_writers_on_one_version_one_is_refused(store: Tracking) {
    let mut queue = Queue::new(store.clone());
    queue.done(&[Edit::create(RowKey::checkpoint(), checkpoint(1))]).await;
    for version in 1..8 {
        let alone = vec![Edit::replace(RowKey::checkpoint(), checkpoint(version + 1), Some(version))];
        let with_others = [alone.clone(), vec![Edit::Put(RowKey::open(&unit("a")), mark(&unit("a")), Belief::Anything)]].concat();
        let (one, other) = tokio::join!(insist(store.clone(), alone), insist(store.clone(), with_others));
        assert!((one == Written::Yes) ^ (other == Written::Yes), "{one:?} and {other:?}");
    }
    let row: Row = checkpoint(8).into();
    assert_eq!(store.read(&queue.name, &RowKey::checkpoint()).await, Ok(Some(row)));
}
