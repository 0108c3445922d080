//! The interleavings that have a name, by their numbers: who pauses where, and what the rows say in the end.
//!
//! `A` and `B` work for one request, `V` recovers it, `N` works for a newer one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use collie_core::issue::call;
use collie_core::issue::delivery::{Conflict, Delivery, Ending, Reason, Verdict, Waiting};
use collie_core::issue::hook::Notice;
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::program::Program as _;
use collie_core::issue::recovery::{Recovered, Recovery};
use collie_core::issue::row::{
    Analysis, Build, Checkpoint, Event, Finding, HistoryEntry, Issue, Job, LogEntry, Milestone, Outcome, Phase, QueueHead, Request,
    RequestIssue, Row, RowKey, Set, Status, Summary, Suppression,
};
use collie_core::issue::table::Range;
use collie_models::fixture::{self, NOW, key, limits};
use collie_models::stage::{Point, Stage};
use std::collections::BTreeMap;

const RECONCILED: Verdict = Verdict::Ended(Ending::Reconciled);
const MOVED: Verdict = Verdict::Retry(Conflict::Checkpoint);
const ISSUE_MOVED: Verdict = Verdict::Retry(Conflict::Issue);

/// A queue in which `before` is open, and each of `reports` is a build that waits to be tracked.
fn stage(before: &[&str], reports: &[&[&str]]) -> Stage {
    let mut stage = Stage::default();
    if !before.is_empty() {
        let request = fixture::built(&mut stage.table, before, Outcome::Failed).unwrap();
        fixture::track(&mut stage.table, request);
    }
    for keys in reports {
        fixture::built(&mut stage.table, keys, Outcome::Failed).unwrap();
    }
    stage
}

trait Rows {
    fn row<T: TryFrom<Row>>(&self, key: &RowKey) -> Option<T>;
    fn worker_now(&self) -> Delivery;
    fn track(&mut self) -> Verdict;
}

impl Rows for Stage {
    fn row<T: TryFrom<Row>>(&self, key: &RowKey) -> Option<T> {
        fixture::row(&self.table, key)
    }

    fn worker_now(&self) -> Delivery {
        self.worker().unwrap()
    }

    /// The oldest job, to what is not just one more batch.
    fn track(&mut self) -> Verdict {
        loop {
            match self.finish(&mut self.worker().unwrap()) {
                Verdict::Again => {}
                verdict => return verdict,
            }
        }
    }
}

fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

fn build(number: u64) -> BuildId {
    BuildId::new(format!("b{number}"))
}

fn issue(stage: &Stage, name: &str) -> Issue {
    stage.row(&RowKey::issue(&key(name))).unwrap()
}

/// Status, and the requests that changed and that processed it.
fn state(stage: &Stage, name: &str) -> (Status, u64, u64) {
    let issue = issue(stage, name);
    (issue.status, issue.changed_by.request.number(), issue.processed.request.number())
}

fn log(stage: &Stage, name: &str) -> Vec<(Event, u64)> {
    let page = stage.table.range(&Range::first(Set::Log(key(name)), 99));
    let entries = page.rows.into_iter().map(|(_, row)| LogEntry::try_from(row).unwrap());
    entries.map(|entry| (entry.event, entry.source.request.number())).collect()
}

fn open(stage: &Stage) -> Vec<String> {
    stage.table.range(&Range::first(Set::Open, 99)).rows.into_iter().map(|(at, _)| at).collect()
}

fn milestones(stage: &Stage, request: u64) -> Vec<Milestone> {
    let page = stage.table.range(&Range::first(Set::History(id(request)), 99));
    page.rows.into_iter().map(|(_, row)| HistoryEntry::try_from(row).unwrap().milestone).collect()
}

fn findings(stage: &Stage, request: u64) -> Vec<(String, Finding)> {
    let page = stage.table.range(&Range::first(Set::RequestIssues(id(request)), 99));
    let rows = page.rows.into_iter().map(|(_, row)| RequestIssue::try_from(row).unwrap());
    rows.map(|row| (row.key.unit().to_owned(), row.result)).collect()
}

fn checkpoint(stage: &Stage) -> (Phase, u64) {
    let checkpoint: Checkpoint = stage.row(&RowKey::checkpoint()).unwrap();
    (checkpoint.phase, checkpoint.request.number())
}

