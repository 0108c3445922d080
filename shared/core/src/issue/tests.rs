//! Programs run to their end on a table in memory, one effect at a time: what rows say afterwards.

use super::call;
use super::delivery::{Delivery, Ending, Limits, Reason, Verdict, Waiting};
use super::hook::Notice;
use super::id::{BuildId, RequestId};
use super::key::IssueKey;
use super::program::{Answer, Effect, Program};
use super::recovery::{Recovered, Recovery};
use super::row::{
    Analysis, Build, Checkpoint, Event, Finding, Issue, Job, Outcome, Phase, Request, RequestIssue, Row, RowKey, Set, Status,
};
use super::table::{Edit, Range, Table};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_000);

pub(super) fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

pub(super) fn build(number: u64) -> BuildId {
    BuildId::new(format!("b{number}"))
}

fn key(name: &str) -> IssueKey {
    let (task, unit) = name.split_once('/').unwrap_or((name, ""));
    IssueKey::new(task, unit)
}

/// One effect of a program on a table; what it ended with, if it did.
pub(super) fn step<P: Program>(program: &mut P, table: &mut Table, told: &mut Vec<Notice>) -> Option<P::Done> {
    let answer = match program.effect(NOW) {
        Effect::Read(key) => Answer::Row(table.get(&key).cloned().map(Box::new)),
        Effect::Range(range) => Answer::Page(table.range(&range)),
        Effect::Write(edits) => table.write(&edits).map_or(Answer::Refused, |()| Answer::Written),
        Effect::Publish(notice) => {
            told.push(notice);
            Answer::Published
        }
        Effect::Done(done) => return Some(done),
    };
    program.resume(answer, NOW);
    None
}

#[derive(Default)]
struct World {
    table: Table,
    told: Vec<Notice>,
}

impl World {
    fn write(&mut self, edits: &[Edit]) {
        self.table.write(edits).unwrap();
    }

    fn row<T: TryFrom<Row>>(&self, key: &RowKey) -> Option<T> {
        self.table.get(key).cloned().and_then(|row| T::try_from(row).ok())
    }

    fn admit(&mut self) -> RequestId {
        let head = self.row(&RowKey::head());
        let (id, edits) = call::admit(head.as_ref(), &format!("uri {:?}", head), NOW).unwrap();
        self.write(&edits);
        id
    }

    fn request(&self, n: u64) -> Request {
        self.row(&RowKey::request(id(n))).unwrap()
    }

    /// Admits a request with its build.
    fn started(&mut self) -> u64 {
        let n = self.admit().number();
        self.write(&call::associate(&self.request(n), None, &build(n)).unwrap());
        n
    }

    fn report(&mut self, n: u64, keys: &[&str]) {
        let issues = keys.iter().map(|name| (key(name), None)).collect();
        self.write(&call::report(&build(n), &issues, NOW));
    }

    fn end(&mut self, n: u64, outcome: Outcome) {
        let found: Build = self.row(&RowKey::build(&build(n))).unwrap();
        self.write(&call::end_analysis(&found, Analysis::Completed, None, NOW).unwrap());
        self.write(&call::conclude(&self.request(n), outcome, NOW));
    }

    /// A whole build: admitted, reported, ended.
    fn built(&mut self, keys: &[&str], outcome: Outcome) -> u64 {
        let n = self.started();
        self.report(n, keys);
        self.end(n, outcome);
        n
    }

    fn delivery(&self) -> Delivery {
        let (_, row) = self.table.range(&Range::first(Set::Jobs, 1)).rows.remove(0);
        Delivery::new(&Job::try_from(row).unwrap(), Limits { batch: 2, ..Limits::default() })
    }

    fn run<P: Program>(&mut self, mut program: P) -> P::Done {
        loop {
            if let Some(done) = step(&mut program, &mut self.table, &mut self.told) {
                return done;
            }
        }
    }

    /// Delivers the oldest job until it is not just one more batch.
    fn deliver(&mut self) -> Verdict {
        loop {
            match self.run(self.delivery()) {
                Verdict::Again => {}
                verdict => return verdict,
            }
        }
    }

    fn track(&mut self, keys: &[&str], outcome: Outcome) -> Verdict {
        self.built(keys, outcome);
        self.deliver()
    }

    fn issue(&self, name: &str) -> (Status, u64, u64) {
        let issue: Issue = self.row(&RowKey::issue(&key(name))).unwrap();
        (issue.status, issue.changed_by.request.number(), issue.processed.request.number())
    }

    fn open(&self) -> Vec<String> {
        let page = self.table.range(&Range::first(Set::Open, 100));
        page.rows.into_iter().map(|(at, _)| at).collect()
    }

    fn checkpoint(&self) -> Checkpoint {
        self.row(&RowKey::checkpoint()).unwrap()
    }

