//! Single-file writes: `POST|PUT|DELETE /projects/:id/repository/files/:file_path`.
//!
//! Each is one commit with one action, so its refusals are those of the Commits API.

use serde_json::{Value, json};

use crate::call::Call;
use crate::commits_api;
use crate::params::Params;
use crate::reply::{Answer, Reply};
use crate::state::State;

const COMMIT_FIELDS: [&str; 6] = ["branch", "start_branch", "start_sha", "commit_message", "author_name", "author_email"];
const ACTION_FIELDS: [&str; 4] = ["content", "encoding", "last_commit_id", "execute_filemode"];

/// `POST …/files/:file_path`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    write(state, call, "create")?;
    shown(call, 201)
}

/// `PUT …/files/:file_path`
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    write(state, call, "update")?;
    shown(call, 200)
}

/// `DELETE …/files/:file_path`
pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    write(state, call, "delete")?;
    Ok(Reply::empty(204))
}

fn shown(call: &Call, status: u16) -> Answer {
    let branch = call.params.text("branch");
    Ok(Reply::json(status, &json!({ "file_path": call.capture("file_path"), "branch": branch })))
}

fn write(state: &mut State, call: &Call, verb: &str) -> Answer {
    let mut action = json!({ "action": verb, "file_path": call.capture("file_path") });
    for name in ACTION_FIELDS {
        action[name] = call.params.value(name).cloned().unwrap_or(Value::Null);
    }
    let mut params = Params::default();
    for name in COMMIT_FIELDS {
        params.0.extend(call.params.value(name).map(|value| (name.to_owned(), value.clone())));
    }
    params.0.insert("actions".to_owned(), json!([action]));
    commits_api::create(state, &Call { params, ..call.clone() })
}
