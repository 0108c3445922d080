//! What hangs below one merge request: pipelines, commits, diffs.
//! `GET|POST …/merge_requests/:merge_request_iid/pipelines`, `…/commits`, `…/diffs`.

use crate::access::Role;
use crate::call::Call;
use crate::commits::commit_json;
use crate::diff::tree_diffs;
use crate::pagination::{Totals, paginate};
use crate::pipelines::{PipelinePlan, pipeline_detail};
use crate::pipelines_api::rows_of_mr;
use crate::reply::{Answer, Reply, no_record, not_allowed};
use crate::state::State;

/// `GET …/pipelines`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let (_, iid) = call.merge_request(state)?;
    let rows = rows_of_mr(state, call.project(state)?, iid);
    paginate(state, call, rows, Totals::Sent)
}

/// `POST …/pipelines`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    call.project_as(state, Role::Developer)?;
    let mr = state.mr(project, iid).ok_or_else(no_record)?;
    let sha = mr.sha.clone().ok_or_else(not_allowed)?;
    let plan = PipelinePlan {
        branch: mr.source_branch.clone(),
        sha,
        mr: Some(iid),
        source: "merge_request_event",
        user: call.user_id()?,
        upstream: None,
    };
    let id = state.create_pipeline(project, &plan).ok_or_else(not_allowed)?;
    let row = call.project(state)?;
    let pipeline = row.pipelines.get(&id).ok_or_else(no_record)?;
    Ok(Reply::json(200, &pipeline_detail(state, row, pipeline)))
}

/// `GET …/commits`
pub(crate) fn commits(state: &mut State, call: &Call) -> Answer {
    let (_, iid) = call.merge_request(state)?;
    let row = call.project(state)?;
    let mr = row.mrs.get(&iid).ok_or_else(no_record)?;
    let ends = mr.base_sha.as_ref().zip(mr.sha.as_ref());
    let own = ends.map(|(base, head)| row.repo.commits_between(base, head)).unwrap_or_default();
    let rows = own.into_iter().map(|commit| commit_json(state, row, commit)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/diffs`
pub(crate) fn diffs(state: &mut State, call: &Call) -> Answer {
    let (_, iid) = call.merge_request(state)?;
    let row = call.project(state)?;
    let mr = row.mrs.get(&iid).ok_or_else(no_record)?;
    let commit = |sha: &Option<String>| sha.as_deref().and_then(|sha| row.repo.commit(sha));
    let ends = commit(&mr.base_sha).zip(commit(&mr.sha));
    let rows = ends.map(|(base, head)| tree_diffs(&row.repo, &base.tree, &head.tree)).unwrap_or_default();
    paginate(state, call, rows, Totals::Sent)
}
