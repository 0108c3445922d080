//! Faults: answers that fail, connections that drop, calls that are held and applied later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::call::ApiRequest;
use crate::clock::iso;
use crate::journal::Outcome;
use crate::rate_limits::too_many;
use crate::reply::{Reply, message};
use crate::routes::template;
use crate::state::State;

/// Which calls a fault strikes. Empty fields match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultMatch {
    /// Method, upper case.
    pub method: Option<String>,
    /// A part of the path with its query, or the whole route template.
    pub path: Option<String>,
    /// A part of the body.
    pub body: Option<String>,
    /// Only the nth matching call, from 1, counted from when the fault was added.
    pub nth: Option<u32>,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultAction {
    /// Answers with the status; nothing is applied.
    FailBefore {
        /// The status.
        status: u16,
        /// The body; a usual one for the status if absent.
        #[serde(default)]
        body: Option<String>,
    },
    /// Answers exactly so; nothing is applied.
    Answer {
        /// The status.
        status: u16,
        /// Headers by name.
        #[serde(default)]
        headers: std::collections::BTreeMap<String, String>,
        /// The body.
        body: String,
    },
    /// Applies the call, then answers with the status.
    FailAfterApplying {
        /// The status.
        status: u16,
    },
    /// Closes the connection; nothing is applied.
    DropBefore,
    /// Applies the call, then closes the connection.
    DropAfterApplying,
    /// Applies the call and answers after so long.
    Delay {
        /// The delay.
        ms: u64,
    },
    /// Keeps the call unapplied until it is released, even if the client has gone by then.
    Hold,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which calls it strikes.
    #[serde(rename = "match", default)]
    pub matches: FaultMatch,
    /// What it does.
    pub action: FaultAction,
    /// How often; `None` for ever.
    #[serde(default)]
    pub times: Option<u32>,
}

impl Fault {
    /// A fault that strikes once.
    pub fn once(method: &str, path: &str, action: FaultAction) -> Self {
        Self { times: Some(1), ..Self::always(method, path, action) }
    }

    /// A fault that strikes every matching call.
    pub fn always(method: &str, path: &str, action: FaultAction) -> Self {
        let matches = FaultMatch { method: Some(method.to_owned()), path: Some(path.to_owned()), ..FaultMatch::default() };
        Self { matches, action, times: None }
    }

    fn fits(&self, request: &ApiRequest) -> bool {
        let wanted = &self.matches;
        let method = wanted.method.as_deref().is_none_or(|method| method.eq_ignore_ascii_case(&request.method));
        let path = wanted.path.as_deref().is_none_or(|path| path_fits(request, path));
        let body = wanted.body.as_deref().is_none_or(|part| String::from_utf8_lossy(&request.body).contains(part));
        method && path && body
    }
}

fn path_fits(request: &ApiRequest, path: &str) -> bool {
    if path.contains("/:") {
        return template(request).is_some_and(|found| found == path || found.strip_prefix("/api/v4") == Some(path));
    }
    request.uri.contains(path)
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    seen: u32,
    struck: u32,
}

impl Armed {
    fn strikes(&mut self, request: &ApiRequest) -> bool {
        if !self.fault.fits(request) || self.fault.times.is_some_and(|times| self.struck >= times) {
            return false;
        }
        self.seen += 1;
        let strikes = self.fault.matches.nth.is_none_or(|nth| nth == self.seen);
        self.struck += u32::from(strikes);
        strikes
    }
}

/// A call that waits to be applied.
#[derive(Debug)]
struct Hold {
    request: ApiRequest,
    since_ms: u64,
    sender: oneshot::Sender<Reply>,
}

