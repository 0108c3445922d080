//! Approvals: `GET …/approvals`, `POST …/approve`, `POST …/unapprove`.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::iso;
use crate::merge_requests::MergeRequest;
use crate::project::Project;
use crate::reply::{Answer, Reply, message, no_record, unauthorized};
use crate::state::State;

/// One user's approval.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    pub(crate) user: u64,
    pub(crate) at_ms: u64,
}

fn has_approved(mr: &MergeRequest, user: u64) -> bool {
    mr.approvals.iter().any(|approval| approval.user == user)
}

fn may_approve(state: &State, project: &Project, mr: &MergeRequest, user: u64) -> bool {
    let own = mr.author == user && !project.settings.author_may_approve;
    state.has_role(project, Some(user), Role::Developer) && !own
}

fn approvals_json(state: &State, project: u64, iid: u64, user: Option<u64>) -> Option<Value> {
    let row = state.project(project)?;
    let mr = row.mrs.get(&iid)?;
    let required = row.settings.approvals_required as usize;
    let left = required.saturating_sub(mr.approvals.len());
    let by: Vec<Value> =
        mr.approvals.iter().map(|row| json!({ "user": state.user_json(Some(row.user)), "approved_at": iso(row.at_ms) })).collect();
    Some(json!({
        "id": mr.id, "iid": mr.iid, "project_id": row.id, "title": mr.title, "state": mr.state.text(),
        "merge_status": mr.check.text(), "approved": left == 0, "approvals_required": required, "approvals_left": left,
        "require_password_to_approve": false, "approved_by": by, "suggested_approvers": [], "approvers": [], "approver_groups": [],
        "user_has_approved": user.is_some_and(|user| has_approved(mr, user)),
        "user_can_approve": user.is_some_and(|user| may_approve(state, row, mr, user) && !has_approved(mr, user)),
        "approval_rules_left": [], "has_approval_rules": required > 0, "merge_request_approvers_available": true,
        "multiple_approval_rules_available": true, "invalid_approvers_rules": [],
    }))
}

fn shown(state: &State, call: &Call, status: u16, project: u64, iid: u64) -> Answer {
    Ok(Reply::json(status, &approvals_json(state, project, iid, call.user()).ok_or_else(no_record)?))
}

/// `GET …/approvals`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    shown(state, call, 200, project, iid)
}

/// `POST …/approve`
pub(crate) fn approve(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    let row = state.project(project).ok_or_else(no_record)?;
    let mr = row.mrs.get(&iid).ok_or_else(no_record)?;
    let current = mr.sha.clone().unwrap_or_default();
    if call.params.text("sha").is_some_and(|sha| sha != current) {
        return Err(message(409, format!("SHA does not match HEAD of source branch: {current}")));
    }
    if has_approved(mr, user) {
        return Ok(Reply::empty(304));
    }
    if !may_approve(state, row, mr, user) {
        return Err(unauthorized());
    }
    state.add_approval(project, iid, user);
    shown(state, call, 201, project, iid)
}

/// `POST …/unapprove`
pub(crate) fn unapprove(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    match state.remove_approval(project, iid, user) {
        Some(()) => shown(state, call, 201, project, iid),
        None => Ok(Reply::empty(304)),
    }
}

/// `PUT …/reset_approvals`; bots only.
pub(crate) fn reset(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    if !state.users.get(&user).is_some_and(|user| user.bot) {
        return Err(unauthorized());
    }
    state.mr_mut(project, iid).ok_or_else(no_record)?.approvals.clear();
    Ok(Reply::empty(202))
}

impl State {
    /// Whether no rule is unmet.
    fn is_approved(&self, project: u64, iid: u64) -> Option<bool> {
        let row = self.project(project)?;
        Some(row.mrs.get(&iid)?.approvals.len() >= row.settings.approvals_required as usize)
    }

    /// Adds an approval and tells hooks: `approved` where all rules are met, else `approval`.
    pub(crate) fn add_approval(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let at_ms = self.now_ms;
        let mr = self.mr_mut(project, iid).filter(|mr| !has_approved(mr, user))?;
        mr.approvals.push(Approval { user, at_ms });
        mr.updated_at_ms = at_ms;
        let action = if self.is_approved(project, iid)? { "approved" } else { "approval" };
        self.emit_mr_action(project, iid, user, action);
        self.run_auto_merge(project, iid);
        Some(())
    }

    /// Takes an approval back: `unapproved` where all rules were met, else `unapproval`.
    pub(crate) fn remove_approval(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let was_approved = self.is_approved(project, iid)?;
        let now_ms = self.now_ms;
        let mr = self.mr_mut(project, iid).filter(|mr| has_approved(mr, user))?;
        mr.approvals.retain(|approval| approval.user != user);
        mr.updated_at_ms = now_ms;
        self.emit_mr_action(project, iid, user, if was_approved { "unapproved" } else { "unapproval" });
        Some(())
    }

    /// A persona's turn to approve.
    pub(crate) fn persona_approves(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        self.mr(project, iid).filter(|mr| mr.is_open())?;
        self.add_approval(project, iid, user)
    }
}
