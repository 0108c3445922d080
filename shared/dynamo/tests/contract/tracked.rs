//! Rows of issue tracking as the cases need them, and a queue of a store that is compared with a plain [`Table`] after every write.

use crate::fixture::{NOW, at};
use crate::stores::Tracking;
use collie_core::issue::id::{BuildId, QueueName, RequestId, Source};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{
    Analysis, Build, BuildIssue, Checkpoint, Event, Finding, HistoryEntry, Issue, Job, LogEntry, Milestone, OpenMark, Outcome, Phase,
    QueueHead, RepairOffer, Request, RequestIssue, Row, RowKey, Set, Status, Summary, Suppression, UriClaim,
};
use collie_core::issue::table::{Belief, Edit, Page, Range, Table};
use collie_engine::ports::Written;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn queue() -> QueueName {
    QueueName::new("app-main")
}

pub(crate) fn request(n: u64) -> RequestId {
    RequestId::new(n).unwrap()
}

pub(crate) fn build_id(n: u64) -> BuildId {
    BuildId::new(format!("gitlab/4242/{n}"))
}

pub(crate) fn source(n: u64) -> Source {
    Source { request: request(n), build: build_id(n) }
}

pub(crate) fn unit(unit: &str) -> IssueKey {
    IssueKey::new("unit tests", unit)
}

/// A build whose analysis is open.
pub(crate) fn open_build(n: u64) -> Build {
    Build {
        id: build_id(n),
        request: request(n),
        status: None,
        ended_at: None,
        analysis: Analysis::Open,
        covered_tasks: None,
        report_seq: 0,
        version: 1,
    }
}

pub(crate) fn build_issue(key: &IssueKey, detail: Option<&str>) -> Row {
    BuildIssue { key: key.clone(), first_reported_at: NOW, detail: detail.map(str::to_owned) }.into()
}

pub(crate) fn issue(key: &IssueKey, status: Status, version: u64) -> Issue {
    let metadata = [("example.com/ticket", "PROJ-12"), ("example.com/commit", "6dcb09b5b57875f334f61aebed695e2e4193db5e")];
    let metadata = metadata.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Issue {
        key: key.clone(),
        status,
        changed_by: source(2),
        changed_at: at(7),
        first_seen: source(1),
        processed: source(3),
        metadata,
        version,
    }
}

pub(crate) fn checkpoint(version: u64) -> Checkpoint {
    Checkpoint {
        version,
        phase: Phase::Finalizing,
        request: request(3),
        build: Some(build_id(3)),
        finalize: true,
        has_task_wide: false,
        cursor: Some(unit("a::b")),
        pass: 4,
        report_seq: 2,
        suppressed: Suppression::None,
        began_at: at(1),
    }
}

pub(crate) fn mark(key: &IssueKey) -> Row {
    OpenMark { key: key.clone() }.into()
}

/// A row of every set; `full` with all of its columns, otherwise with those that it needs.
pub(crate) fn rows(full: bool) -> Vec<(RowKey, Row)> {
    let key = if full { unit("a::b #1 50% \"é\"") } else { IssueKey::new("lint", "") };
    let some = |value| full.then_some(value);
    vec![
        (RowKey::head(), QueueHead { latest: request(3), version: 9 }.into()),
        (RowKey::checkpoint(), sample_checkpoint(full).into()),
        (RowKey::job(request(3)), Job { failures: 2, holds: 31, version: 66, last_seen: at(30), ..Job::new(request(3), NOW) }.into()),
        (RowKey::request(request(3)), sample_request(full).into()),
        (RowKey::uri("git@example.com/app@0af1"), UriClaim { uri: "git@example.com/app@0af1".into(), request: request(3) }.into()),
        (RowKey::build(&build_id(3)), sample_build(full).into()),
        (RowKey::build_issue(&build_id(3), &key), build_issue(&key, some("expected 3, got 4"))),
        (RowKey::issue(&key), sample_issue(&key, full).into()),
        (RowKey::open(&key), mark(&key)),
        (RowKey::log(&key, &source(3), Event::Opened), log_entry(&key, full).into()),
        (RowKey::summary(&key), summary(&key, full).into()),
        (RowKey::request_issue(request(3), &key), request_issue(&key).into()),
        history(request(3), sample_milestone(full)),
        (
            RowKey::repair("gitlab_issue", &build_id(3), &key),
            RepairOffer { key: key.clone(), executor: "gitlab_issue".into(), at: at(9) }.into(),
        ),
    ]
}

fn sample_checkpoint(full: bool) -> Checkpoint {
    if full { checkpoint(8) } else { Checkpoint { build: None, cursor: None, phase: Phase::Abandoning, ..checkpoint(1) } }
}

