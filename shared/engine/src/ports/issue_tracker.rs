//! Issues of GitLab projects, as the `issue` work item type needs them. Each method is one request, or one paged listing.

use super::ProjectRef;
use async_trait::async_trait;
use collie_core::error::Failure;

/// An issue, as GitLab has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedIssue {
    /// Its number in the project.
    pub iid: u64,
    /// Its page.
    pub url: String,
    /// Whether it is open.
    pub is_open: bool,
}

/// An issue to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIssue {
    /// The title.
    pub title: String,
    /// The description, made safe for GitLab.
    pub description: String,
    /// The labels.
    pub labels: Vec<String>,
}

/// What an issue is to say, and whether it is closed (`Some(true)`) or opened again (`Some(false)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueEdit {
    /// The title.
    pub title: String,
    /// The description.
    pub description: String,
    /// Closes or opens it.
    pub close: Option<bool>,
}

/// Where issues are kept.
#[async_trait]
pub trait IssueTracker: Send + Sync {
    /// `GET …/issues/:iid`; none where there is no such issue.
    async fn issue(&self, project: &ProjectRef, iid: u64) -> Result<Option<TrackedIssue>, Failure>;

    /// `GET …/issues?scope=created_by_me`: the newest issue of our own whose description holds this marker, open or closed. GitLab's
    /// search does not see what HTML comments hold.
    async fn own_issue(&self, project: &ProjectRef, marker: &str) -> Result<Option<TrackedIssue>, Failure>;

    /// `POST …/issues`.
    async fn open_issue(&self, project: &ProjectRef, issue: &NewIssue) -> Result<TrackedIssue, Failure>;

    /// `PUT …/issues/:iid`.
    async fn edit_issue(&self, project: &ProjectRef, iid: u64, edit: &IssueEdit) -> Result<TrackedIssue, Failure>;
}
