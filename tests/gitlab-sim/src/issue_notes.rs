//! Notes on issues: `/projects/:id/issues/:issue_iid/notes`.

use serde_json::json;

use crate::access::Role;
use crate::call::Call;
use crate::issues::Issue;
use crate::notes::{Note, body, note_json, page};
use crate::quick_actions;
use crate::reply::{Answer, Reply, forbidden, no_record};
use crate::state::State;

/// `GET …/notes`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.issue(state)?;
    let issue = state.tracked(project, iid).ok_or_else(no_record)?;
    page(state, call, project, issue, &issue.notes)
}

fn find<'a>(state: &'a State, call: &Call) -> Result<(u64, &'a Issue, &'a Note), Reply> {
    let (project, iid) = call.issue(state)?;
    let id = call.number("note_id")?;
    let issue = state.tracked(project, iid).ok_or_else(no_record)?;
    let note = issue.notes.iter().find(|note| note.id == id).ok_or_else(no_record)?;
    Ok((project, issue, note))
}

/// `GET …/notes/:note_id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, issue, note) = find(state, call)?;
    Ok(Reply::json(200, &note_json(state, project, issue, note)))
}

/// `POST …/notes`; only quick actions make 202 and no note.
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.issue(state)?;
    call.project_as(state, Role::Guest)?;
    let user = call.user_id()?;
    let parsed = quick_actions::parse(&body(call)?);
    let commands = parsed.commands.iter();
    let summary: Vec<String> = commands.filter_map(|command| state.run_issue_command(project, iid, user, command)).collect();
    if parsed.text.is_empty() {
        return Ok(Reply::json(202, &json!({ "commands_changes": {}, "summary": summary })));
    }
    let internal = call.params.is_set("internal") || call.params.is_set("confidential");
    let note = state.new_note(user, parsed.text, internal);
    let (id, now_ms) = (note.id, state.now_ms);
    let issue = state.tracked_mut(project, iid).ok_or_else(no_record)?;
    issue.notes.push(note);
    issue.updated_at_ms = now_ms;
    shown(state, project, iid, id, 201)
}

fn shown(state: &State, project: u64, iid: u64, id: u64, status: u16) -> Answer {
    let issue = state.tracked(project, iid).ok_or_else(no_record)?;
    let note = issue.notes.iter().find(|note| note.id == id).ok_or_else(no_record)?;
    Ok(Reply::json(status, &note_json(state, project, issue, note)))
}

/// `PUT …/notes/:note_id`, for its author.
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    let (project, issue, note) = find(state, call)?;
    let (iid, id) = (issue.iid, note.id);
    if note.author != call.user_id()? {
        return Err(forbidden(None));
    }
    let (text, now_ms) = (quick_actions::parse(&body(call)?).text, state.now_ms);
    let issue = state.tracked_mut(project, iid).ok_or_else(no_record)?;
    for note in issue.notes.iter_mut().filter(|note| note.id == id) {
        note.body.clone_from(&text);
        note.updated_at_ms = now_ms;
    }
    shown(state, project, iid, id, 200)
}

/// `DELETE …/notes/:note_id`, for its author and maintainers.
pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    let (project, issue, note) = find(state, call)?;
    let (iid, id) = (issue.iid, note.id);
    let maintains = state.has_role(call.project(state)?, call.user(), Role::Maintainer);
    if Some(note.author) != call.user() && !maintains {
        return Err(forbidden(None));
    }
    let issue = state.tracked_mut(project, iid).ok_or_else(no_record)?;
    issue.notes.retain(|note| note.id != id);
    Ok(Reply::empty(204))
}
