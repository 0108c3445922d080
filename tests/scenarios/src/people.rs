//! What people and GitLab itself do in a story, and what one can see of it.

use crate::world::{BRANCH, World};
use collie_core::id::ItemId;
use collie_core::item::{BlockedReason, Item, Phase, ResultKind};
use collie_core::mr::facts::Facts;
use collie_engine::explain::Explanation;
use gitlab_sim::{ApiRequest, DEMO_PROJECT_ID, DEMO_REVIEWER_TOKEN, Fault, FaultAction, MrInfo, NoteInfo, Reply};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The person of most stories.
pub const PERSON: &str = "developer";
/// GitLab's own reading of one merge request.
const READ_MR: &str = "/projects/:id/merge_requests/:merge_request_iid";

impl World {
    /// A person commits on top of Collie's branch; the answer is the new head.
    pub fn push_on_top(&self, path: &str, text: &str) -> String {
        self.sim().push(DEMO_PROJECT_ID, BRANCH, &[(path, Some(text))], "A little fix", PERSON)
    }

    /// A person changes a file on the target branch; the answer is the new head.
    pub fn push_to_main(&self, path: &str, text: &str) -> String {
        self.sim().push(DEMO_PROJECT_ID, "main", &[(path, Some(text))], "Meanwhile", "reviewer")
    }

    /// A person amends Collie's commit and keeps its message; the answer is the new head.
    pub fn amend(&self, changes: &[(&str, Option<&str>)]) -> String {
        let message = self.sim().commits(DEMO_PROJECT_ID, BRANCH)[0].message.clone();
        self.sim().amend(DEMO_PROJECT_ID, BRANCH, changes, &message, PERSON)
    }

    /// A person points Collie's branch at a commit.
    pub fn reset_branch(&self, sha: &str) {
        assert!(self.sim().force_push(DEMO_PROJECT_ID, BRANCH, sha, PERSON), "{sha} is a commit");
    }

    /// The head of Collie's branch.
    #[must_use]
    pub fn head(&self) -> String {
        self.sim().branch_head(DEMO_PROJECT_ID, BRANCH).expect("the branch exists")
    }

