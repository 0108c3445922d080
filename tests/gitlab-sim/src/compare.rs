//! `GET /projects/:id/repository/compare` and `GET /projects/:id/repository/merge_base`.

use serde_json::{Value, json};

use crate::call::Call;
use crate::commits::commit_json;
use crate::diff::tree_diffs;
use crate::git::Commit;
use crate::project::Project;
use crate::reply::{Answer, Reply, bad_request, not_found};
use crate::state::State;

/// `GET …/compare`
pub(crate) fn compare(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let (from, to) = (call.params.required("from")?, call.params.required("to")?);
    let find = |name: &str| project.repo.resolve(name).ok_or_else(|| not_found("Ref"));
    let (left, right) = (find(&from)?, find(&to)?);
    let base = if call.params.is_set("straight") { Some(left) } else { project.repo.merge_base(&left.id, &right.id) };
    Ok(Reply::json(200, &comparison(state, project, base.unwrap_or(left), left, right)))
}

fn comparison(state: &State, project: &Project, base: &Commit, left: &Commit, right: &Commit) -> Value {
    let mut commits: Vec<Value> =
        project.repo.commits_between(&left.id, &right.id).into_iter().map(|commit| commit_json(state, project, commit)).collect();
    commits.reverse();
    json!({
        "commit": commits.last(), "commits": commits, "diffs": tree_diffs(&project.repo, &base.tree, &right.tree),
        "compare_timeout": false, "compare_same_ref": left.id == right.id,
        "web_url": format!("{}/-/compare/{}...{}", state.web_url(project), left.id, right.id),
    })
}

/// `GET …/merge_base`
pub(crate) fn merge_base(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let names = call.params.list("refs").unwrap_or_default();
    let [first, rest @ ..] = names.as_slice() else { return Err(bad_request("Provide at least 2 refs")) };
    if rest.is_empty() {
        return Err(bad_request("Provide at least 2 refs"));
    }
    let find = |name: &String| project.repo.resolve(name).ok_or_else(|| bad_request(&format!("Could not find ref: {name}")));
    let mut base = find(first)?;
    for name in rest {
        base = project.repo.merge_base(&base.id, &find(name)?.id).ok_or_else(|| not_found("Merge Base"))?;
    }
    Ok(Reply::json(200, &commit_json(state, project, base)))
}
