//! Hook deliveries: which hook hears of what, headers and signatures, and the bad habits
//! (duplicates, reordering, losses, hooks that switch themselves off).

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::git::object_id;
use crate::project::Project;
use crate::pushes::Push;
use crate::state::{State, Task};

/// One HTTP request to a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The project whose hook it is.
    pub project_id: u64,
    /// The hook.
    pub hook_id: u64,
    /// Where it goes.
    pub url: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// The payload.
    pub body: Bytes,
    /// When it was sent.
    pub at_ms: u64,
}

impl Delivery {
    /// The first header of that name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The payload as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// How deliveries misbehave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookHabits {
    /// Keep deliveries for `take_deliveries` instead of sending them.
    pub capture: bool,
    /// Send every nth twice.
    pub duplicate_every: Option<u64>,
    /// Lose every nth.
    pub drop_every: Option<u64>,
    /// Hold every other one and send it after its successor.
    pub reorder: bool,
    /// Lose all.
    pub drop_all: bool,
}

/// The outbox.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    pub(crate) habits: HookHabits,
    pub(crate) outbox: VecDeque<Delivery>,
    held: Option<Box<Delivery>>,
    count: u64,
}

const HELD_MS: u64 = 5_000;

struct Kind {
    flag: &'static str,
    name: &'static str,
}

const PUSH: Kind = Kind { flag: "push_events", name: "Push Hook" };
const MERGE_REQUEST: Kind = Kind { flag: "merge_requests_events", name: "Merge Request Hook" };
const PIPELINE: Kind = Kind { flag: "pipeline_events", name: "Pipeline Hook" };
const JOB: Kind = Kind { flag: "job_events", name: "Job Hook" };
const NOTE: Kind = Kind { flag: "note_events", name: "Note Hook" };
const INTERNAL_NOTE: Kind = Kind { flag: "confidential_note_events", name: "Confidential Note Hook" };

impl State {
    fn emit(&mut self, project: u64, kind: &Kind, branch: Option<&str>, payload: &Value) -> Option<()> {
        let row = self.project(project)?;
        let fits = |hook: &&crate::hooks::Hook| hook.wants(kind.flag) && branch.is_none_or(|branch| hook.wants_branch(branch));
        let hooks: Vec<u64> = row.hooks.values().filter(fits).map(|hook| hook.id).collect();
        let body = Bytes::from(payload.to_string());
        for hook in hooks {
            let delivery = self.compose(project, hook, kind, body.clone())?;
            self.schedule(self.timing.hook_delivery_ms, Task::Deliver { delivery: Box::new(delivery) });
        }
        Some(())
    }

    fn compose(&mut self, project: u64, hook: u64, kind: &Kind, body: Bytes) -> Option<Delivery> {
        let number = self.ids.next("delivery");
        let hook = self.project(project)?.hooks.get(&hook)?;
        let mut headers: Vec<(String, String)> = hook.headers.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let own = [
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", format!("GitLab/{}", self.version)),
            ("Idempotency-Key", uuid("delivery", number)),
            ("X-Gitlab-Event", kind.name.to_owned()),
            ("X-Gitlab-Webhook-UUID", uuid("webhook", number)),
            ("X-Gitlab-Event-UUID", uuid("event", number)),
            ("X-Gitlab-Instance", self.base_url.clone()),
        ];
        headers.retain(|(key, _)| !own.iter().any(|(name, _)| name.eq_ignore_ascii_case(key)));
        headers.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
        headers.extend(hook.token.iter().map(|token| ("X-Gitlab-Token".to_owned(), token.clone())));
        Some(Delivery { project_id: project, hook_id: hook.id, url: hook.url.clone(), headers, body, at_ms: self.now_ms })
    }

    /// Sends a hook the newest object of a trigger such as `push_events`, disabled or not.
    pub(crate) fn send_sample(&mut self, project: u64, hook: u64, trigger: &str) -> Option<()> {
        let kind = [&PUSH, &MERGE_REQUEST, &PIPELINE, &JOB, &NOTE].into_iter().find(|kind| kind.flag == trigger)?;
        let payload = self.sample(self.project(project)?, kind)?;
        let delivery = self.compose(project, hook, kind, Bytes::from(payload.to_string()))?;
        let signing = self.project(project)?.hooks.get(&hook)?.signing_token.clone();
        let stamped = self.stamped(delivery, signing.as_deref());
        self.deliveries.outbox.push_back(stamped);
        Some(())
    }

