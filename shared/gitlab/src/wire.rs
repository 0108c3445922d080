//! GitLab's answers, reduced to the fields that are used, and their translation. Unknown fields and words are let pass.

use collie_core::id::{JobId, MrIid, NoteId, PipelineId, ProjectId, Sha, UserId};
use collie_core::issue::ci;
use collie_core::mr::view;
use collie_core::time::Timestamp;
use collie_engine::ports::TrackedIssue;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct MergeRequest {
    iid: MrIid,
    state: State,
    #[serde(default)]
    draft: bool,
    title: String,
    description: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    source_branch: String,
    target_branch: String,
    /// None where the source project was deleted.
    pub(crate) source_project_id: Option<ProjectId>,
    sha: Option<Sha>,
    #[serde(default)]
    detailed_merge_status: String,
    #[serde(default)]
    has_conflicts: bool,
    /// Missing counts as unresolved: the careful reading.
    #[serde(default)]
    blocking_discussions_resolved: bool,
    /// Rows of lists have none.
    head_pipeline: Option<Pipeline>,
    /// Null for a fast-forward.
    merge_commit_sha: Option<Sha>,
    squash_commit_sha: Option<Sha>,
    merge_error: Option<String>,
    /// Rows of lists have none.
    user: Option<Rights>,
    author: Option<User>,
    #[serde(default)]
    web_url: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Opened,
    Closed,
    Merged,
    Locked,
}