fn sample_request(full: bool) -> Request {
    let (build, outcome, ended_at) = if full { (Some(build_id(3)), Some(Outcome::Succeeded), Some(at(60))) } else { (None, None, None) };
    Request { id: request(3), uri: "git@example.com/app@0af1".into(), build, outcome, admitted_at: NOW, ended_at, version: 3 }
}

fn sample_build(full: bool) -> Build {
    let tasks = BTreeSet::from(["lint".to_owned(), "unit tests".to_owned()]);
    let ended = Build {
        status: Some(Outcome::Failed),
        ended_at: Some(at(60)),
        analysis: Analysis::Completed,
        covered_tasks: Some(tasks),
        report_seq: 2,
        version: 3,
        ..open_build(3)
    };
    if full { ended } else { open_build(3) }
}

fn sample_issue(key: &IssueKey, full: bool) -> Issue {
    let row = issue(key, Status::Open, 5);
    if full { row } else { Issue { metadata: BTreeMap::new(), ..row } }
}

fn log_entry(key: &IssueKey, full: bool) -> LogEntry {
    LogEntry { key: key.clone(), event: Event::Opened, source: source(3), at: at(7), first_seen: full.then(|| source(3)) }
}

fn summary(key: &IssueKey, full: bool) -> Summary {
    Summary {
        key: key.clone(),
        status: Status::Open,
        changed_by: source(3),
        changed_at: at(7),
        first_seen: full.then(|| source(3)),
        version: 2,
    }
}

fn request_issue(key: &IssueKey) -> RequestIssue {
    RequestIssue { key: key.clone(), result: Finding::New, build: build_id(3), first_seen: build_id(3), at: at(7), version: 1 }
}

fn sample_milestone(full: bool) -> Milestone {
    if full {
        Milestone::IssuesReconciled { build: build_id(3), suppressed: Suppression::TaskWide }
    } else {
        Milestone::IssueTrackingAbandoned { job: request(3), build: None }
    }
}

fn history(request: RequestId, milestone: Milestone) -> (RowKey, Row) {
    (RowKey::history(request, &milestone), HistoryEntry { request, milestone, at: at(8) }.into())
}

pub(crate) fn create(row: (RowKey, Row)) -> Edit {
    Edit::Put(row.0, row.1, Belief::Absent)
}

/// One queue of a store, and what its rows should be.
pub(crate) struct Queue {
    pub(crate) store: Tracking,
    pub(crate) name: QueueName,
    pub(crate) model: Table,
}

impl Queue {
    pub(crate) fn new(store: Tracking) -> Self {
        Self::named(store, "app-main")
    }

    pub(crate) fn named(store: Tracking, name: &str) -> Self {
        Self { store, name: QueueName::new(name), model: Table::default() }
    }

    /// Writes, and compares the answer and every row that the write is about.
    pub(crate) async fn write(&mut self, edits: &[Edit]) -> Written {
        let expected = if self.model.write(edits).is_ok() { Written::Yes } else { Written::Refused };
        assert_eq!(self.store.write(&self.name, edits).await, Ok(expected), "{edits:?}");
        for edit in edits {
            self.compare(&edit.key()).await;
        }
        expected
    }

    pub(crate) async fn done(&mut self, edits: &[Edit]) {
        assert_eq!(self.write(edits).await, Written::Yes, "{edits:?}");
    }

    pub(crate) async fn refused(&mut self, edits: &[Edit]) {
        assert_eq!(self.write(edits).await, Written::Refused, "{edits:?}");
    }

    pub(crate) async fn compare(&self, key: &RowKey) {
        assert_eq!(self.store.read(&self.name, key).await, Ok(self.model.get(key).cloned()), "{key:?}");
    }

    /// Reads a range page by page to its end, and compares it with the whole.
    pub(crate) async fn pages(&self, range: &Range) -> Vec<(String, Row)> {
        let mut rows = Vec::new();
        let mut next = range.clone();
        loop {
            let Page { rows: page, more } = self.store.range(&self.name, &next).await.unwrap();
            assert!(page.len() <= range.limit, "{} rows for {next:?}", page.len());
            next.after = page.last().map(|(at, _)| at.clone()).or(next.after);
            rows.extend(page);
            if !more {
                break;
            }
        }
        let whole = Range { limit: usize::MAX - 1, ..range.clone() };
        assert_eq!(rows, self.model.range(&whole).rows, "{range:?}");
        rows
    }

    /// Compares every row of sets.
    pub(crate) async fn compare_sets(&self, sets: &[Set]) {
        for set in sets {
            self.pages(&Range::first(set.clone(), 7)).await;
        }
    }
}
