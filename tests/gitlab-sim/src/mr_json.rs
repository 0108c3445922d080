//! A merge request as JSON: list rows and the full answer.

use serde_json::{Value, json};

use crate::call::Call;
use crate::clock::iso;
use crate::git::changed_paths;
use crate::merge_requests::MergeRequest;
use crate::pipelines::{pipeline_detail, pipeline_row};
use crate::project::{Project, SquashOption};
use crate::state::State;

/// A time, or null.
pub(crate) fn time(at_ms: Option<u64>) -> Value {
    at_ms.map_or(Value::Null, |at| json!(iso(at)))
}

/// A list row.
pub(crate) fn mr_row(state: &State, project: &Project, mr: &MergeRequest) -> Value {
    let users = |ids: &[u64]| ids.iter().map(|id| state.user_json(Some(*id))).collect::<Vec<_>>();
    let mut body = json!({
        "id": mr.id, "iid": mr.iid, "project_id": project.id, "title": mr.title, "description": mr.description,
        "state": mr.state.text(), "created_at": iso(mr.created_at_ms), "updated_at": iso(mr.updated_at_ms),
        "target_branch": mr.target_branch, "source_branch": mr.source_branch,
        "user_notes_count": mr.notes.iter().filter(|note| !note.system).count(), "upvotes": 0, "downvotes": 0,
        "author": state.user_json(Some(mr.author)), "assignees": users(&mr.assignees), "reviewers": users(&mr.reviewers),
        "assignee": state.user_json(mr.assignees.first().copied()),
        "source_project_id": project.id, "target_project_id": project.id, "labels": mr.labels,
        "draft": mr.is_draft(), "work_in_progress": mr.is_draft(), "imported": false, "imported_from": "none", "milestone": null,
        "sha": mr.sha, "merge_commit_sha": mr.merge_commit_sha, "squash_commit_sha": mr.squash_commit_sha,
        "discussion_locked": null, "prepared_at": time(mr.prepared_at_ms), "reference": format!("!{}", mr.iid),
        "web_url": format!("{}/-/merge_requests/{}", state.web_url(project), mr.iid),
        "task_completion_status": { "count": 0, "completed_count": 0 },
        "blocking_discussions_resolved": !mr.has_open_discussions(), "approvals_before_merge": null,
    });
    add_references(&mut body, project, mr);
    add_merge_fields(&mut body, state, project, mr);
    body
}

fn add_references(body: &mut Value, project: &Project, mr: &MergeRequest) {
    let short = format!("!{}", mr.iid);
    body["references"] = json!({ "short": short, "relative": short, "full": format!("{}{short}", project.path) });
    body["time_stats"] = json!({ "time_estimate": 0, "total_time_spent": 0, "human_time_estimate": null, "human_total_time_spent": null });
}

fn add_merge_fields(body: &mut Value, state: &State, project: &Project, mr: &MergeRequest) {
    let always = project.settings.squash == SquashOption::Always;
    let merged_by = state.user_json(mr.merge_user);
    body["merge_user"] = merged_by.clone();
    body["merged_by"] = if mr.merged_at_ms.is_some() { merged_by } else { Value::Null };
    body["merged_at"] = time(mr.merged_at_ms);
    body["closed_by"] = state.user_json(mr.closed_by);
    body["closed_at"] = time(mr.closed_at_ms);
    body["merge_when_pipeline_succeeds"] = json!(mr.auto_merge);
    body["merge_status"] = json!(mr.check.text());
    body["detailed_merge_status"] = json!(state.detailed_status(project, mr));
    body["merge_after"] = Value::Null;
    body["should_remove_source_branch"] = Value::Null;
    body["force_remove_source_branch"] = json!(mr.remove_source_branch);
    body["squash"] = json!(mr.squash);
    body["squash_on_merge"] = json!(mr.squash || always);
    body["has_conflicts"] = json!(mr.check.has_conflicts());
}

/// The full answer, for the caller.
pub(crate) fn mr_detail(state: &State, call: &Call, project: u64, iid: u64) -> Option<Value> {
    let project = state.project(project)?;
    let mr = project.mrs.get(&iid)?;
    let mut body = mr_row(state, project, mr);
    add_pipeline(&mut body, state, project, mr);
    add_diff(&mut body, project, mr);
    body["subscribed"] = json!(call.user() == Some(mr.author));
    body["merge_error"] = json!(mr.merge_error);
    body["first_contribution"] = json!(false);
    body["first_deployed_to_production_at"] = Value::Null;
    body["user"] = json!({ "can_merge": state.may_merge(project, call.user(), &mr.target_branch) });
    if call.params.is_set("include_rebase_in_progress") {
        body["rebase_in_progress"] = json!(mr.rebase_in_progress);
    }
    if call.params.is_set("include_diverged_commits_count") {
        body["diverged_commits_count"] = json!(diverged(project, mr));
    }
    Some(body)
}

fn diverged(project: &Project, mr: &MergeRequest) -> usize {
    let ends = project.head_id(&mr.target_branch).zip(mr.sha.clone());
    ends.map_or(0, |(target, sha)| project.repo.commits_between(&sha, &target).len())
}

fn add_pipeline(body: &mut Value, state: &State, project: &Project, mr: &MergeRequest) {
    let pipeline = mr.head_pipeline.and_then(|id| project.pipelines.get(&id));
    body["pipeline"] = pipeline.map_or(Value::Null, |pipeline| pipeline_row(state, project, pipeline));
    body["head_pipeline"] = pipeline.map_or(Value::Null, |pipeline| pipeline_detail(state, project, pipeline));
    body["latest_build_started_at"] = time(pipeline.and_then(|pipeline| pipeline.started_at_ms));
    body["latest_build_finished_at"] = time(pipeline.and_then(|pipeline| pipeline.finished_at_ms));
}

fn add_diff(body: &mut Value, project: &Project, mr: &MergeRequest) {
    let prepared = mr.prepared_at_ms.is_some();
    body["diff_refs"] =
        if prepared { json!({ "base_sha": mr.base_sha, "head_sha": mr.sha, "start_sha": mr.start_sha }) } else { Value::Null };
    let commit = |sha: &Option<String>| sha.as_deref().and_then(|sha| project.repo.commit(sha));
    let changed = commit(&mr.base_sha).zip(commit(&mr.sha)).map(|(base, head)| changed_paths(&base.tree, &head.tree).len());
    body["changes_count"] = match changed.filter(|_| prepared) {
        None | Some(0) => Value::Null,
        Some(count) if count > 1000 => json!("1000+"),
        Some(count) => json!(count.to_string()),
    };
}
