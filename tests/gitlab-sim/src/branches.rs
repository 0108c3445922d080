//! Branches: list, read, create, delete (`/projects/:id/repository/branches`).

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::parse_time;
use crate::commits::commit_json;
use crate::git::{Commit, is_branch_name};
use crate::pagination::{Totals, keyset, paginate};
use crate::params::encode;
use crate::project::{AccessLevel, Project};
use crate::pushes::Via;
use crate::reply::{Answer, Reply, bad_request, forbidden, message, not_found};
use crate::state::State;

fn branch_json(state: &State, project: &Project, user: Option<u64>, name: &str, head: &Commit) -> Value {
    let default = project.head_id(&project.default_branch);
    let merged = name != project.default_branch && default.is_some_and(|default| project.repo.is_ancestor(&head.id, &default));
    json!({
        "name": name, "commit": commit_json(state, project, head), "merged": merged, "protected": project.is_protected(name),
        "developers_can_push": project.push_level(name) == Some(AccessLevel::Developer),
        "developers_can_merge": project.merge_level(name) == Some(AccessLevel::Developer),
        "can_push": state.may_push(project, user, name), "default": name == project.default_branch,
        "web_url": format!("{}/-/tree/{}", state.web_url(project), encode(name).replace("%2F", "/")),
    })
}

fn shown(state: &State, project: &Project, user: Option<u64>, name: &str) -> Option<Value> {
    project.repo.head(name).map(|head| branch_json(state, project, user, name, head))
}

/// `GET …/branches`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let search = call.params.text("search").unwrap_or_default();
    let names = project.repo.branches.keys().filter(|name| name.contains(&search));
    let rows = names.filter_map(|name| shown(state, project, call.user(), name)).collect();
    if call.params.text("pagination").as_deref() == Some("keyset") {
        return keyset(state, call, rows, "name");
    }
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/branches/:branch`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let name = call.capture("branch");
    if !is_branch_name(name) {
        return Err(message(400, "The branch refname is invalid"));
    }
    let row = shown(state, project, call.user(), name).ok_or_else(|| not_found("Branch"))?;
    Ok(Reply::json(200, &row))
}

/// `HEAD …/branches/:branch`, from the cached branch names.
pub(crate) fn head(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let known = project.cached_branches.contains(call.capture("branch"));
    Ok(Reply::empty(if known { 204 } else { 404 }))
}

/// `POST …/branches`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Developer)?;
    let (name, reference) = (call.params.required("branch")?, call.params.required("ref")?);
    if !state.may_push(project, call.user(), &name) {
        return Err(forbidden(None));
    }
    if !is_branch_name(&name) {
        return Err(message(400, "Branch name is invalid"));
    }
    if project.repo.branches.contains_key(&name) {
        return Err(message(400, "Branch already exists"));
    }
    let unknown = || message(400, format!("Failed to create branch '{name}': invalid reference name '{reference}'"));
    let start = project.repo.resolve(&reference).ok_or_else(unknown)?.id.clone();
    let (project, user) = (project.id, call.user_id()?);
    state.update_branch(project, &name, Some(start), user, Via::Api);
    let project = call.project(state)?;
    let row = shown(state, project, Some(user), &name).ok_or_else(|| not_found("Branch"))?;
    Ok(Reply::json(201, &row))
}

/// `DELETE …/branches/:branch`
pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let name = call.capture("branch").to_owned();
    let head = project.repo.head(&name).ok_or_else(|| not_found("Branch"))?;
    if !state.may_push(project, call.user(), &name) {
        return Err(message(405, "You dont have push access to repo"));
    }
    if name == project.default_branch || project.is_protected(&name) {
        return Err(message(400, "Failed to remove branch"));
    }
    check_unmodified(call, head)?;
    let (project, user) = (project.id, call.user_id()?);
    state.update_branch(project, &name, None, user, Via::Api);
    Ok(Reply::empty(204))
}

fn check_unmodified(call: &Call, head: &Commit) -> Result<(), Reply> {
    let Some(text) = call.request.header("if-unmodified-since") else { return Ok(()) };
    let limit = parse_time(text).ok_or_else(|| bad_request("Incorrect If-Unmodified-Since header"))?;
    if head.committer.at_ms / 1000 > limit / 1000 { Err(message(412, "412 Precondition Failed")) } else { Ok(()) }
}
