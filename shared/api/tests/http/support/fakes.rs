//! The ports that are no store.

use super::NOW;
use async_trait::async_trait;
use collie_auth::{AuthError, Authenticator};
use collie_core::access::{Globs, Grant, Grants, SubmitGrant};
use collie_core::error::Failure;
use collie_core::id::{ItemId, JobId, MrIid, NoteId, PipelineId, Sha, Token};
use collie_core::issue::delivery::Reason;
use collie_core::issue::hook::Notice;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::letter::Origin;
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::train::CarState;
use collie_core::mr::view::{Branch, ChangedPaths, Commit, Job, MergeRequest, Note};
use collie_core::time::Timestamp;
use collie_engine::access::Caller;
use collie_engine::ports::{
    Announced, Archive, Clock, Forge, Ids, JobRetry, Jobs, MergeOptions, MrEdit, NewCommit, NewMergeRequest, Notices, ProjectRef, Redrive,
    SignedUpload, Stored, TraceTail, Tree, Uploads, Wakes,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `alice` and `bob` have their own items, `root` is an admin, the others have what [`grants_of`] says; other words are no tokens.
pub(crate) struct Callers;

#[async_trait]
impl Authenticator for Callers {
    async fn authenticate(&self, bearer: &str) -> Result<Caller, AuthError> {
        match bearer {
            "alice" | "bob" => Ok(Caller::own_items(format!("local|{bearer}"))),
            "root" => Ok(Caller::admin("local|root")),
            "deps" | "lead" | "reader" | "split" | "ci" | "watcher" => Ok(Caller {
                rules: vec![format!("{bearer}-rule"), "everyone".into()],
                ..Caller::new(format!("gitlab.example.com|{bearer}"), grants_of(bearer))
            }),
            "" => Err(AuthError::Missing),
            "stale" => Err(AuthError::Expired),
            "fork" => Err(AuthError::NoRule { identity: "gitlab.example.com|fork".into(), failed_claims: vec!["ref_protected".into()] }),
            "stranger" => Err(AuthError::NoRule { identity: "prod|stranger".into(), failed_claims: Vec::new() }),
            "panic" => panic!("the authenticator has a bug"),
            "outage" => Err(AuthError::Unavailable),
            _ => Err(AuthError::Invalid("its signature is not this issuer's")),
        }
    }
}

/// `deps` submits dependency updates to `group/app`, `lead` does so for others too, `reader` only looks, and `split` has two grants that
/// would be enough if they could be combined. `ci` reports to the queues `app-*`, `watcher` reads them.
fn grants_of(name: &str) -> Grants {
    let deps = SubmitGrant {
        item_types: Globs::new(["mr"]),
        projects: Globs::new(["group/app"]),
        source_branches: Globs::new(["bot/**"]),
        target_branches: Globs::new(["main"]),
        labels: Globs::new(["deps", "auto/*"]),
        auto_merge: true,
        overwrite: false,
        others: false,
    };
    let read = |project| Grant::Read { projects: Globs::new([project]) };
    let grants = match name {
        "lead" => vec![Grant::Submit(SubmitGrant { others: true, ..deps }), read("group/other")],
        "reader" => vec![read("group/app")],
        "ci" => vec![Grant::CiReport { queues: Globs::new(["app-*"]) }],
        "watcher" => vec![Grant::CiRead { queues: Globs::new(["app-*"]) }],
        "split" => vec![
            Grant::Submit(SubmitGrant { auto_merge: false, ..deps.clone() }),
            Grant::Submit(SubmitGrant { target_branches: Globs::new(["stable"]), ..deps }),
        ],
        _ => vec![Grant::Submit(deps)],
    };
    Grants::new(grants)
}

/// A clock that stands still.
pub(crate) struct Still;

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    async fn sleep(&self, _duration: Duration) {}
}

/// Counts.
#[derive(Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Ids for Tally {
    fn item_id(&self, _now: Timestamp) -> ItemId {
        ItemId::new(format!("00000000-0000-7000-8000-{:012}", self.next()))
    }

    fn token(&self) -> Token {
        Token::new(format!("token-{}", self.next()))
    }

    fn jitter(&self) -> f64 {
        0.5
    }
}

/// Dead letters that were sent again.
pub(crate) struct Resent(pub(crate) Arc<Mutex<Vec<(Origin, String)>>>);

#[async_trait]
impl Redrive for Resent {
    async fn send(&self, origin: Origin, body: &str) -> Result<(), Failure> {
        self.0.lock().unwrap().push((origin, body.to_owned()));
        Ok(())
    }
}

/// Nobody rings and nobody is told.
pub(crate) struct Silent;

#[async_trait]
impl Jobs for Silent {
    async fn ring(&self, _: &QueueName, _: RequestId, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn dead_letter(&self, _: &QueueName, _: RequestId, _: u32, _: Reason) -> Result<(), Failure> {
        Ok(())
    }
}

#[async_trait]
impl Notices for Silent {
    async fn publish(&self, _: &QueueName, _: &Notice) -> Result<(), Failure> {
        Ok(())
    }
}

/// Objects in memory; fails where it is told to.
#[derive(Default)]
pub(crate) struct Drawer {
    pub(crate) objects: Mutex<BTreeMap<String, Vec<u8>>>,
    pub(crate) failure: Mutex<Option<Failure>>,
}

#[async_trait]
impl Archive for Drawer {
    async fn put_new(&self, key: &str, bytes: Vec<u8>) -> Result<Stored, Failure> {
        if let Some(failure) = self.failure.lock().unwrap().clone() {
            return Err(failure);
        }
        let old = self.objects.lock().unwrap().insert(key.to_owned(), bytes);
        Ok(if old.is_some() { Stored::Existed } else { Stored::Created })
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.objects.lock().unwrap().get(key).cloned())
    }
}

