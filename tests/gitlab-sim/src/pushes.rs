//! What a push does: the ref moves at once; hooks, events, pipelines and merge requests follow
//! in the background, so for a moment a merge request still shows the old head.

use crate::git::Commit;
use crate::merge_requests::MrState;
use crate::pipelines::PipelinePlan;
use crate::project::PipelineMode;
use crate::state::{State, Task};

/// How a ref was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// Through the API: cached branch names are fresh at once.
    Api,
    /// By `git push`: the cached branch names lag.
    Git,
    /// By merging a merge request.
    Merge,
}

/// A move of one branch.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub(crate) branch: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) user: u64,
}

impl State {
    /// Moves, makes or (with `None`) deletes a branch.
    pub(crate) fn update_branch(&mut self, project: u64, branch: &str, after: Option<String>, user: u64, via: Via) -> Option<()> {
        let row = self.project_mut(project)?;
        let before = match &after {
            Some(id) => row.repo.branches.insert(branch.to_owned(), id.clone()),
            None => row.repo.branches.remove(branch),
        };
        if before == after {
            return Some(());
        }
        self.note_branch_name(project, branch, via)?;
        let push = Push { branch: branch.to_owned(), before, after, user };
        self.plan_branch_pipeline(project, &push);
        self.schedule(self.timing.push_processing_ms, Task::AfterPush { project, push });
        Some(())
    }

    fn note_branch_name(&mut self, project: u64, branch: &str, via: Via) -> Option<()> {
        let lag = self.timing.branch_cache_lag_ms;
        let row = self.project_mut(project)?;
        if via == Via::Git && lag > 0 {
            self.schedule(lag, Task::RefreshBranches { project });
        } else if row.repo.branches.contains_key(branch) {
            row.cached_branches.insert(branch.to_owned());
        } else {
            row.cached_branches.remove(branch);
        }
        Some(())
    }

    pub(crate) fn refresh_branch_cache(&mut self, project: u64) -> Option<()> {
        let project = self.project_mut(project)?;
        project.cached_branches = project.repo.branches.keys().cloned().collect();
        Some(())
    }

    pub(crate) fn remove_branch(&mut self, project: u64, branch: &str, user: u64) -> Option<()> {
        self.project(project)?.head_id(branch)?;
        self.update_branch(project, branch, None, user, Via::Api)
    }

    /// Removes the branch of a merged merge request, unless something was pushed to it meanwhile.
    pub(crate) fn remove_merged_branch(&mut self, project: u64, branch: &str, tip: &str, user: u64) -> Option<()> {
        self.project(project)?.head_id(branch).filter(|head| head == tip)?;
        self.remove_branch(project, branch, user)
    }

    fn plan_branch_pipeline(&mut self, project: u64, push: &Push) -> Option<()> {
        let row = self.project(project)?;
        let wanted = match row.settings.pipelines {
            PipelineMode::Branch => true,
            PipelineMode::Detached | PipelineMode::MergedResults => push.branch == row.default_branch,
            PipelineMode::None => false,
        };
        let sha = push.after.clone().filter(|_| wanted)?;
        let plan = PipelinePlan { branch: push.branch.clone(), sha, mr: None, source: "push", user: push.user, upstream: None };
        self.schedule(self.timing.pipeline_creation_ms, Task::CreatePipeline { project, plan });
        Some(())
    }

    /// The background half of a push.
    pub(crate) fn process_push(&mut self, project: u64, push: &Push) -> Option<()> {
        self.emit_push(project, push);
        self.add_push_event(project, push);
        self.train_target_moved(project, push);
        let iids: Vec<u64> = self.project(project)?.mrs.values().filter(|mr| mr.is_open()).map(|mr| mr.iid).collect();
        for iid in iids {
            let mr = self.mr(project, iid)?;
            let (from_it, onto_it) = (mr.source_branch == push.branch, mr.target_branch == push.branch);
            if from_it {
                self.process_source_push(project, iid, push);
            }
            if onto_it {
                self.process_target_push(project, iid, push);
            }
        }
        Some(())
    }

