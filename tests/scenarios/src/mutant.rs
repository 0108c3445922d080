//! The variants of the protocol that look reasonable and are wrong, each as a store or a forge that behaves so. The tests
//! demand that every one of them breaks a story, and that the real protocol breaks none.

use crate::schedule::turn;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{BranchIdentity, ItemId, MrIid, ProjectId};
use collie_core::item::{BranchHead, Content, HostWait, InboxEntry, Item, MrLink, Phase, ResultKind, TimelineEntry};
use collie_core::queue::{Belief, Change, Creation, Ending};
use collie_core::time::Timestamp;
use collie_dynamo::MemoryItems;
use collie_engine::ports::{ChangeError, Created, DueItem, Items, ListFilter, ListPage, TimelinePage};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A wrong protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Commits are conditional on the lease alone: an acknowledged update is lost.
    CommitOnEpochAlone,
    /// The exit does not name `wake_seq`: asleep with work pending.
    ExitWithoutWakeSeq,
    /// The inbox is read before `wake_seq`: an event is lost.
    InboxReadFirst,
    /// Events are deleted in one write and applied in another.
    EventsDeletedFirst,
    /// A claim clears `due_at`: a crash leaves the item undiscoverable.
    ClaimClearsDue,
    /// No `commit_seq`: a delayed own write undoes later ones.
    NoCommitSeq,
    /// A cancel sets the phase at once: a late merge follows.
    CancelAtOnce,
    /// The exit does not reset claims: healthy items fail.
    ClaimsKept,
}

impl Mutant {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::CommitOnEpochAlone,
        Self::ExitWithoutWakeSeq,
        Self::InboxReadFirst,
        Self::EventsDeletedFirst,
        Self::ClaimClearsDue,
        Self::NoCommitSeq,
        Self::CancelAtOnce,
        Self::ClaimsKept,
    ];
}

/// The in-memory store with a wrong protocol, or with none wrong.
pub struct Store {
    inner: MemoryItems,
    mutant: Option<Mutant>,
    /// Claims as they were before an exit reset them.
    claims: Mutex<BTreeMap<ItemId, u32>>,
    holder_writes: Mutex<Vec<(ItemId, Change)>>,
}

