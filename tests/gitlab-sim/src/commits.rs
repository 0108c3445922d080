//! Reading commits: `GET /projects/:id/repository/commits`, `…/:sha`, `…/:sha/diff`.

use serde_json::{Value, json};

use crate::call::Call;
use crate::clock::{commit_time, parse_time};
use crate::diff::{line_stats, tree_diffs};
use crate::git::Commit;
use crate::mr_json::mr_row;
use crate::pagination::{Totals, paginate};
use crate::pipelines::pipeline_row;
use crate::project::Project;
use crate::reply::{Answer, Reply, not_found};
use crate::state::State;

/// A commit as lists show it.
pub(crate) fn commit_json(state: &State, project: &Project, commit: &Commit) -> Value {
    json!({
        "id": commit.id, "short_id": commit.short_id(), "created_at": commit_time(commit.committer.at_ms),
        "parent_ids": commit.parents, "title": commit.title(), "message": commit.message,
        "author_name": commit.author.name, "author_email": commit.author.email, "authored_date": commit_time(commit.author.at_ms),
        "committer_name": commit.committer.name, "committer_email": commit.committer.email,
        "committed_date": commit_time(commit.committer.at_ms), "trailers": {}, "extended_trailers": {},
        "web_url": format!("{}/-/commit/{}", state.web_url(project), commit.id),
    })
}

fn stats_json(project: &Project, commit: &Commit) -> Value {
    let (additions, deletions) = line_stats(&project.repo, &project.repo.parent_tree(commit), &commit.tree);
    json!({ "additions": additions, "deletions": deletions, "total": additions + deletions })
}

/// A commit in full, with its last pipeline.
pub(crate) fn commit_detail(state: &State, project: &Project, commit: &Commit, stats: bool) -> Value {
    let mut body = commit_json(state, project, commit);
    if stats {
        body["stats"] = stats_json(project, commit);
    }
    let pipeline = project.pipelines.values().rfind(|pipeline| pipeline.sha == commit.id);
    body["status"] = json!(pipeline.map(|pipeline| pipeline.status));
    body["project_id"] = json!(project.id);
    body["last_pipeline"] = pipeline.map_or(Value::Null, |pipeline| pipeline_row(state, project, pipeline));
    body
}

fn find<'a>(project: &'a Project, call: &Call) -> Result<&'a Commit, Reply> {
    let name = call.capture("sha");
    let name = if name == "HEAD" { &project.default_branch } else { name };
    project.repo.resolve(name).ok_or_else(|| not_found("Commit"))
}

/// `GET …/commits`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let rows = selected(project, call);
    let show = |commit: &&Commit| {
        let mut row = commit_json(state, project, commit);
        if call.params.is_set("with_stats") {
            row["stats"] = stats_json(project, commit);
        }
        row
    };
    let rows = rows.iter().map(show).collect();
    paginate(state, call, rows, Totals::Missing)
}

fn selected<'a>(project: &'a Project, call: &Call) -> Vec<&'a Commit> {
    let params = &call.params;
    let time = |name: &str| params.text(name).and_then(|text| parse_time(&text));
    let (since, until) = (time("since"), time("until"));
    let author = params.text("author");
    let path = params.text("path");
    let fits = |commit: &&Commit| {
        since.is_none_or(|at| commit.committer.at_ms >= at)
            && until.is_none_or(|at| commit.committer.at_ms <= at)
            && author.as_ref().is_none_or(|text| commit.author.name.contains(text) || commit.author.email.contains(text))
            && path.as_ref().is_none_or(|path| project.repo.last_commit_for(commit, path).id == commit.id && touches(project, commit, path))
    };
    walk(project, call).into_iter().filter(fits).collect()
}

fn touches(project: &Project, commit: &Commit, path: &str) -> bool {
    let parent = project.repo.parent_tree(commit);
    crate::git::changed_paths(&parent, &commit.tree).iter().any(|changed| changed == path || changed.starts_with(&format!("{path}/")))
}

fn walk<'a>(project: &'a Project, call: &Call) -> Vec<&'a Commit> {
    let repo = &project.repo;
    if call.params.is_set("all") {
        let mut rows: Vec<&Commit> = repo.branches.values().flat_map(|id| repo.history(id)).collect();
        rows.sort_by_key(|commit| std::cmp::Reverse(commit.seq));
        rows.dedup_by_key(|commit| &commit.id);
        return rows;
    }
    let name = call.params.text("ref_name").unwrap_or_else(|| project.default_branch.clone());
    if let Some((from, to)) = name.split_once("..") {
        let ends = (repo.resolve(from), repo.resolve(to));
        return if let (Some(from), Some(to)) = ends { repo.commits_between(&from.id, &to.id) } else { Vec::new() };
    }
    let Some(head) = repo.resolve(&name) else { return Vec::new() };
    if call.params.is_set("first_parent") { repo.first_parent_history(&head.id) } else { repo.history(&head.id) }
}

/// `GET …/commits/:sha`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let commit = find(project, call)?;
    Ok(Reply::json(200, &commit_detail(state, project, commit, call.params.flag("stats") != Some(false))))
}

/// `GET …/commits/:sha/diff`
pub(crate) fn diff(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let commit = find(project, call)?;
    let rows = tree_diffs(&project.repo, &project.repo.parent_tree(commit), &commit.tree);
    paginate(state, call, rows, Totals::Missing)
}

/// `GET …/commits/:sha/merge_requests`
pub(crate) fn merge_requests(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let id = &find(project, call)?.id;
    let has = |sha: &Option<String>| sha.as_ref() == Some(id);
    let fits = project.mrs.values().rev().filter(|mr| {
        let own = mr.sha.as_ref().zip(mr.base_sha.as_ref());
        let in_branch = own.is_some_and(|(head, base)| project.repo.commits_between(base, head).iter().any(|commit| commit.id == *id));
        in_branch || has(&mr.merge_commit_sha) || has(&mr.squash_commit_sha)
    });
    let rows = fits.map(|mr| mr_row(state, project, mr)).collect();
    paginate(state, call, rows, Totals::Sent)
}
