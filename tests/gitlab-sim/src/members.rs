//! Members: `GET /projects/:id/members/all[/:user_id]`.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::iso;
use crate::pagination::{Totals, paginate};
use crate::project::Project;
use crate::reply::{Answer, Reply, no_record};
use crate::state::State;

fn member_json(state: &State, project: &Project, user: u64, role: Role) -> Value {
    let mut body = state.user_json(Some(user));
    body["access_level"] = json!(role.level());
    body["created_at"] = json!(iso(project.created_at_ms));
    body["expires_at"] = Value::Null;
    body["membership_state"] = json!("active");
    body
}

/// `GET …/members/all`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let rows = project.members.iter().map(|(user, role)| member_json(state, project, *user, *role)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/members/all/:user_id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let user = call.number("user_id")?;
    let role = project.members.get(&user).ok_or_else(no_record)?;
    Ok(Reply::json(200, &member_json(state, project, user, *role)))
}
