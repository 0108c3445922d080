//! Discussions: threads that can be resolved (`…/merge_requests/:merge_request_iid/discussions`).

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::merge_requests::MergeRequest;
use crate::notes::{Note, note_json};
use crate::pagination::{Totals, paginate};
use crate::reply::{Answer, Reply, missing, no_record, not_found};
use crate::state::State;

fn discussion_json(state: &State, project: u64, mr: &MergeRequest, note: &Note) -> Value {
    json!({ "id": note.discussion, "individual_note": !note.resolvable, "notes": [note_json(state, project, mr, note)] })
}

/// `GET …/discussions`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let mr = state.mr(project, iid).ok_or_else(no_record)?;
    let rows = mr.notes.iter().map(|note| discussion_json(state, project, mr, note)).collect();
    paginate(state, call, rows, Totals::Missing)
}

/// `POST …/discussions`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    call.project_as(state, Role::Guest)?;
    let body = call.params.text("body").ok_or_else(|| missing("body"))?;
    let id = state.open_discussion(project, iid, call.user_id()?, body).ok_or_else(no_record)?;
    shown(state, project, iid, &id, 201)
}

fn shown(state: &State, project: u64, iid: u64, id: &str, status: u16) -> Answer {
    let mr = state.mr(project, iid).ok_or_else(no_record)?;
    let note = mr.notes.iter().find(|note| note.discussion == id).ok_or_else(|| not_found("Discussion"))?;
    Ok(Reply::json(status, &discussion_json(state, project, mr, note)))
}

/// `PUT …/discussions/:discussion_id`
pub(crate) fn resolve(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    call.project_as(state, Role::Developer)?;
    let resolved = call.params.flag("resolved").ok_or_else(|| missing("resolved"))?;
    let id = call.capture("discussion_id");
    state.resolve_discussion(project, iid, id, call.user_id()?, resolved).ok_or_else(|| not_found("Discussion"))?;
    shown(state, project, iid, id, 200)
}

impl State {
    /// Opens a thread; the answer is its id.
    pub(crate) fn open_discussion(&mut self, project: u64, iid: u64, user: u64, body: String) -> Option<String> {
        let note = self.add_note(project, iid, user, body, false)?;
        let note = self.note_mut(project, iid, note)?;
        note.resolvable = true;
        Some(note.discussion.clone())
    }

    /// Resolves or unresolves a thread; no hook is sent.
    pub(crate) fn resolve_discussion(&mut self, project: u64, iid: u64, id: &str, user: u64, resolved: bool) -> Option<()> {
        let now_ms = self.now_ms;
        let mr = self.mr_mut(project, iid)?;
        let note = mr.notes.iter_mut().find(|note| note.discussion == id)?;
        note.resolved = resolved;
        note.resolved_by = resolved.then_some(user);
        note.resolved_at_ms = resolved.then_some(now_ms);
        Some(())
    }
}
