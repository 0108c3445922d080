//! Issues of projects: `GET|POST /projects/:id/issues`, `GET|PUT /projects/:id/issues/:issue_iid`.
//!
//! Quick actions in a description are carried out and vanish, as in merge requests. A search is GitLab's full-text search: it does
//! not see what HTML comments hold. Labels that a caller may not set are left out without a word.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::{iso, parse_time};
use crate::labels::with_label;
use crate::merge_requests::cut_description;
use crate::mr_json::time;
use crate::notes::{Note, Noteable};
use crate::pagination::{Totals, paginate};
use crate::params::Params;
use crate::project::Project;
use crate::quick_actions::{self, Command, labels};
use crate::reply::{Answer, Reply, error, field_message, forbidden, no_record, not_found, unauthorized};
use crate::state::State;

/// An issue.
#[derive(Clone, Debug)]
pub(crate) struct Issue {
    pub(crate) id: u64,
    pub(crate) iid: u64,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) author: u64,
    pub(crate) open: bool,
    pub(crate) confidential: bool,
    pub(crate) labels: Vec<String>,
    pub(crate) assignees: Vec<u64>,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    pub(crate) closed_at_ms: Option<u64>,
    pub(crate) closed_by: Option<u64>,
    pub(crate) notes: Vec<Note>,
}

impl From<&Issue> for Noteable {
    fn from(issue: &Issue) -> Self {
        Self { kind: "Issue", id: issue.id, iid: issue.iid }
    }
}

const MAX_TITLE: usize = 255;

/// What an update may name; the answer to one without any lists them.
const FIELDS: [&str; 13] = [
    "add_labels",
    "assignee_id",
    "assignee_ids",
    "confidential",
    "created_at",
    "description",
    "discussion_locked",
    "due_date",
    "labels",
    "milestone_id",
    "remove_labels",
    "state_event",
    "title",
];

/// An issue as the API shows it.
fn issue_json(state: &State, project: &Project, issue: &Issue) -> Value {
    let url = format!("{}/-/issues/{}", state.web_url(project), issue.iid);
    let api = format!("{}/api/v4/projects/{}", state.base_url, project.id);
    let short = format!("#{}", issue.iid);
    json!({
        "id": issue.id, "iid": issue.iid, "project_id": project.id, "title": issue.title, "description": issue.description,
        "state": issue.state(), "created_at": iso(issue.created_at_ms), "updated_at": iso(issue.updated_at_ms),
        "closed_at": time(issue.closed_at_ms), "closed_by": state.user_json(issue.closed_by), "labels": issue.labels, "milestone": null,
        "assignees": issue.assignees.iter().map(|id| state.user_json(Some(*id))).collect::<Vec<Value>>(),
        "author": state.user_json(Some(issue.author)), "type": "ISSUE", "assignee": state.user_json(issue.assignees.first().copied()),
        "user_notes_count": issue.notes.iter().filter(|note| !note.system).count(), "merge_requests_count": 0, "upvotes": 0, "downvotes": 0,
        "due_date": null, "confidential": issue.confidential, "discussion_locked": null, "issue_type": "issue", "web_url": url,
        "time_stats": { "time_estimate": 0, "total_time_spent": 0, "human_time_estimate": null, "human_total_time_spent": null },
        "task_completion_status": { "count": 0, "completed_count": 0 }, "has_tasks": false,
        "_links": {
            "self": format!("{api}/issues/{}", issue.iid), "notes": format!("{api}/issues/{}/notes", issue.iid),
            "award_emoji": format!("{api}/issues/{}/award_emoji", issue.iid), "project": api, "closed_as_duplicate_of": null,
        },
        "references": { "short": short, "relative": short, "full": format!("{}{short}", project.path) },
        "severity": "UNKNOWN", "moved_to_id": null, "imported": false, "imported_from": "none", "service_desk_reply_to": null,
    })
}

impl Issue {
    pub(crate) fn state(&self) -> &'static str {
        if self.open { "opened" } else { "closed" }
    }
}