/// All faults and held calls.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Vec<Armed>,
    holds: BTreeMap<u64, Hold>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.armed.push(Armed { fault, seen: 0, struck: 0 });
    }

    pub(crate) fn clear(&mut self) {
        self.armed.clear();
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        self.armed.iter().map(|armed| json!({ "fault": armed.fault, "seen": armed.seen, "struck": armed.struck })).collect()
    }

    fn strike(&mut self, request: &ApiRequest) -> Option<FaultAction> {
        self.armed.iter_mut().find_map(|armed| armed.strikes(request).then(|| armed.fault.action.clone()))
    }

    pub(crate) fn hold_ids(&self) -> Vec<u64> {
        self.holds.keys().copied().collect()
    }

    pub(crate) fn holds_json(&self) -> Vec<Value> {
        let rows = self.holds.iter();
        let row = |(id, hold): (&u64, &Hold)| json!({ "id": id, "method": hold.request.method, "path": hold.request.uri, "since": iso(hold.since_ms) });
        rows.map(row).collect()
    }
}

/// How a request goes on.
pub(crate) enum Step {
    /// Answer now.
    Reply(Reply),
    /// Close the connection.
    Drop,
    /// Answer when this resolves.
    Wait(oneshot::Receiver<Reply>),
}

impl State {
    /// Takes a request, with any fault that strikes it.
    pub(crate) fn begin(&mut self, request: ApiRequest) -> Step {
        match self.faults.strike(&request) {
            None => Step::Reply(self.perform(&request)),
            Some(FaultAction::FailBefore { status, body }) => {
                self.record(&request, Outcome { status, applied: false, fault: Some("fail_before") });
                Step::Reply(failure(status, body))
            }
            Some(FaultAction::Answer { status, headers, body }) => {
                self.record(&request, Outcome { status, applied: false, fault: Some("answer") });
                let reply = failure(status, Some(body));
                Step::Reply(headers.into_iter().fold(reply, |reply, (name, value)| reply.with_header(&name, value)))
            }
            Some(FaultAction::DropBefore) => {
                self.record(&request, Outcome { status: 0, applied: false, fault: Some("drop_before") });
                Step::Drop
            }
            Some(FaultAction::FailAfterApplying { status }) => {
                self.perform_hidden(&request, status, "fail_after_applying");
                Step::Reply(failure(status, None))
            }
            Some(FaultAction::DropAfterApplying) => {
                self.perform_hidden(&request, 0, "drop_after_applying");
                Step::Drop
            }
            Some(FaultAction::Delay { ms }) => self.hold(request, Some(ms)),
            Some(FaultAction::Hold) => self.hold(request, None),
        }
    }

    /// Applies a request and records it.
    fn perform(&mut self, request: &ApiRequest) -> Reply {
        let reply = self.dispatch(request);
        let id = self.record(request, Outcome { status: reply.status, applied: true, fault: None });
        reply.with_header("X-Request-Id", format!("sim-{id}"))
    }

    fn perform_hidden(&mut self, request: &ApiRequest, status: u16, fault: &'static str) {
        let reply = self.dispatch(request);
        let applied = reply.status < 400;
        self.record(request, Outcome { status, applied, fault: Some(fault) });
    }

    fn hold(&mut self, request: ApiRequest, ms: Option<u64>) -> Step {
        let (sender, receiver) = oneshot::channel();
        let id = self.ids.next("hold");
        self.faults.holds.insert(id, Hold { request, since_ms: self.now_ms, sender });
        if let Some(ms) = ms {
            self.schedule(ms, crate::state::Task::ReleaseHold { hold: id });
        }
        Step::Wait(receiver)
    }

    /// Applies one released call; the client may have gone.
    pub(crate) fn release_hold(&mut self, id: u64) -> Option<()> {
        let hold = self.faults.holds.remove(&id)?;
        let reply = self.perform(&hold.request);
        let _ = hold.sender.send(reply);
        Some(())
    }
}

/// The usual words for a failing status.
fn failure(status: u16, body: Option<String>) -> Reply {
    match (status, body) {
        (_, Some(body)) if body.starts_with('{') => Reply::typed(status, "application/json", body.into()),
        (_, Some(body)) => Reply::text(status, body),
        (429, None) => too_many(),
        (500, None) => message(500, "500 Internal Server Error"),
        (502, None) => Reply::typed(502, "text/html", "<html><body>GitLab is not responding</body></html>".into()),
        (503, None) => message(503, "Upstream Gitaly has been exhausted. Try again later").with_header("Retry-After", "30"),
        (status, None) => message(status, status.to_string()),
    }
}
