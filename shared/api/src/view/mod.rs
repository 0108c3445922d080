//! What the API shows. Never the content of a file (INV-12).

mod answers;
mod explanation;
mod item;
mod letters;
mod timeline;
mod tracking;

pub(crate) use answers::{Alive, Me, Offered, ProblemDocument, Submitted, Taken, Validated};
pub(crate) use explanation::ExplanationView;
pub(crate) use item::{ItemPage, WorkItem};
pub(crate) use letters::{LetterList, LetterView};
pub(crate) use timeline::TimelineView;
pub(crate) use tracking::{
    AcceptedIssues, AdmittedRequest, AnalysisEnd, BuiltRequest, EndedRequest, IssueHistory, IssuePage, IssueView, Links, LogView,
    RequestHistory, RequestIssuePage, TrackingView,
};

use collie_core::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// RFC 3339 in UTC.
fn time(at: Timestamp) -> String {
    at.to_string()
}

/// The last error of a work item.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LastError)]
pub(crate) struct LastErrorView {
    /// Its code.
    code: String,
    /// For people.
    message: String,
    /// When it happened.
    at: String,
}

impl LastErrorView {
    fn of(error: &collie_core::item::LastError) -> Self {
        Self { code: error.code.clone(), message: error.message.clone(), at: time(error.at) }
    }
}

/// Why a work item neither pushes nor merges, until the cause is gone.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Blocked)]
pub(crate) struct BlockedView {
    /// `foreign_commits`, `conflict`, `auth` or `merge_train_required`.
    #[schema(value_type = String)]
    reason: collie_core::item::BlockedReason,
    /// Since when.
    since: String,
    /// For people.
    detail: String,
}

impl BlockedView {
    fn of(blocked: &collie_core::item::Blocked) -> Self {
        Self { reason: blocked.reason, since: time(blocked.since), detail: blocked.detail.clone() }
    }
}