impl Call {
    /// The project, if it has issues.
    fn tracker<'a>(&self, state: &'a State) -> Result<&'a Project, Reply> {
        let project = self.project(state)?;
        if project.settings.issues_enabled { Ok(project) } else { Err(forbidden(None)) }
    }

    /// The project and the issue that the path names, if the caller may see it.
    pub(crate) fn issue(&self, state: &State) -> Result<(u64, u64), Reply> {
        let project = self.tracker(state)?;
        let iid = self.number("issue_iid")?;
        let found = project.issues.get(&iid).filter(|issue| state.may_see(project, issue, self.user()));
        found.map(|issue| (project.id, issue.iid)).ok_or_else(no_record)
    }
}

/// `GET …/issues`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.tracker(state)?;
    let filter = Filter::read(state, call)?;
    let visible = |issue: &&Issue| state.may_see(project, issue, call.user()) && filter.fits(issue);
    let mut found: Vec<&Issue> = project.issues.values().filter(visible).collect();
    let updated = call.params.text("order_by").as_deref() == Some("updated_at");
    found.sort_by_key(|issue| (if updated { issue.updated_at_ms } else { issue.created_at_ms }, issue.iid));
    if call.params.text("sort").as_deref() != Some("asc") {
        found.reverse();
    }
    let rows = found.into_iter().map(|issue| issue_json(state, project, issue)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/issues/:issue_iid`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.issue(state)?;
    shown(state, project, iid, 200)
}

fn shown(state: &State, project: u64, iid: u64, status: u16) -> Answer {
    let row = state.project(project).ok_or_else(no_record)?;
    let issue = row.issues.get(&iid).ok_or_else(no_record)?;
    Ok(Reply::json(status, &issue_json(state, row, issue)))
}

/// `POST …/issues`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let project = call.tracker(state)?;
    let (id, user) = (project.id, call.user_id()?);
    let is_public = project.visibility == crate::project::Visibility::Public;
    if !is_public && !state.has_role(project, Some(user), Role::Guest) {
        return Err(forbidden(None));
    }
    let title = call.params.required("title")?;
    check_title(&title)?;
    let iid = state.add_issue(id, user, title).ok_or_else(|| not_found("Project"))?;
    state.change_issue(id, iid, user, &call.params);
    shown(state, id, iid, 201)
}

/// `PUT …/issues/:issue_iid`, for authors and from reporters on.
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.issue(state)?;
    let user = call.user().ok_or_else(unauthorized)?;
    if state.may_edit(project, iid, user) != Some(true) {
        return Err(forbidden(None));
    }
    if !FIELDS.iter().any(|name| call.params.has(name)) {
        return Err(error(400, format!("{} are missing, at least one parameter must be provided", FIELDS.join(", "))));
    }
    if let Some(title) = call.params.text("title") {
        check_title(&title)?;
    }
    let event = call.params.text("state_event");
    if event.as_deref().is_some_and(|event| !matches!(event, "close" | "reopen")) {
        return Err(error(400, "state_event does not have a valid value"));
    }
    state.change_issue(project, iid, user, &call.params);
    if let Some(event) = event {
        state.set_issue_open(project, iid, user, event == "reopen");
    }
    shown(state, project, iid, 200)
}

fn check_title(title: &str) -> Result<(), Reply> {
    if title.trim().is_empty() {
        return Err(field_message(400, "title", "can't be blank"));
    }
    if title.chars().count() > MAX_TITLE {
        return Err(field_message(400, "title", &format!("is too long (maximum is {MAX_TITLE} characters)")));
    }
    Ok(())
}

impl State {
    pub(crate) fn tracked(&self, project: u64, iid: u64) -> Option<&Issue> {
        self.project(project)?.issues.get(&iid)
    }

    pub(crate) fn tracked_mut(&mut self, project: u64, iid: u64) -> Option<&mut Issue> {
        self.project_mut(project)?.issues.get_mut(&iid)
    }

    fn may_see(&self, project: &Project, issue: &Issue, user: Option<u64>) -> bool {
        let is_own = user == Some(issue.author) || user.is_some_and(|user| issue.assignees.contains(&user));
        !issue.confidential || is_own || self.has_role(project, user, Role::Reporter)
    }

    fn may_edit(&self, project: u64, iid: u64, user: u64) -> Option<bool> {
        let row = self.project(project)?;
        let author = row.issues.get(&iid)?.author;
        Some(author == user || self.has_role(row, Some(user), Role::Reporter))
    }

    fn may_label(&self, project: u64, user: u64) -> bool {
        self.project(project).is_some_and(|row| self.has_role(row, Some(user), Role::Reporter))
    }

    fn add_issue(&mut self, project: u64, author: u64, title: String) -> Option<u64> {
        let (id, now_ms) = (self.ids.next("issue"), self.now_ms);
        let row = self.project_mut(project)?;
        let iid = row.issues.last_key_value().map_or(0, |(iid, _)| *iid) + 1;
        let issue = Issue {
            id,
            iid,
            title,
            description: None,
            author,
            open: true,
            confidential: false,
            labels: Vec::new(),
            assignees: Vec::new(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            closed_at_ms: None,
            closed_by: None,
            notes: Vec::new(),
        };
        row.issues.insert(iid, issue);
        Some(iid)
    }

    fn change_issue(&mut self, project: u64, iid: u64, user: u64, params: &Params) -> Option<()> {
        let now_ms = self.now_ms;
        let issue = self.tracked_mut(project, iid)?;
        issue.updated_at_ms = now_ms;
        if let Some(title) = params.text("title") {
            issue.title = title;
        }
        if let Some(confidential) = params.flag("confidential") {
            issue.confidential = confidential;
        }
        if let Some(Value::Array(ids)) = params.value("assignee_ids") {
            issue.assignees = ids.iter().filter_map(Value::as_u64).filter(|id| *id > 0).collect();
        }
        self.change_issue_labels(project, iid, user, params);
        let parsed = quick_actions::parse(&cut_description(params.text("description")?));
        self.tracked_mut(project, iid)?.description = Some(parsed.text);
        for command in &parsed.commands {
            self.run_issue_command(project, iid, user, command);
        }
        Some(())
    }

    fn change_issue_labels(&mut self, project: u64, iid: u64, user: u64, params: &Params) {
        if let Some(names) = params.list("labels") {
            self.set_issue_labels(project, iid, user, &names);
        }
        for name in params.list("add_labels").unwrap_or_default() {
            self.add_issue_label(project, iid, user, &name);
        }
        for name in params.list("remove_labels").unwrap_or_default() {
            self.remove_issue_label(project, iid, user, &name);
        }
    }

    fn set_issue_labels(&mut self, project: u64, iid: u64, user: u64, names: &[String]) -> Option<()> {
        if self.may_label(project, user) {
            self.tracked_mut(project, iid)?.labels.clear();
        }
        for name in names {
            self.add_issue_label(project, iid, user, name);
        }
        Some(())
    }

    fn add_issue_label(&mut self, project: u64, iid: u64, user: u64, name: &str) -> Option<()> {
        if !self.may_label(project, user) {
            return None;
        }
        self.make_label(project, name)?;
        let issue = self.tracked_mut(project, iid)?;
        issue.labels = with_label(&issue.labels, name);
        Some(())
    }

    fn remove_issue_label(&mut self, project: u64, iid: u64, user: u64, name: &str) -> Option<()> {
        let may = self.may_label(project, user);
        self.tracked_mut(project, iid)?.labels.retain(|label| !may || label != name);
        Some(())
    }

    /// Closes or opens an issue; nothing changes where it is so already.
    pub(crate) fn set_issue_open(&mut self, project: u64, iid: u64, user: u64, open: bool) -> Option<()> {
        let now_ms = self.now_ms;
        let issue = self.tracked_mut(project, iid).filter(|issue| issue.open != open)?;
        issue.open = open;
        issue.updated_at_ms = now_ms;
        issue.closed_at_ms = (!open).then_some(now_ms);
        issue.closed_by = (!open).then_some(user);
        Some(())
    }

    /// Runs one quick action; the answer is the line of the summary.
    pub(crate) fn run_issue_command(&mut self, project: u64, iid: u64, user: u64, command: &Command) -> Option<String> {
        let args = command.args.as_str();
        match command.name.as_str() {
            "label" | "labels" => {
                let names = labels(args);
                for name in &names {
                    self.add_issue_label(project, iid, user, name);
                }
                Some(format!("Added {} label.", names.join(", ")))
            }
            "unlabel" => {
                let names = if args.is_empty() { self.tracked(project, iid)?.labels.clone() } else { labels(args) };
                for name in &names {
                    self.remove_issue_label(project, iid, user, name);
                }
                Some(format!("Removed {} label.", names.join(", ")))
            }
            "relabel" => self.set_issue_labels(project, iid, user, &labels(args)).map(|()| "Replaced all labels.".to_owned()),
            "close" => self.set_issue_open(project, iid, user, false).map(|()| "Closed this issue.".to_owned()),
            "reopen" => self.set_issue_open(project, iid, user, true).map(|()| "Reopened this issue.".to_owned()),
            "title" => {
                args.clone_into(&mut self.tracked_mut(project, iid)?.title);
                Some("Changed the title.".to_owned())
            }
            _ => Some(format!("Ran /{}.", command.name)),
        }
    }
}

/// Which issues are asked for.
struct Filter {
    state: Option<String>,
    labels: Vec<String>,
    iids: Option<Vec<String>>,
    author: Option<u64>,
    updated_after_ms: Option<u64>,
    created_after_ms: Option<u64>,
    words: Vec<String>,
    fields: Vec<String>,
}

impl Filter {
    fn read(state: &State, call: &Call) -> Result<Self, Reply> {
        let params = &call.params;
        let wanted = params.text("state");
        if wanted.as_deref().is_some_and(|state| !matches!(state, "opened" | "closed" | "all")) {
            return Err(error(400, "state does not have a valid value"));
        }
        let named = params.text("author_username").map(|name| state.user_by_name(&name).map_or(0, |user| user.id));
        let own = (params.text("scope").as_deref() == Some("created_by_me")).then(|| call.user().unwrap_or(0));
        Ok(Self {
            state: wanted.filter(|state| state != "all"),
            labels: params.list("labels").unwrap_or_default(),
            iids: params.list("iids"),
            author: own.or(named).or_else(|| params.number("author_id")),
            updated_after_ms: params.text("updated_after").and_then(|text| parse_time(&text)),
            created_after_ms: params.text("created_after").and_then(|text| parse_time(&text)),
            words: words(&params.text("search").unwrap_or_default()),
            fields: params.list("in").unwrap_or_else(|| vec!["title".to_owned(), "description".to_owned()]),
        })
    }

    fn fits(&self, issue: &Issue) -> bool {
        self.state.as_deref().is_none_or(|state| state == issue.state())
            && self.labels.iter().all(|label| has_label(issue, label))
            && self.iids.as_ref().is_none_or(|iids| iids.contains(&issue.iid.to_string()))
            && self.author.is_none_or(|author| author == issue.author)
            && self.updated_after_ms.is_none_or(|at| issue.updated_at_ms >= at)
            && self.created_after_ms.is_none_or(|at| issue.created_at_ms >= at)
            && self.finds(issue)
    }

    /// Every word has to be in one of the fields.
    fn finds(&self, issue: &Issue) -> bool {
        let field = |name: &String| match name.as_str() {
            "title" => issue.title.clone(),
            "description" => without_comments(issue.description.as_deref().unwrap_or_default()),
            _ => String::new(),
        };
        let text = self.fields.iter().map(field).collect::<Vec<_>>().join("\n");
        let known = words(&text);
        self.words.iter().all(|word| known.contains(word))
    }
}

fn has_label(issue: &Issue, wanted: &str) -> bool {
    match wanted.to_lowercase().as_str() {
        "none" => issue.labels.is_empty(),
        "any" => !issue.labels.is_empty(),
        _ => issue.labels.iter().any(|label| label == wanted),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + " " + part.split_once("-->").map_or("", |(_, rest)| rest))
}
