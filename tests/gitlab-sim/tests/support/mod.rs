//! Calls in process, as short as a test wants them.
#![allow(dead_code, reason = "each test binary uses its own part")]

use gitlab_sim::{ApiRequest, Clock, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, Delivery, Reply, Sim};
use serde_json::{Value, json};

pub(crate) const P: u64 = DEMO_PROJECT_ID;

/// A demonstration simulator on the manual clock with hooks captured, and a token.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) token: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let sim = Sim::demo(Clock::Manual);
        sim.capture_hooks(true);
        sim.clear_personas(P);
        Self { sim, token: DEMO_BOT_TOKEN.to_owned() }
    }

    /// As another user, with a fresh token.
    pub(crate) fn as_user(&self, user: &str) -> Self {
        let token = format!("token-of-{user}");
        assert!(self.sim.add_token(user, &token, &["api"], None));
        Self { sim: self.sim.clone(), token }
    }

    pub(crate) fn raw(&self, method: &str, path: &str, body: &Value) -> Reply {
        let headers = vec![("PRIVATE-TOKEN".into(), self.token.clone()), ("Content-Type".into(), "application/json".into())];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = ApiRequest { method: method.into(), uri: format!("/api/v4{path}"), headers, body: body.into() };
        self.sim.call(request).expect("an answer")
    }

    pub(crate) fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let reply = self.raw(method, path, &body);
        (reply.status, reply.json_body())
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, Value::Null);
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// Commits one file through the API onto a branch made from main if new.
    pub(crate) fn commit(&self, branch: &str, path: &str, content: &str) -> String {
        let known = self.sim.branch_head(P, branch).is_some();
        let action = if self.sim.file_at(P, if known { branch } else { "main" }, path).is_some() { "update" } else { "create" };
        let mut body = json!({ "branch": branch, "commit_message": format!("Write {path}"), "stats": false,
                               "actions": [{ "action": action, "file_path": path, "content": content }] });
        if !known {
            body["start_branch"] = json!("main");
        }
        let (status, body) = self.call("POST", &project("/repository/commits"), body);
        assert_eq!(status, 201, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Opens a merge request onto main and returns its iid.
    pub(crate) fn open_mr(&self, branch: &str) -> u64 {
        let body = json!({ "source_branch": branch, "target_branch": "main", "title": format!("Merge {branch}") });
        let (status, body) = self.call("POST", &project("/merge_requests"), body);
        assert_eq!(status, 201, "{body}");
        body["iid"].as_u64().unwrap()
    }

    pub(crate) fn mr(&self, iid: u64) -> Value {
        self.get(&project(&format!("/merge_requests/{iid}")))
    }

    pub(crate) fn detailed(&self, iid: u64) -> String {
        self.mr(iid)["detailed_merge_status"].as_str().unwrap().to_owned()
    }

    /// Commits, opens, and waits until the merge request has been checked and its pipeline is done.
    pub(crate) fn ready_mr(&self, branch: &str, path: &str) -> u64 {
        self.commit(branch, path, "content\n");
        let iid = self.open_mr(branch);
        self.sim.settle(120_000);
        self.mr(iid);
        self.sim.settle(120_000);
        iid
    }

    pub(crate) fn merge(&self, iid: u64, body: Value) -> (u16, Value) {
        self.call("PUT", &project(&format!("/merge_requests/{iid}/merge")), body)
    }

    pub(crate) fn hook(&self, flags: &[&str]) -> u64 {
        let mut body = json!({ "url": "http://hooks.example/gitlab", "token": "s3cret", "push_events": false });
        for flag in flags {
            body[*flag] = json!(true);
        }
        let (status, body) = self.call("POST", &project("/hooks"), body);
        assert_eq!(status, 201, "{body}");
        body["id"].as_u64().unwrap()
    }

    /// Captured payloads.
    pub(crate) fn payloads(&self) -> Vec<Value> {
        self.sim.take_deliveries().iter().map(Delivery::json).collect()
    }
}

/// A path in the demonstration project.
pub(crate) fn project(rest: &str) -> String {
    format!("/projects/{P}{rest}")
}

pub(crate) fn message(body: &Value) -> &str {
    body["message"].as_str().unwrap_or_default()
}
