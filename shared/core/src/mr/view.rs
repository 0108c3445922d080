//! What the forge shows: GitLab's answers reduced to what decisions use.

use crate::id::{JobId, MrIid, NoteId, PipelineId, Sha, UserId};
use crate::time::Timestamp;

/// A merge request (`GET /projects/:id/merge_requests/:iid`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRequest {
    /// Its number.
    pub iid: MrIid,
    /// `opened`, `closed`, `merged` or `locked`.
    pub state: State,
    /// Whether it is a draft.
    pub draft: bool,
    /// Its title, with a draft prefix where it is a draft.
    pub title: String,
    /// Its description.
    pub description: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// The branch to be merged.
    pub source_branch: String,
    /// The branch to merge into.
    pub target_branch: String,
    /// The head of the source branch as the merge request knows it.
    pub sha: Option<Sha>,
    /// `detailed_merge_status`, verbatim; the list of words grows by release.
    pub detailed_merge_status: String,
    /// True only while GitLab is sure of a conflict.
    pub has_conflicts: bool,
    /// `blocking_discussions_resolved`.
    pub discussions_resolved: bool,
    /// The newest pipeline for the head.
    pub head_pipeline: Option<Pipeline>,
    /// The commit by which it is on the target, once it is merged.
    pub merge_commit: Option<Sha>,
    /// Why the last merge or rebase failed.
    pub merge_error: Option<String>,
    /// Whether the credential's user may merge, where GitLab says so.
    pub can_merge: Option<bool>,
    /// Who opened it.
    pub author: UserId,
    /// For people.
    pub web_url: String,
}

/// The state of a merge request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Open.
    Opened,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
    /// Being merged at this moment.
    Locked,
}

/// A pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// The pipeline.
    pub id: PipelineId,
    /// A branch, or `refs/merge-requests/<iid>/head`, `…/merge`, `…/train`.
    pub git_ref: String,
    /// The commit it runs for.
    pub sha: Sha,
    /// `created`, `running`, `success`, `failed` and so on, verbatim.
    pub status: String,
}

/// One try of a job (`GET /projects/:id/pipelines/:id/jobs`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// This try.
    pub id: JobId,
    /// The job's name.
    pub name: String,
    /// Its stage.
    pub stage: String,
    /// Its status, verbatim.
    pub status: String,
    /// Whether its failure does not fail the pipeline.
    pub allow_failure: bool,
    /// Why it failed.
    pub failure_reason: Option<String>,
    /// When it finished.
    pub finished_at: Option<Timestamp>,
}

/// A branch (`GET /projects/:id/repository/branches/:branch`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its head.
    pub sha: Sha,
    /// Whether it is protected.
    pub protected: bool,
    /// Whether it is the project's default branch.
    pub default: bool,
}

/// A commit (`GET /projects/:id/repository/commits/:sha`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub sha: Sha,
    /// Its parents, first first.
    pub parents: Vec<Sha>,
    /// Its whole message, with trailers.
    pub message: String,
}

/// A note on a merge request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The note.
    pub id: NoteId,
    /// Who wrote it.
    pub author: UserId,
    /// Its body.
    pub body: String,
}

/// The paths two commits differ in (`GET /projects/:id/repository/compare`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedPaths {
    /// All of them.
    Complete(Vec<String>),
    /// GitLab stopped at its diff limits; what is missing is unknown.
    Truncated,
}

/// What a tree entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Whether it is executable (mode 100755).
        executable: bool,
    },
    /// A symbolic link (mode 120000).
    Symlink,
    /// A submodule (mode 160000).
    Submodule,
    /// A directory.
    Directory,
}

/// One row of a tree listing (`GET /projects/:id/repository/tree`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The full path.
    pub path: String,
    /// The git object id.
    pub id: String,
    /// What it is.
    pub kind: EntryKind,
}
