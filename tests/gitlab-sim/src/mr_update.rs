//! `PUT /projects/:id/merge_requests/:merge_request_iid`: every field a caller may change.

use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::merge_requests::{MergeRequest, MrState, cut_description, duplicate, open_between};
use crate::mr_json::mr_detail;
use crate::params::Params;
use crate::quick_actions;
use crate::reply::{Answer, Reply, error, field_message, forbidden, messages, no_record};
use crate::state::State;

const FIELDS: [&str; 12] = [
    "title",
    "description",
    "target_branch",
    "state_event",
    "labels",
    "add_labels",
    "remove_labels",
    "assignee_ids",
    "reviewer_ids",
    "squash",
    "remove_source_branch",
    "discussion_locked",
];

/// `PUT …/merge_requests/:merge_request_iid`
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let user = call.user_id()?;
    if state.may_update(project, iid, Some(user)) != Some(true) {
        return Err(forbidden(None));
    }
    if !FIELDS.iter().any(|name| call.params.has(name)) {
        return Err(error(400, format!("{} are missing, at least one parameter must be provided", FIELDS.join(", "))));
    }
    check_update(state, project, iid, &call.params)?;
    state.change_mr(project, iid, user, &call.params);
    match call.params.text("state_event").as_deref() {
        Some("close") => drop(state.close_mr(project, iid, user)),
        Some("reopen") => drop(state.reopen_mr(project, iid, user)),
        _ => {}
    }
    Ok(Reply::json(200, &mr_detail(state, call, project, iid).ok_or_else(no_record)?))
}

fn check_update(state: &State, project: u64, iid: u64, params: &Params) -> Result<(), Reply> {
    let row = state.project(project).ok_or_else(no_record)?;
    let mr = row.mrs.get(&iid).ok_or_else(no_record)?;
    match params.text("state_event").as_deref() {
        None | Some("close") => {}
        Some("reopen") => check_reopen(state, project, mr)?,
        Some(_) => return Err(error(400, "state_event does not have a valid value")),
    }
    if params.text("title").is_some_and(|title| title.trim().is_empty()) {
        return Err(field_message(400, "title", "can't be blank"));
    }
    let Some(target) = params.text("target_branch") else { return Ok(()) };
    if target == mr.source_branch {
        return Err(messages(422, "You can't use same project/branch for source and target"));
    }
    match open_between(row, &mr.source_branch, &target) {
        Some(other) if other != iid => Err(duplicate(other)),
        _ => Ok(()),
    }
}

fn check_reopen(state: &State, project: u64, mr: &MergeRequest) -> Result<(), Reply> {
    let row = state.project(project).ok_or_else(no_record)?;
    if mr.state != MrState::Closed {
        return Ok(());
    }
    if let Some(other) = open_between(row, &mr.source_branch, &mr.target_branch) {
        return Err(duplicate(other));
    }
    if state.major() >= 19 && row.head_id(&mr.source_branch).is_none() {
        return Err(messages(422, "Source branch does not exist"));
    }
    Ok(())
}

/// What hooks tell of a change.
fn snapshot(state: &State, project: u64, iid: u64) -> Option<Map<String, Value>> {
    let mr = state.mr(project, iid)?;
    let labels = state.labels_json(project, &mr.labels);
    let fields = json!({
        "title": mr.title, "description": mr.description, "draft": mr.is_draft(), "target_branch": mr.target_branch, "labels": labels,
    });
    fields.as_object().cloned()
}

/// `{field: {previous, current}}` of what differs.
fn changes(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let differs = before.iter().filter(|(name, value)| after.get(*name) != Some(value));
    differs.map(|(name, value)| (name.clone(), json!({ "previous": value, "current": after.get(name) }))).collect()
}

impl State {
    /// Fills a new merge request from its creation parameters.
    pub(crate) fn fill_mr(&mut self, project: u64, iid: u64, user: u64, params: &Params) -> Option<()> {
        let removes = self.project(project)?.settings.remove_source_branch_after_merge;
        self.mr_mut(project, iid)?.remove_source_branch = removes;
        self.assign_fields(project, iid, user, params)
    }

    /// Applies an update and tells hooks what changed.
    pub(crate) fn change_mr(&mut self, project: u64, iid: u64, user: u64, params: &Params) -> Option<()> {
        let before = snapshot(self, project, iid)?;
        let previous_update = self.mr(project, iid)?.updated_at_ms;
        self.assign_fields(project, iid, user, params)?;
        let changed = changes(&before, &snapshot(self, project, iid)?);
        if !changed.is_empty() {
            self.touch_mr(project, iid);
            self.emit_mr_update(project, iid, user, changed, previous_update);
        }
        Some(())
    }

    fn assign_fields(&mut self, project: u64, iid: u64, user: u64, params: &Params) -> Option<()> {
        let always = self.project(project)?.settings.squash == crate::project::SquashOption::Always;
        let mr = self.mr_mut(project, iid)?;
        if let Some(title) = params.text("title") {
            mr.title = title;
            mr.auto_merge &= !mr.is_draft();
        }
        if let Some(squash) = params.flag("squash") {
            mr.squash = squash || always;
        }
        if let Some(remove) = params.flag("remove_source_branch") {
            mr.remove_source_branch = remove;
        }
        if let Some(ids) = user_ids(params, "assignee_ids", "assignee_id") {
            mr.assignees = ids;
        }
        if let Some(ids) = user_ids(params, "reviewer_ids", "reviewer_id") {
            mr.reviewers = ids;
        }
        self.assign_target(project, iid, params);
        self.assign_labels(project, iid, user, params);
        self.assign_description(project, iid, user, params);
        Some(())
    }

    fn assign_target(&mut self, project: u64, iid: u64, params: &Params) -> Option<()> {
        let target = params.text("target_branch")?;
        let mr = self.mr_mut(project, iid)?;
        if mr.target_branch != target {
            mr.target_branch = target;
            mr.mark_unchecked();
            self.refresh_diff(project, iid);
        }
        Some(())
    }

    fn assign_labels(&mut self, project: u64, iid: u64, user: u64, params: &Params) {
        if let Some(names) = params.list("labels") {
            self.replace_labels(project, iid, user, &names);
        }
        for name in params.list("add_labels").unwrap_or_default() {
            self.add_label(project, iid, user, &name);
        }
        for name in params.list("remove_labels").unwrap_or_default() {
            self.remove_label(project, iid, user, &name);
        }
    }

    fn assign_description(&mut self, project: u64, iid: u64, user: u64, params: &Params) -> Option<()> {
        let parsed = quick_actions::parse(&cut_description(params.text("description")?));
        self.mr_mut(project, iid)?.description = Some(parsed.text.clone());
        for command in &parsed.commands {
            self.run_command(project, iid, user, command);
        }
        Some(())
    }
}

fn user_ids(params: &Params, list: &str, single: &str) -> Option<Vec<u64>> {
    let ids: Vec<u64> = match params.value(list) {
        Some(Value::Array(rows)) => rows.iter().filter_map(|row| row.as_u64().or_else(|| row.as_str()?.parse().ok())).collect(),
        _ => vec![params.number(list).or_else(|| params.number(single))?],
    };
    Some(ids.into_iter().filter(|id| *id > 0).collect())
}
