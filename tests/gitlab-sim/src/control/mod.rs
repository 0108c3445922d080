//! The control API below `/_sim/`: the same powers as the methods of [`Sim`], over HTTP.
//!
//! Its description is `openapi.json` beside this file, served at `/_sim/openapi.json`; a test
//! keeps it and the route table alike.

mod calls;
mod instance;
mod merge_requests;
mod projects;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call::ApiRequest;
use crate::reply::{Answer, Reply, error};
use crate::routes::{Captures, capture};
use crate::sim::Sim;

const OPENAPI: &str = include_str!("openapi.json");

/// A routed control request.
pub(crate) struct Control<'a> {
    sim: &'a Sim,
    captures: Captures,
    body: &'a [u8],
}

type Handler = fn(&Control) -> Answer;

struct Route {
    method: &'static str,
    template: &'static str,
    handler: Handler,
}

const fn route(method: &'static str, template: &'static str, handler: Handler) -> Route {
    Route { method, template, handler }
}

const ROUTES: &[Route] = &[
    route("GET", "/_sim/openapi.json", openapi),
    route("GET", "/_sim/clock", instance::clock),
    route("POST", "/_sim/clock/advance", instance::advance),
    route("GET", "/_sim/tasks", instance::tasks),
    route("GET", "/_sim/timing", instance::timing),
    route("PUT", "/_sim/timing", instance::set_timing),
    route("PUT", "/_sim/version", instance::set_version),
    route("GET", "/_sim/users", instance::users),
    route("POST", "/_sim/users", instance::add_user),
    route("POST", "/_sim/tokens", instance::add_token),
    route("POST", "/_sim/tokens/revoke", instance::revoke_token),
    route("POST", "/_sim/oidc/id_tokens", instance::id_token),
    route("POST", "/_sim/oidc/rotate", instance::rotate_signing_key),
    route("GET", "/_sim/projects", projects::list),
    route("POST", "/_sim/projects", projects::create),
    route("GET", "/_sim/projects/:id/settings", projects::settings),
    route("PUT", "/_sim/projects/:id/settings", projects::set_settings),
    route("POST", "/_sim/projects/:id/rename", projects::rename),
    route("PUT", "/_sim/projects/:id/visibility", projects::set_visibility),
    route("PUT", "/_sim/projects/:id/members", projects::set_member),
    route("PUT", "/_sim/projects/:id/protected_branches", projects::protect),
    route("POST", "/_sim/projects/:id/pushes", projects::push),
    route("POST", "/_sim/projects/:id/force_pushes", projects::force_push),
    route("POST", "/_sim/projects/:id/branch_deletions", projects::delete_branch),
    route("GET", "/_sim/projects/:id/job_rules", projects::job_rules),
    route("POST", "/_sim/projects/:id/job_rules", projects::add_job_rule),
    route("DELETE", "/_sim/projects/:id/job_rules", projects::clear_job_rules),
    route("POST", "/_sim/projects/:id/personas", projects::add_persona),
    route("DELETE", "/_sim/projects/:id/personas", projects::clear_personas),
    route("GET", "/_sim/projects/:id/pipelines", projects::pipelines),
    route("POST", "/_sim/projects/:id/jobs/:job_id/finish", projects::finish_job),
    route("GET", "/_sim/projects/:id/merge_requests", merge_requests::list),
    route("POST", "/_sim/projects/:id/merge_requests/:iid/approvals", merge_requests::approve),
    route("DELETE", "/_sim/projects/:id/merge_requests/:iid/approvals", merge_requests::unapprove),
    route("POST", "/_sim/projects/:id/merge_requests/:iid/close", merge_requests::close),
    route("POST", "/_sim/projects/:id/merge_requests/:iid/reopen", merge_requests::reopen),
    route("POST", "/_sim/projects/:id/merge_requests/:iid/discussions", merge_requests::open_discussion),
    route("PUT", "/_sim/projects/:id/merge_requests/:iid/discussions/:discussion_id", merge_requests::resolve_discussion),
    route("GET", "/_sim/faults", calls::faults),
    route("POST", "/_sim/faults", calls::add_fault),
    route("DELETE", "/_sim/faults", calls::clear_faults),
    route("GET", "/_sim/holds", calls::holds),
    route("POST", "/_sim/holds/release", calls::release_all),
    route("POST", "/_sim/holds/:hold_id/release", calls::release_one),
    route("GET", "/_sim/journal", calls::journal),
    route("DELETE", "/_sim/journal", calls::clear_journal),
    route("GET", "/_sim/hook_habits", calls::hook_habits),
    route("PUT", "/_sim/hook_habits", calls::set_hook_habits),
    route("POST", "/_sim/deliveries/take", calls::take_deliveries),
    route("PUT", "/_sim/rate_limit", calls::set_rate_limit),
    route("DELETE", "/_sim/rate_limit", calls::clear_rate_limit),
];

