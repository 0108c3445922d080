//! The rows of issue tracking; where each of them is, is [`super::place`].

use super::id::{BuildId, RequestId, Source};
use super::key::IssueKey;
pub use super::place::{RowKey, Set};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What admissions agree on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QueueHead {
    /// The newest request.
    pub latest: RequestId,
    /// Moved by every admission.
    pub version: u64,
}

impl Outcome {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How a request has ended, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its build succeeded.
    Succeeded,
    /// Its build failed, or it was never built.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A request: one commit of the queue that is to be built.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// What is built; names the request once and for all.
    pub uri: String,
    /// The build that counts; the first that is associated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// How it ended; none while it is being processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When it was admitted.
    pub admitted_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Moved by every write.
    pub version: u64,
}

/// Whether more issues of a build may be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analysis {
    /// Yes.
    Open,
    /// All are reported.
    Completed,
    /// Nobody knows: what is not reported says nothing.
    Abandoned,
}

/// A build: its status, and how far its issues are known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Build {
    /// Its name.
    pub id: BuildId,
    /// The request that it was made for.
    pub request: RequestId,
    /// How it ended; none while it runs. Written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Outcome>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Whether its issues are all known.
    pub analysis: Analysis,
    /// The tasks that its issues speak for; none for all. Only where absence in them closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered_tasks: Option<BTreeSet<String>>,
    /// Reports so far.
    pub report_seq: u64,
    /// Moved by every write but reports.
    pub version: u64,
}

impl Build {
    /// Where it stands in the order of requests.
    #[must_use]
    pub fn source(&self) -> Source {
        Source { request: self.request, build: self.id.clone() }
    }

    /// Whether the absence of an issue from its reports says that the issue is gone.
    #[must_use]
    pub fn covers(&self, key: &IssueKey) -> bool {
        self.covered_tasks.as_ref().is_none_or(|tasks| tasks.contains(key.task()))
    }
}

/// One issue that one build reported. Never changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BuildIssue {
    /// What it is about.
    #[serde(flatten)]
    pub key: IssueKey,
    /// When it was first reported.
    pub first_reported_at: Timestamp,
    /// What its reporter said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Whether an issue is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is.
    Open,
    /// It was.
    Closed,
}

impl Status {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// What is known of an issue. Never removed, so that its version never starts again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Issue {
    /// What it is about.
    #[serde(flatten)]
    pub key: IssueKey,
    /// Whether it is open.
    pub status: Status,
    /// The build that opened or closed it last.
    pub changed_by: Source,
    /// When that was. The only time that history and hooks use.
    pub changed_at: Timestamp,
    /// The build that opened it last.
    pub first_seen: Source,
    /// The last build that looked at it, whether or not it changed anything.
    pub processed: Source,
    /// What hooks keep with it, by namespaced name. Survives every change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Moved by every write.
    pub version: u64,
}

/// What happened to an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It was closed or unknown and is open.
    Opened,
    /// It was open and is closed.
    Closed,
    /// It was open already and was met again.
    Reported,
}

impl Event {
    /// Its word in rows and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Closed => "closed",
            Self::Reported => "reported",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Opened, Self::Closed, Self::Reported].into_iter().find(|event| event.as_str() == text)
    }
}

/// One entry of an issue's history. Never changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LogEntry {
    /// The issue.
    #[serde(flatten)]
    pub key: IssueKey,
    /// What happened.
    pub event: Event,
    /// By which build.
    pub source: Source,
    /// When.
    pub at: Timestamp,
    /// The build that had opened it; old entries lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Source>,
}

/// The last opening or closing that history knows of an issue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Summary {
    /// The issue.
    #[serde(flatten)]
    pub key: IssueKey,
    /// Whether it is open.
    pub status: Status,
    /// Which build's word that is.
    pub changed_by: Source,
    /// When.
    pub changed_at: Timestamp,
    /// The build that had opened it; entries of old logs lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Source>,
    /// Moved by every write.
    pub version: u64,
}

/// What a request meant for an issue; a later word outranks an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It was open before.
    Existing,
    /// It opened.
    New,
    /// It closed.
    Closed,
}

