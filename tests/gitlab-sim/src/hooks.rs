//! Project hooks: `/projects/:id/hooks`. Tokens are never shown; duplicates of a URL are allowed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::iso;
use crate::mr_json::time;
use crate::pagination::{Totals, paginate};
use crate::params::Params;
use crate::project::matches;
use crate::reply::{Answer, Reply, error, message, missing, no_record};
use crate::state::State;

/// The event flags; only push events are on by default.
pub(crate) const FLAGS: [&str; 17] = [
    "push_events",
    "tag_push_events",
    "issues_events",
    "confidential_issues_events",
    "merge_requests_events",
    "note_events",
    "confidential_note_events",
    "job_events",
    "pipeline_events",
    "wiki_page_events",
    "deployment_events",
    "feature_flag_events",
    "releases_events",
    "milestone_events",
    "emoji_events",
    "resource_access_token_events",
    "vulnerability_events",
];

/// A hook.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) id: u64,
    pub(crate) url: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) flags: BTreeMap<&'static str, bool>,
    pub(crate) token: Option<String>,
    pub(crate) signing_token: Option<String>,
    pub(crate) ssl: bool,
    pub(crate) branch_filter: String,
    pub(crate) filter_strategy: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) created_at_ms: u64,
    pub(crate) failures: u32,
    pub(crate) disabled_until_ms: Option<u64>,
}

const PERMANENT: u32 = 40;

impl Hook {
    pub(crate) fn is_disabled(&self, now_ms: u64) -> bool {
        self.failures >= PERMANENT || self.disabled_until_ms.is_some_and(|at| at > now_ms)
    }

    /// Counts a failed delivery: the 4th disables for a minute, doubling to a day.
    pub(crate) fn fail(&mut self, now_ms: u64) {
        self.failures += 1;
        if self.failures >= 4 {
            let minutes = 1_u64 << (self.failures - 4).min(11);
            self.disabled_until_ms = Some(now_ms + (minutes * 60_000).min(86_400_000));
        }
    }

    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
        self.disabled_until_ms = None;
    }

    pub(crate) fn wants(&self, flag: &str) -> bool {
        self.flags.get(flag).copied().unwrap_or(false)
    }

    /// Whether the push filter lets the branch through.
    pub(crate) fn wants_branch(&self, branch: &str) -> bool {
        self.branch_filter.is_empty() || self.filter_strategy == "all_branches" || matches(&self.branch_filter, branch)
    }

    fn alert(&self, now_ms: u64) -> &'static str {
        match self.is_disabled(now_ms) {
            _ if self.failures >= PERMANENT => "disabled",
            true => "temporarily_disabled",
            false => "executable",
        }
    }
}

fn hook_json(state: &State, project: u64, hook: &Hook, single: bool) -> Value {
    let mut body = json!({
        "id": hook.id, "url": hook.url, "name": hook.name, "description": hook.description, "created_at": iso(hook.created_at_ms),
        "repository_update_events": false, "enable_ssl_verification": hook.ssl, "alert_status": hook.alert(state.now_ms),
        "disabled_until": time(hook.disabled_until_ms), "push_events_branch_filter": hook.branch_filter,
        "branch_filter_strategy": hook.filter_strategy, "custom_webhook_template": null, "project_id": project,
        "resource_deploy_token_events": false,
    });
    for flag in FLAGS {
        body[flag] = json!(hook.wants(flag));
    }
    if state.major() >= 19 {
        body["token_present"] = json!(hook.token.is_some());
        body["signing_token_present"] = json!(hook.signing_token.is_some());
    }
    if single {
        body["url_variables"] = json!([]);
        body["custom_headers"] = hook.headers.keys().map(|key| json!({ "key": key })).collect();
    }
    body
}

/// `GET …/hooks`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Maintainer)?;
    let rows = project.hooks.values().map(|hook| hook_json(state, project.id, hook, false)).collect();
    paginate(state, call, rows, Totals::Sent)
}

fn find(state: &State, call: &Call) -> Result<(u64, u64), Reply> {
    let project = call.project_as(state, Role::Maintainer)?;
    let id = call.number("hook_id")?;
    project.hooks.get(&id).map(|_| (project.id, id)).ok_or_else(no_record)
}