    fn findings(&self, n: u64) -> Vec<(String, Finding)> {
        let page = self.table.range(&Range::first(Set::RequestIssues(id(n)), 100));
        let rows = page.rows.into_iter().map(|(_, row)| RequestIssue::try_from(row).unwrap());
        rows.map(|row| (row.key.to_string(), row.result)).collect()
    }

    fn history(&self, n: u64) -> Vec<String> {
        self.table.range(&Range::first(Set::History(id(n)), 100)).rows.into_iter().map(|(at, _)| at).collect()
    }

    /// What was told, without what was told again when a batch began at the last key of the one before.
    fn hooks(&self) -> Vec<(Event, String)> {
        let hook = |notice: &Notice| match notice {
            Notice::Hook(hook) => Some((hook.event, hook.key.to_string())),
            Notice::Repair(_) => None,
        };
        let mut hooks: Vec<_> = self.told.iter().filter_map(hook).collect();
        hooks.dedup();
        hooks
    }
}

const RECONCILED: Verdict = Verdict::Ended(Ending::Reconciled);

#[test]
fn issues_open_close_and_open_again_and_history_tells_it() {
    let mut world = World::default();
    assert_eq!(world.track(&["t/a", "t/b", "u/a"], Outcome::Failed), RECONCILED);
    assert_eq!(world.open(), ["t!a!", "t!b!", "u!a!"]);
    assert_eq!(world.track(&["t/b"], Outcome::Failed), RECONCILED);
    assert_eq!(world.open(), ["t!b!"]);
    assert_eq!(world.track(&["t/a", "t/b"], Outcome::Failed), RECONCILED);
    assert_eq!((world.issue("t/a"), world.issue("t/b")), ((Status::Open, 3, 3), (Status::Open, 1, 3)));
    assert_eq!(world.issue("u/a"), (Status::Closed, 2, 2), "a closed row is not visited");
    let log = world.table.range(&Range::first(Set::Log(key("t/a")), 9)).rows.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    assert_eq!(log, ["00000000000000000001#opened#b1", "00000000000000000002#closed#b2", "00000000000000000003#opened#b3"]);
    let (new, existing, closed) = (Finding::New, Finding::Existing, Finding::Closed);
    assert_eq!(world.findings(2), [("t / a".into(), closed), ("t / b".into(), existing), ("u / a".into(), closed)]);
    assert_eq!(world.findings(3), [("t / a".into(), new), ("t / b".into(), existing)]);
    assert_eq!(world.history(2), ["event/build_analysis_completed/b2", "event/issues_reconciled/b2"]);
    let told =
        [(Event::Opened, "t / a"), (Event::Opened, "t / b"), (Event::Opened, "u / a"), (Event::Closed, "t / a"), (Event::Closed, "u / a")];
    assert_eq!(world.hooks()[..5], told.map(|(event, name)| (event, name.to_owned())));
}

#[test]
fn a_whole_task_or_a_cancelled_build_closes_nothing() {
    for (keys, outcome, word) in [(&["u"][..], Outcome::Failed, "task_wide"), (&["u/b"], Outcome::Cancelled, "canceled")] {
        let mut world = World::default();
        world.track(&["t/a"], Outcome::Failed);
        assert_eq!(world.track(keys, outcome), RECONCILED);
        assert_eq!(world.open().len(), 2, "{:?}", world.open());
        assert_eq!(serde_json::to_value(world.checkpoint().suppressed).unwrap(), word);
        assert_eq!(world.track(&[], Outcome::Succeeded), RECONCILED, "the next build decides afresh");
        assert_eq!(world.open(), [""; 0]);
    }
}

#[test]
fn an_issue_of_a_task_that_the_build_does_not_speak_for_stays_open() {
    let mut world = World::default();
    world.track(&["lint/a", "unit/a"], Outcome::Failed);
    let n = world.started();
    let found: Build = world.row(&RowKey::build(&build(n))).unwrap();
    let covered = BTreeSet::from(["unit".to_owned()]);
    world.write(&call::end_analysis(&found, Analysis::Completed, Some(covered), NOW).unwrap());
    world.write(&call::conclude(&world.request(n), Outcome::Succeeded, NOW));
    assert_eq!(world.deliver(), RECONCILED);
    assert_eq!((world.issue("lint/a"), world.issue("unit/a")), ((Status::Open, 1, 2), (Status::Closed, 2, 2)));
    assert_eq!(world.findings(n), [("unit / a".into(), Finding::Closed)], "silence is no report");
}