impl Finding {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Existing => "existing",
            Self::New => "new",
            Self::Closed => "closed",
        }
    }
}

/// What a request meant for one issue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestIssue {
    /// The issue.
    #[serde(flatten)]
    pub key: IssueKey,
    /// What it meant.
    pub result: Finding,
    /// Its build.
    pub build: BuildId,
    /// The build that had opened the issue.
    pub first_seen: BuildId,
    /// When.
    pub at: Timestamp,
    /// Moved by every write.
    pub version: u64,
}

/// Why a build closed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suppression {
    /// It could close.
    #[default]
    None,
    /// A whole task failed, so that nothing is known of what it would have met.
    TaskWide,
    /// The build was cancelled.
    Canceled,
}

/// What became of a request's tracking.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Milestone {
    /// All issues of the build are reported.
    BuildAnalysisCompleted {
        /// The build.
        build: BuildId,
    },
    /// Nobody knows all issues of the build.
    BuildAnalysisAbandoned {
        /// The build.
        build: BuildId,
    },
    /// The build's issues are in the rows.
    IssuesReconciled {
        /// The build.
        build: BuildId,
        /// Why nothing was closed, if so.
        suppressed: Suppression,
    },
    /// The tracking of the request was given up.
    IssueTrackingAbandoned {
        /// The job that failed.
        job: RequestId,
        /// Its build, if it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<BuildId>,
    },
}

impl Milestone {
    /// The word of the API.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BuildAnalysisCompleted { .. } => "build_analysis_completed",
            Self::BuildAnalysisAbandoned { .. } => "build_analysis_abandoned",
            Self::IssuesReconciled { .. } => "issues_reconciled",
            Self::IssueTrackingAbandoned { .. } => "issue_tracking_abandoned",
        }
    }

    /// The same for a repetition: `event/<event>/<occurrence>`.
    #[must_use]
    pub fn id(&self) -> String {
        let occurrence = match self {
            Self::BuildAnalysisCompleted { build } | Self::BuildAnalysisAbandoned { build } | Self::IssuesReconciled { build, .. } => {
                build.to_string()
            }
            Self::IssueTrackingAbandoned { job, .. } => job.to_string(),
        };
        format!("event/{}/{occurrence}", self.name())
    }
}

/// One entry of a request's history. Never changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The request.
    pub request: RequestId,
    /// What happened.
    #[serde(flatten)]
    pub milestone: Milestone,
    /// When.
    pub at: Timestamp,
}

/// An opening that an executor of repairs has taken. Never changed: it is offered once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RepairOffer {
    /// The issue.
    #[serde(flatten)]
    pub key: IssueKey,
    /// Who took it.
    pub executor: String,
    /// When.
    pub at: Timestamp,
}

/// A request whose build is to be tracked. There until the tracking has ended, one way or the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    /// The request.
    pub request: RequestId,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// When a worker last looked at it.
    pub last_seen: Timestamp,
    /// Failures in a row, the one under way included.
    pub failures: u32,
    /// Holds so far.
    pub holds: u64,
    /// Moved by every write.
    pub version: u64,
}

/// Which request has a uri.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UriClaim {
    /// The uri.
    pub uri: String,
    /// The request.
    pub request: RequestId,
}

/// Says that an issue is open. Written with the issue's row, so that the open issues of a queue can be walked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenMark {
    /// The issue.
    #[serde(flatten)]
    pub key: IssueKey,
}

/// Where the tracking of a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reported issues are being opened.
    Refreshing,
    /// A pass has ended; the build has not.
    Refreshed,
    /// Open issues that were not reported are being closed.
    Finalizing,
    /// All is done.
    Finalized,
    /// Recovery is fencing what workers may still write.
    Abandoning,
    /// Given up; what was written stays.
    Abandoned,
}

impl Phase {
    /// Whether nothing more is written for its request, so that a newer one may take over.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Finalized | Self::Abandoned)
    }
}

