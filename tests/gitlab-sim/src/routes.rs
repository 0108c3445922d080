//! The route table of `/api/v4` and the way of one call through it: match, parse, limit,
//! authenticate, check the scope, handle.

use std::collections::BTreeMap;

use serde_json::json;

use crate::access::check_scope;
use crate::call::{ApiRequest, Call};
use crate::params::{Params, decode};
use crate::reply::{Answer, Reply, error, unauthorized};
use crate::state::State;
use crate::{
    access, approvals, branches, commits, commits_api, compare, discussions, events, files, files_write, hooks, issue_notes, issues, jobs,
    labels, lookups, members, merge, merge_requests, merge_trains, mr_pipelines, mr_update, notes, pipelines_api, project, rebase,
    test_reports, token_rotation,
};

/// What serves a route.
pub(crate) type Handler = fn(&mut State, &Call) -> Answer;

/// One route.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) template: &'static str,
    handler: Handler,
}

const fn route(method: &'static str, template: &'static str, handler: Handler) -> Route {
    Route { method, template, handler }
}

const BASE: &str = "/api/v4";

/// Every route below `/api/v4`.
pub(crate) const ROUTES: &[Route] = &[
    route("GET", "/version", access::version),
    route("GET", "/metadata", access::metadata),
    route("GET", "/user", access::current_user),
    route("POST", "/personal_access_tokens/self/rotate", token_rotation::rotate_self),
    route("GET", "/users", lookups::users),
    route("GET", "/projects", lookups::projects),
    route("GET", "/projects/:id", project::get),
    route("GET", "/projects/:id/members/all", members::list),
    route("GET", "/projects/:id/members/all/:user_id", members::get),
    route("GET", "/projects/:id/events", events::list),
    route("GET", "/projects/:id/labels", labels::list),
    route("POST", "/projects/:id/labels", labels::create),
    route("GET", "/projects/:id/hooks", hooks::list),
    route("POST", "/projects/:id/hooks", hooks::create),
    route("GET", "/projects/:id/hooks/:hook_id", hooks::get),
    route("PUT", "/projects/:id/hooks/:hook_id", hooks::update),
    route("DELETE", "/projects/:id/hooks/:hook_id", hooks::delete),
    route("POST", "/projects/:id/hooks/:hook_id/test/:trigger", hooks::test),
    route("GET", "/projects/:id/repository/branches", branches::list),
    route("POST", "/projects/:id/repository/branches", branches::create),
    route("GET", "/projects/:id/repository/branches/:branch", branches::get),
    route("HEAD", "/projects/:id/repository/branches/:branch", branches::head),
    route("DELETE", "/projects/:id/repository/branches/:branch", branches::delete),
    route("GET", "/projects/:id/repository/commits", commits::list),
    route("POST", "/projects/:id/repository/commits", commits_api::create),
    route("GET", "/projects/:id/repository/commits/:sha", commits::get),
    route("GET", "/projects/:id/repository/commits/:sha/diff", commits::diff),
    route("GET", "/projects/:id/repository/commits/:sha/merge_requests", commits::merge_requests),
    route("GET", "/projects/:id/repository/tree", files::tree),
    route("GET", "/projects/:id/repository/files/:file_path", files::get),
    route("POST", "/projects/:id/repository/files/:file_path", files_write::create),
    route("PUT", "/projects/:id/repository/files/:file_path", files_write::update),
    route("DELETE", "/projects/:id/repository/files/:file_path", files_write::delete),
    route("HEAD", "/projects/:id/repository/files/:file_path", files::head),
    route("GET", "/projects/:id/repository/files/:file_path/raw", files::raw),
    route("GET", "/projects/:id/repository/blobs/:sha/raw", files::blob_raw),
    route("GET", "/projects/:id/repository/compare", compare::compare),
    route("GET", "/projects/:id/repository/merge_base", compare::merge_base),
    route("GET", "/projects/:id/merge_requests", merge_requests::list),
    route("POST", "/projects/:id/merge_requests", merge_requests::create),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid", merge_requests::get),
    route("PUT", "/projects/:id/merge_requests/:merge_request_iid", mr_update::update),
    route("PUT", "/projects/:id/merge_requests/:merge_request_iid/merge", merge::merge),
    route("POST", "/projects/:id/merge_requests/:merge_request_iid/cancel_merge_when_pipeline_succeeds", merge::cancel_auto_merge),
    route("PUT", "/projects/:id/merge_requests/:merge_request_iid/rebase", rebase::rebase),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/commits", mr_pipelines::commits),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/diffs", mr_pipelines::diffs),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/pipelines", mr_pipelines::list),
    route("POST", "/projects/:id/merge_requests/:merge_request_iid/pipelines", mr_pipelines::create),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/approvals", approvals::get),
    route("POST", "/projects/:id/merge_requests/:merge_request_iid/approve", approvals::approve),
    route("POST", "/projects/:id/merge_requests/:merge_request_iid/unapprove", approvals::unapprove),
    route("PUT", "/projects/:id/merge_requests/:merge_request_iid/reset_approvals", approvals::reset),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/merge_ref", merge::merge_ref),
    route("GET", "/projects/:id/merge_trains", merge_trains::list),
    route("GET", "/projects/:id/merge_trains/merge_requests/:merge_request_iid", merge_trains::get),
    route("POST", "/projects/:id/merge_trains/merge_requests/:merge_request_iid", merge_trains::join),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/notes", notes::list),
    route("POST", "/projects/:id/merge_requests/:merge_request_iid/notes", notes::create),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id", notes::get),
    route("PUT", "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id", notes::update),
    route("DELETE", "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id", notes::delete),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/discussions", discussions::list),
    route("POST", "/projects/:id/merge_requests/:merge_request_iid/discussions", discussions::create),
    route("PUT", "/projects/:id/merge_requests/:merge_request_iid/discussions/:discussion_id", discussions::resolve),
    route("GET", "/projects/:id/merge_requests/:merge_request_iid/resource_label_events", labels::events),
    route("GET", "/projects/:id/issues", issues::list),
    route("POST", "/projects/:id/issues", issues::create),
    route("GET", "/projects/:id/issues/:issue_iid", issues::get),
    route("PUT", "/projects/:id/issues/:issue_iid", issues::update),
    route("GET", "/projects/:id/issues/:issue_iid/notes", issue_notes::list),
    route("POST", "/projects/:id/issues/:issue_iid/notes", issue_notes::create),
    route("GET", "/projects/:id/issues/:issue_iid/notes/:note_id", issue_notes::get),
    route("PUT", "/projects/:id/issues/:issue_iid/notes/:note_id", issue_notes::update),
    route("DELETE", "/projects/:id/issues/:issue_iid/notes/:note_id", issue_notes::delete),
    route("GET", "/projects/:id/pipelines", pipelines_api::list),
    route("GET", "/projects/:id/pipelines/latest", pipelines_api::latest),
    route("POST", "/projects/:id/pipeline", pipelines_api::create),
    route("GET", "/projects/:id/pipelines/:pipeline_id", pipelines_api::get),
    route("POST", "/projects/:id/pipelines/:pipeline_id/retry", pipelines_api::retry),
    route("POST", "/projects/:id/pipelines/:pipeline_id/cancel", pipelines_api::cancel),
    route("GET", "/projects/:id/pipelines/:pipeline_id/jobs", jobs::list_of_pipeline),
    route("GET", "/projects/:id/pipelines/:pipeline_id/bridges", jobs::bridges),
    route("GET", "/projects/:id/pipelines/:pipeline_id/test_report", test_reports::report),
    route("GET", "/projects/:id/pipelines/:pipeline_id/test_report_summary", test_reports::summary),
    route("DELETE", "/projects/:id/pipelines/:pipeline_id", pipelines_api::delete),
    route("GET", "/projects/:id/jobs", jobs::list),
    route("GET", "/projects/:id/jobs/:job_id", jobs::get),
    route("GET", "/projects/:id/jobs/:job_id/trace", jobs::trace),
    route("POST", "/projects/:id/jobs/:job_id/retry", jobs::retry),
    route("POST", "/projects/:id/jobs/:job_id/play", jobs::play),
    route("POST", "/projects/:id/jobs/:job_id/cancel", jobs::cancel),
];