fn hooks(stage: &Stage) -> Vec<String> {
    let queue = QueueName::new("q");
    let id = |notice: &Notice| match notice {
        Notice::Hook(hook) => Some(hook.event_of(&queue).id),
        Notice::Repair(_) => None,
    };
    stage.told.iter().filter_map(id).collect()
}

#[test]
fn i01_a_worker_that_read_before_another_finished_the_key_dies_at_the_cursor() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Cursor);
    assert_eq!(stage.track(), RECONCILED);
    let row = issue(&stage, "k");
    assert_eq!((stage.finish(&mut a), issue(&stage, "k")), (MOVED, row));
}

#[test]
fn i02_a_worker_that_moved_the_cursor_dies_at_the_row_that_another_wrote() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.track(), RECONCILED);
    assert_eq!(stage.finish(&mut a), ISSUE_MOVED);
    assert_eq!((state(&stage, "k"), log(&stage, "k")), ((Status::Open, 1, 1), vec![(Event::Opened, 1)]));
}

#[test]
fn i03_where_another_had_nothing_to_write_the_row_was_past_it_already() {
    let mut stage = stage(&["k"], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let mut b = stage.worker_now();
    stage.until(&mut b, Point::Phase);
    let row = issue(&stage, "k");
    let mut c = stage.worker_now();
    stage.until(&mut c, Point::Phase);
    assert_eq!(issue(&stage, "k"), row, "the build has processed it: no write");
    assert_eq!((stage.finish(&mut a), issue(&stage, "k")), (ISSUE_MOVED, row));
    assert_eq!(log(&stage, "k"), [(Event::Opened, 1), (Event::Reported, 2)]);
}

#[test]
fn i04_recovery_creates_the_row_that_a_worker_was_about_to_create() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.recover(id(1)), Recovered::Abandoned);
    assert_eq!(stage.finish(&mut a), ISSUE_MOVED);
    assert_eq!((state(&stage, "k"), log(&stage, "k")), ((Status::Open, 1, 1), vec![(Event::Opened, 1)]));
    assert_eq!((checkpoint(&stage), open(&stage)), ((Phase::Abandoned, 1), vec!["t!k!".to_owned()]));
}

#[test]
fn i05_recovery_moves_the_row_that_a_worker_was_about_to_change() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.recover(id(2)), Recovered::Abandoned);
    assert_eq!(stage.finish(&mut a), ISSUE_MOVED);
    assert_eq!((state(&stage, "k"), log(&stage, "k")), ((Status::Open, 1, 1), vec![(Event::Opened, 1)]), "neither closed nor reported");
    assert_eq!(findings(&stage, 2), []);
}

#[test]
fn i06_recovery_that_lost_the_row_to_a_worker_repairs_what_the_worker_did() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let mut v = Recovery::new(id(2));
    stage.until(&mut v, Point::Row);
    stage.step(&mut a);
    assert_eq!(stage.finish(&mut v), Recovered::Retry);
    assert_eq!(stage.recover(id(2)), Recovered::Abandoned);
    assert_eq!((state(&stage, "k"), log(&stage, "k")), ((Status::Closed, 2, 2), vec![(Event::Opened, 1), (Event::Closed, 2)]));
    assert_eq!(findings(&stage, 2), [("k".to_owned(), Finding::Closed)]);
}

#[test]
fn i07_a_recovery_that_does_not_touch_the_row_lets_a_write_land_after_it() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let seen: Checkpoint = stage.row(&RowKey::checkpoint()).unwrap();
    let gone = Checkpoint { phase: Phase::Abandoned, version: seen.version + 1, ..seen };
    stage.table.force(RowKey::checkpoint(), Some(gone.into()));
    stage.step(&mut a);
    assert_eq!(state(&stage, "k"), (Status::Closed, 2, 2), "which the real recovery forbids (5)");
}

#[test]
fn i08_a_worker_that_loaded_before_recovery_dies_at_its_repeated_cursor() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let mut b = stage.worker_now();
    stage.until(&mut b, Point::Look);
    let mut v = Recovery::new(id(2));
    stage.until(&mut v, Point::GivenUp);
    stage.step(&mut b);
    let row = issue(&stage, "k");
    assert_eq!((stage.finish(&mut b), issue(&stage, "k")), (MOVED, row));
    assert_eq!(stage.finish(&mut v), Recovered::Abandoned);
}

