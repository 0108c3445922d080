//! Values for tests: each builder gives the plainest valid one, and a test changes only what it is about.

use crate::event::Event;
use crate::files::{ActionRecord, ContentHash, FileAction, Verb};
use crate::id::{BranchIdentity, Digest, ItemId, MrIid, PipelineId, ProjectId, Sha, Token, UserId};
use crate::item::{
    AuditEntry, Birth, Blocked, BlockedReason, BranchHead, CancelRequest, Content, Dimension, DimensionKey, Document, InboxEntry, Item,
    Phase, Trigger,
};
use crate::mr::dims;
use crate::mr::facts::{Build, Facts, MrRef};
use crate::mr::view::{MergeRequest, Pipeline, State};
use crate::mr::wanted::Wanted;
use crate::time::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// 2026-01-31T18:04:04Z: the present of every test.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_000);
/// The head of a built item.
pub(crate) const HEAD: &str = "7c1d5f0e2b9a4836c5e0f1d2a3b4c5d6e7f80912";
/// Collie's own user.
pub(crate) const COLLIE: UserId = UserId(83_343);
/// A person.
pub(crate) const DANA: UserId = UserId(501);

pub(crate) fn in_seconds(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

pub(crate) fn seconds_ago(seconds: u64) -> Timestamp {
    NOW.before(Duration::from_secs(seconds))
}

pub(crate) fn action(verb: Verb, path: &str, content: Option<&str>) -> ActionRecord {
    let content = content.map(|c| c.as_bytes().to_vec());
    FileAction { verb, file_path: path.into(), previous_path: None, content, execute_filemode: None, expect: None }.record()
}

pub(crate) fn content_hash(text: &str) -> ContentHash {
    ContentHash::of(&[action(Verb::Create, "versions.txt", Some(text))])
}

pub(crate) fn content() -> Content {
    Content {
        title: "Bump openssl".into(),
        description: "To 3.5.1.".into(),
        labels: vec!["deps".into(), "bot".into()],
        commit_message: "Bump openssl to 3.5.1".into(),
        actions: vec![action(Verb::Create, "versions.txt", Some("3.5.1"))],
    }
}

/// An item as its submission stores it.
pub(crate) fn item() -> Item {
    let birth = Birth {
        id: ItemId::new("0198-item"),
        item_type: "mr".into(),
        branch: BranchIdentity { host: "gitlab.example.com".into(), project_id: ProjectId(4242), source_branch: "bot/openssl".into() },
        project: "acme/demo".into(),
        caller_identity: "robot".into(),
        generation: 1,
        previous_item_id: None,
        at: NOW,
        token: Token::new("creation"),
        dims: dims::seed(NOW),
        audit: audit("submitted"),
        content_hash: content_hash("3.5.1"),
        metadata_hash: "meta".into(),
        target: "main".into(),
        policy_version: "p1".into(),
        wanted: Document::of(&Wanted::default()),
        facts: Facts::default().document(),
    };
    Item { due_shard: 0, outbox: Vec::new(), ..birth.item() }
}

/// An item whose merge request holds what it wants, with nothing to do.
pub(crate) fn built() -> Item {
    let every = [dims::mr(), dims::dashboard(), dims::ci_retry(), dims::empty_check(), dims::reconcile()];
    Item { dims: every.into_iter().map(|key| (key, Dimension::done())).collect(), facts: facts().document(), ..item() }
}

pub(crate) fn facts() -> Facts {
    Facts { builds: vec![build(1, Some(HEAD))], mr: Some(mr_ref()), ..Facts::default() }
}

pub(crate) fn build(number: u64, sha: Option<&str>) -> Build {
    Build {
        number,
        rev: 1,
        start_sha: Sha::new("b27018d3e0f8765e20451a9fd7cf50ef91d2d1d4"),
        content_hash: content_hash("3.5.1"),
        target: "main".into(),
        sha: sha.map(Sha::new),
        over: None,
    }
}

pub(crate) fn mr_ref() -> MrRef {
    MrRef {
        iid: MrIid(2),
        author: COLLIE,
        url: "https://gitlab.example.com/acme/demo/-/merge_requests/2".into(),
        metadata: "meta".into(),
        described: "digest".into(),
    }
}

pub(crate) fn blocked(reason: BlockedReason) -> Blocked {
    Blocked { reason, since: seconds_ago(60), detail: "because".into() }
}

pub(crate) fn cancel_request() -> CancelRequest {
    CancelRequest { by: "dana".into(), reason: None, close_mr: true }
}

pub(crate) fn audit(id: &str) -> AuditEntry {
    AuditEntry {
        id: id.into(),
        ts: NOW,
        event_type: "submitted".into(),
        actor: "robot".into(),
        old_state: None,
        new_state: None,
        trigger: Trigger { source: "api".into(), action: None, reason: None, error: None },
        metadata: None,
    }
}

pub(crate) fn branch_head() -> BranchHead {
    BranchHead { item_id: ItemId::new("0198-item"), generation: 1, version: 1 }
}

pub(crate) fn entry(digest: &str) -> InboxEntry {
    let event = Event::Pipeline { at: NOW, id: PipelineId(90), status: "success".into(), sha: Sha::new(HEAD) };
    InboxEntry { digest: Digest::new(digest), event }
}

/// A merge request that may be merged.
pub(crate) fn merge_request() -> MergeRequest {
    MergeRequest {
        iid: MrIid(2),
        state: State::Opened,
        draft: false,
        title: "Bump openssl".into(),
        description: String::new(),
        labels: Vec::new(),
        source_branch: "bot/openssl".into(),
        target_branch: "main".into(),
        sha: Some(Sha::new(HEAD)),
        detailed_merge_status: "mergeable".into(),
        has_conflicts: false,
        discussions_resolved: true,
        head_pipeline: Some(pipeline("bot/openssl", HEAD, "success")),
        merge_commit: None,
        merge_error: None,
        can_merge: Some(true),
        author: COLLIE,
        web_url: String::new(),
    }
}

pub(crate) fn pipeline(git_ref: &str, sha: &str, status: &str) -> Pipeline {
    Pipeline { id: PipelineId(90), git_ref: git_ref.into(), sha: Sha::new(sha), status: status.into() }
}

/// Every phase.
pub(crate) fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![3 => Just(Phase::Active), 1 => Just(Phase::Completed), 1 => Just(Phase::Failed), 1 => Just(Phase::Cancelled)]
}