/// Signs uploads in a way that tests can read.
pub(crate) struct Signer;

#[async_trait]
impl Uploads for Signer {
    async fn sign(&self, content: Announced<'_>, _now: Timestamp, until: Timestamp) -> Result<SignedUpload, Failure> {
        let url = format!("https://uploads.example/{}?size={}&until={until}", content.key, content.size);
        Ok(SignedUpload { url, headers: vec![("if-none-match".to_owned(), "*".to_owned())] })
    }
}

/// A wake-up that was sent.
pub(crate) type Ring = ItemId;

/// Remembers wake-ups.
pub(crate) struct Bell(pub(super) Arc<Mutex<Vec<Ring>>>);

#[async_trait]
impl Wakes for Bell {
    async fn send(&self, item: &ItemId, _delay: Duration) -> Result<(), Failure> {
        self.0.lock().unwrap().push(item.clone());
        Ok(())
    }
}

/// No route of the API calls GitLab.
pub(crate) struct NoForge;

fn never<T>() -> Result<T, Failure> {
    Err(Failure::bug("the API called GitLab"))
}

#[async_trait]
impl Forge for NoForge {
    async fn branch(&self, _: &ProjectRef, _: &str) -> Result<Option<Branch>, Failure> {
        never()
    }
    async fn tree(&self, _: &ProjectRef, _: &Sha, _: &str) -> Result<Tree, Failure> {
        never()
    }
    async fn commit(&self, _: &ProjectRef, _: &Sha) -> Result<Option<Commit>, Failure> {
        never()
    }
    async fn file_sha256(&self, _: &ProjectRef, _: &Sha, _: &str) -> Result<Option<String>, Failure> {
        never()
    }
    async fn file(&self, _: &ProjectRef, _: &Sha, _: &str) -> Result<Option<Vec<u8>>, Failure> {
        never()
    }
    async fn merge_base(&self, _: &ProjectRef, _: &Sha, _: &Sha) -> Result<Option<Sha>, Failure> {
        never()
    }
    async fn replaced_by(&self, _: &ProjectRef, _: &str, _: &Sha) -> Result<Option<Sha>, Failure> {
        never()
    }
    async fn changed_paths(&self, _: &ProjectRef, _: &Sha, _: &Sha) -> Result<ChangedPaths, Failure> {
        never()
    }
    async fn create_commit(&self, _: &ProjectRef, _: NewCommit<'_>) -> Result<Sha, Failure> {
        never()
    }
    async fn delete_branch(&self, _: &ProjectRef, _: &str) -> Result<(), Failure> {
        never()
    }
    async fn merge_request(&self, _: &ProjectRef, _: MrIid) -> Result<Option<MergeRequest>, Failure> {
        never()
    }
    async fn open_merge_requests(&self, _: &ProjectRef, _: &str) -> Result<Vec<MergeRequest>, Failure> {
        never()
    }
    async fn open_merge_request(&self, _: &ProjectRef, _: &NewMergeRequest) -> Result<MergeRequest, Failure> {
        never()
    }
    async fn edit_merge_request(&self, _: &ProjectRef, _: MrIid, _: &MrEdit) -> Result<MergeRequest, Failure> {
        never()
    }
    async fn merge(&self, _: &ProjectRef, _: MrIid, _: &MergeTicket, _: MergeOptions) -> Result<MergeRequest, Failure> {
        never()
    }
    async fn join_merge_train(&self, _: &ProjectRef, _: MrIid, _: &MergeTicket, _: bool) -> Result<(), Failure> {
        never()
    }
    async fn leave_merge_train(&self, _: &ProjectRef, _: MrIid) -> Result<(), Failure> {
        never()
    }
    async fn merge_train_car(&self, _: &ProjectRef, _: MrIid) -> Result<Option<CarState>, Failure> {
        never()
    }
    async fn merges_by_train(&self, _: &ProjectRef) -> Result<bool, Failure> {
        never()
    }
    async fn start_merge_request_pipeline(&self, _: &ProjectRef, _: MrIid) -> Result<(), Failure> {
        never()
    }
    async fn approvals_left(&self, _: &ProjectRef, _: MrIid) -> Result<Option<u64>, Failure> {
        never()
    }
    async fn notes(&self, _: &ProjectRef, _: MrIid) -> Result<Vec<Note>, Failure> {
        never()
    }
    async fn add_note(&self, _: &ProjectRef, _: MrIid, _: &str) -> Result<Note, Failure> {
        never()
    }
    async fn edit_note(&self, _: &ProjectRef, _: MrIid, _: NoteId, _: &str) -> Result<(), Failure> {
        never()
    }
    async fn jobs(&self, _: &ProjectRef, _: PipelineId) -> Result<Vec<Job>, Failure> {
        never()
    }
    async fn jobs_with_retried(&self, _: &ProjectRef, _: PipelineId) -> Result<Vec<Job>, Failure> {
        never()
    }
    async fn retry_job(&self, _: &ProjectRef, _: JobId) -> Result<JobRetry, Failure> {
        never()
    }
    async fn trace_tail(&self, _: &ProjectRef, _: JobId, _: usize) -> Result<Option<TraceTail>, Failure> {
        never()
    }
}