/// Answers a control request.
pub(crate) fn handle(sim: &Sim, request: &ApiRequest) -> Reply {
    let fits = |route: &&Route| route.method == request.method;
    let found = ROUTES.iter().filter(fits).find_map(|route| Some((route, capture(route.template, request.path())?)));
    let Some((route, captures)) = found else {
        return error(404, format!("no control route {} {}", request.method, request.path()));
    };
    let control = Control { sim, captures, body: &request.body };
    match (route.handler)(&control) {
        Ok(reply) | Err(reply) => reply,
    }
}

fn openapi(_control: &Control) -> Answer {
    Ok(Reply::typed(200, "application/json", OPENAPI.into()))
}

fn done() -> Answer {
    Ok(Reply::json(200, &json!({ "done": true })))
}

/// 200, or 404 with what was not found.
fn done_if(ok: bool, missing: &str) -> Answer {
    if ok { done() } else { Err(error(404, missing)) }
}

impl Control<'_> {
    fn capture(&self, name: &str) -> &str {
        self.captures.get(name).map_or("", String::as_str)
    }

    /// The id of the project the path names, by number or path.
    fn project(&self) -> Result<u64, Reply> {
        let text = self.capture("id");
        let state = self.sim.lock();
        let mut projects = state.projects.values();
        let found = projects.find(|project| project.path == text || project.id.to_string() == text);
        found.map(|project| project.id).ok_or_else(|| error(404, format!("no project {text}")))
    }

    fn number(&self, name: &str) -> Result<u64, Reply> {
        self.capture(name).parse().map_err(|_| error(400, format!("{name} is no number")))
    }

    /// The body as a typed value; unknown fields are refused.
    fn body<T: DeserializeOwned>(&self) -> Result<T, Reply> {
        let body = if self.body.is_empty() { b"{}" } else { self.body };
        serde_json::from_slice(body).map_err(|problem| error(400, problem.to_string()))
    }

    /// `current` with the fields of the body laid over it.
    fn overlaid<T: DeserializeOwned + serde::Serialize>(&self, current: &T) -> Result<T, Reply> {
        let refuse = |problem: serde_json::Error| error(400, problem.to_string());
        let mut value = serde_json::to_value(current).map_err(refuse)?;
        let changes: serde_json::Map<String, Value> = self.body()?;
        for (name, change) in changes {
            value[name] = change;
        }
        serde_json::from_value(value).map_err(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `GET /_sim/projects/{id}` as `GET /_sim/projects/:id`.
    fn documented() -> BTreeSet<String> {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = document["paths"].as_object().unwrap().clone();
        let operation = |(path, methods): (String, Value)| {
            let template = path.replace('{', ":").replace('}', "");
            let methods: Vec<String> = methods.as_object().unwrap().keys().filter(|key| *key != "parameters").cloned().collect();
            methods.into_iter().map(move |method| format!("{} {template}", method.to_uppercase()))
        };
        paths.into_iter().flat_map(operation).collect()
    }

    #[test]
    fn every_control_route_is_documented_and_nothing_else() {
        let routes: BTreeSet<String> = ROUTES.iter().map(|route| format!("{} {}", route.method, route.template)).collect();
        assert_eq!(documented(), routes);
    }
}