fn shown(state: &State, project: u64, id: u64, status: u16) -> Answer {
    let hook = state.project(project).and_then(|project| project.hooks.get(&id)).ok_or_else(no_record)?;
    Ok(Reply::json(status, &hook_json(state, project, hook, true)))
}

/// `GET …/hooks/:hook_id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, id) = find(state, call)?;
    shown(state, project, id, 200)
}

/// `POST …/hooks`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let project = call.project_as(state, Role::Maintainer)?.id;
    let url = call.params.text("url").ok_or_else(|| missing("url"))?;
    check_url(&url)?;
    check_filter(&call.params)?;
    let id = state.ids.next("hook");
    let mut hook = Hook {
        id,
        url,
        name: None,
        description: None,
        flags: BTreeMap::from([("push_events", true)]),
        token: None,
        signing_token: None,
        ssl: true,
        branch_filter: String::new(),
        filter_strategy: "wildcard".to_owned(),
        headers: BTreeMap::new(),
        created_at_ms: state.now_ms,
        failures: 0,
        disabled_until_ms: None,
    };
    fill(&mut hook, &call.params);
    state.project_mut(project).ok_or_else(no_record)?.hooks.insert(id, hook);
    shown(state, project, id, 201)
}

/// `PUT …/hooks/:hook_id`; another URL clears the token unless one is sent along.
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    let (project, id) = find(state, call)?;
    if call.params.0.is_empty() {
        return Err(error(400, "No parameters provided"));
    }
    let url = call.params.text("url");
    url.as_deref().map_or(Ok(()), check_url)?;
    check_filter(&call.params)?;
    let hook = state.project_mut(project).and_then(|project| project.hooks.get_mut(&id)).ok_or_else(no_record)?;
    if let Some(url) = url.filter(|url| *url != hook.url) {
        hook.url = url;
        hook.token = None;
    }
    fill(hook, &call.params);
    shown(state, project, id, 200)
}

/// `DELETE …/hooks/:hook_id`
pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    let (project, id) = find(state, call)?;
    state.project_mut(project).ok_or_else(no_record)?.hooks.remove(&id);
    Ok(Reply::empty(204))
}

/// `POST …/hooks/:hook_id/test/:trigger`: sample data of the newest object, sent at once.
pub(crate) fn test(state: &mut State, call: &Call) -> Answer {
    let (project, id) = find(state, call)?;
    let sent = state.send_sample(project, id, call.capture("trigger"));
    sent.ok_or_else(|| message(422, "422 Unprocessable Entity"))?;
    Ok(message(201, "201 Created"))
}

fn check_url(url: &str) -> Result<(), Reply> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(' ') => Ok(()),
        _ => Err(error(422, "Invalid url given")),
    }
}

fn check_filter(params: &Params) -> Result<(), Reply> {
    match params.text("push_events_branch_filter") {
        Some(filter) if filter.contains(' ') || filter.contains("..") => Err(error(422, "Invalid branch filter given")),
        _ => Ok(()),
    }
}

fn fill(hook: &mut Hook, params: &Params) {
    for flag in FLAGS {
        if let Some(on) = params.flag(flag) {
            hook.flags.insert(flag, on);
        }
    }
    hook.name = params.text("name").or(hook.name.take());
    hook.description = params.text("description").or(hook.description.take());
    hook.token = params.text("token").or(hook.token.take()).filter(|token| !token.is_empty());
    hook.signing_token = params.text("signing_token").or(hook.signing_token.take()).filter(|token| !token.is_empty());
    hook.ssl = params.flag("enable_ssl_verification").unwrap_or(hook.ssl);
    hook.branch_filter = params.text("push_events_branch_filter").unwrap_or_else(|| hook.branch_filter.clone());
    hook.filter_strategy = params.text("branch_filter_strategy").unwrap_or_else(|| hook.filter_strategy.clone());
    let rows = params.value("custom_headers").and_then(Value::as_array).cloned().unwrap_or_default();
    for row in rows {
        if let (Some(key), Some(value)) = (row["key"].as_str(), row["value"].as_str()) {
            hook.headers.insert(key.to_owned(), value.to_owned());
        }
    }
}