    fn sample(&self, row: &Project, kind: &Kind) -> Option<Value> {
        let newest_mr = row.mrs.values().next_back();
        match kind.flag {
            "push_events" => {
                let head = row.repo.head(&row.default_branch)?;
                let user = head.author_user.as_deref().and_then(|name| self.user_by_name(name))?.id;
                let push =
                    Push { branch: row.default_branch.clone(), before: head.parents.first().cloned(), after: Some(head.id.clone()), user };
                Some(self.push_payload(row, &push))
            }
            "merge_requests_events" => newest_mr.map(|mr| self.mr_payload(row, mr, mr.author, json!({}), Map::new())),
            "note_events" => newest_mr.and_then(|mr| Some(self.note_payload(row, mr, mr.notes.last()?, "create"))),
            "pipeline_events" => row.pipelines.values().next_back().map(|pipeline| self.pipeline_payload(row, pipeline)),
            _ => row.jobs.values().next_back().and_then(|job| Some(self.job_payload(row, row.pipelines.get(&job.pipeline)?, job))),
        }
    }

    /// Sends a delivery that is due, with all bad habits.
    pub(crate) fn deliver(&mut self, delivery: Delivery) -> Option<()> {
        let now_ms = self.now_ms;
        let hook = self.project(delivery.project_id)?.hooks.get(&delivery.hook_id)?;
        if hook.is_disabled(now_ms) || delivery.body.len() > 25 << 20 {
            return None;
        }
        let signing = hook.signing_token.clone();
        let sent = self.stamped(delivery, signing.as_deref());
        self.deliveries.count += 1;
        let (habits, count) = (self.deliveries.habits.clone(), self.deliveries.count);
        let nth = |every: Option<u64>| every.is_some_and(|every| every > 0 && count.is_multiple_of(every));
        if habits.drop_all || nth(habits.drop_every) {
            return None;
        }
        if habits.reorder && self.deliveries.held.is_none() {
            self.deliveries.held = Some(Box::new(sent));
            self.schedule(HELD_MS, Task::FlushHeldDelivery);
            return Some(());
        }
        if nth(habits.duplicate_every) {
            self.deliveries.outbox.push_back(sent.clone());
        }
        self.deliveries.outbox.push_back(sent);
        self.flush_held_delivery()
    }

    pub(crate) fn flush_held_delivery(&mut self) -> Option<()> {
        let held = self.deliveries.held.take()?;
        self.deliveries.outbox.push_back(*held);
        Some(())
    }

    fn stamped(&self, mut delivery: Delivery, signing: Option<&str>) -> Delivery {
        delivery.at_ms = self.now_ms;
        if let Some(token) = signing.filter(|_| self.major() >= 19) {
            let id = delivery.header("Idempotency-Key").unwrap_or_default().to_owned();
            let seconds = self.now_ms / 1000;
            let signature = signature(token, &id, seconds, &delivery.body);
            for (name, value) in [("webhook-id", id), ("webhook-timestamp", seconds.to_string()), ("webhook-signature", signature)] {
                delivery.headers.push((name.to_owned(), value));
            }
        }
        delivery
    }

    /// Notes how a delivery went.
    pub(crate) fn note_delivery(&mut self, project: u64, hook: u64, ok: bool) -> Option<()> {
        let now_ms = self.now_ms;
        let hook = self.project_mut(project)?.hooks.get_mut(&hook)?;
        if ok {
            hook.succeed()
        } else {
            hook.fail(now_ms)
        }
        Some(())
    }

    pub(crate) fn emit_push(&mut self, project: u64, push: &Push) -> Option<()> {
        let payload = self.push_payload(self.project(project)?, push);
        self.emit(project, &PUSH, Some(&push.branch), &payload)
    }

    fn emit_mr(&mut self, project: u64, iid: u64, user: u64, extra: Value, changes: Map<String, Value>) -> Option<()> {
        let row = self.project(project)?;
        let payload = self.mr_payload(row, row.mrs.get(&iid)?, user, extra, changes);
        self.emit(project, &MERGE_REQUEST, None, &payload)
    }

    /// `open`, after preparation.
    pub(crate) fn emit_mr_open(&mut self, project: u64, iid: u64, user: u64, previous_update: u64) -> Option<()> {
        let current = self.mr(project, iid)?.check.text();
        let mut changes = self.updated(project, iid, previous_update)?;
        let prepared = self.mr(project, iid)?.prepared_at_ms.map(|at| self.hook_time(at));
        changes.insert("merge_status".into(), json!({ "previous": "preparing", "current": current }));
        changes.insert("prepared_at".into(), json!({ "previous": null, "current": prepared }));
        self.emit_mr(project, iid, user, json!({ "action": "open" }), changes)
    }

