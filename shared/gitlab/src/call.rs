//! The requests Collie makes, as messages and the classification name them.

use reqwest::Method;
use std::fmt;

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Project,
    CurrentUser,
    Branch,
    Tree,
    Commit,
    File,
    MergeBase,
    Compare,
    CreateCommit,
    DeleteBranch,
    Pushes,
    MergeRequest,
    OpenMergeRequests,
    OpenMergeRequest,
    EditMergeRequest,
    Merge,
    JoinTrain,
    LeaveTrain,
    TrainCar,
    StartPipeline,
    Approvals,
    Notes,
    AddNote,
    EditNote,
    Jobs,
    RetryJob,
    Trace,
    Pipelines,
    Pipeline,
    Bridges,
    TestReport,
    Issue,
    Issues,
    OpenIssue,
    EditIssue,
}

impl Call {
    /// Every call.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 35] = [
        Self::Project,
        Self::CurrentUser,
        Self::Branch,
        Self::Tree,
        Self::Commit,
        Self::File,
        Self::MergeBase,
        Self::Compare,
        Self::CreateCommit,
        Self::DeleteBranch,
        Self::Pushes,
        Self::MergeRequest,
        Self::OpenMergeRequests,
        Self::OpenMergeRequest,
        Self::EditMergeRequest,
        Self::Merge,
        Self::JoinTrain,
        Self::LeaveTrain,
        Self::TrainCar,
        Self::StartPipeline,
        Self::Approvals,
        Self::Notes,
        Self::AddNote,
        Self::EditNote,
        Self::Jobs,
        Self::RetryJob,
        Self::Trace,
        Self::Pipelines,
        Self::Pipeline,
        Self::Bridges,
        Self::TestReport,
        Self::Issue,
        Self::Issues,
        Self::OpenIssue,
        Self::EditIssue,
    ];

    /// The HTTP method.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::CreateCommit
            | Self::OpenMergeRequest
            | Self::JoinTrain
            | Self::LeaveTrain
            | Self::StartPipeline
            | Self::AddNote
            | Self::RetryJob
            | Self::OpenIssue => Method::POST,
            Self::EditMergeRequest | Self::Merge | Self::EditNote | Self::EditIssue => Method::PUT,
            Self::DeleteBranch => Method::DELETE,
            _ => Method::GET,
        }
    }

    /// Whether it may change something, so that a lost answer leaves doubt.
    pub(crate) fn is_write(self) -> bool {
        self.method() != Method::GET
    }

    /// The route, for people.
    const fn route(self) -> &'static str {
        match self {
            Self::Project => "/projects/:path",
            Self::CurrentUser => "/user",
            Self::Branch | Self::DeleteBranch => "…/repository/branches/:branch",
            Self::Tree => "…/repository/tree",
            Self::Commit => "…/repository/commits/:sha",
            Self::File => "…/repository/files/:path",
            Self::MergeBase => "…/repository/merge_base",
            Self::Compare => "…/repository/compare",
            Self::CreateCommit => "…/repository/commits",
            Self::Pushes => "…/events",
            Self::MergeRequest | Self::EditMergeRequest => "…/merge_requests/:iid",
            Self::OpenMergeRequests | Self::OpenMergeRequest => "…/merge_requests",
            Self::Merge => "…/merge_requests/:iid/merge",
            Self::JoinTrain | Self::TrainCar => "…/merge_trains/merge_requests/:iid",
            Self::LeaveTrain => "…/merge_requests/:iid/cancel_merge_when_pipeline_succeeds",
            Self::StartPipeline => "…/merge_requests/:iid/pipelines",
            Self::Approvals => "…/merge_requests/:iid/approvals",
            Self::Notes | Self::AddNote => "…/merge_requests/:iid/notes",
            Self::EditNote => "…/merge_requests/:iid/notes/:id",
            Self::Jobs => "…/pipelines/:id/jobs",
            Self::RetryJob => "…/jobs/:id/retry",
            Self::Trace => "…/jobs/:id/trace",
            Self::Pipelines => "…/pipelines",
            Self::Pipeline => "…/pipelines/:id",
            Self::Bridges => "…/pipelines/:id/bridges",
            Self::TestReport => "…/pipelines/:id/test_report",
            Self::Issue | Self::EditIssue => "…/issues/:iid",
            Self::Issues | Self::OpenIssue => "…/issues",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method(), self.route())
    }
}
