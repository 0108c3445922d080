//! CI issues, requests and tracking, as the API shows them.

use super::time;
use crate::page;
use collie_core::issue::call::Coverage;
use collie_core::issue::id::{BuildId, RequestId};
use collie_core::issue::row::{
    Analysis, Checkpoint, HistoryEntry, Issue, Job, LogEntry, Milestone, Outcome, Request, RequestIssue, Suppression,
};
use collie_core::time::Timestamp;
use collie_engine::tracking::read::{Listed, Standing};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Where people find requests.
pub(crate) type Links = BTreeMap<RequestId, String>;

/// A request that is admitted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AdmittedRequest {
    /// Its number, as text.
    request_id: String,
}

impl AdmittedRequest {
    pub(crate) fn of(id: RequestId) -> Self {
        Self { request_id: id.to_string() }
    }
}

/// A request and its build.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BuiltRequest {
    /// The request.
    request_id: String,
    /// Its build.
    build_id: String,
}

impl BuiltRequest {
    pub(crate) fn of(id: RequestId, build: BuildId) -> Self {
        Self { request_id: id.to_string(), build_id: build.to_string() }
    }
}

/// How a request ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedRequest {
    /// The request.
    request_id: String,
    /// `succeeded`, `failed` or `cancelled`: the first that was sent.
    outcome: &'static str,
}

impl EndedRequest {
    pub(crate) fn of(id: RequestId, outcome: Outcome) -> Self {
        Self { request_id: id.to_string(), outcome: outcome.as_str() }
    }
}

/// How many issues were taken; a key that was sent twice counts once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedIssues {
    pub(crate) accepted: usize,
}

/// How an analysis ended.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AnalysisEnd {
    /// The build.
    build_id: String,
    /// `completed` or `abandoned`.
    #[schema(value_type = String)]
    state: Analysis,
}

impl AnalysisEnd {
    pub(crate) fn of(build: BuildId, state: Analysis) -> Self {
        Self { build_id: build.to_string(), state }
    }
}

/// An issue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiIssue)]
pub(crate) struct IssueView {
    /// The task.
    task_id: String,
    /// The unit; empty for the whole task.
    unit_id: String,
    /// `open` or `closed`.
    status: &'static str,
    /// The build that opened it last.
    first_seen_build_id: String,
    /// That build's request.
    first_seen_request_id: String,
    /// Where people find that build, where its request's uri tells.
    first_seen_url: Option<String>,
    /// The build that opened or closed it last.
    changing_build_id: String,
    /// That build's request.
    changing_request_id: String,
    /// When that was, RFC 3339.
    changed_at: String,
    /// What hooks keep with it.
    metadata: BTreeMap<String, String>,
    /// What a change of the metadata names.
    version: u64,
}

impl IssueView {
    pub(crate) fn of(issue: Issue, links: &Links) -> Self {
        Self {
            task_id: issue.key.task().to_owned(),
            unit_id: issue.key.unit().to_owned(),
            status: issue.status.as_str(),
            first_seen_build_id: issue.first_seen.build.to_string(),
            first_seen_request_id: issue.first_seen.request.to_string(),
            first_seen_url: links.get(&issue.first_seen.request).cloned(),
            changing_build_id: issue.changed_by.build.to_string(),
            changing_request_id: issue.changed_by.request.to_string(),
            changed_at: time(issue.changed_at),
            metadata: issue.metadata,
            version: issue.version,
        }
    }
}

/// A page of issues.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiIssuePage)]
pub(crate) struct IssuePage {
    /// By task and unit.
    items: Vec<IssueView>,
    /// Where the next page begins; null on the last.
    next_cursor: Option<String>,
}

impl IssuePage {
    pub(crate) fn of(page: Listed<Issue>, links: &Links) -> Self {
        let (items, next_cursor) = shown(page, |issue| IssueView::of(issue, links));
        Self { items, next_cursor }
    }
}

/// One entry of an issue's log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiIssueLogEntry)]
pub(crate) struct LogView {
    /// `opened`, `closed` or `reported`.
    event: &'static str,
    /// By which build.
    build_id: String,
    /// That build's request.
    request_id: String,
    /// When, RFC 3339.
    at: String,
    /// The build that had opened the issue; old entries lack it.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen_build_id: Option<String>,
}

impl LogView {
    pub(crate) fn of(entry: LogEntry) -> Self {
        Self {
            event: entry.event.as_str(),
            build_id: entry.source.build.to_string(),
            request_id: entry.source.request.to_string(),
            at: time(entry.at),
            first_seen_build_id: entry.first_seen.map(|source| source.build.to_string()),
        }
    }
}

/// The openings and closings of an issue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiIssueHistory)]
pub(crate) struct IssueHistory {
    /// Oldest request first.
    items: Vec<LogView>,
    /// Where the next page begins; null on the last.
    next_cursor: Option<String>,
}

impl IssueHistory {
    pub(crate) fn of(page: Listed<LogEntry>) -> Self {
        let (items, next_cursor) = shown(page, LogView::of);
        Self { items, next_cursor }
    }
}

/// What a request meant for one issue.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiRequestIssue)]
pub(crate) struct RequestIssueView {
    /// The task.
    task_id: String,
    /// The unit; empty for the whole task.
    unit_id: String,
    /// `new`, `existing` or `closed`.
    result: &'static str,
    /// The request's build.
    build_id: String,
    /// The build that had opened the issue.
    first_seen_build_id: String,
    /// When, RFC 3339.
    at: String,
}

impl RequestIssueView {
    fn of(issue: RequestIssue) -> Self {
        Self {
            task_id: issue.key.task().to_owned(),
            unit_id: issue.key.unit().to_owned(),
            result: issue.result.as_str(),
            build_id: issue.build.to_string(),
            first_seen_build_id: issue.first_seen.to_string(),
            at: time(issue.at),
        }
    }
}

