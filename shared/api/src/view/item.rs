//! A work item as callers see it.

use super::{BlockedView, LastErrorView, time};
use collie_core::error::Failure;
use collie_core::files::{ActionRecord, Verb};
use collie_core::item::{Content, Dimension, DimensionKey, Item, Phase, ResultKind, Status};
use collie_core::mr::facts::Facts;
use collie_core::mr::wanted::Wanted;
use collie_core::repair;
use serde::Serialize;
use utoipa::ToSchema;

/// A work item.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WorkItem {
    /// Its id.
    id: String,
    /// Its type: `mr`, or `issue` for one that Collie made for a failing CI task.
    item_type: String,
    /// `active`, `completed`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    phase: Phase,
    /// How it ended: `merged`, `no_change`, `closed`, `cancelled` or `resolved`.
    #[schema(value_type = Option<String>)]
    result: Option<ResultKind>,
    /// Why it neither pushes nor merges.
    blocked: Option<BlockedView>,
    /// Whether it waits for a run.
    actionable: bool,
    /// Consecutive failures.
    attempts: u32,
    /// The last error.
    last_error: Option<LastErrorView>,
    /// Who submitted it.
    caller_identity: String,
    /// Which life of its branch it is, from 1.
    generation: u64,
    /// The key of this life.
    idempotency_key: String,
    /// When it was submitted.
    created_at: String,
    /// When its state last changed.
    updated_at: String,
    /// What is needed.
    dimensions: Vec<DimensionView>,
    /// What the item's type knows.
    detail: Detail,
}

/// What an item of either type knows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkItemDetail)]
#[serde(untagged)]
pub(crate) enum Detail {
    /// Of `mr`.
    MergeRequest(Box<MrDetail>),
    /// Of `issue`.
    Issue(IssueDetail),
}

/// What the item of a failing CI task knows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = IssueDetail)]
pub(crate) struct IssueDetail {
    /// The project's path.
    project: String,
    /// GitLab's id of the project.
    project_id: u64,
    /// The tracked queue.
    queue: String,
    /// The failing task.
    task: String,
    /// The GitLab issue's title.
    title: String,
    /// The GitLab issue's number.
    issue_iid: Option<u64>,
    /// The GitLab issue's page.
    issue_url: Option<String>,
}

/// One readiness signal.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Dimension)]
pub(crate) struct DimensionView {
    /// Its name.
    dimension: String,
    /// Its variant.
    variant: Option<String>,
    /// `true` where there is something to do, `false` where not.
    #[schema(value_type = String)]
    status: Status,
    /// Not before this.
    pending_until: Option<String>,
    /// Why it waits, or what it is about.
    #[schema(value_type = Option<Object>)]
    detail: Option<serde_json::Value>,
}

/// What a merge request item knows.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = MergeRequestDetail)]
pub(crate) struct MrDetail {
    /// The project's path when it was submitted.
    project: String,
    /// GitLab's id of the project.
    project_id: u64,
    /// The branch that Collie pushes to.
    source_branch: String,
    /// The branch to merge into.
    target_branch: String,
    /// The title.
    title: String,
    /// The labels.
    labels: Vec<String>,
    /// Whether Collie merges.
    auto_merge: bool,
    /// Whether the merge request is a draft.
    draft: bool,
    /// The merge request's number.
    mr_iid: Option<u64>,
    /// The merge request's page.
    mr_url: Option<String>,
    /// The head that Collie verified as its own.
    branch_sha: Option<String>,
    /// The head's pipeline as last seen.
    head_pipeline_id: Option<u64>,
    /// The hash of the file actions.
    content_hash: String,
    /// The file actions, without bytes.
    actions: Vec<ActionView>,
}

/// A file action without its bytes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = FileActionRecord)]
pub(crate) struct ActionView {
    /// `create`, `update`, `delete`, `move` or `chmod`.
    #[schema(value_type = String)]
    action: Verb,
    /// The path as it will be afterwards.
    file_path: String,
    /// Where a moved file comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_path: Option<String>,
    /// Length of the content in bytes.
    size: Option<u64>,
    /// SHA-256 of the content, hex.
    sha256: Option<String>,
}

/// A page of work items, newest first.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ItemPage {
    /// The items.
    pub(crate) items: Vec<WorkItem>,
    /// The `cursor` of the next page; null on the last.
    pub(crate) next_cursor: Option<String>,
}

impl WorkItem {
    /// The view of a row and its newest content.
    pub(crate) fn of(item: &Item, content: &Content) -> Result<Self, Failure> {
        Ok(Self {
            id: item.id.to_string(),
            item_type: item.item_type.clone(),
            phase: item.phase,
            result: item.result,
            blocked: item.blocked.as_ref().map(BlockedView::of),
            actionable: item.actionable,
            attempts: item.attempts,
            last_error: item.last_error.as_ref().map(LastErrorView::of),
            caller_identity: item.caller_identity.clone(),
            generation: item.generation,
            idempotency_key: item.idempotency_key(),
            created_at: time(item.created_at),
            updated_at: time(item.updated_at),
            dimensions: item.dims.iter().map(DimensionView::of).collect(),
            detail: Detail::of(item, content)?,
        })
    }
}

impl DimensionView {
    fn of((key, dimension): (&DimensionKey, &Dimension)) -> Self {
        Self {
            dimension: key.name().to_owned(),
            variant: key.variant().map(str::to_owned),
            status: dimension.status,
            pending_until: dimension.pending_until.map(time),
            detail: dimension.detail.clone(),
        }
    }
}

impl Detail {
    fn of(item: &Item, content: &Content) -> Result<Self, Failure> {
        match item.item_type.as_str() {
            repair::ITEM_TYPE => IssueDetail::of(item, content).map(Self::Issue),
            _ => MrDetail::of(item, content).map(Box::new).map(Self::MergeRequest),
        }
    }
}

impl IssueDetail {
    fn of(item: &Item, content: &Content) -> Result<Self, Failure> {
        let (wanted, facts) = (repair::Wanted::of(item)?, repair::Facts::of(item)?);
        Ok(Self {
            project: item.project.clone(),
            project_id: item.branch.project_id.0,
            queue: wanted.queue.to_string(),
            task: wanted.task,
            title: content.title.clone(),
            issue_iid: facts.issue.as_ref().map(|issue| issue.iid),
            issue_url: facts.issue.map(|issue| issue.url),
        })
    }
}

impl MrDetail {
    fn of(item: &Item, content: &Content) -> Result<Self, Failure> {
        let (facts, wanted) = (Facts::of(item)?, item.wanted.read::<Wanted>()?);
        Ok(Self {
            project: item.project.clone(),
            project_id: item.branch.project_id.0,
            source_branch: item.branch.source_branch.clone(),
            target_branch: item.target.clone(),
            title: content.title.clone(),
            labels: content.labels.clone(),
            auto_merge: wanted.auto_merge,
            draft: wanted.draft,
            mr_iid: facts.mr.as_ref().map(|mr| mr.iid.0),
            mr_url: facts.mr.as_ref().map(|mr| mr.url.clone()),
            branch_sha: facts.verified_head().map(ToString::to_string),
            head_pipeline_id: facts.pipeline.as_ref().map(|p| p.id.0),
            content_hash: item.content_hash.as_str().to_owned(),
            actions: content.actions.iter().map(ActionView::of).collect(),
        })
    }
}

impl ActionView {
    fn of(record: &ActionRecord) -> Self {
        Self {
            action: record.action,
            file_path: record.file_path.clone(),
            previous_path: record.previous_path.clone(),
            size: record.size,
            sha256: record.sha256.clone(),
        }
    }
}
