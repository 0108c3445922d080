//! Control of merge requests: approvals, closing, threads.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Control, done_if};
use crate::info::MrInfo;
use crate::reply::{Answer, Reply, error};

/// `GET /_sim/projects/:id/merge_requests`
pub(super) fn list(control: &Control) -> Answer {
    let rows = control.sim.merge_requests(control.project()?);
    let row = |mr: &MrInfo| {
        json!({
            "iid": mr.iid, "state": mr.state, "title": mr.title, "source_branch": mr.source_branch, "target_branch": mr.target_branch,
            "sha": mr.sha, "detailed_merge_status": mr.detailed_merge_status, "approved_by": mr.approved_by, "labels": mr.labels,
        })
    };
    Ok(Reply::json(200, &rows.iter().map(row).collect::<Vec<Value>>().into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Actor {
    user: String,
}

/// `POST /_sim/projects/:id/merge_requests/:iid/approvals`
pub(super) fn approve(control: &Control) -> Answer {
    let (id, iid, actor): (u64, u64, Actor) = (control.project()?, control.number("iid")?, control.body()?);
    done_if(control.sim.approve(id, iid, &actor.user), "no such user or merge request, or approved already")
}

/// `DELETE /_sim/projects/:id/merge_requests/:iid/approvals`
pub(super) fn unapprove(control: &Control) -> Answer {
    let (id, iid, actor): (u64, u64, Actor) = (control.project()?, control.number("iid")?, control.body()?);
    done_if(control.sim.unapprove(id, iid, &actor.user), "no such approval")
}

/// `POST /_sim/projects/:id/merge_requests/:iid/close`
pub(super) fn close(control: &Control) -> Answer {
    let (id, iid) = (control.project()?, control.number("iid")?);
    done_if(control.sim.close_mr(id, iid), "no such open merge request")
}

/// `POST /_sim/projects/:id/merge_requests/:iid/reopen`
pub(super) fn reopen(control: &Control) -> Answer {
    let (id, iid) = (control.project()?, control.number("iid")?);
    done_if(control.sim.reopen_mr(id, iid), "no such closed merge request")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewDiscussion {
    user: String,
    body: String,
}

/// `POST /_sim/projects/:id/merge_requests/:iid/discussions`
pub(super) fn open_discussion(control: &Control) -> Answer {
    let (id, iid, new): (u64, u64, NewDiscussion) = (control.project()?, control.number("iid")?, control.body()?);
    let opened = control.sim.open_discussion(id, iid, &new.user, &new.body);
    let discussion = opened.ok_or_else(|| error(404, "no such user or merge request"))?;
    Ok(Reply::json(201, &json!({ "id": discussion })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolution {
    user: String,
    resolved: bool,
}

/// `PUT /_sim/projects/:id/merge_requests/:iid/discussions/:discussion_id`
pub(super) fn resolve_discussion(control: &Control) -> Answer {
    let (id, iid, wanted): (u64, u64, Resolution) = (control.project()?, control.number("iid")?, control.body()?);
    let thread = control.capture("discussion_id");
    done_if(control.sim.resolve_discussion(id, iid, thread, &wanted.user, wanted.resolved), "no such user or thread")
}