/// What a request meant for issues, and how far that is known.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiRequestIssuePage)]
pub(crate) struct RequestIssuePage {
    /// By task and unit.
    items: Vec<RequestIssueView>,
    /// Where the next page begins; null on the last.
    next_cursor: Option<String>,
    /// `complete`, `abandoned`, `in_progress` or `none`: only `complete` makes an empty list mean that there are no issues.
    coverage: &'static str,
}

impl RequestIssuePage {
    pub(crate) fn of(page: Listed<RequestIssue>, coverage: Coverage) -> Self {
        let (items, next_cursor) = shown(page, RequestIssueView::of);
        Self { items, next_cursor, coverage: coverage.as_str() }
    }
}

/// A request, and what happened to it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiRequestHistory)]
pub(crate) struct RequestHistory {
    /// The request.
    request_id: String,
    /// What was built.
    uri: String,
    /// Where people find it, where the uri tells.
    url: Option<String>,
    /// Its build, if it has one.
    build_id: Option<String>,
    /// How it ended, if it has.
    outcome: Option<&'static str>,
    /// When it was admitted, RFC 3339.
    admitted_at: String,
    /// What happened, oldest first.
    items: Vec<MilestoneView>,
    /// Null: there is one page.
    next_cursor: Option<String>,
}

/// What happened to a request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiRequestEvent)]
pub(crate) struct MilestoneView {
    /// The same for a repetition.
    event_id: String,
    /// `build_analysis_completed`, `build_analysis_abandoned`, `issues_reconciled` or `issue_tracking_abandoned`.
    event: &'static str,
    /// When, RFC 3339.
    at: String,
    /// The build that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    /// Why nothing was closed: `task_wide` or `canceled`; `none` where it was not so. Only where issues are reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    suppressed: Option<Suppression>,
}

impl RequestHistory {
    pub(crate) fn of(request: Request, history: Vec<HistoryEntry>, links: &Links) -> Self {
        Self {
            request_id: request.id.to_string(),
            url: links.get(&request.id).cloned(),
            uri: request.uri,
            build_id: request.build.map(|build| build.to_string()),
            outcome: request.outcome.map(Outcome::as_str),
            admitted_at: time(request.admitted_at),
            items: history.iter().map(MilestoneView::of).collect(),
            next_cursor: None,
        }
    }
}

impl MilestoneView {
    fn of(entry: &HistoryEntry) -> Self {
        let (build, suppressed) = match &entry.milestone {
            Milestone::BuildAnalysisCompleted { build } | Milestone::BuildAnalysisAbandoned { build } => (Some(build), None),
            Milestone::IssuesReconciled { build, suppressed } => (Some(build), Some(*suppressed)),
            Milestone::IssueTrackingAbandoned { build, .. } => (build.as_ref(), None),
        };
        Self {
            event_id: entry.milestone.id(),
            event: entry.milestone.name(),
            at: time(entry.at),
            build_id: build.map(ToString::to_string),
            suppressed,
        }
    }
}

/// Where the tracking of a queue stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiTracking)]
pub(crate) struct TrackingView {
    /// What was tracked last; null before the first build.
    checkpoint: Option<CheckpointView>,
    /// The oldest job that has not ended; null where everything is tracked.
    oldest_job: Option<JobView>,
}

/// How far a queue has been tracked.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiCheckpoint)]
struct CheckpointView {
    /// `refreshing`, `refreshed`, `finalizing`, `finalized`, `abandoning` or `abandoned`.
    #[schema(value_type = String)]
    phase: collie_core::issue::row::Phase,
    /// The request that is tracked.
    request_id: String,
    /// Its build; null where it was given up before it had one.
    build_id: Option<String>,
    /// Whether everything about the build is known.
    finalize: bool,
    /// Why the build closes nothing: `none`, `task_wide` or `canceled`.
    #[schema(value_type = String)]
    suppressed: Suppression,
    /// Since when, RFC 3339.
    began_at: String,
}

/// A request whose tracking has not ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CiJob)]
struct JobView {
    /// The request.
    request_id: String,
    /// When it was registered, RFC 3339.
    registered_at: String,
    /// How long that is ago.
    age_seconds: u64,
    /// When a worker last looked at it, RFC 3339.
    last_seen_at: String,
    /// Failures in a row.
    failures: u32,
    /// How often it was found to be waiting.
    holds: u64,
}

impl TrackingView {
    pub(crate) fn of(standing: Standing, now: Timestamp) -> Self {
        Self { checkpoint: standing.checkpoint.map(CheckpointView::of), oldest_job: standing.oldest.map(|job| JobView::of(&job, now)) }
    }
}

impl CheckpointView {
    fn of(checkpoint: Checkpoint) -> Self {
        Self {
            phase: checkpoint.phase,
            request_id: checkpoint.request.to_string(),
            build_id: checkpoint.build.map(|build| build.to_string()),
            finalize: checkpoint.finalize,
            suppressed: checkpoint.suppressed,
            began_at: time(checkpoint.began_at),
        }
    }
}

impl JobView {
    fn of(job: &Job, now: Timestamp) -> Self {
        Self {
            request_id: job.request.to_string(),
            registered_at: time(job.registered_at),
            age_seconds: now.since(job.registered_at).as_secs(),
            last_seen_at: time(job.last_seen),
            failures: job.failures,
            holds: job.holds,
        }
    }
}

fn shown<T, V>(page: Listed<T>, view: impl Fn(T) -> V) -> (Vec<V>, Option<String>) {
    (page.items.into_iter().map(view).collect(), page.next.as_deref().map(page::cursor))
}