#[derive(Debug, Deserialize)]
struct Rights {
    can_merge: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct User {
    id: UserId,
}

#[derive(Debug, Deserialize)]
struct Pipeline {
    id: PipelineId,
    #[serde(rename = "ref")]
    git_ref: String,
    sha: Sha,
    status: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    id: JobId,
    name: String,
    #[serde(default)]
    stage: String,
    status: String,
    #[serde(default)]
    allow_failure: bool,
    failure_reason: Option<String>,
    finished_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Branch {
    commit: Id,
    #[serde(default)]
    protected: bool,
    #[serde(default)]
    default: bool,
}

/// Anything of which only the commit id matters.
#[derive(Debug, Deserialize)]
pub(crate) struct Id {
    pub(crate) id: Sha,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Commit {
    id: Sha,
    parent_ids: Vec<Sha>,
    message: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct File {
    pub(crate) content_sha256: String,
    #[serde(default)]
    pub(crate) content: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TreeEntry {
    id: String,
    path: String,
    #[serde(rename = "type")]
    kind: String,
    mode: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Compare {
    diffs: Vec<Diff>,
    #[serde(default)]
    compare_timeout: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    #[serde(default)]
    pub(crate) push_data: Option<PushData>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PushData {
    #[serde(rename = "ref")]
    name: Option<String>,
    ref_type: Option<String>,
    commit_from: Option<Sha>,
    commit_to: Option<Sha>,
}

impl PushData {
    /// What this push replaced, if it put this head on this branch.
    pub(crate) fn replaced_by(self, branch: &str, head: &Sha) -> Option<Sha> {
        let is_it =
            self.name.as_deref() == Some(branch) && self.ref_type.as_deref() == Some("branch") && self.commit_to.as_ref() == Some(head);
        self.commit_from.filter(|_| is_it)
    }
}

#[derive(Debug, Deserialize)]
struct Diff {
    old_path: String,
    new_path: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Approvals {
    /// Only paid tiers say.
    pub(crate) approvals_left: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Note {
    id: NoteId,
    author: Option<User>,
    body: String,
    #[serde(default)]
    pub(crate) system: bool,
}

/// The id of an author whom GitLab does not name.
const NOBODY: UserId = UserId(0);

fn author(user: Option<User>) -> UserId {
    user.map_or(NOBODY, |user| user.id)
}

/// A pipeline as lists show it.
#[derive(Debug, Deserialize)]
pub(crate) struct PipelineRow {
    pub(crate) id: PipelineId,
    project_id: ProjectId,
    #[serde(default)]
    source: String,
    status: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CiJob {
    id: JobId,
    name: String,
    status: String,
    #[serde(default)]
    allow_failure: bool,
    #[serde(default)]
    artifacts: Vec<Artifact>,
}

#[derive(Debug, Deserialize)]
struct Artifact {
    #[serde(default)]
    file_type: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Bridge {
    id: JobId,
    name: String,
    status: String,
    #[serde(default)]
    allow_failure: bool,
    downstream_pipeline: Option<PipelineRow>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TestReport {
    test_suites: Vec<Suite>,
}

#[derive(Debug, Deserialize)]
struct Suite {
    name: String,
    /// Present and not null where a report cannot be read; its text quotes the report.
    suite_error: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    test_cases: Vec<TestCase>,
}

#[derive(Debug, Deserialize)]
struct TestCase {
    status: String,
    name: Option<String>,
    classname: Option<String>,
    file: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Issue {
    iid: u64,
    state: String,
    description: Option<String>,
    web_url: String,
}

impl Issue {
    /// Whether its description holds a text.
    pub(crate) fn holds(&self, text: &str) -> bool {
        self.description.as_ref().is_some_and(|description| description.contains(text))
    }
}

impl From<PipelineRow> for ci::Pipeline {
    fn from(row: PipelineRow) -> Self {
        Self { project: row.project_id, id: row.id, source: row.source, standing: ci::Standing::parse(&row.status) }
    }
}

impl From<CiJob> for ci::CiJob {
    fn from(job: CiJob) -> Self {
        Self {
            id: job.id,
            name: job.name,
            standing: ci::Standing::parse(&job.status),
            allow_failure: job.allow_failure,
            has_report: job.artifacts.iter().any(|artifact| artifact.file_type == "junit"),
        }
    }
}

impl From<Bridge> for ci::Bridge {
    fn from(bridge: Bridge) -> Self {
        Self {
            id: bridge.id,
            name: bridge.name,
            standing: ci::Standing::parse(&bridge.status),
            allow_failure: bridge.allow_failure,
            downstream: bridge.downstream_pipeline.map(Into::into),
        }
    }
}

impl From<TestReport> for ci::TestReport {
    fn from(report: TestReport) -> Self {
        Self::Read(report.test_suites.into_iter().map(Into::into).collect())
    }
}

impl From<Suite> for ci::Suite {
    fn from(suite: Suite) -> Self {
        let failing = suite.test_cases.into_iter().filter(|case| matches!(case.status.as_str(), "failed" | "error"));
        Self { name: suite.name, is_broken: suite.suite_error.is_some(), failing: failing.map(Into::into).collect() }
    }
}

impl From<TestCase> for ci::FailingCase {
    fn from(case: TestCase) -> Self {
        Self { class: case.classname.unwrap_or_default(), name: case.name.unwrap_or_default(), file: case.file }
    }
}

impl From<Issue> for TrackedIssue {
    fn from(issue: Issue) -> Self {
        Self { iid: issue.iid, url: issue.web_url, is_open: issue.state == "opened" }
    }
}

impl From<MergeRequest> for view::MergeRequest {
    fn from(mr: MergeRequest) -> Self {
        Self {
            iid: mr.iid,
            state: mr.state.into(),
            draft: mr.draft,
            title: mr.title,
            description: mr.description.unwrap_or_default(),
            labels: mr.labels,
            source_branch: mr.source_branch,
            target_branch: mr.target_branch,
            sha: mr.sha,
            detailed_merge_status: mr.detailed_merge_status,
            has_conflicts: mr.has_conflicts,
            discussions_resolved: mr.blocking_discussions_resolved,
            head_pipeline: mr.head_pipeline.map(Into::into),
            merge_commit: mr.merge_commit_sha.or(mr.squash_commit_sha),
            merge_error: mr.merge_error,
            can_merge: mr.user.and_then(|user| user.can_merge),
            author: author(mr.author),
            web_url: mr.web_url,
        }
    }
}

impl From<State> for view::State {
    fn from(state: State) -> Self {
        match state {
            State::Opened => Self::Opened,
            State::Closed => Self::Closed,
            State::Merged => Self::Merged,
            State::Locked => Self::Locked,
        }
    }
}

impl From<Pipeline> for view::Pipeline {
    fn from(pipeline: Pipeline) -> Self {
        Self { id: pipeline.id, git_ref: pipeline.git_ref, sha: pipeline.sha, status: pipeline.status }
    }
}

impl From<Job> for view::Job {
    fn from(job: Job) -> Self {
        Self {
            id: job.id,
            name: job.name,
            stage: job.stage,
            status: job.status,
            allow_failure: job.allow_failure,
            failure_reason: job.failure_reason,
            finished_at: job.finished_at.as_deref().and_then(Timestamp::parse),
        }
    }
}

impl From<Branch> for view::Branch {
    fn from(branch: Branch) -> Self {
        Self { sha: branch.commit.id, protected: branch.protected, default: branch.default }
    }
}

impl From<Commit> for view::Commit {
    fn from(commit: Commit) -> Self {
        Self { sha: commit.id, parents: commit.parent_ids, message: commit.message }
    }
}

impl From<TreeEntry> for view::TreeEntry {
    fn from(entry: TreeEntry) -> Self {
        let kind = match (entry.kind.as_str(), entry.mode.as_str()) {
            ("tree", _) => view::EntryKind::Directory,
            ("commit", _) | (_, "160000") => view::EntryKind::Submodule,
            (_, "120000") => view::EntryKind::Symlink,
            (_, mode) => view::EntryKind::File { executable: mode == "100755" },
        };
        Self { path: entry.path, id: entry.id, kind }
    }
}

impl From<Compare> for view::ChangedPaths {
    /// A diff whose text was left out (`collapsed`, `too_large`) still names its paths; only an overflow hides some.
    fn from(compare: Compare) -> Self {
        if compare.compare_timeout {
            return Self::Truncated;
        }
        let mut paths: Vec<_> = compare.diffs.into_iter().flat_map(|diff| [diff.old_path, diff.new_path]).collect();
        paths.sort_unstable();
        paths.dedup();
        Self::Complete(paths)
    }
}

impl From<Note> for view::Note {
    fn from(note: Note) -> Self {
        Self { id: note.id, author: author(note.author), body: note.body }
    }
}
