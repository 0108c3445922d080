//! Hook payloads: push, merge request, pipeline, job and note, as GitLab words them.

use serde_json::{Map, Value, json};

use crate::clock::{hook_commit_time, iso, iso_seconds, legacy};
use crate::git::{Commit, changed_paths};
use crate::merge_requests::MergeRequest;
use crate::notes::Note;
use crate::pipeline_run::latest_jobs;
use crate::pipelines::{Job, Pipeline, Upstream, runner, seconds_between};
use crate::project::{Project, Visibility};
use crate::pushes::Push;
use crate::state::State;

const NO_SHA: &str = "0000000000000000000000000000000000000000";

impl State {
    /// Time text in hooks: ISO since 19, a legacy text before.
    pub(crate) fn hook_time(&self, at_ms: u64) -> String {
        if self.major() >= 19 { iso(at_ms / 1000 * 1000) } else { legacy(at_ms) }
    }

    fn hook_time_or_null(&self, at_ms: Option<u64>) -> Value {
        at_ms.map_or(Value::Null, |at| json!(self.hook_time(at)))
    }

    fn hook_project(&self, project: &Project) -> Value {
        let url = self.web_url(project);
        let ssh = format!("git@gitlab.sim:{}.git", project.path);
        json!({
            "id": project.id, "name": project.name(), "description": null, "web_url": url, "avatar_url": null, "git_ssh_url": ssh,
            "git_http_url": format!("{url}.git"), "namespace": project.namespace(), "visibility_level": visibility_level(project),
            "path_with_namespace": project.path, "default_branch": project.default_branch, "ci_config_path": "",
            "homepage": url, "url": ssh, "ssh_url": ssh, "http_url": format!("{url}.git"),
        })
    }

    fn hook_repository(&self, project: &Project) -> Value {
        let url = self.web_url(project);
        let ssh = format!("git@gitlab.sim:{}.git", project.path);
        json!({ "name": project.name(), "url": ssh, "description": null, "homepage": url, "git_http_url": format!("{url}.git"),
                "git_ssh_url": ssh, "visibility_level": visibility_level(project) })
    }

    fn hook_commit(&self, project: &Project, commit: &Commit) -> Value {
        json!({
            "id": commit.id, "message": commit.message, "title": commit.title(), "timestamp": hook_commit_time(commit.committer.at_ms),
            "url": format!("{}/-/commit/{}", self.web_url(project), commit.id),
            "author": { "name": commit.author.name, "email": commit.author.email },
        })
    }

    /// The payload of a push.
    pub(crate) fn push_payload(&self, project: &Project, push: &Push) -> Value {
        let commits = self.pushed_commits(project.id, push);
        let newest: Vec<Value> = commits.iter().take(20).rev().map(|commit| self.pushed_commit(project, commit)).collect();
        let user = self.users.get(&push.user);
        json!({
            "object_kind": "push", "event_name": "push", "before": push.before.as_deref().unwrap_or(NO_SHA),
            "after": push.after.as_deref().unwrap_or(NO_SHA), "ref": format!("refs/heads/{}", push.branch),
            "ref_protected": project.is_protected(&push.branch), "checkout_sha": push.after, "message": null, "user_id": push.user,
            "user_name": user.map(|user| &user.name), "user_username": user.map(|user| &user.username), "user_email": "",
            "user_avatar": null, "project_id": project.id, "project": self.hook_project(project), "commits": newest,
            "total_commits_count": commits.len(), "push_options": {}, "repository": self.hook_repository(project),
        })
    }