#[test]
fn i09_a_cursor_that_is_written_before_the_reading_lets_a_write_land_after_recovery() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.recover(id(2)), Recovered::Abandoned);
    let (row, Delivery { stage: before, .. }) = (issue(&stage, "k"), a.clone());
    let reread = collie_core::issue::lifecycle::decide(
        &key("k"),
        Some(&row),
        collie_core::issue::lifecycle::Word::Absent,
        &collie_core::issue::id::Source { request: id(2), build: build(2) },
        NOW,
    );
    assert!(reread.is_some_and(|next| stage.table.write(&collie_core::issue::lifecycle::edits(Some(&row), &next)).is_ok()));
    assert_eq!(state(&stage, "k").0, Status::Closed, "what a worker that reads after its cursor would do");
    assert_eq!(a.stage, before, "the real one reads before, and dies (5)");
}

#[test]
fn i10_a_closed_row_that_is_removed_lets_a_paused_opening_rise() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.recover(id(1)), Recovered::Abandoned);
    fixture::built(&mut stage.table, &[], Outcome::Succeeded).unwrap();
    assert_eq!(stage.track(), RECONCILED);
    let mut kept = stage.clone();
    assert_eq!((kept.finish(&mut a.clone()), state(&kept, "k")), (ISSUE_MOVED, (Status::Closed, 2, 2)));
    stage.table.force(RowKey::issue(&key("k")), None);
    stage.step(&mut a);
    assert_eq!(state(&stage, "k"), (Status::Open, 1, 1), "which is why rows are never removed");
}

