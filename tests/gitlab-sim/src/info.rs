//! What assertions read: commits, merge requests, notes, pipelines, as plain values.

use crate::git::Commit;
use crate::issues::Issue;
use crate::merge_requests::MergeRequest;
use crate::notes::Note;
use crate::pipeline_run::latest_jobs;
use crate::pipelines::{Job, JobOutcome, Pipeline, Status};
use crate::project::Project;
use crate::sim::Sim;
use crate::state::State;

/// A commit, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub sha: String,
    /// Ids of its parents.
    pub parents: Vec<String>,
    /// The whole message.
    pub message: String,
    /// Username of who made it through the simulator.
    pub author_user: Option<String>,
    /// Name of the author as recorded in the commit.
    pub author_name: String,
}

/// A merge request, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MrInfo {
    /// Number in the project.
    pub iid: u64,
    /// `opened`, `closed` or `merged`.
    pub state: String,
    /// Branch it comes from.
    pub source_branch: String,
    /// Branch it goes to.
    pub target_branch: String,
    /// Head it knows of.
    pub sha: Option<String>,
    /// Title.
    pub title: String,
    /// Description.
    pub description: Option<String>,
    /// Labels, sorted.
    pub labels: Vec<String>,
    /// Title says draft.
    pub draft: bool,
    /// Username of the author.
    pub author: String,
    /// Username of who merged it.
    pub merge_user: Option<String>,
    /// The merge commit.
    pub merge_commit_sha: Option<String>,
    /// Why the last merge attempt failed.
    pub merge_error: Option<String>,
    /// `detailed_merge_status`.
    pub detailed_merge_status: String,
    /// Head pipeline.
    pub head_pipeline: Option<u64>,
    /// Usernames of who approved.
    pub approved_by: Vec<String>,
}

/// An issue, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueInfo {
    /// Number in the project.
    pub iid: u64,
    /// `opened` or `closed`.
    pub state: String,
    /// Title.
    pub title: String,
    /// Description.
    pub description: Option<String>,
    /// Labels, sorted.
    pub labels: Vec<String>,
    /// Username of the author.
    pub author: String,
    /// Its notes, oldest first.
    pub notes: Vec<NoteInfo>,
}

/// A note, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteInfo {
    /// Its id.
    pub id: u64,
    /// Its text.
    pub body: String,
    /// Username of the author.
    pub author: String,
    /// Made by GitLab itself.
    pub system: bool,
    /// Part of a thread that can be resolved.
    pub resolvable: bool,
    /// The thread is resolved.
    pub resolved: bool,
}

/// A pipeline, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineInfo {
    /// Its id.
    pub id: u64,
    /// `ref` as the API shows it.
    pub reference: String,
    /// What it runs on.
    pub sha: String,
    /// The head it is for; differs from `sha` for merged results.
    pub source_sha: String,
    /// Its merge request, if it is one's.
    pub merge_request: Option<u64>,
    /// Status.
    pub status: Status,
    /// Latest attempt of each job, in order of creation.
    pub jobs: Vec<JobInfo>,
}

/// A job, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Its id.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Stage.
    pub stage: String,
    /// Status.
    pub status: Status,
    /// Attempt, from 1.
    pub attempt: u32,
}

impl Sim {
    /// History by first parents, newest first.
    pub fn commits(&self, project_id: u64, reference: &str) -> Vec<CommitInfo> {
        let state = self.lock();
        let Some(project) = state.project(project_id) else { return Vec::new() };
        let Some(head) = project.repo.resolve(reference) else { return Vec::new() };
        project.repo.first_parent_history(&head.id).into_iter().map(CommitInfo::of).collect()
    }

    /// All merge requests, oldest first.
    pub fn merge_requests(&self, project_id: u64) -> Vec<MrInfo> {
        let state = self.lock();
        let Some(project) = state.project(project_id) else { return Vec::new() };
        project.mrs.values().map(|mr| MrInfo::of(&state, project, mr)).collect()
    }

    /// All issues, oldest first.
    pub fn issues(&self, project_id: u64) -> Vec<IssueInfo> {
        let state = self.lock();
        let Some(project) = state.project(project_id) else { return Vec::new() };
        project.issues.values().map(|issue| IssueInfo::of(&state, issue)).collect()
    }

    /// The notes of a merge request, oldest first.
    pub fn notes(&self, project_id: u64, iid: u64) -> Vec<NoteInfo> {
        let state = self.lock();
        let Some(mr) = state.mr(project_id, iid) else { return Vec::new() };
        mr.notes.iter().map(|note| NoteInfo::of(&state, note)).collect()
    }

