//! `PUT /projects/:id/merge_requests/:merge_request_iid/rebase`: asynchronous, result in `merge_error`.

use serde_json::json;

use crate::call::Call;
use crate::git::Tree;
use crate::pushes::Via;
use crate::reply::{Answer, Reply, forbidden, message, no_record};
use crate::repo::CommitDraft;
use crate::state::{State, Task};

const FAILED: &str = "Rebase failed: Rebase locally, resolve all conflicts, then push the branch.";

/// `PUT …/rebase`
pub(crate) fn rebase(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    let row = state.project(project).ok_or_else(no_record)?;
    let mr = row.mrs.get(&iid).ok_or_else(no_record)?;
    if row.head_id(&mr.source_branch).is_none() {
        return Err(forbidden(Some("Source branch does not exist")));
    }
    if !state.may_push(row, Some(user), &mr.source_branch) {
        return Err(forbidden(Some("Cannot push to source branch")));
    }
    if !row.may_force_push(&mr.source_branch) {
        return Err(forbidden(Some("Source branch is protected from force push")));
    }
    if mr.rebase_in_progress {
        return Err(message(409, "409 Conflict: Resource lock"));
    }
    let mr = state.mr_mut(project, iid).ok_or_else(no_record)?;
    mr.rebase_in_progress = true;
    mr.merge_error = None;
    state.schedule(state.timing.rebase_ms, Task::Rebase { project, iid, user });
    Ok(Reply::json(202, &json!({ "rebase_in_progress": true })))
}

impl State {
    /// The background half of a rebase.
    pub(crate) fn finish_rebase(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        self.mr_mut(project, iid)?.rebase_in_progress = false;
        let branch = self.mr(project, iid)?.source_branch.clone();
        match self.rebased_head(project, iid, user) {
            Some(head) => self.update_branch(project, &branch, Some(head), user, Via::Api),
            None => {
                self.mr_mut(project, iid)?.merge_error = Some(FAILED.to_owned());
                Some(())
            }
        }
    }

    /// Replays the source's own commits onto the target; `None` on conflict.
    fn rebased_head(&mut self, project: u64, iid: u64, user: u64) -> Option<String> {
        let committer = self.signature(user);
        let row = self.project_mut(project)?;
        let mr = row.mrs.get(&iid)?;
        let target = row.head_id(&mr.target_branch)?;
        let source = row.head_id(&mr.source_branch)?;
        if row.repo.is_ancestor(&target, &source) {
            return Some(source);
        }
        let mut own =
            row.repo.commits_between(&target, &source).into_iter().filter(|commit| commit.parents.len() < 2).cloned().collect::<Vec<_>>();
        own.reverse();
        let mut head = target;
        for commit in own {
            let onto = row.repo.commit(&head).map(|commit| Tree::clone(&commit.tree))?;
            let base = row.repo.parent_tree(&commit);
            let tree = crate::git::merge_trees(&base, &onto, &commit.tree).ok()?;
            let draft = CommitDraft {
                message: commit.message,
                author: commit.author,
                committer: committer.clone(),
                author_user: commit.author_user,
            };
            head = row.repo.put_commit(tree, vec![head], draft);
        }
        Some(head)
    }
}
