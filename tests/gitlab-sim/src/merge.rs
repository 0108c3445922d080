//! `PUT /projects/:id/merge_requests/:merge_request_iid/merge`: the order of answers, and the merge itself.

use crate::call::Call;
use crate::git::{Commit, Tree};
use crate::merge_requests::{CheckStatus, MrState};
use crate::mergeability::{current_pipeline, needs_rebase};
use crate::mr_json::mr_detail;
use crate::project::MergeMethod;
use crate::pushes::Via;
use crate::reply::{Answer, Reply, bad_request, message, no_record, not_allowed, unauthorized};
use crate::repo::CommitDraft;
use crate::state::{State, Task};

/// What a merge was asked to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct MergeOptions {
    squash: Option<bool>,
    merge_message: Option<String>,
    squash_message: Option<String>,
    remove_source_branch: Option<bool>,
}

impl MergeOptions {
    /// Those of a car on a train.
    pub(crate) fn squashing(squash: Option<bool>) -> Self {
        Self { squash, ..Self::default() }
    }

    fn read(call: &Call) -> Self {
        Self {
            squash: call.params.flag("squash"),
            merge_message: call.params.text("merge_commit_message"),
            squash_message: call.params.text("squash_commit_message"),
            remove_source_branch: call.params.flag("should_remove_source_branch"),
        }
    }
}

/// `PUT …/merge`
pub(crate) fn merge(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    let sha = call.params.text("sha");
    if sha.is_none() && state.project(project).is_some_and(|project| project.settings.require_sha_on_merge) {
        return Err(bad_request("SHA must be provided when merging"));
    }
    if state.may_merge_mr(project, iid, user) != Some(true) {
        return Err(unauthorized());
    }
    let modern = state.major() >= 18;
    if modern {
        check_sha(state, project, iid, sha.as_deref())?;
    }
    if let Some(reply) = try_auto_merge(state, call, project, iid, user) {
        return Ok(reply);
    }
    check_train(state, call, project)?;
    check_mergeable(state, project, iid)?;
    if !modern {
        check_sha(state, project, iid, sha.as_deref())?;
    }
    if let Err(reason) = state.merge_mr(project, iid, user, &MergeOptions::read(call)) {
        state.set_merge_error(project, iid, &reason);
        return Err(message(422, "Branch cannot be merged"));
    }
    Ok(Reply::json(200, &mr_detail(state, call, project, iid).ok_or_else(no_record)?))
}

pub(crate) fn check_sha(state: &State, project: u64, iid: u64, sha: Option<&str>) -> Result<(), Reply> {
    let current = state.mr(project, iid).and_then(|mr| mr.sha.clone()).unwrap_or_default();
    match sha {
        Some(sha) if sha != current => Err(message(409, format!("SHA does not match HEAD of source branch: {current}"))),
        _ => Ok(()),
    }
}

fn try_auto_merge(state: &mut State, call: &Call, project: u64, iid: u64, user: u64) -> Option<Reply> {
    let wanted = call.params.is_set("merge_when_pipeline_succeeds") || call.params.is_set("auto_merge");
    let row = state.project(project).filter(|_| wanted)?;
    let mr = row.mrs.get(&iid).filter(|mr| mr.is_open())?;
    current_pipeline(row, mr).filter(|pipeline| pipeline.status.is_active())?;
    let mr = state.mr_mut(project, iid)?;
    mr.auto_merge = true;
    mr.merge_user = Some(user);
    Some(Reply::json(200, &mr_detail(state, call, project, iid)?))
}

/// Where merges go by train, only who says so may merge past it. UNCONFIRMED.
fn check_train(state: &State, call: &Call, project: u64) -> Result<(), Reply> {
    let by_train = state.project(project).is_some_and(|project| project.settings.merge_trains);
    if by_train && !call.params.is_set("skip_merge_train") { Err(not_allowed()) } else { Ok(()) }
}

/// 405 whatever the reason; before 18 a conflict or needed rebase is 422.
fn check_mergeable(state: &mut State, project: u64, iid: u64) -> Result<(), Reply> {
    match state.merge_obstacle(project, iid) {
        None => Ok(()),
        Some("conflict" | "need_rebase") if state.major() < 18 => Err(message(422, "Branch cannot be merged")),
        Some(_) => Err(not_allowed()),
    }
}

/// `GET …/merge_ref`: the commit a merge would make, if there is no conflict.
pub(crate) fn merge_ref(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    state.check_now(project, iid);
    let commit = state.merged_result(project, iid, user).ok_or_else(|| message(400, "Merge request is not mergeable"))?;
    Ok(Reply::json(200, &serde_json::json!({ "commit_id": commit })))
}

/// `POST …/cancel_merge_when_pipeline_succeeds`
pub(crate) fn cancel_auto_merge(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    if state.may_update(project, iid, call.user()) != Some(true) {
        return Err(unauthorized());
    }
    let mr = state.mr_mut(project, iid).ok_or_else(no_record)?;
    if !mr.is_open() {
        return Err(not_allowed());
    }
    if !mr.auto_merge {
        return Err(message(406, "406 Not Acceptable"));
    }
    mr.auto_merge = false;
    mr.merge_user = None;
    state.drop_car(project, iid);
    Ok(Reply::json(201, &mr_detail(state, call, project, iid).ok_or_else(no_record)?))
}

impl State {
    pub(crate) fn may_merge_mr(&self, project: u64, iid: u64, user: u64) -> Option<bool> {
        let row = self.project(project)?;
        Some(self.may_merge(row, Some(user), &row.mrs.get(&iid)?.target_branch))
    }

