//! Notes, and those on merge requests: `/projects/:id/merge_requests/:merge_request_iid/notes`. Those on issues are in `issue_notes`.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::iso;
use crate::git::object_id;
use crate::merge_requests::MergeRequest;
use crate::mr_json::time;
use crate::pagination::{Totals, paginate_where};
use crate::quick_actions;
use crate::reply::{Answer, Reply, bad_request, forbidden, missing, no_record};
use crate::state::State;

/// A note.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) id: u64,
    pub(crate) body: String,
    pub(crate) author: u64,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    pub(crate) system: bool,
    pub(crate) internal: bool,
    pub(crate) resolvable: bool,
    pub(crate) resolved: bool,
    pub(crate) resolved_by: Option<u64>,
    pub(crate) resolved_at_ms: Option<u64>,
    pub(crate) discussion: String,
}

const LIMIT: usize = 1_000_000;

/// What a note is on.
#[derive(Clone, Copy)]
pub(crate) struct Noteable {
    pub(crate) kind: &'static str,
    pub(crate) id: u64,
    pub(crate) iid: u64,
}

impl From<&MergeRequest> for Noteable {
    fn from(mr: &MergeRequest) -> Self {
        Self { kind: "MergeRequest", id: mr.id, iid: mr.iid }
    }
}

/// A note as the API shows it.
pub(crate) fn note_json(state: &State, project: u64, on: impl Into<Noteable>, note: &Note) -> Value {
    let on = on.into();
    let mut body = json!({
        "id": note.id, "type": if note.resolvable { json!("DiscussionNote") } else { Value::Null }, "body": note.body,
        "author": state.user_json(Some(note.author)), "created_at": iso(note.created_at_ms), "updated_at": iso(note.updated_at_ms),
        "system": note.system, "noteable_id": on.id, "noteable_type": on.kind, "project_id": project,
        "resolvable": note.resolvable, "confidential": note.internal, "internal": note.internal, "imported": false,
        "imported_from": "none", "noteable_iid": on.iid, "commands_changes": {},
    });
    if note.resolvable {
        body["resolved"] = json!(note.resolved);
        body["resolved_by"] = state.user_json(note.resolved_by);
        body["resolved_at"] = time(note.resolved_at_ms);
    }
    body
}

/// The notes in the order that is asked for.
pub(crate) fn sorted<'a>(call: &Call, notes: &'a [Note]) -> Vec<&'a Note> {
    let mut notes: Vec<&Note> = notes.iter().collect();
    if call.params.text("activity_filter").as_deref() == Some("only_comments") {
        notes.retain(|note| !note.system);
    }
    let updated = call.params.text("order_by").as_deref() == Some("updated_at");
    notes.sort_by_key(|note| (if updated { note.updated_at_ms } else { note.created_at_ms }, note.id));
    if call.params.text("sort").as_deref() != Some("asc") {
        notes.reverse();
    }
    notes
}

/// One page of notes. Those that the caller may not see are left out after paging, so pages come short.
pub(crate) fn page(state: &State, call: &Call, project: u64, on: impl Into<Noteable>, notes: &[Note]) -> Answer {
    let row = state.project(project).ok_or_else(no_record)?;
    let (on, every) = (on.into(), row.settings.hidden_note_every);
    let rows = sorted(call, notes).into_iter().map(|note| note_json(state, project, on, note)).collect();
    let visible = |row: &Value| every.zip(row["id"].as_u64()).is_none_or(|(every, id)| every == 0 || id % every != 0);
    paginate_where(state, call, rows, Totals::Sent, visible)
}

/// `GET …/notes`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let mr = state.mr(project, iid).ok_or_else(no_record)?;
    page(state, call, project, mr, &mr.notes)
}

fn find<'a>(state: &'a State, call: &Call) -> Result<(u64, &'a MergeRequest, &'a Note), Reply> {
    let (project, iid) = call.merge_request(state)?;
    let id = call.number("note_id")?;
    let mr = state.mr(project, iid).ok_or_else(no_record)?;
    let note = mr.notes.iter().find(|note| note.id == id).ok_or_else(no_record)?;
    Ok((project, mr, note))
}