#[test]
fn jobs_wait_for_what_is_missing_and_no_longer_than_they_may() {
    let mut world = World::default();
    let n = world.admit().number();
    assert_eq!(world.deliver(), Verdict::Hold(Waiting::Build));
    world.write(&call::associate(&world.request(n), None, &build(n)).unwrap());
    assert_eq!(world.deliver(), Verdict::Hold(Waiting::Reports));
    let before = world.checkpoint().version;
    assert_eq!((world.deliver(), world.checkpoint().version), (Verdict::Hold(Waiting::Reports), before), "without reports no pass");
    world.report(n, &["t/a"]);
    assert_eq!(world.deliver(), Verdict::Hold(Waiting::Reports));
    assert_eq!((world.open(), world.checkpoint().phase), (vec!["t!a!".to_owned()], Phase::Refreshed));
    let late = Delivery { registered_at: NOW.before(Limits::default().max_hold), ..world.delivery() };
    assert_eq!(world.run(late.clone()), Verdict::Hold(Waiting::Reports));
    let later = Delivery { registered_at: late.registered_at.before(std::time::Duration::from_millis(1)), ..late };
    assert_eq!(world.run(later.clone()), Verdict::DeadLetter(Reason::HeldTooLong));
    world.end(n, Outcome::Failed);
    assert_eq!(world.run(Delivery { limits: Limits::default(), ..later }), RECONCILED, "what is ready runs at any age");
}

#[test]
fn what_no_worker_can_end_is_for_recovery() {
    let mut world = World::default();
    let n = world.admit().number();
    world.write(&call::conclude(&world.request(n), Outcome::Failed, NOW));
    assert_eq!(world.deliver(), Verdict::DeadLetter(Reason::NeverBuilt));
    assert_eq!(world.run(Recovery::new(id(n))), Recovered::Abandoned);
    assert_eq!((world.history(n), world.checkpoint().build), (vec!["event/issue_tracking_abandoned/1".to_owned()], None));
    assert_eq!(call::associate(&world.request(n), None, &build(n)), Err(call::Refusal::RequestEnded));

    let n = world.started();
    world.report(n, &["t/a"]);
    world.deliver();
    let found: Build = world.row(&RowKey::build(&build(n))).unwrap();
    world.write(&call::end_analysis(&found, Analysis::Abandoned, None, NOW).unwrap());
    assert_eq!(world.deliver(), Verdict::DeadLetter(Reason::AnalysisAbandoned));
    assert_eq!(world.run(Recovery::new(id(n))), Recovered::Abandoned);
    assert_eq!((world.open(), world.checkpoint().phase), (vec!["t!a!".to_owned()], Phase::Abandoned), "what was accepted stays");
    assert_eq!(world.run(Recovery::new(id(n))), Recovered::HadEnded);
    assert_eq!(world.track(&[], Outcome::Succeeded), RECONCILED, "the next build reconciles what is left");
    assert_eq!(world.run(Recovery::new(id(n))), Recovered::HadEnded, "a late copy of the dead letter");
    assert_eq!(world.checkpoint().request, id(3));
}

#[test]
fn an_analysis_that_never_ends_is_given_up_an_hour_after_its_build() {
    let mut world = World::default();
    let n = world.started();
    world.write(&call::conclude(&world.request(n), Outcome::Failed, NOW.before(Limits::default().analysis_grace)));
    assert_eq!(world.deliver(), Verdict::Hold(Waiting::Reports));
    let mut stale: Build = world.row(&RowKey::build(&build(n))).unwrap();
    stale.ended_at = Some(NOW.before(Limits::default().analysis_grace + std::time::Duration::from_millis(1)));
    world.table.force(RowKey::build(&build(n)), Some(stale.into()));
    assert_eq!(world.deliver(), Verdict::DeadLetter(Reason::AnalysisLate));
}

#[test]
fn a_request_that_is_missing_frees_its_queue() {
    let mut world = World::default();
    world.built(&[], Outcome::Succeeded);
    world.table.force(RowKey::request(id(1)), None);
    assert_eq!(world.deliver(), Verdict::DeadLetter(Reason::RequestMissing));
    assert_eq!(world.run(Recovery::new(id(1))), Recovered::Missing);
    assert_eq!(world.table.range(&Range::first(Set::Jobs, 1)).rows, []);
}

#[test]
fn a_report_is_stored_once_and_never_after_the_end() {
    let mut world = World::default();
    let n = world.started();
    world.report(n, &["t/a"]);
    world.report(n, &["t/a", "t/b"]);
    let found: Build = world.row(&RowKey::build(&build(n))).unwrap();
    assert_eq!((found.report_seq, found.version), (2, 1));
    assert_eq!(world.table.range(&Range::first(Set::BuildIssues(build(n)), 9)).rows.len(), 2);
    world.end(n, Outcome::Failed);
    let late = call::report(&build(n), &BTreeMap::from([(key("t/c"), None)]), NOW);
    assert_eq!(world.table.write(&late), Err(0));
    assert_eq!(world.table.range(&Range::first(Set::BuildIssues(build(n)), 9)).rows.len(), 2);
    let found: Build = world.row(&RowKey::build(&build(n))).unwrap();
    assert_eq!(call::end_analysis(&found, Analysis::Completed, None, NOW), Ok(Vec::new()));
    assert_eq!(call::end_analysis(&found, Analysis::Abandoned, None, NOW), Err(call::Refusal::AnalysisEnded), "the first word counts");
}

