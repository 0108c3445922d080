//! The forge of functions that have no credentials for one: any call of it is a bug.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{JobId, MrIid, NoteId, PipelineId, Sha};
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::train::CarState;
use collie_core::mr::view::{Branch, ChangedPaths, Commit, Job, MergeRequest, Note};
use collie_engine::ports::{
    Forge, IssueEdit, IssueTracker, JobRetry, MergeOptions, MrEdit, NewCommit, NewIssue, NewMergeRequest, ProjectRef, TraceTail,
    TrackedIssue, Tree,
};

/// No forge at all: only `execute` needs one and may read its credentials.
#[derive(Debug, Clone, Copy)]
pub struct Forgeless;

fn refused<T>() -> Result<T, Failure> {
    Err(Failure::bug("this function has no access to the forge"))
}

#[async_trait]
impl Forge for Forgeless {
    async fn branch(&self, _: &ProjectRef, _: &str) -> Result<Option<Branch>, Failure> {
        refused()
    }

    async fn tree(&self, _: &ProjectRef, _: &Sha, _: &str) -> Result<Tree, Failure> {
        refused()
    }

    async fn commit(&self, _: &ProjectRef, _: &Sha) -> Result<Option<Commit>, Failure> {
        refused()
    }

    async fn file_sha256(&self, _: &ProjectRef, _: &Sha, _: &str) -> Result<Option<String>, Failure> {
        refused()
    }

    async fn file(&self, _: &ProjectRef, _: &Sha, _: &str) -> Result<Option<Vec<u8>>, Failure> {
        refused()
    }

    async fn merge_base(&self, _: &ProjectRef, _: &Sha, _: &Sha) -> Result<Option<Sha>, Failure> {
        refused()
    }

    async fn changed_paths(&self, _: &ProjectRef, _: &Sha, _: &Sha) -> Result<ChangedPaths, Failure> {
        refused()
    }

    async fn create_commit(&self, _: &ProjectRef, _: NewCommit<'_>) -> Result<Sha, Failure> {
        refused()
    }

    async fn replaced_by(&self, _: &ProjectRef, _: &str, _: &Sha) -> Result<Option<Sha>, Failure> {
        refused()
    }

    async fn delete_branch(&self, _: &ProjectRef, _: &str) -> Result<(), Failure> {
        refused()
    }

    async fn merge_request(&self, _: &ProjectRef, _: MrIid) -> Result<Option<MergeRequest>, Failure> {
        refused()
    }

    async fn open_merge_requests(&self, _: &ProjectRef, _: &str) -> Result<Vec<MergeRequest>, Failure> {
        refused()
    }

    async fn open_merge_request(&self, _: &ProjectRef, _: &NewMergeRequest) -> Result<MergeRequest, Failure> {
        refused()
    }

    async fn edit_merge_request(&self, _: &ProjectRef, _: MrIid, _: &MrEdit) -> Result<MergeRequest, Failure> {
        refused()
    }

    async fn merge(&self, _: &ProjectRef, _: MrIid, _: &MergeTicket, _: MergeOptions) -> Result<MergeRequest, Failure> {
        refused()
    }

    async fn join_merge_train(&self, _: &ProjectRef, _: MrIid, _: &MergeTicket, _: bool) -> Result<(), Failure> {
        refused()
    }

    async fn leave_merge_train(&self, _: &ProjectRef, _: MrIid) -> Result<(), Failure> {
        refused()
    }

    async fn merge_train_car(&self, _: &ProjectRef, _: MrIid) -> Result<Option<CarState>, Failure> {
        refused()
    }

    async fn merges_by_train(&self, _: &ProjectRef) -> Result<bool, Failure> {
        refused()
    }

    async fn start_merge_request_pipeline(&self, _: &ProjectRef, _: MrIid) -> Result<(), Failure> {
        refused()
    }

    async fn approvals_left(&self, _: &ProjectRef, _: MrIid) -> Result<Option<u64>, Failure> {
        refused()
    }

    async fn notes(&self, _: &ProjectRef, _: MrIid) -> Result<Vec<Note>, Failure> {
        refused()
    }

    async fn add_note(&self, _: &ProjectRef, _: MrIid, _: &str) -> Result<Note, Failure> {
        refused()
    }

    async fn edit_note(&self, _: &ProjectRef, _: MrIid, _: NoteId, _: &str) -> Result<(), Failure> {
        refused()
    }

    async fn jobs(&self, _: &ProjectRef, _: PipelineId) -> Result<Vec<Job>, Failure> {
        refused()
    }

    async fn jobs_with_retried(&self, _: &ProjectRef, _: PipelineId) -> Result<Vec<Job>, Failure> {
        refused()
    }

    async fn retry_job(&self, _: &ProjectRef, _: JobId) -> Result<JobRetry, Failure> {
        refused()
    }

    async fn trace_tail(&self, _: &ProjectRef, _: JobId, _: usize) -> Result<Option<TraceTail>, Failure> {
        refused()
    }
}

#[async_trait]
impl IssueTracker for Forgeless {
    async fn issue(&self, _: &ProjectRef, _: u64) -> Result<Option<TrackedIssue>, Failure> {
        refused()
    }

    async fn own_issue(&self, _: &ProjectRef, _: &str) -> Result<Option<TrackedIssue>, Failure> {
        refused()
    }

    async fn open_issue(&self, _: &ProjectRef, _: &NewIssue) -> Result<TrackedIssue, Failure> {
        refused()
    }

    async fn edit_issue(&self, _: &ProjectRef, _: u64, _: &IssueEdit) -> Result<TrackedIssue, Failure> {
        refused()
    }
}