    fn pushed_commit(&self, project: &Project, commit: &Commit) -> Value {
        let parent = project.repo.parent_tree(commit);
        let (mut added, mut modified, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for path in changed_paths(&parent, &commit.tree) {
            match (parent.contains_key(&path), commit.tree.contains_key(&path)) {
                (false, _) => added.push(path),
                (true, true) => modified.push(path),
                (true, false) => removed.push(path),
            }
        }
        let mut body = self.hook_commit(project, commit);
        body["added"] = json!(added);
        body["modified"] = json!(modified);
        body["removed"] = json!(removed);
        body
    }

    fn mr_attributes(&self, project: &Project, mr: &MergeRequest) -> Value {
        let mut body = json!({
            "assignee_id": mr.assignees.first(), "author_id": mr.author, "created_at": self.hook_time(mr.created_at_ms),
            "description": mr.description, "draft": mr.is_draft(), "head_pipeline_id": mr.head_pipeline, "id": mr.id, "iid": mr.iid,
            "last_edited_at": null, "last_edited_by_id": null, "merge_commit_sha": mr.merge_commit_sha, "merge_error": mr.merge_error,
            "merge_params": { "force_remove_source_branch": mr.remove_source_branch.then_some("1") }, "merge_status": mr.check.text(),
            "merge_user_id": mr.merge_user, "merge_when_pipeline_succeeds": mr.auto_merge, "milestone_id": null,
            "source_branch": mr.source_branch, "source_project_id": project.id, "state_id": mr.state.id(),
            "target_branch": mr.target_branch, "target_project_id": project.id, "time_estimate": 0, "title": mr.title,
            "updated_at": self.hook_time(mr.updated_at_ms), "updated_by_id": null, "prepared_at": self.hook_time_or_null(mr.prepared_at_ms),
            "assignee_ids": mr.assignees, "blocking_discussions_resolved": !mr.has_open_discussions(),
            "detailed_merge_status": self.detailed_status(project, mr), "first_contribution": false, "human_time_change": null,
            "human_time_estimate": null, "human_total_time_spent": null, "labels": self.labels_json(project.id, &mr.labels),
        });
        let commit = mr.sha.as_deref().and_then(|sha| project.repo.commit(sha));
        body["last_commit"] = commit.map_or(Value::Null, |commit| self.hook_commit(project, commit));
        body["reviewer_ids"] = json!(mr.reviewers);
        body["source"] = self.hook_project(project);
        body["target"] = self.hook_project(project);
        body["state"] = json!(mr.state.text());
        body["system"] = json!(false);
        body["time_change"] = json!(0);
        body["total_time_spent"] = json!(0);
        body["url"] = json!(format!("{}/-/merge_requests/{}", self.web_url(project), mr.iid));
        body["work_in_progress"] = json!(mr.is_draft());
        body["approval_rules"] = json!([]);
        body
    }

    /// The payload of a merge request event.
    pub(crate) fn mr_payload(&self, project: &Project, mr: &MergeRequest, user: u64, extra: Value, changes: Map<String, Value>) -> Value {
        let mut attributes = self.mr_attributes(project, mr);
        for (name, value) in extra.as_object().into_iter().flatten() {
            attributes[name] = value.clone();
        }
        let people = |ids: &[u64]| ids.iter().map(|id| self.hook_user(*id)).collect::<Vec<_>>();
        let mut body = json!({
            "object_kind": "merge_request", "event_type": "merge_request", "user": self.hook_user(user),
            "project": self.hook_project(project), "object_attributes": attributes, "labels": self.labels_json(project.id, &mr.labels),
            "changes": changes, "repository": self.hook_repository(project),
        });
        for (name, ids) in [("assignees", &mr.assignees), ("reviewers", &mr.reviewers)] {
            if !ids.is_empty() {
                body[name] = json!(people(ids));
            }
        }
        body
    }

    /// The payload of a note.
    pub(crate) fn note_payload(&self, project: &Project, mr: &MergeRequest, note: &Note, action: &str) -> Value {
        json!({
            "object_kind": "note", "event_type": if note.internal { "confidential_note" } else { "note" },
            "user": self.hook_user(note.author), "project_id": project.id, "project": self.hook_project(project),
            "object_attributes": {
                "author_id": note.author, "change_position": null, "commit_id": null, "created_at": self.hook_time(note.created_at_ms),
                "discussion_id": note.discussion, "id": note.id, "internal": note.internal, "line_code": null, "note": note.body,
                "noteable_id": mr.id, "noteable_type": "MergeRequest", "original_position": null, "position": null,
                "project_id": project.id, "resolved_at": null, "resolved_by_id": null, "resolved_by_push": null, "st_diff": null,
                "system": note.system, "type": if note.resolvable { json!("DiscussionNote") } else { Value::Null },
                "updated_at": self.hook_time(note.updated_at_ms), "updated_by_id": null, "description": note.body,
                "url": format!("{}/-/merge_requests/{}#note_{}", self.web_url(project), mr.iid, note.id), "action": action,
            },
            "repository": self.hook_repository(project), "merge_request": self.mr_attributes(project, mr),
        })
    }

    /// The payload of a pipeline.
    pub(crate) fn pipeline_payload(&self, project: &Project, pipeline: &Pipeline) -> Value {
        let mr = pipeline.mr.and_then(|iid| project.mrs.get(&iid));
        let commit = project.repo.commit(&pipeline.sha);
        let jobs = latest_jobs(project, pipeline.id).into_iter().filter(|job| job.trigger.is_none());
        let builds: Vec<Value> = jobs.map(|job| self.build_row(job)).collect();
        let mut body = json!({
            "object_kind": "pipeline",
            "object_attributes": {
                "id": pipeline.id, "iid": pipeline.iid, "name": null, "ref": pipeline.reference, "ref_status_name": null, "tag": false,
                "sha": pipeline.sha, "before_sha": NO_SHA, "source": pipeline.source, "status": pipeline.status,
                "detailed_status": pipeline.status.label(), "stages": pipeline.stages, "created_at": self.hook_time(pipeline.created_at_ms),
                "finished_at": self.hook_time_or_null(pipeline.finished_at_ms), "duration": pipeline.duration(),
                "queued_duration": pipeline.queued_duration(), "protected_ref": project.is_protected(&pipeline.reference), "variables": [],
                "url": format!("{}/-/pipelines/{}", self.web_url(project), pipeline.id),
            },
            "merge_request": mr.map(|mr| self.pipeline_mr(project, mr)), "user": self.hook_user(pipeline.user),
            "project": self.hook_project(project), "commit": commit.map(|commit| self.hook_commit(project, commit)), "builds": builds,
        });
        if let Some(source) = pipeline.upstream.as_ref().and_then(|upstream| self.source_pipeline(upstream)) {
            body["source_pipeline"] = source;
        }
        body
    }

    /// What started a pipeline that a bridge started.
    fn source_pipeline(&self, upstream: &Upstream) -> Option<Value> {
        let project = self.project(upstream.project)?;
        let pipeline = project.jobs.get(&upstream.job)?.pipeline;
        Some(json!({
            "project": { "id": project.id, "web_url": self.web_url(project), "path_with_namespace": project.path },
            "job_id": upstream.job, "pipeline_id": pipeline,
        }))
    }

    fn pipeline_mr(&self, project: &Project, mr: &MergeRequest) -> Value {
        json!({
            "id": mr.id, "iid": mr.iid, "title": mr.title, "source_branch": mr.source_branch, "source_project_id": project.id,
            "target_branch": mr.target_branch, "target_project_id": project.id, "state": mr.state.text(), "merge_status": mr.check.text(),
            "detailed_merge_status": self.detailed_status(project, mr),
            "url": format!("{}/-/merge_requests/{}", self.web_url(project), mr.iid),
        })
    }

    /// One build of a pipeline payload; its times keep the legacy text.
    fn build_row(&self, job: &Job) -> Value {
        let at = |ms: Option<u64>| ms.map(legacy);
        json!({
            "id": job.id, "stage": job.stage, "name": job.name, "status": job.status, "created_at": legacy(job.created_at_ms),
            "started_at": at(job.started_at_ms), "finished_at": at(job.finished_at_ms),
            "duration": seconds_between(job.started_at_ms, job.finished_at_ms),
            "queued_duration": seconds_between(job.queued_at_ms, job.started_at_ms), "failure_reason": job.failure_reason,
            "when": if job.manual { "manual" } else { "on_success" }, "manual": job.manual, "allow_failure": job.allow_failure,
            "user": self.hook_user(job.user), "runner": hook_runner(job), "artifacts_file": { "filename": null, "size": null },
            "environment": null,
        })
    }

    /// The payload of a job: `commit.id` is the pipeline's id, the failure reason is never null.
    pub(crate) fn job_payload(&self, project: &Project, pipeline: &Pipeline, job: &Job) -> Value {
        let commit = project.repo.commit(&pipeline.sha);
        let mut body = json!({
            "object_kind": "build", "ref": pipeline.branch, "tag": false, "before_sha": NO_SHA, "sha": pipeline.sha,
            "retries_count": job.attempt - 1, "build_id": job.id, "build_name": job.name, "build_stage": job.stage,
            "build_status": job.status, "build_created_at": self.hook_time(job.created_at_ms),
            "build_started_at": self.hook_time_or_null(job.started_at_ms), "build_finished_at": self.hook_time_or_null(job.finished_at_ms),
            "build_duration": seconds_between(job.started_at_ms, job.finished_at_ms),
            "build_queued_duration": seconds_between(job.queued_at_ms, job.started_at_ms), "build_allow_failure": job.allow_failure,
            "build_failure_reason": job.failure_reason.as_deref().unwrap_or("unknown_failure"), "pipeline_id": pipeline.id,
            "runner": hook_runner(job), "project_id": project.id, "project_name": format!("{} / {}", project.namespace(), project.name()),
            "user": self.hook_user(job.user), "repository": self.hook_repository(project), "environment": null,
            "project": self.hook_project(project),
            "commit": {
                "id": pipeline.id, "name": null, "sha": pipeline.sha, "message": commit.map(|commit| &commit.message),
                "author_name": commit.map(|commit| &commit.author.name), "author_email": "[REDACTED]", "author_url": null,
                "status": pipeline.status, "duration": pipeline.duration(), "started_at": self.hook_time_or_null(pipeline.started_at_ms),
                "finished_at": self.hook_time_or_null(pipeline.finished_at_ms),
            },
        });
        if self.major() >= 19 {
            body["build_created_at_iso"] = json!(iso_seconds(job.created_at_ms));
            body["build_started_at_iso"] = json!(job.started_at_ms.map(iso_seconds));
            body["build_finished_at_iso"] = json!(job.finished_at_ms.map(iso_seconds));
        }
        body
    }
}

fn visibility_level(project: &Project) -> u32 {
    if project.visibility == Visibility::Public { 20 } else { 0 }
}

fn hook_runner(job: &Job) -> Value {
    let runner = runner(job);
    if runner.is_null() {
        return runner;
    }
    json!({ "id": runner["id"], "description": runner["description"], "runner_type": "instance_type", "active": true, "is_shared": true, "tags": ["docker"] })
}
