//! `merge_status` and `detailed_merge_status`: when a check runs, what it finds, which reason is named.

use crate::merge_requests::{CheckStatus, MergeRequest};
use crate::pipelines::{Pipeline, Status};
use crate::project::{MergeMethod, Project};
use crate::state::{State, Task};

impl CheckStatus {
    /// What the API shows.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Preparing | Self::Checking | Self::Rechecking => "checking",
            Self::Unchecked => "unchecked",
            Self::CanBeMerged => "can_be_merged",
            Self::CannotBeMerged => "cannot_be_merged",
            Self::Recheck => "cannot_be_merged_recheck",
        }
    }

    pub(crate) fn has_conflicts(self) -> bool {
        self == Self::CannotBeMerged
    }
}

impl MergeRequest {
    /// Forgets the outcome of the last check.
    pub(crate) fn mark_unchecked(&mut self) {
        self.check = match self.check {
            CheckStatus::CannotBeMerged | CheckStatus::Rechecking | CheckStatus::Recheck => CheckStatus::Recheck,
            _ => CheckStatus::Unchecked,
        };
    }
}

impl State {
    /// Starts a check if there is no valid one and none runs.
    pub(crate) fn begin_check(&mut self, project: u64, iid: u64) -> Option<()> {
        let mr = self.mr_mut(project, iid).filter(|mr| mr.is_open())?;
        mr.check = match mr.check {
            CheckStatus::Unchecked => CheckStatus::Checking,
            CheckStatus::Recheck => CheckStatus::Rechecking,
            _ => return None,
        };
        self.schedule(self.timing.mergeability_check_ms, Task::CheckMr { project, iid });
        Some(())
    }

    /// Ends a check that runs.
    pub(crate) fn finish_check(&mut self, project: u64, iid: u64) -> Option<()> {
        let running = matches!(self.mr(project, iid)?.check, CheckStatus::Checking | CheckStatus::Rechecking);
        running.then(|| self.check_now(project, iid)).flatten()
    }

    /// Checks at once, as the merge call does for an unchecked merge request.
    pub(crate) fn check_now(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project(project)?;
        let clean = merges_cleanly(row, row.mrs.get(&iid)?);
        self.mr_mut(project, iid)?.check = if clean { CheckStatus::CanBeMerged } else { CheckStatus::CannotBeMerged };
        Some(())
    }

    /// The reason the merge request cannot be merged now, or `mergeable`.
    pub(crate) fn detailed_status(&self, project: &Project, mr: &MergeRequest) -> &'static str {
        if !mr.is_open() {
            return "not_open";
        }
        match mr.check {
            CheckStatus::Preparing => "preparing",
            CheckStatus::Checking | CheckStatus::Rechecking => "checking",
            CheckStatus::Unchecked => "unchecked",
            _ => self.failing_check(project, mr).unwrap_or("mergeable"),
        }
    }

    /// The first failing check, CI last.
    pub(crate) fn failing_check(&self, project: &Project, mr: &MergeRequest) -> Option<&'static str> {
        let settings = &project.settings;
        let missing_approvals = mr.approvals.len() < settings.approvals_required as usize;
        let open_threads = settings.only_allow_merge_if_all_discussions_are_resolved && mr.has_open_discussions();
        let checks = [
            (!mr.is_open(), "not_open"),
            (missing_approvals, "not_approved"),
            (mr.is_draft(), "draft_status"),
            (!has_commits(project, mr), "commits_status"),
            (open_threads, "discussions_not_resolved"),
            (mr.check != CheckStatus::CanBeMerged, "conflict"),
            (needs_rebase(project, mr), "need_rebase"),
        ];
        let failed = checks.into_iter().find(|(fails, _)| *fails).map(|(_, name)| name);
        failed.or_else(|| failing_ci(project, mr))
    }
}

fn failing_ci(project: &Project, mr: &MergeRequest) -> Option<&'static str> {
    if !project.settings.only_allow_merge_if_pipeline_succeeds {
        return None;
    }
    match current_pipeline(project, mr).map(|pipeline| pipeline.status) {
        Some(Status::Success) => None,
        Some(status) if status.is_active() => Some("ci_still_running"),
        _ => Some("ci_must_pass"),
    }
}

/// The head pipeline, if it is for the current head.
pub(crate) fn current_pipeline<'a>(project: &'a Project, mr: &MergeRequest) -> Option<&'a Pipeline> {
    let pipeline = project.pipelines.get(&mr.head_pipeline?)?;
    (Some(&pipeline.source_sha) == mr.sha.as_ref()).then_some(pipeline)
}

fn has_commits(project: &Project, mr: &MergeRequest) -> bool {
    let source = project.head_id(&mr.source_branch);
    let target = project.head_id(&mr.target_branch);
    source.zip(target).is_some_and(|(source, target)| !project.repo.is_ancestor(&source, &target))
}

/// Whether history must be linear and the source is behind its target.
pub(crate) fn needs_rebase(project: &Project, mr: &MergeRequest) -> bool {
    let linear = project.settings.merge_method != MergeMethod::Merge;
    let target = project.head_id(&mr.target_branch);
    let behind = target.zip(mr.sha.as_ref()).is_some_and(|(target, sha)| !project.repo.is_ancestor(&target, sha));
    linear && behind
}

fn merges_cleanly(project: &Project, mr: &MergeRequest) -> bool {
    let target = project.head_id(&mr.target_branch);
    let ends = target.zip(mr.sha.as_ref());
    ends.is_some_and(|(target, sha)| project.repo.merge(&target, sha).is_ok())
}