/// `GET …/notes/:note_id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, mr, note) = find(state, call)?;
    Ok(Reply::json(200, &note_json(state, project, mr, note)))
}

/// The text of a note that is written.
pub(crate) fn body(call: &Call) -> Result<String, Reply> {
    let text = call.params.text("body").ok_or_else(|| missing("body"))?;
    if text.trim().is_empty() {
        return Err(bad_request("Note {:note=>[\"can't be blank\"]}"));
    }
    if text.chars().count() > LIMIT {
        return Err(bad_request(&format!("Note {{:note=>[\"is too long (maximum is {LIMIT} characters)\"]}}")));
    }
    Ok(text)
}

/// `POST …/notes`; only quick actions make 202 and no note.
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    call.project_as(state, Role::Guest)?;
    let user = call.user_id()?;
    let parsed = quick_actions::parse(&body(call)?);
    let commands = parsed.commands.iter();
    let summary: Vec<String> = commands.filter_map(|command| state.run_command(project, iid, user, command)).collect();
    if parsed.text.is_empty() {
        return Ok(Reply::json(202, &json!({ "commands_changes": {}, "summary": summary })));
    }
    let internal = call.params.is_set("internal") || call.params.is_set("confidential");
    let id = state.add_note(project, iid, user, parsed.text, internal).ok_or_else(no_record)?;
    state.shown_note(project, iid, id, 201)
}

/// `PUT …/notes/:note_id`
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    let (project, mr, note) = find(state, call)?;
    let (iid, id, user) = (mr.iid, note.id, call.user_id()?);
    if note.author != user {
        return Err(forbidden(None));
    }
    let text = quick_actions::parse(&body(call)?).text;
    let now_ms = state.now_ms;
    if let Some(note) = state.note_mut(project, iid, id) {
        note.body = text;
        note.updated_at_ms = now_ms;
    }
    state.emit_note(project, iid, id, "update");
    state.shown_note(project, iid, id, 200)
}

/// `DELETE …/notes/:note_id`
pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    let (project, mr, note) = find(state, call)?;
    let (iid, id) = (mr.iid, note.id);
    let maintains = state.has_role(call.project(state)?, call.user(), Role::Maintainer);
    if Some(note.author) != call.user() && !maintains {
        return Err(forbidden(None));
    }
    if let Some(mr) = state.mr_mut(project, iid) {
        mr.notes.retain(|note| note.id != id);
    }
    Ok(Reply::empty(204))
}

impl State {
    pub(crate) fn note_mut(&mut self, project: u64, iid: u64, id: u64) -> Option<&mut Note> {
        self.mr_mut(project, iid)?.notes.iter_mut().find(|note| note.id == id)
    }

    fn shown_note(&self, project: u64, iid: u64, id: u64, status: u16) -> Answer {
        let mr = self.mr(project, iid).ok_or_else(no_record)?;
        let note = mr.notes.iter().find(|note| note.id == id).ok_or_else(no_record)?;
        Ok(Reply::json(status, &note_json(self, project, mr, note)))
    }

    /// A note that is made now.
    pub(crate) fn new_note(&mut self, author: u64, body: String, internal: bool) -> Note {
        let id = self.ids.next("note");
        Note {
            id,
            body,
            author,
            created_at_ms: self.now_ms,
            updated_at_ms: self.now_ms,
            system: false,
            internal,
            resolvable: false,
            resolved: false,
            resolved_by: None,
            resolved_at_ms: None,
            discussion: object_id("discussion", id.to_string().as_bytes()),
        }
    }

    /// Adds a note and tells hooks.
    pub(crate) fn add_note(&mut self, project: u64, iid: u64, author: u64, body: String, internal: bool) -> Option<u64> {
        let note = self.new_note(author, body, internal);
        let (id, now_ms) = (note.id, self.now_ms);
        let mr = self.mr_mut(project, iid)?;
        mr.notes.push(note);
        mr.updated_at_ms = now_ms;
        self.emit_note(project, iid, id, "create");
        Some(id)
    }
}