/// Captured path parts by name.
pub(crate) type Captures = BTreeMap<&'static str, String>;

/// Matches an encoded path against a template whose parts may be `:name`.
pub(crate) fn capture(template: &'static str, path: &str) -> Option<Captures> {
    let mut captures = Captures::new();
    let mut parts = path.split('/');
    for expected in template.split('/') {
        let part = parts.next()?;
        match expected.strip_prefix(':') {
            Some(name) if !part.is_empty() => drop(captures.insert(name, decode(part))),
            Some(_) => return None,
            None if expected == part => {}
            None => return None,
        }
    }
    parts.next().is_none().then_some(captures)
}

/// The route of an API request, with its captures.
pub(crate) fn find(request: &ApiRequest) -> Option<(&'static Route, Captures)> {
    let path = request.path().strip_prefix(BASE)?;
    let mut fits = ROUTES.iter().filter_map(|route| Some((route, capture(route.template, path)?)));
    let method = request.method.as_str();
    let rows: Vec<_> = fits.by_ref().collect();
    let exact = rows.iter().find(|(route, _)| route.method == method);
    let fallback = || rows.iter().find(|(route, _)| method == "HEAD" && route.method == "GET");
    exact.or_else(fallback).map(|(route, captures)| (*route, captures.clone()))
}

