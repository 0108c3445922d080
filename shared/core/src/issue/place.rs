//! Where each row of issue tracking is. All rows of one queue are apart from those of every other.

use super::id::{BuildId, RequestId, Source};
use super::key::IssueKey;
use super::row::{Event, Milestone};

/// A kind of rows, and of many of them which.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    /// The queue's head.
    Head,
    /// The checkpoint.
    Checkpoint,
    /// Jobs, oldest request first.
    Jobs,
    /// Requests, oldest first.
    Requests,
    /// Claims of uris, by their hash.
    Uris,
    /// A build.
    Build(BuildId),
    /// What a build reported, by key.
    BuildIssues(BuildId),
    /// Issues, by key.
    Issues,
    /// Marks of open issues, by key.
    Open,
    /// The history of one issue, oldest request first.
    Log(IssueKey),
    /// Summaries, by key.
    Summaries,
    /// What a request meant, by key.
    RequestIssues(RequestId),
    /// What happened to a request.
    History(RequestId),
    /// Openings of a build that were given to those who repair, by executor and key.
    Repairs(BuildId),
}

impl Set {
    /// The word of metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Checkpoint => "checkpoint",
            Self::Jobs => "jobs",
            Self::Requests => "requests",
            Self::Uris => "uris",
            Self::Build(_) => "build",
            Self::BuildIssues(_) => "build_issues",
            Self::Issues => "issues",
            Self::Open => "open",
            Self::Log(_) => "log",
            Self::Summaries => "summaries",
            Self::RequestIssues(_) => "request_issues",
            Self::History(_) => "history",
            Self::Repairs(_) => "repairs",
        }
    }
}

/// Where one row is: its set, and a text by which the rows of a set are sorted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The set.
    pub set: Set,
    /// The place in it; empty where a set has one row.
    pub at: String,
}

impl RowKey {
    fn new(set: Set, at: impl Into<String>) -> Self {
        Self { set, at: at.into() }
    }

    /// The queue's head.
    #[must_use]
    pub fn head() -> Self {
        Self::new(Set::Head, "")
    }

    /// The checkpoint.
    #[must_use]
    pub fn checkpoint() -> Self {
        Self::new(Set::Checkpoint, "")
    }

    /// The job of a request.
    #[must_use]
    pub fn job(request: RequestId) -> Self {
        Self::new(Set::Jobs, request.padded())
    }

    /// A request.
    #[must_use]
    pub fn request(request: RequestId) -> Self {
        Self::new(Set::Requests, request.padded())
    }

    /// The claim of a uri.
    #[must_use]
    pub fn uri(uri: &str) -> Self {
        Self::new(Set::Uris, crate::files::sha256_hex(uri.as_bytes()))
    }

    /// A build.
    #[must_use]
    pub fn build(build: &BuildId) -> Self {
        Self::new(Set::Build(build.clone()), "")
    }

    /// What a build reported of an issue.
    #[must_use]
    pub fn build_issue(build: &BuildId, key: &IssueKey) -> Self {
        Self::new(Set::BuildIssues(build.clone()), key.encoded())
    }

    /// An issue.
    #[must_use]
    pub fn issue(key: &IssueKey) -> Self {
        Self::new(Set::Issues, key.encoded())
    }

    /// The mark of an open issue.
    #[must_use]
    pub fn open(key: &IssueKey) -> Self {
        Self::new(Set::Open, key.encoded())
    }

    /// An entry of an issue's history.
    #[must_use]
    pub fn log(key: &IssueKey, source: &Source, event: Event) -> Self {
        Self::new(Set::Log(key.clone()), format!("{}#{}#{}", source.request.padded(), event.as_str(), source.build))
    }

    /// An issue's summary.
    #[must_use]
    pub fn summary(key: &IssueKey) -> Self {
        Self::new(Set::Summaries, key.encoded())
    }

    /// What a request meant for an issue.
    #[must_use]
    pub fn request_issue(request: RequestId, key: &IssueKey) -> Self {
        Self::new(Set::RequestIssues(request), key.encoded())
    }

    /// What an executor was given.
    #[must_use]
    pub fn repair(executor: &str, build: &BuildId, key: &IssueKey) -> Self {
        Self::new(Set::Repairs(build.clone()), format!("{executor}#{}", key.encoded()))
    }

    /// An entry of a request's history.
    #[must_use]
    pub fn history(request: RequestId, milestone: &Milestone) -> Self {
        Self::new(Set::History(request), milestone.id())
    }
}
