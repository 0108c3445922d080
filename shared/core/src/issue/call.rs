//! What callers may write: requests, their builds, reports and ends. Each is decided from the rows as they are and written on what was
//! read; a write that is refused is decided again.
//!
//! A build's issues are frozen by the end of its analysis: what absence is judged by never grows afterwards (INV-5).

use super::id::{BuildId, RequestId};
use super::key::IssueKey;
use super::row::{Analysis, Build, BuildIssue, HistoryEntry, Issue, Job, Milestone, Outcome, QueueHead, Request, Row, RowKey, UriClaim};
use super::table::{BuildChange, Edit};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Reports of one write: with the build's row they stay within a transaction.
pub const MAX_CHUNK: usize = 90;

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request has another build.
    OtherBuild,
    /// The build belongs to another request.
    OtherRequest,
    /// The request has ended.
    RequestEnded,
    /// The analysis has ended.
    AnalysisEnded,
    /// The queue has used up its numbers.
    QueueFull,
    /// The issue has another version.
    OtherVersion,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherBuild => "the request has another build",
            Self::OtherRequest => "the build belongs to another request",
            Self::RequestEnded => "the request has ended",
            Self::AnalysisEnded => "the build's analysis has ended otherwise",
            Self::QueueFull => "the queue has used up its numbers",
            Self::OtherVersion => "the issue has another version",
        })
    }
}

/// Admits a uri: the queue's next number, the request, its job and the claim of the uri, all new.
///
/// # Errors
/// Where numbers have run out.
pub fn admit(head: Option<&QueueHead>, uri: &str, now: Timestamp) -> Result<(RequestId, Vec<Edit>), Refusal> {
    let id = RequestId::after(head.map(|head| head.latest)).ok_or(Refusal::QueueFull)?;
    let seen = head.map(|head| head.version);
    let next = QueueHead { latest: id, version: seen.unwrap_or_default() + 1 };
    let request = Request { id, uri: uri.to_owned(), build: None, outcome: None, admitted_at: now, ended_at: None, version: 1 };
    let edits = vec![
        Edit::replace(RowKey::head(), next, seen),
        Edit::create(RowKey::request(id), request),
        Edit::create(RowKey::job(id), Job::new(id, now)),
        Edit::create(RowKey::uri(uri), UriClaim { uri: uri.to_owned(), request: id }),
    ];
    Ok((id, edits))
}

/// Gives a request its build; the first one counts. Nothing is written where it has it.
///
/// # Errors
/// Where either belongs to another, or the request has ended.
pub fn associate(request: &Request, found: Option<&Build>, build: &BuildId) -> Result<Vec<Edit>, Refusal> {
    match (&request.build, found) {
        (_, Some(found)) if found.request != request.id => Err(Refusal::OtherRequest),
        (Some(own), _) if own == build => Ok(Vec::new()),
        (Some(_), _) => Err(Refusal::OtherBuild),
        (None, _) if request.outcome.is_some() => Err(Refusal::RequestEnded),
        (None, _) => Ok(vec![
            Edit::replace(
                RowKey::request(request.id),
                Request { build: Some(build.clone()), version: request.version + 1, ..request.clone() },
                Some(request.version),
            ),
            Edit::create(RowKey::build(build), new_build(request.id, build)),
        ]),
    }
}

fn new_build(request: RequestId, id: &BuildId) -> Build {
    Build {
        id: id.clone(),
        request,
        status: None,
        ended_at: None,
        analysis: Analysis::Open,
        covered_tasks: None,
        report_seq: 0,
        version: 1,
    }
}

/// Ends a request, and the build that it has; the first outcome counts. Nothing is written where it has ended.
#[must_use]
pub fn conclude(request: &Request, outcome: Outcome, now: Timestamp) -> Vec<Edit> {
    if request.outcome.is_some() {
        return Vec::new();
    }
    let ended = Request { outcome: Some(outcome), ended_at: Some(now), version: request.version + 1, ..request.clone() };
    let request_edit = Edit::replace(RowKey::request(request.id), ended, Some(request.version));
    let build_edit = request.build.clone().map(|build| Edit::Change(build, BuildChange::End { status: outcome, at: now }));
    std::iter::once(request_edit).chain(build_edit).collect()
}

/// Reports issues of a build: at most [`MAX_CHUNK`] at once, no key twice. Those that are known stay as they are.
#[must_use]
pub fn report(build: &BuildId, issues: &BTreeMap<IssueKey, Option<String>>, now: Timestamp) -> Vec<Edit> {
    let keep = |(key, detail): (&IssueKey, &Option<String>)| {
        let row = BuildIssue { key: key.clone(), first_reported_at: now, detail: detail.clone() };
        Edit::Keep(RowKey::build_issue(build, key), row.into())
    };
    std::iter::once(Edit::Change(build.clone(), BuildChange::Report)).chain(issues.iter().map(keep)).collect()
}

/// Ends the analysis of a build. Nothing is written where it has ended like that.
///
/// # Errors
/// Where it has ended otherwise.
pub fn end_analysis(build: &Build, ended: Analysis, covered: Option<BTreeSet<String>>, now: Timestamp) -> Result<Vec<Edit>, Refusal> {
    if build.analysis != Analysis::Open {
        let same = build.analysis == ended && build.covered_tasks == covered;
        return if same { Ok(Vec::new()) } else { Err(Refusal::AnalysisEnded) };
    }
    let milestone = match ended {
        Analysis::Completed => Milestone::BuildAnalysisCompleted { build: build.id.clone() },
        Analysis::Open | Analysis::Abandoned => Milestone::BuildAnalysisAbandoned { build: build.id.clone() },
    };
    let entry = HistoryEntry { request: build.request, milestone, at: now };
    let history = RowKey::history(entry.request, &entry.milestone);
    Ok(vec![Edit::Change(build.id.clone(), BuildChange::EndAnalysis { ended, covered }), Edit::Keep(history, Row::History(entry))])
}

/// Changes what hooks keep with an issue, on the version that they saw. Tells nobody.
///
/// # Errors
/// Where the issue has another version.
pub fn edit_metadata(
    issue: &Issue,
    version: u64,
    set: &BTreeMap<String, String>,
    remove: &[String],
) -> Result<(Issue, Vec<Edit>), Refusal> {
    if issue.version != version {
        return Err(Refusal::OtherVersion);
    }
    let mut next = Issue { version: version + 1, ..issue.clone() };
    next.metadata.retain(|name, _| !remove.contains(name));
    next.metadata.extend(set.clone());
    let edit = Edit::replace(RowKey::issue(&issue.key), next.clone(), Some(version));
    Ok((next, vec![edit]))
}

/// How far the issues of a request are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All are in the rows.
    Complete,
    /// Tracking was given up; what is there is there.
    Abandoned,
    /// Tracking goes on.
    InProgress,
    /// It was never built.
    None,
}

impl Coverage {
    /// What the history of a request says. An empty list of issues alone says nothing.
    #[must_use]
    pub fn of<'a>(history: impl IntoIterator<Item = &'a Milestone>) -> Self {
        let mut coverage = Self::InProgress;
        for milestone in history {
            coverage = match milestone {
                Milestone::IssuesReconciled { .. } => return Self::Complete,
                Milestone::IssueTrackingAbandoned { build: Some(_), .. } => Self::Abandoned,
                Milestone::IssueTrackingAbandoned { build: None, .. } => Self::None,
                _ => coverage,
            };
        }
        coverage
    }

    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Abandoned => "abandoned",
            Self::InProgress => "in_progress",
            Self::None => "none",
        }
    }
}
