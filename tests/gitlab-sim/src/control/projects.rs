//! Control of projects: settings, members, pushes behind the API's back, job rules, personas.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Control, done, done_if};
use crate::access::Role;
use crate::git::Mode;
use crate::info::{JobInfo, PipelineInfo};
use crate::personas::Persona;
use crate::pipelines::{JobOutcome, JobRule};
use crate::project::{ProjectSettings, ProtectedBranch, Visibility};
use crate::reply::{Answer, Reply, error};
use crate::repo::Write;
use crate::sim::Base;

/// `GET /_sim/projects`
pub(super) fn list(control: &Control) -> Answer {
    let state = control.sim.lock();
    let rows = state.projects.values();
    let rows: Vec<Value> =
        rows.map(|row| json!({ "id": row.id, "path": row.path, "branches": row.repo.branches, "settings": row.settings })).collect();
    Ok(Reply::json(200, &json!(rows)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewProject {
    path: String,
    owner: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    members: BTreeMap<String, Role>,
    settings: Option<ProjectSettings>,
}

/// `POST /_sim/projects`
pub(super) fn create(control: &Control) -> Answer {
    let new: NewProject = control.body()?;
    if control.sim.project_id(&new.path).is_some() {
        return Err(error(409, "there is such a project"));
    }
    let files: Vec<(&str, &str)> = new.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let id = control.sim.create_project(&new.path, &files, &new.owner);
    for (user, role) in &new.members {
        control.sim.add_user(user, user);
        control.sim.set_member(id, user, Some(*role));
    }
    if let Some(settings) = new.settings {
        control.sim.set_settings(id, |slot| *slot = settings);
    }
    Ok(Reply::json(201, &json!({ "id": id, "path": new.path })))
}

/// `GET /_sim/projects/:id/settings`
pub(super) fn settings(control: &Control) -> Answer {
    let id = control.project()?;
    Ok(Reply::json(200, &json!(control.sim.settings(id))))
}

/// `PUT /_sim/projects/:id/settings`
pub(super) fn set_settings(control: &Control) -> Answer {
    let id = control.project()?;
    let current = control.sim.settings(id).unwrap_or_default();
    let new: ProjectSettings = control.overlaid(&current)?;
    control.sim.set_settings(id, |settings| *settings = new);
    settings(control)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rename {
    path: String,
}

/// `POST /_sim/projects/:id/rename`
pub(super) fn rename(control: &Control) -> Answer {
    let (id, wanted): (u64, Rename) = (control.project()?, control.body()?);
    control.sim.rename_project(id, &wanted.path);
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    visibility: Visibility,
}

/// `PUT /_sim/projects/:id/visibility`
pub(super) fn set_visibility(control: &Control) -> Answer {
    let (id, wanted): (u64, Seen) = (control.project()?, control.body()?);
    control.sim.set_public(id, wanted.visibility == Visibility::Public);
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    user: String,
    role: Option<Role>,
}

/// `PUT /_sim/projects/:id/members`
pub(super) fn set_member(control: &Control) -> Answer {
    let (id, member): (u64, Member) = (control.project()?, control.body()?);
    done_if(control.sim.set_member(id, &member.user, member.role), "no such user")
}

/// `PUT /_sim/projects/:id/protected_branches`
pub(super) fn protect(control: &Control) -> Answer {
    let (id, rules): (u64, Vec<ProtectedBranch>) = (control.project()?, control.body()?);
    control.sim.protect(id, rules);
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPush {
    branch: String,
    message: String,
    user: String,
    changes: Vec<Change>,
    #[serde(default)]
    amend: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    path: String,
    content: Option<String>,
    mode: Option<String>,
}

impl Change {
    fn into_write(self) -> Write {
        let mode = self.mode.as_deref().and_then(Mode::parse).unwrap_or(Mode::File);
        (self.path, self.content.map(|text| (mode, Bytes::from(text))))
    }
}

/// `POST /_sim/projects/:id/pushes`
pub(super) fn push(control: &Control) -> Answer {
    let (id, push): (u64, NewPush) = (control.project()?, control.body()?);
    let writes: Vec<Write> = push.changes.into_iter().map(Change::into_write).collect();
    let base = if push.amend { Base::Parent } else { Base::Head };
    let pushed = control.sim.lock().push_writes(id, &push.branch, &writes, &push.message, &push.user, base);
    let sha = pushed.ok_or_else(|| error(404, "no such user"))?;
    Ok(Reply::json(201, &json!({ "sha": sha })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForcePush {
    branch: String,
    sha: String,
    user: String,
}

/// `POST /_sim/projects/:id/force_pushes`
pub(super) fn force_push(control: &Control) -> Answer {
    let (id, push): (u64, ForcePush) = (control.project()?, control.body()?);
    done_if(control.sim.force_push(id, &push.branch, &push.sha, &push.user), "no such user or commit")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deletion {
    branch: String,
    user: String,
}

/// `POST /_sim/projects/:id/branch_deletions`
pub(super) fn delete_branch(control: &Control) -> Answer {
    let (id, deletion): (u64, Deletion) = (control.project()?, control.body()?);
    control.sim.delete_branch(id, &deletion.branch, &deletion.user);
    done()
}

/// `GET /_sim/projects/:id/job_rules`
pub(super) fn job_rules(control: &Control) -> Answer {
    let id = control.project()?;
    let state = control.sim.lock();
    Ok(Reply::json(200, &json!(state.project(id).map(|project| &project.rules))))
}

/// `POST /_sim/projects/:id/job_rules`
pub(super) fn add_job_rule(control: &Control) -> Answer {
    let (id, rule): (u64, JobRule) = (control.project()?, control.body()?);
    control.sim.add_job_rule(id, rule);
    done()
}

/// `DELETE /_sim/projects/:id/job_rules`
pub(super) fn clear_job_rules(control: &Control) -> Answer {
    control.sim.clear_job_rules(control.project()?);
    done()
}

/// `POST /_sim/projects/:id/personas`
pub(super) fn add_persona(control: &Control) -> Answer {
    let (id, persona): (u64, Persona) = (control.project()?, control.body()?);
    control.sim.add_persona(id, persona);
    done()
}

/// `DELETE /_sim/projects/:id/personas`
pub(super) fn clear_personas(control: &Control) -> Answer {
    control.sim.clear_personas(control.project()?);
    done()
}

/// `GET /_sim/projects/:id/pipelines`
pub(super) fn pipelines(control: &Control) -> Answer {
    let job = |job: &JobInfo| json!({ "id": job.id, "name": job.name, "stage": job.stage, "status": job.status, "attempt": job.attempt });
    let row = |row: &PipelineInfo| {
        json!({ "id": row.id, "ref": row.reference, "sha": row.sha, "source_sha": row.source_sha, "merge_request": row.merge_request,
                "status": row.status, "jobs": row.jobs.iter().map(job).collect::<Vec<Value>>() })
    };
    let rows: Vec<Value> = control.sim.pipelines(control.project()?).iter().map(row).collect();
    Ok(Reply::json(200, &json!(rows)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ending {
    outcome: JobOutcome,
    failure_reason: Option<String>,
}

/// `POST /_sim/projects/:id/jobs/:job_id/finish`
pub(super) fn finish_job(control: &Control) -> Answer {
    let (id, job, ending): (u64, u64, Ending) = (control.project()?, control.number("job_id")?, control.body()?);
    done_if(control.sim.finish_job(id, job, ending.outcome, ending.failure_reason.as_deref()), "no such running job")
}