    /// Why the merge request cannot be merged, after a check if there is no valid one.
    pub(crate) fn merge_obstacle(&mut self, project: u64, iid: u64) -> Option<&'static str> {
        let mr = self.mr(project, iid)?;
        if mr.is_open() && !matches!(mr.check, CheckStatus::CanBeMerged | CheckStatus::Preparing) {
            self.check_now(project, iid);
        }
        let row = self.project(project)?;
        self.failing_check(row, row.mrs.get(&iid)?)
    }

    pub(crate) fn set_merge_error(&mut self, project: u64, iid: u64, reason: &str) -> Option<()> {
        self.mr_mut(project, iid)?.merge_error = Some(reason.to_owned());
        Some(())
    }

    /// Merges on behalf of auto merge, if nothing stands in the way.
    pub(crate) fn run_auto_merge(&mut self, project: u64, iid: u64) -> Option<()> {
        let user = self.mr(project, iid).filter(|mr| mr.auto_merge)?.merge_user?;
        if self.merge_obstacle(project, iid).is_none()
            && let Err(reason) = self.merge_mr(project, iid, user, &MergeOptions::default())
        {
            self.set_merge_error(project, iid, &reason);
        }
        Some(())
    }

    /// Merges; `Err` is the text of `merge_error`.
    pub(crate) fn merge_mr(&mut self, project: u64, iid: u64, user: u64, options: &MergeOptions) -> Result<(), String> {
        let merged = self.build_merge(project, iid, user, options)?;
        let failed = || "An error occurred while merging".to_owned();
        let target = self.mr(project, iid).map(|mr| mr.target_branch.clone()).ok_or_else(failed)?;
        self.update_branch(project, &target, Some(merged.head.clone()), user, Via::Merge).ok_or_else(failed)?;
        self.finish_merge(project, iid, user, &merged, options).ok_or_else(failed)
    }

    fn build_merge(&mut self, project: u64, iid: u64, user: u64, options: &MergeOptions) -> Result<Merged, String> {
        let signature = self.signature(user);
        let author_user = self.users.get(&user).map(|user| user.username.clone());
        let failed = || "An error occurred while merging".to_owned();
        let row = self.project_mut(project).ok_or_else(failed)?;
        let mr = row.mrs.get(&iid).ok_or_else(failed)?.clone();
        let (target, head) = row.head_id(&mr.target_branch).zip(mr.sha.clone()).ok_or_else(failed)?;
        if row.head_id(&mr.source_branch).as_ref() != Some(&head) {
            return Err("Branch has been updated since the merge was requested. Please review the changes.".to_owned());
        }
        if let Some(text) = &row.settings.merge_refused {
            return Err(format!("Something went wrong during merge pre-receive hook. {text}"));
        }
        if needs_rebase(row, &mr) {
            return Err(failed());
        }
        let tree = row.repo.merge(&target, &head).map_err(|_| failed())?;
        let draft = |message: String| CommitDraft {
            message,
            author: signature.clone(),
            committer: signature.clone(),
            author_user: author_user.clone(),
        };
        let squash = (mr.squash || options.squash == Some(true)) && row.settings.squash != crate::project::SquashOption::Never;
        let mut tip = head;
        if squash
            && let Some((base, source)) = mr.base_sha.clone().zip(row.repo.commit(&tip).map(|commit: &Commit| Tree::clone(&commit.tree)))
        {
            let message = options.squash_message.clone().unwrap_or_else(|| mr.title.clone());
            tip = row.repo.put_commit(source, vec![base], draft(message));
        }
        let squashed = squash.then(|| tip.clone());
        if row.settings.merge_method == MergeMethod::Ff {
            return Ok(Merged { head: tip, merge_commit: None, squashed });
        }
        let text =
            options.merge_message.clone().unwrap_or_else(|| merge_text(&mr.source_branch, &mr.target_branch, &mr.title, &row.path, iid));
        let commit = row.repo.put_commit(tree, vec![target, tip], draft(text));
        Ok(Merged { head: commit.clone(), merge_commit: Some(commit), squashed })
    }

    fn finish_merge(&mut self, project: u64, iid: u64, user: u64, merged: &Merged, options: &MergeOptions) -> Option<()> {
        let now_ms = self.now_ms;
        let mr = self.mr_mut(project, iid)?;
        let previous_update = mr.updated_at_ms;
        mr.state = MrState::Merged;
        mr.merge_user = Some(user);
        mr.merged_at_ms = Some(now_ms);
        mr.updated_at_ms = now_ms;
        mr.auto_merge = false;
        mr.merge_error = None;
        mr.merge_commit_sha.clone_from(&merged.merge_commit);
        mr.squash_commit_sha.clone_from(&merged.squashed);
        let remove = options.remove_source_branch.unwrap_or(mr.remove_source_branch);
        let branch = mr.source_branch.clone();
        self.skip_train(project, iid);
        self.emit_mr_state(project, iid, user, "merge", (1, 3), previous_update);
        let row = self.project(project)?;
        if remove && branch != row.default_branch && !row.is_protected(&branch) {
            let tip = row.head_id(&branch)?;
            self.schedule(self.timing.branch_removal_ms, Task::RemoveBranch { project, branch, tip, user });
        }
        Some(())
    }
}

fn merge_text(source: &str, target: &str, title: &str, path: &str, iid: u64) -> String {
    format!("Merge branch '{source}' into '{target}'\n\n{title}\n\nSee merge request {path}!{iid}")
}

struct Merged {
    head: String,
    merge_commit: Option<String>,
    squashed: Option<String>,
}
