//! The forge, in the words of the `mr` type. Each method is one request (or one paged listing) to GitLab.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{JobId, MrIid, NoteId, PipelineId, ProjectId, Sha};
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::train::CarState;
use collie_core::mr::view::{Branch, ChangedPaths, Commit, Job, MergeRequest, Note, TreeEntry};
use collie_core::policy::{FileActions, Inspected};

/// A project on a host; the adapter knows its credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProjectRef {
    /// The forge's host name, with its port where it has one.
    pub host: String,
    /// The numeric id, which survives renames.
    pub id: ProjectId,
}

/// One directory of a tree; none where there is no such directory.
pub type Tree = Option<Vec<TreeEntry>>;

/// A commit to be made (`POST /projects/:id/repository/commits`).
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// The branch it goes to.
    pub branch: &'a str,
    /// The commit it is built on; never a bare branch name.
    pub start_sha: &'a Sha,
    /// Message with trailer.
    pub message: &'a str,
    /// The files, as the policy passed them (INV-1).
    pub actions: &'a Inspected<FileActions>,
    /// Which of the actions, by index, are still to be done.
    pub pending: &'a [usize],
    /// Whether an existing branch is rewritten; only over a head verified just before.
    pub force: bool,
}

/// A merge request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMergeRequest {
    /// The branch to be merged.
    pub source_branch: String,
    /// The branch to merge into.
    pub target_branch: String,
    /// The title, with a draft prefix where it is to be a draft.
    pub title: String,
    /// The description, made safe for GitLab.
    pub description: String,
    /// The labels.
    pub labels: Vec<String>,
    /// Whether the source branch goes away with the merge.
    pub remove_source_branch: bool,
    /// Whether the commits are squashed.
    pub squash: bool,
}

/// Changes to an open merge request; absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MrEdit {
    /// A new title.
    pub title: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// Labels to add.
    pub add_labels: Vec<String>,
    /// A new target branch.
    pub target_branch: Option<String>,
    /// Close (`Some(true)`) or reopen (`Some(false)`).
    pub close: Option<bool>,
}

impl MrEdit {
    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a merge is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeOptions {
    /// Whether the commits are squashed.
    pub squash: bool,
    /// Whether the source branch goes away.
    pub remove_source_branch: bool,
}

/// What became of asking for another try of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobRetry {
    /// A new try was made.
    Made(JobId),
    /// The job is not retryable: it was retried before, or GitLab never retries it.
    NotRetryable(String),
}

/// The end of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTail {
    /// The bytes, as the runner wrote them.
    pub bytes: Vec<u8>,
    /// Whether there was more before them.
    pub is_cut: bool,
}

/// GitLab. Reads that find nothing answer none; every other failure is classified.
#[async_trait]
pub trait Forge: Send + Sync {
    /// `GET …/repository/branches/:branch`.
    async fn branch(&self, project: &ProjectRef, name: &str) -> Result<Option<Branch>, Failure>;

    /// `GET …/repository/tree` of one directory (empty for the root) at a commit, all pages.
    async fn tree(&self, project: &ProjectRef, at: &Sha, directory: &str) -> Result<Tree, Failure>;

    /// `GET …/repository/commits/:sha`.
    async fn commit(&self, project: &ProjectRef, sha: &Sha) -> Result<Option<Commit>, Failure>;