/// How far a queue has been tracked; one per queue. Every write moves its version, also one that changes nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Moved by every write.
    pub version: u64,
    /// Where the tracking stands.
    pub phase: Phase,
    /// The request that is tracked: nothing is written for an older one.
    pub request: RequestId,
    /// Its build; none only where it is given up before it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// Whether this pass is the last: it began when all issues were known.
    pub finalize: bool,
    /// Whether the pass has met an issue of a whole task.
    pub has_task_wide: bool,
    /// The key that is being looked at, or the last that was; it is looked at again when a pass resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<IssueKey>,
    /// The version at which the pass began: the same for all that it publishes.
    pub pass: u64,
    /// The build's reports before the pass began.
    pub report_seq: u64,
    /// Why the build closes nothing.
    #[serde(default)]
    pub suppressed: Suppression,
    /// When the tracking of the request began.
    pub began_at: Timestamp,
}

/// Any row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Row {
    /// The queue's head.
    Head(QueueHead),
    /// The checkpoint.
    Checkpoint(Checkpoint),
    /// A job.
    Job(Job),
    /// A request.
    Request(Request),
    /// The claim of a uri.
    Uri(UriClaim),
    /// A build.
    Build(Build),
    /// What a build reported.
    BuildIssue(BuildIssue),
    /// An issue.
    Issue(Issue),
    /// The mark of an open issue.
    Open(OpenMark),
    /// An entry of an issue's history.
    Log(LogEntry),
    /// An issue's summary.
    Summary(Summary),
    /// What a request meant for an issue.
    RequestIssue(RequestIssue),
    /// An entry of a request's history.
    History(HistoryEntry),
    /// An opening that was given to an executor.
    Repair(RepairOffer),
}

/// Rows as what they are, and their columns.
macro_rules! rows {
    ($($set:pat => $variant:ident($kind:ty);)*) => {
        $(impl TryFrom<Row> for $kind {
            type Error = Row;

            fn try_from(row: Row) -> Result<Self, Row> {
                match row {
                    Row::$variant(value) => Ok(value),
                    other => Err(other),
                }
            }
        }

        impl From<$kind> for Row {
            fn from(value: $kind) -> Self {
                Self::$variant(value)
            }
        })*

        impl Row {
            /// What a row of this set holds, as JSON.
            #[must_use]
            pub fn columns(&self) -> serde_json::Value {
                match self {
                    $(Self::$variant(value) => serde_json::to_value(value),)*
                }
                .unwrap_or_default()
            }

            /// Reads what a row of this set holds.
            ///
            /// # Errors
            /// Where it holds something else.
            pub fn read(set: &Set, columns: serde_json::Value) -> Result<Self, serde_json::Error> {
                match set {
                    $($set => serde_json::from_value(columns).map(Self::$variant),)*
                }
            }
        }
    };
}

rows! {
    Set::Head => Head(QueueHead);
    Set::Checkpoint => Checkpoint(Checkpoint);
    Set::Jobs => Job(Job);
    Set::Requests => Request(Request);
    Set::Uris => Uri(UriClaim);
    Set::Build(_) => Build(Build);
    Set::BuildIssues(_) => BuildIssue(BuildIssue);
    Set::Issues => Issue(Issue);
    Set::Open => Open(OpenMark);
    Set::Log(_) => Log(LogEntry);
    Set::Summaries => Summary(Summary);
    Set::RequestIssues(_) => RequestIssue(RequestIssue);
    Set::History(_) => History(HistoryEntry);
    Set::Repairs(_) => Repair(RepairOffer);
}

impl Row {
    /// Its version; none for rows that are never changed.
    #[must_use]
    pub const fn version(&self) -> Option<u64> {
        match self {
            Self::Head(row) => Some(row.version),
            Self::Checkpoint(row) => Some(row.version),
            Self::Job(row) => Some(row.version),
            Self::Request(row) => Some(row.version),
            Self::Build(row) => Some(row.version),
            Self::Issue(row) => Some(row.version),
            Self::Summary(row) => Some(row.version),
            Self::RequestIssue(row) => Some(row.version),
            Self::Uri(_) | Self::BuildIssue(_) | Self::Open(_) | Self::Log(_) | Self::History(_) | Self::Repair(_) => None,
        }
    }
}