impl Store {
    /// A store that behaves as `mutant` says.
    #[must_use]
    pub fn new(inner: MemoryItems, mutant: Option<Mutant>) -> Self {
        Self { inner, mutant, claims: Mutex::default(), holder_writes: Mutex::default() }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// The change as the wrong protocol would condition it.
    async fn loosened(&self, id: &ItemId, change: &Change) -> Result<Change, Failure> {
        let Some(row) = self.inner.item(id).await? else { return Ok(change.clone()) };
        let mut change = change.clone();
        if let Some(belief) = belief_of(&mut change) {
            let now = Belief::of(&row);
            match self.mutant {
                Some(Mutant::CommitOnEpochAlone) => *belief = Belief { epoch: belief.epoch, ..now },
                Some(Mutant::NoCommitSeq) => belief.commit_seq = now.commit_seq,
                Some(Mutant::InboxReadFirst) => belief.wake_seq = now.wake_seq,
                _ => {}
            }
        }
        if let (Some(Mutant::ExitWithoutWakeSeq), Some(belief)) = (self.mutant, exit_belief(&mut change)) {
            belief.wake_seq = row.wake_seq;
        }
        Ok(change)
    }

    /// Sends one of the holders' writes once more, as a slow first attempt would arrive after its retry.
    ///
    /// # Panics
    /// Where it changes anything.
    pub async fn resend(&self, pick: impl FnOnce(usize) -> usize) {
        let late = {
            let writes = self.holder_writes.lock().unwrap();
            if writes.is_empty() {
                return;
            }
            writes[pick(writes.len())].clone()
        };
        let (id, change) = late;
        let before = self.inner.item(&id).await.unwrap();
        if let Ok(change) = self.loosened(&id, &change).await {
            self.inner.change(&id, &change).await.ok();
        }
        assert_eq!(self.inner.item(&id).await.unwrap(), before, "a delayed own write undid later ones");
    }

    /// Removes the applied events in a write of their own; a crash may come before the next one.
    async fn delete_events_first(&self, id: &ItemId, change: &Change) {
        let Change::Commit(commit) = change else { return };
        let left = commit.next.inbox.clone();
        let seen = commit.belief;
        self.inner.edit(id, |row| {
            if Belief::of(row) == seen {
                row.inbox.retain(|entry: &InboxEntry| left.contains(entry));
            }
        });
        turn().await;
    }

    fn after(&self, id: &ItemId, change: &Change) {
        match change {
            Change::Claim { .. } if self.is(Mutant::ClaimClearsDue) => self.inner.edit(id, |row| row.due_at = None),
            Change::Cancel(_) if self.is(Mutant::CancelAtOnce) => self.inner.edit(id, |row| {
                (row.phase, row.result, row.cancel_requested) = (Phase::Cancelled, Some(ResultKind::Cancelled), None);
            }),
            _ if self.is(Mutant::ClaimsKept) => self.inner.edit(id, |row| self.keep_claims(row)),
            _ => {}
        }
    }

    fn keep_claims(&self, row: &mut Item) {
        let mut claims = self.claims.lock().unwrap();
        let kept = claims.entry(row.id.clone()).or_default();
        if row.leased_until.is_none() {
            row.claims = row.claims.max(*kept);
        }
        *kept = row.claims;
    }
}

fn exit_belief(change: &mut Change) -> Option<&mut Belief> {
    match change {
        Change::Commit(commit) if commit.ending != Ending::Stay => Some(&mut commit.belief),
        Change::Exit { belief, .. } => Some(belief),
        _ => None,
    }
}

fn belief_of(change: &mut Change) -> Option<&mut Belief> {
    match change {
        Change::Commit(commit) => Some(&mut commit.belief),
        Change::Exit { belief, .. } => Some(belief),
        _ => None,
    }
}

#[async_trait]
impl Items for Store {
    async fn create(&self, creation: &Creation) -> Result<Created, Failure> {
        self.inner.create(creation).await
    }

    async fn change(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        let asked = change;
        let change = self.loosened(id, asked).await?;
        if self.is(Mutant::EventsDeletedFirst) {
            self.delete_events_first(id, &change).await;
        }
        self.inner.change(id, &change).await?;
        self.after(id, &change);
        if matches!(change, Change::Commit(_) | Change::Exit { .. } | Change::Release { .. }) {
            self.holder_writes.lock().unwrap().push((id.clone(), asked.clone()));
        }
        let row = self.inner.item(id).await?;
        row.ok_or(ChangeError::Refused(None))
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>, Failure> {
        self.inner.item(id).await
    }

    async fn content(&self, id: &ItemId, rev: u64) -> Result<Option<Content>, Failure> {
        self.inner.content(id, rev).await
    }

    async fn head(&self, branch: &BranchIdentity) -> Result<Option<BranchHead>, Failure> {
        self.inner.head(branch).await
    }

    async fn link_mr(&self, branch: &BranchIdentity, iid: MrIid, link: &MrLink) -> Result<(), Failure> {
        self.inner.link_mr(branch, iid, link).await
    }

    async fn mr_link(&self, host: &str, project: ProjectId, iid: MrIid) -> Result<Option<MrLink>, Failure> {
        self.inner.mr_link(host, project, iid).await
    }

    async fn due(&self, shard: u8, until: Timestamp, limit: usize) -> Result<Vec<DueItem>, Failure> {
        self.inner.due(shard, until, limit).await
    }

    async fn list(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Failure> {
        self.inner.list(filter, before, limit).await
    }

    async fn append_timeline(&self, id: &ItemId, entry: &TimelineEntry) -> Result<(), Failure> {
        self.inner.append_timeline(id, entry).await
    }

    async fn timeline(&self, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Failure> {
        self.inner.timeline(id, after, limit).await
    }

    async fn host_wait(&self, host: &str) -> Result<Option<HostWait>, Failure> {
        self.inner.host_wait(host).await
    }

    async fn set_host_wait(&self, host: &str, wait: &HostWait) -> Result<(), Failure> {
        self.inner.set_host_wait(host, wait).await
    }
}