/// Absent, done, needed, or deferred to a time around [`NOW`].
pub(crate) fn any_dimension() -> impl Strategy<Value = Option<Dimension>> {
    let deferred = (0_u64..200).prop_map(|s| Some(Dimension::deferred(seconds_ago(100).after(Duration::from_secs(s)), "later")));
    prop_oneof![1 => Just(None), 3 => Just(Some(Dimension::done())), 1 => Just(Some(Dimension::needed())), 3 => deferred]
}

fn any_dims() -> impl Strategy<Value = BTreeMap<DimensionKey, Dimension>> {
    let keys = [dims::close(), dims::mr(), dims::dashboard(), dims::ci_retry(), dims::empty_check(), dims::reconcile()];
    prop::array::uniform6(any_dimension())
        .prop_map(move |values| keys.iter().cloned().zip(values).filter_map(|(key, value)| Some((key, value?))).collect())
}

/// Items of the `mr` type in every phase, blocked or not, with or without a cancel request and a build.
pub(crate) fn any_item() -> impl Strategy<Value = Item> {
    (any_phase(), any::<bool>(), any::<bool>(), any::<bool>(), any_dims()).prop_map(|(phase, is_blocked, cancels, is_built, dims)| Item {
        phase,
        dims,
        blocked: is_blocked.then(|| blocked(BlockedReason::Conflict)),
        cancel_requested: cancels.then(cancel_request),
        facts: if is_built { facts() } else { Facts::default() }.document(),
        ..item()
    })
}
