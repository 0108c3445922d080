//! Project events: `GET /projects/:id/events` (pushes).

use serde_json::{Value, json};

use crate::call::Call;
use crate::clock::iso;
use crate::pagination::{Totals, paginate};
use crate::pushes::Push;
use crate::reply::Answer;
use crate::state::State;

/// A push, as the event feed keeps it.
#[derive(Clone, Debug)]
pub(crate) struct ProjectEvent {
    id: u64,
    at_ms: u64,
    user: u64,
    branch: String,
    from: Option<String>,
    to: Option<String>,
    commits: usize,
    title: Option<String>,
}

impl State {
    pub(crate) fn add_push_event(&mut self, project: u64, push: &Push) -> Option<()> {
        let commits = self.pushed_commits(project, push);
        let (count, title) = (commits.len(), commits.first().map(|commit| commit.title().to_owned()));
        let event = ProjectEvent {
            id: self.ids.next("event"),
            at_ms: self.now_ms,
            user: push.user,
            branch: push.branch.clone(),
            from: push.before.clone(),
            to: push.after.clone(),
            commits: count,
            title,
        };
        self.project_mut(project)?.events.push(event);
        Some(())
    }
}

fn action(event: &ProjectEvent) -> (&'static str, &'static str) {
    match (&event.from, &event.to) {
        (None, _) => ("pushed new", "created"),
        (_, None) => ("deleted", "removed"),
        _ => ("pushed to", "pushed"),
    }
}

fn event_json(state: &State, project: u64, event: &ProjectEvent) -> Value {
    let (name, push_action) = action(event);
    let user = state.users.get(&event.user);
    json!({
        "id": event.id, "project_id": project, "action_name": name, "target_id": null, "target_iid": null, "target_type": null,
        "author_id": event.user, "target_title": null, "created_at": iso(event.at_ms), "author": state.user_json(Some(event.user)),
        "imported": false, "imported_from": "none", "author_username": user.map(|user| &user.username),
        "push_data": {
            "commit_count": event.commits, "action": push_action, "ref_type": "branch", "commit_from": event.from,
            "commit_to": event.to, "ref": event.branch, "commit_title": event.title, "ref_count": null,
        },
    })
}

/// `GET …/events`; `after` and `before` are dates, exclusive.
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let (after, before) = (call.params.text("after"), call.params.text("before"));
    let wanted = call.params.text("action").is_none_or(|action| action == "pushed");
    let fits = |event: &&ProjectEvent| {
        let day = iso(event.at_ms)[..10].to_owned();
        wanted && after.as_ref().is_none_or(|after| day > *after) && before.as_ref().is_none_or(|before| day < *before)
    };
    let mut rows: Vec<Value> = project.events.iter().filter(fits).map(|event| event_json(state, project.id, event)).collect();
    if call.params.text("sort").as_deref() != Some("asc") {
        rows.reverse();
    }
    paginate(state, call, rows, Totals::Missing)
}