#[test]
fn i11_a_recovery_that_was_replaced_dies_before_it_touches_the_row() {
    let mut stage = stage(&["k"], &[&["k"], &["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let mut v1 = Recovery::new(id(2));
    stage.until(&mut v1, Point::Look);
    stage.step(&mut v1);
    assert_eq!(stage.recover(id(2)), Recovered::Abandoned);
    let mut n = stage.worker_now();
    stage.until(&mut n, Point::Phase);
    let row = issue(&stage, "k");
    assert_eq!((stage.finish(&mut v1), issue(&stage, "k")), (Recovered::Retry, row));
}

#[test]
fn i12_a_newer_job_writes_nothing_before_the_older_request_is_over() {
    let mut stage = stage(&[], &[&["k"], &["l"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let before = stage.table.clone();
    assert_eq!(stage.finish(&mut stage.worker_of(id(2)).unwrap()), Verdict::Hold(Waiting::Older(id(1))));
    assert_eq!(stage.table, before);
    let mut v = Recovery::new(id(1));
    stage.until(&mut v, Point::GivenUp);
    let before = stage.table.clone();
    assert_eq!(stage.finish(&mut stage.worker_of(id(2)).unwrap()), Verdict::Hold(Waiting::Older(id(1))));
    assert_eq!(stage.table, before);
}

#[test]
fn i13_a_newer_dead_letter_gives_the_older_request_up_first() {
    let mut stage = stage(&[], &[&["k"], &["l"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.recover(id(2)), Recovered::Again);
    assert_eq!(checkpoint(&stage), (Phase::Abandoned, 1));
    assert_eq!(stage.recover(id(2)), Recovered::Abandoned);
    assert_eq!(checkpoint(&stage), (Phase::Abandoned, 2));
    assert_eq!(milestones(&stage, 1).last(), Some(&Milestone::IssueTrackingAbandoned { job: id(1), build: Some(build(1)) }));
    assert_eq!(open(&stage), ["t!k!"], "only what a worker was about to open");
}

#[test]
fn i14_a_late_dead_letter_leaves_a_newer_request_alone() {
    let mut stage = stage(&[], &[&["k"], &["k"]]);
    assert_eq!(stage.track(), RECONCILED);
    let mut n = stage.worker_now();
    stage.until(&mut n, Point::Row);
    let before = stage.table.clone();
    assert_eq!((stage.recover(id(1)), &stage.table), (Recovered::HadEnded, &before));
    assert_eq!(stage.finish(&mut n), RECONCILED);
}

#[test]
fn i15_the_same_dead_letter_again_only_makes_sure_of_the_history() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!(stage.recover(id(1)), Recovered::Abandoned);
    let before = stage.table.clone();
    assert_eq!((stage.recover(id(1)), &stage.table), (Recovered::HadEnded, &before));
}

#[test]
fn i16_an_issue_that_one_request_closed_and_the_next_opened_is_the_next_ones() {
    let mut stage = stage(&["k"], &[&[], &["k"]]);
    assert_eq!((stage.track(), stage.track()), (RECONCILED, RECONCILED));
    assert_eq!(log(&stage, "k"), [(Event::Opened, 1), (Event::Closed, 2), (Event::Opened, 3)]);
    assert_eq!(issue(&stage, "k").first_seen.build, build(3));
    let offered = stage.told.iter().any(|notice| matches!(notice, Notice::Repair(repair) if repair.build_id == build(3)));
    assert!(offered, "{:?}", stage.told);
}

#[test]
fn i17_a_whole_task_that_sorts_last_closes_nothing_wherever_workers_crash() {
    for effects in 0.. {
        let mut stage = stage(&["a", "b"], &[&["b", "x", "zz*"]]);
        let is_over = (0..effects).try_fold(stage.worker_now(), |mut worker, _| match stage.step(&mut worker) {
            None => Some(worker),
            Some(Verdict::Again) => Some(stage.worker_now()),
            Some(verdict) => {
                assert_eq!(verdict, RECONCILED);
                None
            }
        });
        if is_over.is_none() {
            assert!(effects > 40, "the story has {effects} effects");
            break;
        }
        if stage.worker().is_some() {
            assert_eq!(stage.track(), RECONCILED, "after {effects} effects");
        }
        assert_eq!(open(&stage), ["t!a!", "t!b!", "t!x!", "zz!!"], "after {effects} effects");
        let suppressed = Milestone::IssuesReconciled { build: build(2), suppressed: Suppression::TaskWide };
        assert_eq!(milestones(&stage, 2).last(), Some(&suppressed), "after {effects} effects");
    }
}

#[test]
fn i18_whoever_comes_next_tells_that_a_finalized_request_is_reconciled() {
    let ended = Milestone::IssuesReconciled { build: build(1), suppressed: Suppression::None };
    let next: [fn(&mut Stage); 4] = [
        |stage| assert_eq!(stage.track(), RECONCILED),
        |stage| assert_eq!(stage.finish(&mut stage.worker_of(id(2)).unwrap()), RECONCILED),
        |stage| assert_eq!(stage.recover(id(1)), Recovered::HadEnded),
        |stage| assert_eq!(stage.recover(id(2)), Recovered::Retry),
    ];
    for run in next {
        let mut stage = stage(&[], &[&[], &[]]);
        let mut a = stage.worker_now();
        stage.until(&mut a, Point::Reconciled);
        assert!(!milestones(&stage, 1).contains(&ended));
        run(&mut stage);
        assert!(milestones(&stage, 1).contains(&ended));
    }
}

#[test]
fn i19_history_that_was_left_out_takes_the_rows_time() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Log);
    let earlier = Issue { changed_at: collie_core::time::Timestamp::from_millis(0), ..issue(&stage, "k") };
    stage.table.force(RowKey::issue(&key("k")), Some(earlier.into()));
    assert_eq!(stage.track(), RECONCILED);
    let page = stage.table.range(&Range::first(Set::Log(key("k")), 9));
    assert_eq!(LogEntry::try_from(page.rows[0].1.clone()).unwrap().at.as_millis(), 0);
}

#[test]
fn i20_what_was_left_out_after_the_history_is_made_up_for_under_the_same_hook() {
    let mut whole = stage(&[], &[&["k"]]);
    assert_eq!(whole.track(), RECONCILED);
    for crash_at in [Point::Log, Point::Summary, Point::Finding, Point::Hook, Point::Repair, Point::Phase] {
        let mut stage = stage(&[], &[&["k"]]);
        let mut a = stage.worker_now();
        stage.until(&mut a, crash_at);
        assert_eq!(stage.track(), RECONCILED, "{crash_at:?}");
        assert_eq!((findings(&stage, 1), log(&stage, "k")), (findings(&whole, 1), log(&whole, "k")), "{crash_at:?}");
        let told = hooks(&stage);
        assert!(!told.is_empty() && told.iter().all(|id| *id == hooks(&whole)[0]), "{crash_at:?}: {told:?}");
    }
}

#[test]
fn i21_a_paused_summary_of_an_opening_is_dropped_after_a_newer_closing() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Summary);
    assert_eq!(stage.track(), RECONCILED);
    fixture::built(&mut stage.table, &[], Outcome::Succeeded).unwrap();
    assert_eq!(stage.track(), RECONCILED);
    stage.step(&mut a);
    stage.until(&mut a, Point::Finding);
    let summary: Summary = stage.row(&RowKey::summary(&key("k"))).unwrap();
    assert_eq!((summary.status, summary.changed_by.request), (Status::Closed, id(2)));
}

#[test]
fn i22_the_marks_of_open_issues_come_and_go_with_their_rows() {
    let mut stage = stage(&[], &[&["k"], &[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    assert_eq!((stage.track(), stage.track()), (RECONCILED, RECONCILED));
    assert_eq!(stage.finish(&mut a), ISSUE_MOVED);
    assert_eq!((state(&stage, "k").0, open(&stage)), (Status::Closed, vec![]));
}

#[test]
fn i23_a_paused_finding_never_turns_closed_back() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Finding);
    let found = |result| RequestIssue {
        key: key("k"),
        result,
        build: build(2),
        first_seen: build(1),
        at: NOW,
        version: if result == Finding::New { 1 } else { 2 },
    };
    stage.table.force(RowKey::request_issue(id(2), &key("k")), Some(found(Finding::Closed).into()));
    let mut late = collie_core::issue::record::Record::new(
        &Issue { status: Status::Open, ..issue(&stage, "k") },
        Event::Opened,
        &collie_core::issue::id::Source { request: id(2), build: build(2) },
        NOW,
    );
    while let Some(effect) = late.effect::<()>() {
        let skipped = matches!(late.step, collie_core::issue::record::Step::Log);
        let answer = if skipped { Some(collie_core::issue::program::Answer::Written) } else { fixture::perform(&effect, &mut stage.table) };
        late.resume(answer.unwrap());
    }
    assert_eq!(findings(&stage, 2), [("k".to_owned(), Finding::Closed)]);
}

#[test]
fn i24_of_two_admissions_the_loser_takes_a_new_number_and_leaves_no_row() {
    let mut stage = stage(&[], &[&[]]);
    let head: Option<QueueHead> = stage.row(&RowKey::head());
    let (loser, edits) = call::admit(head.as_ref(), "loser", NOW).unwrap();
    let (winner, won) = call::admit(head.as_ref(), "winner", NOW).unwrap();
    stage.table.write(&won).unwrap();
    assert_eq!((loser, winner, stage.table.write(&edits)), (id(2), id(2), Err(0)));
    let of_loser = |(_, row): &(&RowKey, &Row)| matches!(row, Row::Uri(claim) if claim.uri == "loser");
    assert_eq!(stage.table.rows().find(of_loser), None);
    let head: Option<QueueHead> = stage.row(&RowKey::head());
    let (again, edits) = call::admit(head.as_ref(), "loser", NOW).unwrap();
    stage.table.write(&edits).unwrap();
    assert_eq!(again, id(3));
    let jobs = stage.table.range(&Range::first(Set::Jobs, 9)).rows;
    assert_eq!(jobs.into_iter().map(|(_, row)| Job::try_from(row).unwrap().request).collect::<Vec<_>>(), [id(1), id(2), id(3)]);
}

#[test]
fn i25_of_a_completed_and_an_abandoned_analysis_the_first_counts() {
    let mut stage = stage(&[], &[&["k"]]);
    let found: Build = stage.row(&RowKey::build(&build(1))).unwrap();
    assert_eq!(call::end_analysis(&found, Analysis::Abandoned, None, NOW), Err(call::Refusal::AnalysisEnded));
    let both = HistoryEntry { request: id(1), milestone: Milestone::BuildAnalysisAbandoned { build: build(1) }, at: NOW };
    stage.table.force(RowKey::history(id(1), &both.milestone), Some(both.into()));
    assert_eq!(stage.track(), RECONCILED, "an entry of the history alone turns nothing back");
}

#[test]
fn i26_an_analysis_that_ends_in_the_middle_of_a_pass_leads_to_another_from_the_beginning() {
    let mut stage = stage(&["a"], &[]);
    let request = admitted(&mut stage, &["b", "c"]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let late = BTreeMap::from([(key("aa"), None)]);
    stage.table.write(&call::report(&build(2), &late, NOW)).unwrap();
    end(&mut stage, request);
    assert_eq!(stage.finish(&mut a), Verdict::Hold(Waiting::Reports), "the pass was none that ends");
    assert_eq!((checkpoint(&stage), open(&stage)), ((Phase::Refreshed, 2), vec!["t!a!".into(), "t!b!".into(), "t!c!".into()]));
    assert_eq!(stage.track(), RECONCILED);
    assert_eq!(open(&stage), ["t!aa!", "t!b!", "t!c!"]);
}

/// A request with a build that has reported and goes on.
fn admitted(stage: &mut Stage, keys: &[&str]) -> RequestId {
    let head: Option<QueueHead> = stage.row(&RowKey::head());
    let (id, edits) = call::admit(head.as_ref(), "next", NOW).unwrap();
    stage.table.write(&edits).unwrap();
    let request: Request = stage.row(&RowKey::request(id)).unwrap();
    stage.table.write(&call::associate(&request, None, &build(id.number())).unwrap()).unwrap();
    let issues = keys.iter().map(|name| (key(name), None)).collect();
    stage.table.write(&call::report(&build(id.number()), &issues, NOW)).unwrap();
    id
}

fn end(stage: &mut Stage, request: RequestId) {
    let found: Build = stage.row(&RowKey::build(&build(request.number()))).unwrap();
    stage.table.write(&call::end_analysis(&found, Analysis::Completed, None, NOW).unwrap()).unwrap();
    let request: Request = stage.row(&RowKey::request(request)).unwrap();
    stage.table.write(&call::conclude(&request, Outcome::Failed, NOW)).unwrap();
}

#[test]
fn i27_a_cancelled_build_keeps_what_it_opened_and_closes_nothing() {
    let mut stage = stage(&["a"], &[]);
    fixture::built(&mut stage.table, &["b"], Outcome::Cancelled).unwrap();
    assert_eq!((stage.track(), open(&stage)), (RECONCILED, vec!["t!a!".to_owned(), "t!b!".to_owned()]));
    let canceled = Milestone::IssuesReconciled { build: build(2), suppressed: Suppression::Canceled };
    assert_eq!(milestones(&stage, 2).last(), Some(&canceled));
}

#[test]
fn i28_a_request_that_ended_without_a_build_is_given_up_without_a_cursor() {
    let mut stage = stage(&["a"], &[]);
    let head: Option<QueueHead> = stage.row(&RowKey::head());
    let (id, edits) = call::admit(head.as_ref(), "never built", NOW).unwrap();
    stage.table.write(&edits).unwrap();
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Load);
    let request: Request = stage.row(&RowKey::request(id)).unwrap();
    stage.table.write(&call::conclude(&request, Outcome::Failed, NOW)).unwrap();
    assert_eq!(stage.track(), Verdict::DeadLetter(Reason::NeverBuilt));
    assert_eq!(stage.recover(id), Recovered::Abandoned);
    let left: Checkpoint = stage.row(&RowKey::checkpoint()).unwrap();
    assert_eq!((left.phase, left.build, left.cursor), (Phase::Abandoned, None, None));
    let before = stage.table.clone();
    assert_eq!((stage.finish(&mut a), &stage.table), (Verdict::Ended(Ending::Abandoned), &before), "a delayed worker writes nothing");
    assert_eq!(milestones(&stage, 2), [Milestone::IssueTrackingAbandoned { job: id, build: None }]);
}

#[test]
fn i29_of_one_delivery_and_its_copy_one_goes_on() {
    let mut stage = stage(&[], &[&["k", "l"]]);
    let (mut a, mut b) = (stage.worker_now(), stage.worker_now());
    let (mut first, mut second) = (None, None);
    while first.is_none() || second.is_none() {
        first = first.or_else(|| stage.step(&mut a));
        second = second.or_else(|| stage.step(&mut b));
    }
    let verdicts = [first.unwrap(), second.unwrap()];
    assert_eq!(verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Retry(_))).count(), 1, "{verdicts:?}");
    assert_eq!(stage.track(), RECONCILED);
    assert_eq!((log(&stage, "k"), log(&stage, "l")), (vec![(Event::Opened, 1)], vec![(Event::Opened, 1)]));
}

#[test]
fn i30_metadata_that_a_hook_wrote_meanwhile_is_kept() {
    let mut stage = stage(&["k"], &[&[]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Row);
    let seen = issue(&stage, "k");
    let set = BTreeMap::from([("bot/ticket".to_owned(), "7".to_owned())]);
    let (_, edits) = call::edit_metadata(&seen, seen.version, &set, &[]).unwrap();
    stage.table.write(&edits).unwrap();
    assert_eq!(stage.finish(&mut a), ISSUE_MOVED);
    assert_eq!(stage.track(), RECONCILED);
    let row = issue(&stage, "k");
    assert_eq!((row.status, row.metadata), (Status::Closed, set));
}

#[test]
fn i31_repairs_that_are_offered_again_before_the_phase_have_the_same_identity() {
    let mut stage = stage(&[], &[&["k"]]);
    let mut a = stage.worker_now();
    stage.until(&mut a, Point::Repair);
    stage.step(&mut a);
    assert_eq!(stage.track(), RECONCILED);
    let repairs: Vec<_> = stage.told.iter().filter(|notice| matches!(notice, Notice::Repair(_))).collect();
    assert!(repairs.len() == 2 && repairs[0] == repairs[1], "{repairs:?}");
}

#[test]
fn i32_a_write_that_landed_without_an_answer_is_a_conflict_and_the_next_delivery_goes_on() {
    let mut stage = stage(&["k"], &[&[]]);
    loop {
        let mut a = stage.worker_now();
        let mut landed = false;
        let verdict = loop {
            let effect = a.effect(NOW);
            if let (false, collie_core::issue::program::Effect::Write(edits)) = (landed, &effect) {
                landed = stage.table.write(edits).is_ok();
            }
            if let Some(verdict) = stage.step(&mut a) {
                break verdict;
            }
        };
        match verdict {
            RECONCILED => break,
            Verdict::Retry(_) | Verdict::Again => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((state(&stage, "k"), log(&stage, "k")), ((Status::Closed, 2, 2), vec![(Event::Opened, 1), (Event::Closed, 2)]));
}

#[test]
fn i33_a_range_ends_where_no_row_follows_and_not_before() {
    for count in [0, 1, 99, 100, 101, 250] {
        let mut stage = Stage::default();
        let names: Vec<String> = (0..count).map(|n| format!("k{n:05}")).collect();
        let mut keys: Vec<&str> = names.iter().map(String::as_str).collect();
        keys.reverse();
        let head: Option<QueueHead> = None;
        let (id, edits) = call::admit(head.as_ref(), "many", NOW).unwrap();
        stage.table.write(&edits).unwrap();
        let request: Request = stage.row(&RowKey::request(id)).unwrap();
        stage.table.write(&call::associate(&request, None, &build(1)).unwrap()).unwrap();
        for chunk in keys.chunks(call::MAX_CHUNK) {
            let issues = chunk.iter().map(|name| (IssueKey::new("t", *name), None)).collect();
            stage.table.write(&call::report(&build(1), &issues, NOW)).unwrap();
        }
        end(&mut stage, id);
        let (mut batches, mut most) = (0, 0);
        loop {
            let limits = collie_core::issue::delivery::Limits { batch: 100, ..limits() };
            let mut worker = Delivery { limits, ..stage.worker_now() };
            let mut looked = 0;
            let verdict = loop {
                looked += usize::from(stage.until(&mut worker, Point::Look).is_none());
                if let Some(verdict) = stage.step(&mut worker) {
                    break verdict;
                }
            };
            batches += 1;
            most = most.max(looked);
            if verdict != Verdict::Again {
                assert_eq!(verdict, RECONCILED);
                break;
            }
        }
        assert_eq!(stage.table.range(&Range::first(Set::Open, 999)).rows.len(), count);
        assert!(most <= 100, "{most} keys in a batch of {count}");
        let passes = [(0, 1), (1, 1), (99, 2), (100, 2), (101, 3), (250, 6)];
        assert!(passes.contains(&(count, batches)), "{count} keys took {batches} batches");
    }
}

#[test]
fn i34_a_worker_that_a_newer_job_rang_for_runs_the_oldest() {
    let stage = stage(&[], &[&["k"], &["l"]]);
    assert_eq!(stage.worker_now().request, id(1));
    let mut rung_for = stage.worker_of(id(2)).unwrap();
    assert_eq!(rung_for.request, id(2), "which is why the queue's worker never runs the job of its message");
    let mut stage = stage;
    assert_eq!(stage.finish(&mut rung_for), RECONCILED);
    assert_eq!(stage.finish(&mut stage.worker_of(id(1)).unwrap()), Verdict::Ended(Ending::Outdated), "its issues would be lost");
}