    fn process_source_push(&mut self, project: u64, iid: u64, push: &Push) -> Option<()> {
        if push.after.is_none() {
            let gone = self.project(project)?.head_id(&push.branch).is_none();
            return if gone { self.close_mr(project, iid, push.user) } else { Some(()) };
        }
        let head = self.project(project)?.head_id(&push.branch);
        let moves = self.mr(project, iid)?.sha != head;
        let previous_update = self.mr(project, iid)?.updated_at_ms;
        if moves {
            self.take_head(project, iid, head);
            self.adopt_branch_pipeline(project, iid);
            self.reset_approvals_on_push(project, iid, push.user);
            self.draft_by_commit(project, iid);
            self.touch_mr(project, iid);
        }
        // Each push has its hook with what it replaced, also one that another push has overtaken.
        if push.before.is_some() {
            self.emit_mr_push(project, iid, push.user, push.before.as_deref(), previous_update);
        }
        if moves { self.plan_mr_pipeline(project, iid, push.user) } else { Some(()) }
    }

    /// Lets the merge request follow its source branch.
    fn take_head(&mut self, project: u64, iid: u64, head: Option<String>) -> Option<()> {
        let mr = self.mr_mut(project, iid)?;
        mr.sha = head;
        mr.auto_merge = false;
        mr.merge_error = None;
        mr.mark_unchecked();
        self.drop_car(project, iid);
        self.refresh_diff(project, iid)
    }

    fn reset_approvals_on_push(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let row = self.project_mut(project)?;
        let wanted = row.settings.reset_approvals_on_push;
        let mr = row.mrs.get_mut(&iid)?;
        if wanted && !mr.approvals.is_empty() {
            mr.approvals.clear();
            self.emit_approvals_reset(project, iid, user);
        }
        Some(())
    }

    fn draft_by_commit(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project(project)?;
        let mr = row.mrs.get(&iid)?;
        let commit = row.repo.commit(mr.sha.as_deref()?)?;
        if commit.title().to_lowercase().starts_with("draft:") && !mr.is_draft() {
            let title = format!("Draft: {}", mr.title);
            self.mr_mut(project, iid)?.title = title;
        }
        Some(())
    }

    fn process_target_push(&mut self, project: u64, iid: u64, push: &Push) -> Option<()> {
        if self.is_merged_by(project, iid, push) == Some(true) {
            return self.mark_merged_by_push(project, iid, push);
        }
        self.mr_mut(project, iid)?.mark_unchecked();
        Some(())
    }

    /// Whether the push brought the head of the merge request into its target.
    fn is_merged_by(&self, project: u64, iid: u64, push: &Push) -> Option<bool> {
        let row = self.project(project)?;
        let head = row.mrs.get(&iid)?.sha.as_ref()?;
        let after = push.after.as_ref()?;
        let before = push.before.as_deref().unwrap_or_default();
        Some(row.repo.commits_between(before, after).iter().any(|commit| commit.id == *head))
    }

    fn mark_merged_by_push(&mut self, project: u64, iid: u64, push: &Push) -> Option<()> {
        let now_ms = self.now_ms;
        let mr = self.mr_mut(project, iid)?;
        let previous_update = mr.updated_at_ms;
        mr.state = MrState::Merged;
        mr.merge_user = Some(push.user);
        mr.merged_at_ms = Some(now_ms);
        mr.merge_commit_sha.clone_from(&push.after);
        mr.updated_at_ms = now_ms;
        self.skip_train(project, iid);
        self.emit_mr_state(project, iid, push.user, "merge", (1, 3), previous_update);
        Some(())
    }

    /// Plans the pipeline of a merge request, if the project runs such.
    pub(crate) fn plan_mr_pipeline(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let row = self.project(project)?;
        if !matches!(row.settings.pipelines, PipelineMode::Detached | PipelineMode::MergedResults) {
            return Some(());
        }
        let mr = row.mrs.get(&iid)?;
        let sha = mr.sha.clone()?;
        let plan =
            PipelinePlan { branch: mr.source_branch.clone(), sha, mr: Some(iid), source: "merge_request_event", user, upstream: None };
        self.schedule(self.timing.pipeline_creation_ms, Task::CreatePipeline { project, plan });
        Some(())
    }

    /// The commits a push brought, newest first.
    pub(crate) fn pushed_commits(&self, project: u64, push: &Push) -> Vec<&Commit> {
        let Some(row) = self.project(project) else { return Vec::new() };
        let Some(after) = &push.after else { return Vec::new() };
        match &push.before {
            Some(before) => row.repo.commits_between(before, after),
            None if push.branch == row.default_branch => row.repo.history(after),
            None => {
                let default = row.head_id(&row.default_branch).unwrap_or_default();
                row.repo.commits_between(&default, after)
            }
        }
    }
}
