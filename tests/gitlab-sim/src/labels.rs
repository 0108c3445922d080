//! Labels and label events: `GET|POST /projects/:id/labels`, `GET …/resource_label_events`.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::iso;
use crate::pagination::{Totals, paginate};
use crate::reply::{Answer, Reply, message, no_record};
use crate::state::State;

/// A project label.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) color: String,
    pub(crate) description: Option<String>,
    pub(crate) created_at_ms: u64,
}

/// A label put on or taken off.
#[derive(Clone, Debug)]
pub(crate) struct LabelEvent {
    id: u64,
    user: u64,
    at_ms: u64,
    label: String,
    adds: bool,
}

fn label_json(label: &Label) -> Value {
    json!({
        "id": label.id, "name": label.name, "description": label.description, "description_html": label.description,
        "text_color": "#FFFFFF", "color": label.color, "subscribed": false, "priority": null, "is_project_label": true, "archived": false,
    })
}

/// `GET …/labels`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let rows = call.project(state)?.labels.values().map(label_json).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `POST …/labels`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Reporter)?;
    let (name, color) = (call.params.required("name")?, call.params.required("color")?);
    if project.labels.contains_key(&name) {
        return Err(message(409, "Label already exists"));
    }
    let id = project.id;
    let label = state.make_label(id, &name).ok_or_else(no_record)?;
    label.color = color;
    label.description = call.params.text("description");
    Ok(Reply::json(201, &label_json(label)))
}

/// `GET …/resource_label_events`
pub(crate) fn events(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let row = state.project(project).ok_or_else(no_record)?;
    let mr = row.mrs.get(&iid).ok_or_else(no_record)?;
    let show = |event: &LabelEvent| {
        json!({
            "id": event.id, "user": state.user_json(Some(event.user)), "created_at": iso(event.at_ms), "resource_type": "MergeRequest",
            "resource_id": mr.id, "action": if event.adds { "add" } else { "remove" }, "label": row.labels.get(&event.label).map(label_json),
        })
    };
    let rows = mr.label_events.iter().map(show).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// These labels with one more; one of the same scope goes.
pub(crate) fn with_label(labels: &[String], name: &str) -> Vec<String> {
    let rivals = |label: &String| label == name || (scope(name).is_some() && scope(label) == scope(name));
    let mut labels: Vec<String> = labels.iter().filter(|label| !rivals(label)).cloned().chain([name.to_owned()]).collect();
    labels.sort();
    labels
}

/// The scope of `scope::name`.
fn scope(name: &str) -> Option<&str> {
    name.rsplit_once("::").map(|(scope, _)| scope)
}

impl State {
    /// The label of that name, made if missing.
    pub(crate) fn make_label(&mut self, project: u64, name: &str) -> Option<&mut Label> {
        let known = self.project(project)?.labels.contains_key(name);
        let id = if known { 0 } else { self.ids.next("label") };
        let created_at_ms = self.now_ms;
        let make = || Label { id, name: name.to_owned(), color: "#428BCA".to_owned(), description: None, created_at_ms };
        Some(self.project_mut(project)?.labels.entry(name.to_owned()).or_insert_with(make))
    }

    fn record_label(&mut self, project: u64, iid: u64, user: u64, label: &str, adds: bool) -> Option<()> {
        let event = LabelEvent { id: self.ids.next("label_event"), user, at_ms: self.now_ms, label: label.to_owned(), adds };
        self.mr_mut(project, iid)?.label_events.push(event);
        Some(())
    }

    /// Puts a label on; one of the same scope goes.
    pub(crate) fn add_label(&mut self, project: u64, iid: u64, user: u64, name: &str) -> Option<()> {
        self.make_label(project, name)?;
        let labels = self.mr(project, iid)?.labels.clone();
        if labels.iter().any(|label| label == name) {
            return Some(());
        }
        let rivals = labels.iter().filter(|label| scope(name).is_some() && scope(label) == scope(name));
        for rival in rivals {
            self.remove_label(project, iid, user, rival);
        }
        let mr = self.mr_mut(project, iid)?;
        mr.labels.push(name.to_owned());
        mr.labels.sort();
        self.record_label(project, iid, user, name, true)
    }

    /// Takes a label off.
    pub(crate) fn remove_label(&mut self, project: u64, iid: u64, user: u64, name: &str) -> Option<()> {
        let mr = self.mr_mut(project, iid)?;
        let before = mr.labels.len();
        mr.labels.retain(|label| label != name);
        let removed = mr.labels.len() < before;
        removed.then(|| self.record_label(project, iid, user, name, false)).flatten()
    }

    /// Makes the labels exactly these.
    pub(crate) fn replace_labels(&mut self, project: u64, iid: u64, user: u64, names: &[String]) -> Option<()> {
        let gone: Vec<String> = self.mr(project, iid)?.labels.iter().filter(|label| !names.contains(label)).cloned().collect();
        for name in gone {
            self.remove_label(project, iid, user, &name);
        }
        for name in names {
            self.add_label(project, iid, user, name);
        }
        Some(())
    }

    /// Labels as hooks show them.
    pub(crate) fn labels_json(&self, project: u64, names: &[String]) -> Vec<Value> {
        let Some(row) = self.project(project) else { return Vec::new() };
        let labels = names.iter().filter_map(|name| row.labels.get(name));
        let show = |label: &Label| {
            let at = self.hook_time(label.created_at_ms);
            json!({
                "id": label.id, "title": label.name, "color": label.color, "project_id": project, "created_at": at, "updated_at": at,
                "template": false, "description": label.description, "type": "ProjectLabel", "group_id": null,
            })
        };
        labels.map(show).collect()
    }
}