    /// The reviewer calls GitLab's API.
    pub fn reviewer(&self, method: &str, path: &str, body: &Value) -> Reply {
        let request = ApiRequest {
            method: method.into(),
            uri: format!("/api/v4/projects/{DEMO_PROJECT_ID}{path}"),
            headers: vec![("PRIVATE-TOKEN".into(), DEMO_REVIEWER_TOKEN.into()), ("Content-Type".into(), "application/json".into())],
            body: body.to_string().into_bytes().into(),
        };
        let reply = self.sim().call(request).expect("GitLab answers");
        assert!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.json_body());
        reply
    }

    /// A person closes an issue.
    pub fn close_issue(&self, iid: u64) {
        self.reviewer("PUT", &format!("/issues/{iid}"), &serde_json::json!({"state_event": "close"}));
    }

    /// From now on GitLab shows a merge request as it is now with this change, until its faults are cleared.
    pub fn gitlab_shows(&self, iid: u64, change: impl FnOnce(&mut Value)) {
        let mut body = self.reviewer("GET", &format!("/merge_requests/{iid}"), &Value::Null).json_body();
        body["user"]["can_merge"] = true.into();
        change(&mut body);
        let answer = FaultAction::Answer { status: 200, headers: BTreeMap::new(), body: body.to_string() };
        self.sim().add_fault(Fault::always("GET", READ_MR, answer));
    }

    /// GitLab answers the next calls of this kind so, and does nothing.
    pub fn gitlab_answers(&self, method: &str, path: &str, times: u32, status: u16, body: &str) {
        let answer = FaultAction::Answer { status, headers: BTreeMap::new(), body: body.to_owned() };
        self.sim().add_fault(Fault { times: Some(times), ..Fault::always(method, path, answer) });
    }

    /// How many calls of this kind GitLab has had from Collie.
    #[must_use]
    pub fn calls(&self, method: &str, template: &str) -> usize {
        let fits = |call: &&gitlab_sim::JournalEntry| call.method == method && call.template.ends_with(template) && is_collie(call);
        self.sim().journal().iter().filter(fits).count()
    }

    /// Merge calls so far.
    #[must_use]
    pub fn merge_calls(&self) -> usize {
        self.calls("PUT", "/merge")
    }

    /// Commit calls so far.
    #[must_use]
    pub fn commit_calls(&self) -> usize {
        self.calls("POST", "/repository/commits")
    }

    /// The only merge request.
    #[must_use]
    pub fn the_mr(&self) -> MrInfo {
        let mut mrs = self.sim().merge_requests(DEMO_PROJECT_ID);
        assert_eq!(mrs.len(), 1, "one merge request");
        mrs.remove(0)
    }

    /// Notes on the first merge request that hold this text.
    #[must_use]
    pub fn notes_with(&self, text: &str) -> Vec<NoteInfo> {
        self.sim().notes(DEMO_PROJECT_ID, 1).into_iter().filter(|note| note.body.contains(text)).collect()
    }

    /// Whether the target has this file with exactly these bytes.
    #[must_use]
    pub fn main_has(&self, path: &str, bytes: &[u8]) -> bool {
        self.sim().file_at(DEMO_PROJECT_ID, "main", path).is_some_and(|have| have == bytes)
    }

    /// What the item says of itself.
    pub async fn explain(&self, id: &ItemId) -> Explanation {
        self.reader().explain(&Self::caller(), id).await.expect("the item can be explained")
    }

    /// The codes of its merge blockers.
    pub async fn blockers(&self, id: &ItemId) -> Vec<String> {
        self.explain(id).await.merge_blockers.into_iter().map(|b| b.code).collect()
    }

    /// What Collie knows about the item.
    pub async fn facts(&self, id: &ItemId) -> Facts {
        Facts::of(&self.item(id).await).expect("the row holds facts")
    }

    /// Why it is blocked.
    pub async fn blocked(&self, id: &ItemId) -> Option<BlockedReason> {
        self.item(id).await.blocked.map(|b| b.reason)
    }

    /// How it ended.
    pub async fn end_of(&self, id: &ItemId) -> (Phase, Option<ResultKind>, Option<String>) {
        let item = self.item(id).await;
        (item.phase, item.result, item.last_error.map(|e| e.code))
    }

    /// What its runs did, one line a step.
    pub async fn timeline(&self, id: &ItemId) -> Vec<String> {
        let page = self.items().timeline(id, None, 200).await.expect("the timeline can be read");
        page.entries.iter().flat_map(|run| run.steps.iter().map(|s| format!("{}: {}", s.action, s.outcome))).collect()
    }

    /// Goes on until nobody works on the item and it is so.
    pub async fn until_item(&self, horizon: Duration, id: &ItemId, so: impl Fn(&Item) -> bool) {
        self.until(horizon, || async {
            let item = self.item(id).await;
            item.leased_until.is_none() && so(&item)
        })
        .await;
    }

    /// Goes on until the item has a merge request.
    pub async fn until_mr(&self, id: &ItemId) {
        self.until_item(Duration::from_secs(3600), id, |item| Facts::of(item).is_ok_and(|facts| facts.mr.is_some())).await;
    }

    /// Goes on until the item is blocked.
    pub async fn until_blocked(&self, id: &ItemId) {
        self.until_item(Duration::from_secs(7200), id, |item| item.blocked.is_some()).await;
    }

    /// Lets so much time pass.
    pub async fn pass(&self, time: Duration) {
        let end = self.sim().now_ms() + u64::try_from(time.as_millis()).expect("a short time");
        self.until(time + Duration::from_secs(600), || async { self.sim().now_ms() >= end }).await;
    }

    /// Goes on to the end and expects a merge, with every invariant.
    pub async fn expect_merged(&self, id: &ItemId) {
        self.until_all_ended(Duration::from_secs(24 * 3600)).await;
        assert_eq!(self.end_of(id).await, (Phase::Completed, Some(ResultKind::Merged), None), "{}", self.picture().await);
        self.finish().await;
    }

    /// Goes on to the end and expects this failure, with every invariant.
    pub async fn expect_failed(&self, id: &ItemId, code: &str) {
        self.until_all_ended(Duration::from_secs(48 * 3600)).await;
        assert_eq!(self.end_of(id).await, (Phase::Failed, None, Some(code.to_owned())), "{}", self.picture().await);
        self.finish().await;
    }
}

fn is_collie(call: &gitlab_sim::JournalEntry) -> bool {
    call.user.as_deref() == Some("collie-bot")
}