    /// All pipelines, oldest first.
    pub fn pipelines(&self, project_id: u64) -> Vec<PipelineInfo> {
        let state = self.lock();
        let Some(project) = state.project(project_id) else { return Vec::new() };
        project.pipelines.values().map(|pipeline| PipelineInfo::of(project, pipeline)).collect()
    }

    /// Deletes a pipeline with its jobs; false for an unknown one.
    pub fn delete_pipeline(&self, project_id: u64, pipeline_id: u64) -> bool {
        self.lock().delete_pipeline(project_id, pipeline_id).is_some()
    }

    /// Cancels a pipeline; false for an unknown one.
    pub fn cancel_pipeline(&self, project_id: u64, pipeline_id: u64) -> bool {
        self.lock().cancel_pipeline(project_id, pipeline_id).is_some()
    }

    /// Tries a job again as a user; the answer is the new try, none where it is not retryable.
    pub fn retry_job(&self, project_id: u64, job_id: u64, user: &str) -> Option<u64> {
        let mut state = self.lock();
        let user = state.user_by_name(user)?.id;
        state.retry_job(project_id, job_id, user)
    }

    /// Ends a job that runs, such as one that hangs by its rule; false if it does not run.
    pub fn finish_job(&self, project_id: u64, job_id: u64, outcome: JobOutcome, failure_reason: Option<&str>) -> bool {
        let mut state = self.lock();
        let running = |job: &&Job| job.status == Status::Running;
        if state.project(project_id).and_then(|project| project.jobs.get(&job_id)).filter(running).is_none() {
            return false;
        }
        let status = outcome.status();
        let reason = failure_reason.unwrap_or("script_failure").to_owned();
        state.end_job(project_id, job_id, status, (status == Status::Failed).then_some(reason)).is_some()
    }
}

impl PipelineInfo {
    fn of(project: &Project, pipeline: &Pipeline) -> Self {
        Self {
            id: pipeline.id,
            reference: pipeline.reference.clone(),
            sha: pipeline.sha.clone(),
            source_sha: pipeline.source_sha.clone(),
            merge_request: pipeline.mr,
            status: pipeline.status,
            jobs: latest_jobs(project, pipeline.id).into_iter().map(JobInfo::of).collect(),
        }
    }
}

impl JobInfo {
    fn of(job: &Job) -> Self {
        Self { id: job.id, name: job.name.clone(), stage: job.stage.clone(), status: job.status, attempt: job.attempt }
    }
}

impl CommitInfo {
    fn of(commit: &Commit) -> Self {
        Self {
            sha: commit.id.clone(),
            parents: commit.parents.clone(),
            message: commit.message.clone(),
            author_user: commit.author_user.clone(),
            author_name: commit.author.name.clone(),
        }
    }
}

impl MrInfo {
    fn of(state: &State, project: &Project, mr: &MergeRequest) -> Self {
        Self {
            iid: mr.iid,
            state: mr.state.text().to_owned(),
            source_branch: mr.source_branch.clone(),
            target_branch: mr.target_branch.clone(),
            sha: mr.sha.clone(),
            title: mr.title.clone(),
            description: mr.description.clone(),
            labels: mr.labels.clone(),
            draft: mr.is_draft(),
            author: state.username(mr.author),
            merge_user: mr.merge_user.map(|id| state.username(id)),
            merge_commit_sha: mr.merge_commit_sha.clone(),
            merge_error: mr.merge_error.clone(),
            detailed_merge_status: state.detailed_status(project, mr).to_owned(),
            head_pipeline: mr.head_pipeline,
            approved_by: mr.approvals.iter().map(|approval| state.username(approval.user)).collect(),
        }
    }
}

impl IssueInfo {
    fn of(state: &State, issue: &Issue) -> Self {
        Self {
            iid: issue.iid,
            state: issue.state().to_owned(),
            title: issue.title.clone(),
            description: issue.description.clone(),
            labels: issue.labels.clone(),
            author: state.username(issue.author),
            notes: issue.notes.iter().map(|note| NoteInfo::of(state, note)).collect(),
        }
    }
}

impl NoteInfo {
    fn of(state: &State, note: &Note) -> Self {
        Self {
            id: note.id,
            body: note.body.clone(),
            author: state.username(note.author),
            system: note.system,
            resolvable: note.resolvable,
            resolved: note.resolved,
        }
    }
}
