//! What a request turns out to be about, for the one line that the access log has of it: who asked, what of, and what came of that.
//!
//! The line goes to the target `collie::access`, at INFO. It holds nothing that a caller may choose freely: the route by its pattern, an
//! item by its id, a project only where it is configured, an identity that someone vouched for (INV-12).

use crate::problem::Problem;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::http::StatusCode;
use collie_core::item::Item;
use collie_engine::access::Caller;
use collie_engine::settings::Settings;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who is not known.
const ANONYMOUS: &str = "anonymous";

/// What is known of a request so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct About(Arc<Mutex<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    identity: Option<String>,
    rules: Option<String>,
    item: Option<String>,
    project: Option<String>,
}

impl About {
    /// What the path of a request says already; the request has it from now on.
    pub(crate) async fn begin(request: Request) -> (Self, Request) {
        let (mut parts, body) = request.into_parts();
        let about = Self::default();
        if let Ok(params) = RawPathParams::from_request_parts(&mut parts, &()).await {
            let id = params.iter().find(|(name, text)| *name == "id" && is_uuid(text));
            about.facts().item = id.map(|(_, id)| id.to_owned());
        }
        parts.extensions.insert(about.clone());
        (about, Request::from_parts(parts, body))
    }

    /// Whose request it is, and by which rules they were let in.
    pub(crate) fn caller(&self, caller: &Caller) {
        let rules = (!caller.rules.is_empty()).then(|| caller.rules.join(", "));
        let mut facts = self.facts();
        (facts.identity, facts.rules) = (Some(caller.identity.clone()), rules);
    }

    /// Whose request it is, although nothing lets them in.
    pub(crate) fn identity(&self, identity: String) {
        self.facts().identity = Some(identity);
    }

    /// The project that the request names, where there is such a one.
    pub(crate) fn project(&self, path: &str, settings: &Settings) {
        self.facts().project = settings.project(path).map(|project| project.path.clone());
    }

    /// The item that came out of it.
    pub(crate) fn item(&self, item: &Item) {
        self.facts().item = Some(item.id.to_string());
    }

    /// Who asked, where that is known.
    pub(crate) fn known_identity(&self) -> Option<String> {
        self.facts().identity.clone()
    }

    /// Writes the line.
    pub(crate) fn log(&self, request: &str, call: &str, status: StatusCode, problem: Option<&Problem>) {
        let facts = self.facts();
        let (item, project, rules) = (facts.item.as_deref(), facts.project.as_deref(), facts.rules.as_deref());
        let identity = facts.identity.as_deref().unwrap_or(ANONYMOUS);
        let (decision, code) = (decision(status, problem), problem.map(|problem| problem.code.as_str()));
        let status = status.as_u16();
        tracing::info!(target: "collie::access", request, identity, rules, call, item, project, decision, status, code, "access");
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a text is an item's id in form: anything else in its place could be a secret that went astray.
fn is_uuid(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// What became of the request: the caller was allowed it, or refused it; or it was turned down or failed for another reason.
fn decision(status: StatusCode, problem: Option<&Problem>) -> &'static str {
    match status {
        _ if problem.is_some_and(Problem::refuses_the_caller) => "refused",
        status if status.is_server_error() => "failed",
        status if status.is_client_error() => "rejected",
        _ => "allowed",
    }
}
