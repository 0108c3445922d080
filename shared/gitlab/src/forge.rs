//! The port: each method is one request, or one listing, of the modules beside this one.

use crate::gitlab::GitLab;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{JobId, MrIid, NoteId, PipelineId, Sha};
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::train::CarState;
use collie_core::mr::view::{Branch, ChangedPaths, Commit, Job, MergeRequest, Note};
use collie_engine::ports::{Forge, JobRetry, MergeOptions, MrEdit, NewCommit, NewMergeRequest, ProjectRef, TraceTail, Tree};

#[async_trait]
impl Forge for GitLab {
    async fn branch(&self, project: &ProjectRef, name: &str) -> Result<Option<Branch>, Failure> {
        self.get_branch(project, name).await
    }

    async fn tree(&self, project: &ProjectRef, at: &Sha, directory: &str) -> Result<Tree, Failure> {
        self.list_tree(project, at, directory).await
    }

    async fn commit(&self, project: &ProjectRef, sha: &Sha) -> Result<Option<Commit>, Failure> {
        self.get_commit(project, sha).await
    }

    async fn file_sha256(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<String>, Failure> {
        self.get_file_sha256(project, at, path).await
    }

    async fn file(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.get_file(project, at, path).await
    }

    async fn merge_base(&self, project: &ProjectRef, a: &Sha, b: &Sha) -> Result<Option<Sha>, Failure> {
        self.get_merge_base(project, a, b).await
    }

    async fn changed_paths(&self, project: &ProjectRef, from: &Sha, to: &Sha) -> Result<ChangedPaths, Failure> {
        self.compare(project, from, to).await
    }

    async fn create_commit(&self, project: &ProjectRef, commit: NewCommit<'_>) -> Result<Sha, Failure> {
        self.post_commit(project, &commit).await
    }

    async fn replaced_by(&self, project: &ProjectRef, branch: &str, head: &Sha) -> Result<Option<Sha>, Failure> {
        self.push_before(project, branch, head).await
    }

    async fn delete_branch(&self, project: &ProjectRef, name: &str) -> Result<(), Failure> {
        self.remove_branch(project, name).await
    }

    async fn merge_request(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<MergeRequest>, Failure> {
        self.get_merge_request(project, iid).await
    }

    async fn open_merge_requests(&self, project: &ProjectRef, source_branch: &str) -> Result<Vec<MergeRequest>, Failure> {
        self.list_open_merge_requests(project, source_branch).await
    }

    async fn open_merge_request(&self, project: &ProjectRef, mr: &NewMergeRequest) -> Result<MergeRequest, Failure> {
        self.post_merge_request(project, mr).await
    }

    async fn edit_merge_request(&self, project: &ProjectRef, iid: MrIid, edit: &MrEdit) -> Result<MergeRequest, Failure> {
        self.put_merge_request(project, iid, edit).await
    }

    async fn merge(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, options: MergeOptions) -> Result<MergeRequest, Failure> {
        self.put_merge(project, iid, ticket, options).await
    }

    async fn join_merge_train(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, squash: bool) -> Result<(), Failure> {
        self.post_train(project, iid, ticket, squash).await
    }

    async fn leave_merge_train(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure> {
        self.post_cancel(project, iid).await
    }

    async fn merge_train_car(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<CarState>, Failure> {
        self.get_train_car(project, iid).await
    }

    async fn merges_by_train(&self, project: &ProjectRef) -> Result<bool, Failure> {
        self.get_merges_by_train(project).await
    }

    async fn start_merge_request_pipeline(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure> {
        self.post_merge_request_pipeline(project, iid).await
    }

    async fn approvals_left(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<u64>, Failure> {
        self.get_approvals_left(project, iid).await
    }

    async fn notes(&self, project: &ProjectRef, iid: MrIid) -> Result<Vec<Note>, Failure> {
        self.list_notes(project, iid).await
    }

    async fn add_note(&self, project: &ProjectRef, iid: MrIid, body: &str) -> Result<Note, Failure> {
        self.post_note(project, iid, body).await
    }

    async fn edit_note(&self, project: &ProjectRef, iid: MrIid, note: NoteId, body: &str) -> Result<(), Failure> {
        self.put_note(project, iid, note, body).await
    }

    async fn jobs(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        self.list_jobs(project, pipeline).await
    }

    async fn jobs_with_retried(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        self.list_all_tries(project, pipeline).await
    }

    async fn retry_job(&self, project: &ProjectRef, job: JobId) -> Result<JobRetry, Failure> {
        self.post_retry(project, job).await
    }

    async fn trace_tail(&self, project: &ProjectRef, job: JobId, max_bytes: usize) -> Result<Option<TraceTail>, Failure> {
        self.get_trace_tail(project, job, max_bytes).await
    }
}