    /// `close`, `reopen` or `merge`.
    pub(crate) fn emit_mr_state(
        &mut self,
        project: u64,
        iid: u64,
        user: u64,
        action: &str,
        ids: (u64, u64),
        previous_update: u64,
    ) -> Option<()> {
        let mut changes = self.updated(project, iid, previous_update)?;
        changes.insert("state_id".into(), json!({ "previous": ids.0, "current": ids.1 }));
        let merged = self.mr(project, iid)?.merge_commit_sha.clone().filter(|_| action == "merge");
        if let Some(sha) = merged {
            changes.insert("merge_commit_sha".into(), json!({ "previous": null, "current": sha }));
        }
        self.emit_mr(project, iid, user, json!({ "action": action }), changes)
    }

    /// `update` after an edit.
    pub(crate) fn emit_mr_update(
        &mut self,
        project: u64,
        iid: u64,
        user: u64,
        changed: Map<String, Value>,
        previous_update: u64,
    ) -> Option<()> {
        let mut changes = self.updated(project, iid, previous_update)?;
        changes.extend(changed);
        self.emit_mr(project, iid, user, json!({ "action": "update", "updated_by_id": user }), changes)
    }

    /// `update` after a push to the source branch.
    pub(crate) fn emit_mr_push(&mut self, project: u64, iid: u64, user: u64, oldrev: Option<&str>, previous_update: u64) -> Option<()> {
        let changes = self.updated(project, iid, previous_update)?;
        self.emit_mr(project, iid, user, json!({ "action": "update", "oldrev": oldrev }), changes)
    }

    /// `approved` and its kin.
    pub(crate) fn emit_mr_action(&mut self, project: u64, iid: u64, user: u64, action: &str) -> Option<()> {
        self.emit_mr(project, iid, user, json!({ "action": action }), Map::new())
    }

    /// The system's own `unapproved` after a push.
    pub(crate) fn emit_approvals_reset(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let extra = json!({ "action": "unapproved", "system": true, "system_action": "approvals_reset_on_push" });
        self.emit_mr(project, iid, user, extra, Map::new())
    }

    fn updated(&self, project: u64, iid: u64, previous: u64) -> Option<Map<String, Value>> {
        let current = self.mr(project, iid)?.updated_at_ms;
        let mut changes = Map::new();
        let times = json!({ "previous": self.hook_time(previous), "current": self.hook_time(current) });
        changes.insert("updated_at".into(), times);
        Some(changes)
    }

    pub(crate) fn emit_note(&mut self, project: u64, iid: u64, note: u64, action: &str) -> Option<()> {
        let row = self.project(project)?;
        let mr = row.mrs.get(&iid)?;
        let note = mr.notes.iter().find(|row| row.id == note)?;
        let kind = if note.internal { &INTERNAL_NOTE } else { &NOTE };
        let payload = self.note_payload(row, mr, note, action);
        self.emit(project, kind, None, &payload)
    }

    pub(crate) fn emit_pipeline(&mut self, project: u64, id: u64) -> Option<()> {
        let row = self.project(project)?;
        let payload = self.pipeline_payload(row, row.pipelines.get(&id)?);
        self.emit(project, &PIPELINE, None, &payload)
    }

    pub(crate) fn emit_job(&mut self, project: u64, id: u64) -> Option<()> {
        let row = self.project(project)?;
        let job = row.jobs.get(&id).filter(|job| job.trigger.is_none())?;
        let payload = self.job_payload(row, row.pipelines.get(&job.pipeline)?, job);
        self.emit(project, &JOB, None, &payload)
    }
}

fn uuid(kind: &str, number: u64) -> String {
    let digits = object_id(kind, number.to_string().as_bytes());
    format!("{}-{}-4{}-8{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..32])
}

/// `v1,` and the HMAC-SHA256 of `id.timestamp.body`, as Standard Webhooks has it.
fn signature(token: &str, id: &str, seconds: u64, body: &[u8]) -> String {
    let key = STANDARD.decode(token.strip_prefix("whsec_").unwrap_or(token)).unwrap_or_default();
    let message = [format!("{id}.{seconds}.").as_bytes(), body].concat();
    format!("v1,{}", STANDARD.encode(hmac_sha256(&key, &message)))
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_the_standards_vector() {
        let made =
            signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(made, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn uuids_have_the_form_of_version_4() {
        let id = uuid("delivery", 1);
        assert_eq!(id.len(), 36);
        assert_eq!((&id[14..15], &id[19..20]), ("4", "8"));
    }
}