    /// `GET …/repository/files/:path` at a commit: the SHA-256 of its content, as hex.
    async fn file_sha256(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<String>, Failure>;

    /// `GET …/repository/files/:path` at a commit: its bytes, none where there is no such file.
    async fn file(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<Vec<u8>>, Failure>;

    /// `GET …/repository/merge_base`.
    async fn merge_base(&self, project: &ProjectRef, a: &Sha, b: &Sha) -> Result<Option<Sha>, Failure>;

    /// `GET …/repository/compare?straight=true`: the paths in which two commits differ.
    async fn changed_paths(&self, project: &ProjectRef, from: &Sha, to: &Sha) -> Result<ChangedPaths, Failure>;

    /// `POST …/repository/commits`; answers the new head.
    async fn create_commit(&self, project: &ProjectRef, commit: NewCommit<'_>) -> Result<Sha, Failure>;

    /// `GET …/events?action=pushed`: the head that the push of this one replaced on a branch; none where the events do not show it.
    async fn replaced_by(&self, project: &ProjectRef, branch: &str, head: &Sha) -> Result<Option<Sha>, Failure>;

    /// `DELETE …/repository/branches/:branch`; a missing branch is a success.
    async fn delete_branch(&self, project: &ProjectRef, name: &str) -> Result<(), Failure>;

    /// `GET …/merge_requests/:iid`.
    async fn merge_request(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<MergeRequest>, Failure>;

    /// `GET …/merge_requests?source_branch=&state=opened`, all pages.
    async fn open_merge_requests(&self, project: &ProjectRef, source_branch: &str) -> Result<Vec<MergeRequest>, Failure>;

    /// `POST …/merge_requests`.
    async fn open_merge_request(&self, project: &ProjectRef, mr: &NewMergeRequest) -> Result<MergeRequest, Failure>;

    /// `PUT …/merge_requests/:iid`.
    async fn edit_merge_request(&self, project: &ProjectRef, iid: MrIid, edit: &MrEdit) -> Result<MergeRequest, Failure>;

    /// `PUT …/merge_requests/:iid/merge` with the ticket's sha (INV-2).
    async fn merge(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, options: MergeOptions) -> Result<MergeRequest, Failure>;

    /// `POST …/merge_trains/merge_requests/:iid` with the ticket's sha (INV-2).
    async fn join_merge_train(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, squash: bool) -> Result<(), Failure>;

    /// `POST …/merge_requests/:iid/cancel_merge_when_pipeline_succeeds`: off the merge train.
    async fn leave_merge_train(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure>;

    /// `GET …/merge_trains/merge_requests/:iid`: where the merge request is on its train; none where it is on none.
    async fn merge_train_car(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<CarState>, Failure>;

    /// `GET /projects/:id`: whether the project's merges go by merge train.
    async fn merges_by_train(&self, project: &ProjectRef) -> Result<bool, Failure>;

    /// `POST …/merge_requests/:iid/pipelines`: a new pipeline of the merge request, on the target as it is now.
    async fn start_merge_request_pipeline(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure>;

    /// `GET …/merge_requests/:iid/approvals`: how many approvals are still missing, where GitLab says so.
    async fn approvals_left(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<u64>, Failure>;

    /// `GET …/merge_requests/:iid/notes`, all pages, comments only.
    async fn notes(&self, project: &ProjectRef, iid: MrIid) -> Result<Vec<Note>, Failure>;

    /// `POST …/merge_requests/:iid/notes`.
    async fn add_note(&self, project: &ProjectRef, iid: MrIid, body: &str) -> Result<Note, Failure>;

    /// `PUT …/merge_requests/:iid/notes/:id`.
    async fn edit_note(&self, project: &ProjectRef, iid: MrIid, note: NoteId, body: &str) -> Result<(), Failure>;

    /// `GET …/pipelines/:id/jobs`, newest tries only, all pages.
    async fn jobs(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure>;

    /// `GET …/pipelines/:id/jobs?include_retried=true`: every try of every job, all pages.
    async fn jobs_with_retried(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure>;

    /// `POST …/jobs/:id/retry`. GitLab takes a second retry of the same try for refused.
    async fn retry_job(&self, project: &ProjectRef, job: JobId) -> Result<JobRetry, Failure>;

    /// `GET …/jobs/:id/trace`: the last bytes of a job's log, never more; none where there is no such job any more.
    async fn trace_tail(&self, project: &ProjectRef, job: JobId, max_bytes: usize) -> Result<Option<TraceTail>, Failure>;
}
