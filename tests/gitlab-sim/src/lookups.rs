//! Lookups clients make before they work: `GET /projects`, `GET /users`.

use serde_json::Value;

use crate::call::Call;
use crate::pagination::{Totals, paginate};
use crate::project::{Visibility, project_json};
use crate::reply::Answer;
use crate::state::State;

/// `GET /projects`: those the caller may see.
pub(crate) fn projects(state: &mut State, call: &Call) -> Answer {
    let search = call.params.text("search").unwrap_or_default();
    let member_only = call.params.is_set("membership");
    let visible = state.projects.values().rev().filter(|project| {
        let member = state.role(project, call.user()).is_some();
        (member || (project.visibility == Visibility::Public && !member_only)) && project.path.contains(&search)
    });
    let rows: Vec<Value> = visible.map(|project| project_json(state, project, call.user())).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET /users`: by `username`, or all.
pub(crate) fn users(state: &mut State, call: &Call) -> Answer {
    call.user_id()?;
    let wanted = call.params.text("username");
    let found = state.users.values().filter(|user| wanted.as_ref().is_none_or(|name| *name == user.username));
    let rows: Vec<Value> = found.map(|user| state.user_json(Some(user.id))).collect();
    paginate(state, call, rows, Totals::Sent)
}
