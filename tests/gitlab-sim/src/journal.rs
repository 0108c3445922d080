//! The journal: every API call, in order, with what became of it.

use serde::Serialize;

use crate::call::ApiRequest;
use crate::routes::{is_write, template};
use crate::state::State;

/// One API call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JournalEntry {
    /// Position, from 1; also the request id.
    pub request_id: u64,
    /// When it was answered.
    pub at_ms: u64,
    /// Method.
    pub method: String,
    /// Route template such as `/api/v4/projects/:id`; empty for an unknown route.
    pub template: String,
    /// Path and query as sent.
    pub path: String,
    /// Username, if the token was good.
    pub user: Option<String>,
    /// Status the client got; 0 where the connection was dropped.
    pub status: u16,
    /// The method is a writing one.
    pub write: bool,
    /// The simulator acted on it.
    pub applied: bool,
    /// The fault that struck it.
    pub fault: Option<String>,
}

/// What became of a call.
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) applied: bool,
    pub(crate) fault: Option<&'static str>,
}

impl State {
    /// Records a call; the answer is its request id.
    pub(crate) fn record(&mut self, request: &ApiRequest, outcome: Outcome) -> u64 {
        let user = self.identify(request.token().as_deref()).ok().flatten().and_then(|found| self.users.get(&found.user));
        let request_id = self.ids.next("request");
        let entry = JournalEntry {
            user: user.map(|user| user.username.clone()),
            request_id,
            at_ms: self.now_ms,
            method: request.method.clone(),
            template: template(request).unwrap_or_default(),
            path: request.uri.clone(),
            status: outcome.status,
            write: is_write(&request.method),
            applied: outcome.applied,
            fault: outcome.fault.map(str::to_owned),
        };
        self.journal.push(entry);
        request_id
    }
}