#[test]
fn the_first_build_and_the_first_outcome_count() {
    let mut world = World::default();
    let n = world.started();
    let (request, own): (Request, Build) = (world.request(n), world.row(&RowKey::build(&build(n))).unwrap());
    assert_eq!(call::associate(&request, Some(&own), &build(n)), Ok(Vec::new()));
    assert_eq!(call::associate(&request, None, &BuildId::new("other")), Err(call::Refusal::OtherBuild));
    world.admit();
    assert_eq!(call::associate(&world.request(2), Some(&own), &build(n)), Err(call::Refusal::OtherRequest));
    world.write(&call::conclude(&request, Outcome::Failed, NOW));
    assert_eq!(call::conclude(&world.request(n), Outcome::Succeeded, NOW), []);
    let own: Build = world.row(&RowKey::build(&build(n))).unwrap();
    assert_eq!((own.status, own.version), (Some(Outcome::Failed), 2));
}

#[test]
fn of_two_admissions_on_one_head_one_is_refused_whole() {
    let mut world = World::default();
    world.admit();
    let head = world.row(&RowKey::head());
    let (first, second) = (call::admit(head.as_ref(), "a", NOW).unwrap(), call::admit(head.as_ref(), "b", NOW).unwrap());
    assert_eq!((first.0, second.0), (id(2), id(2)));
    world.write(&first.1);
    assert_eq!(world.table.write(&second.1), Err(0));
    assert!(world.table.get(&RowKey::uri("b")).is_none(), "nothing of the loser is there");
    assert_eq!(world.request(2).uri, "a");
}

#[test]
fn hooks_keep_their_metadata_under_the_version_that_they_saw() {
    let mut world = World::default();
    world.track(&["t/a"], Outcome::Failed);
    let issue: Issue = world.row(&RowKey::issue(&key("t/a"))).unwrap();
    let set = BTreeMap::from([("bot/ticket".to_owned(), "7".to_owned())]);
    let (_, edits) = call::edit_metadata(&issue, issue.version, &set, &[]).unwrap();
    world.write(&edits);
    assert_eq!(call::edit_metadata(&issue, issue.version + 1, &set, &[]), Err(call::Refusal::OtherVersion));
    world.track(&[], Outcome::Succeeded);
    world.track(&["t/a"], Outcome::Failed);
    let issue: Issue = world.row(&RowKey::issue(&key("t/a"))).unwrap();
    assert_eq!((issue.metadata, issue.status), (set, Status::Open));
}

#[test]
fn an_old_entry_without_its_opening_still_feeds_the_summary_and_makes_no_finding() {
    let mut world = World::default();
    let n = world.built(&["t/a"], Outcome::Failed);
    let source = super::id::Source { request: id(n), build: build(n) };
    let old = super::row::LogEntry {
        key: key("t/a"),
        event: Event::Opened,
        source: source.clone(),
        at: Timestamp::from_millis(5),
        first_seen: None,
    };
    world.write(&[Edit::create(RowKey::log(&key("t/a"), &source, Event::Opened), old)]);
    assert_eq!(world.deliver(), RECONCILED);
    let summary: super::row::Summary = world.row(&RowKey::summary(&key("t/a"))).unwrap();
    assert_eq!((summary.changed_at, summary.first_seen), (Timestamp::from_millis(5), None), "the stored time wins");
    assert_eq!(world.findings(n), []);
}

#[test]
fn another_entry_under_the_same_name_is_for_a_person() {
    let mut world = World::default();
    let n = world.built(&["t/a"], Outcome::Failed);
    let source = super::id::Source { request: id(n), build: build(n) };
    let first_seen = Some(super::id::Source { request: id(n), build: BuildId::new("other") });
    let other = super::row::LogEntry { key: key("t/a"), event: Event::Opened, source: source.clone(), at: NOW, first_seen };
    world.write(&[Edit::create(RowKey::log(&key("t/a"), &source, Event::Opened), other)]);
    assert_eq!(world.deliver(), Verdict::DeadLetter(Reason::HistoryConflict));
    assert_eq!(world.run(Recovery::new(id(n))), Recovered::HistoryConflict);
}

#[test]
fn every_row_is_read_back_as_it_was_written() {
    let mut world = World::default();
    world.track(&["t/a", "u"], Outcome::Failed);
    world.built(&["t/a"], Outcome::Succeeded);
    for (key, row) in world.table.rows() {
        assert_eq!(Row::read(&key.set, row.columns()).unwrap(), *row, "{key:?}");
    }
}