/// The template of a request's route, with the base path.
pub(crate) fn template(request: &ApiRequest) -> Option<String> {
    find(request).map(|(route, _)| format!("{BASE}{}", route.template))
}

impl State {
    /// Answers an API request.
    pub(crate) fn dispatch(&mut self, request: &ApiRequest) -> Reply {
        match self.try_dispatch(request) {
            Ok(reply) | Err(reply) => reply,
        }
    }

    fn try_dispatch(&mut self, request: &ApiRequest) -> Answer {
        if let Some(document) = self.provider_document(request) {
            return Ok(document);
        }
        if request.path().starts_with("/api/v3") {
            return Err(Reply::json(410, &json!({ "error": "API V3 is no longer supported. Use API V4 instead." })));
        }
        let identity = self.identify(request.token().as_deref())?;
        self.check_rate(request, identity.as_ref().map(|identity| identity.user))?;
        let (route, captures) = find(request).ok_or_else(|| error(404, "404 Not Found"))?;
        let writes = is_write(&request.method);
        match &identity {
            Some(identity) => check_scope(identity, writes)?,
            None if writes => return Err(unauthorized()),
            None => {}
        }
        let params = parse(request)?;
        let call = Call { request: request.clone(), captures, params, identity };
        (route.handler)(self, &call)
    }
}

fn parse(request: &ApiRequest) -> Result<Params, Reply> {
    let content_type = request.header("content-type").unwrap_or_default();
    Params::parse(request.query(), content_type, &request.body)
        .map_err(|_| Reply::json(400, &json!({ "message": "Invalid json", "error": "Invalid json" })))
}

/// Whether a method changes state.
pub(crate) fn is_write(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_template(method: &str, uri: &str) -> Option<&'static str> {
        let request = ApiRequest { method: method.into(), uri: uri.into(), ..ApiRequest::default() };
        find(&request).map(|(route, _)| route.template)
    }

    #[test]
    fn encoded_slashes_stay_in_one_part() {
        let found = capture("/projects/:id/repository/branches/:branch", "/projects/demo%2Fapp/repository/branches/a%2Fb").unwrap();
        assert_eq!(found["id"], "demo/app");
        assert_eq!(found["branch"], "a/b");
        assert_eq!(find_template("GET", "/api/v4/projects/1/repository/branches/a/b"), None);
    }

    #[test]
    fn literal_parts_come_before_captures() {
        assert_eq!(find_template("GET", "/api/v4/projects/1/pipelines/latest?ref=x"), Some("/projects/:id/pipelines/latest"));
        assert_eq!(find_template("GET", "/api/v4/projects/1/pipelines/7"), Some("/projects/:id/pipelines/:pipeline_id"));
        assert_eq!(find_template("HEAD", "/api/v4/projects/1"), Some("/projects/:id"));
    }
}
