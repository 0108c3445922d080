//! The item store: compare-and-swap on one row per item, and the few rows beside it.

use crate::access::Caller;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{BranchIdentity, ItemId, MrIid, ProjectId};
use collie_core::item::{BranchHead, Content, HostWait, Item, MrLink, Phase, TimelineEntry};
use collie_core::queue::{Change, Creation};
use collie_core::time::Timestamp;

/// What came of a creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The item exists now (or this very creation had landed before).
    Yes,
    /// Someone else moved the branch head first.
    LostRace,
}

/// Why a change did not happen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// Its condition does not hold for the row as it is. None where there is no row.
    #[error("the row has moved")]
    Refused(Option<Box<Item>>),
    /// The row would pass its size limit (8 KB).
    #[error("the row would grow beyond its limit")]
    TooLarge,
    /// The store failed; after [`collie_core::error::Class::Indeterminate`] the same change may be sent again.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// One row of the due index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueItem {
    /// The item.
    pub id: ItemId,
    /// Since when it is due.
    pub due_at: Timestamp,
}

/// Which items a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only these projects; empty means none.
    pub projects: Vec<(String, ProjectId)>,
    /// Only this phase.
    pub phase: Option<Phase>,
    /// Only this type.
    pub item_type: Option<String>,
    /// Only this source branch.
    pub source_branch: Option<String>,
    /// Only this caller's.
    pub caller: Option<String>,
    /// Only what this caller may see.
    pub seen_by: Option<Caller>,
}

impl ListFilter {
    /// Whether an item belongs into the list.
    #[must_use]
    pub fn admits(&self, item: &Item) -> bool {
        self.projects.iter().any(|(host, id)| *host == item.branch.host && *id == item.branch.project_id)
            && self.phase.is_none_or(|phase| phase == item.phase)
            && self.item_type.as_ref().is_none_or(|t| *t == item.item_type)
            && self.source_branch.as_ref().is_none_or(|b| *b == item.branch.source_branch)
            && self.caller.as_ref().is_none_or(|c| *c == item.caller_identity)
            && self.seen_by.as_ref().is_none_or(|caller| caller.may_see(item))
    }
}

/// A page of items, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage {
    /// The items.
    pub items: Vec<Item>,
    /// The id to pass as `before` for the next page.
    pub next: Option<ItemId>,
}

/// A page of a timeline, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelinePage {
    /// The entries.
    pub entries: Vec<TimelineEntry>,
    /// The cursor to pass as `after` for the next page.
    pub next: Option<String>,
}

/// The store. Every read that a decision rests on is strongly consistent.
///
/// [`Items::change`] means what [`Change::judge`] and [`Change::apply`] say, atomically; a change that the row shows to
/// have landed before is a success. Writers retry transaction conflicts inside.
#[async_trait]
pub trait Items: Send + Sync {
    /// Stores a new item, its first content and the branch head in one transaction.
    async fn create(&self, creation: &Creation) -> Result<Created, Failure>;

    /// Applies a change and returns the row after it.
    async fn change(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError>;

    /// Reads an item.
    async fn item(&self, id: &ItemId) -> Result<Option<Item>, Failure>;

    /// Reads the cold part of one revision.
    async fn content(&self, id: &ItemId, rev: u64) -> Result<Option<Content>, Failure>;

    /// Reads the current life of an identity.
    async fn head(&self, branch: &BranchIdentity) -> Result<Option<BranchHead>, Failure>;

    /// Links a merge request to an item unless a later generation has it.
    async fn link_mr(&self, branch: &BranchIdentity, iid: MrIid, link: &MrLink) -> Result<(), Failure>;

    /// Reads which item a merge request belongs to.
    async fn mr_link(&self, host: &str, project: ProjectId, iid: MrIid) -> Result<Option<MrLink>, Failure>;

    /// Items of one shard with `due_at <= until`, oldest first.
    async fn due(&self, shard: u8, until: Timestamp, limit: usize) -> Result<Vec<DueItem>, Failure>;

    /// Items before `before` (exclusive), newest first.
    async fn list(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Failure>;

    /// Adds what one run did; the same run and entry again changes nothing.
    async fn append_timeline(&self, id: &ItemId, entry: &TimelineEntry) -> Result<(), Failure>;

    /// Reads what runs did, after the cursor.
    async fn timeline(&self, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Failure>;

    /// Reads the wait that a host asked for.
    async fn host_wait(&self, host: &str) -> Result<Option<HostWait>, Failure>;

    /// Stores the wait that a host asked for; a longer one stays.
    async fn set_host_wait(&self, host: &str, wait: &HostWait) -> Result<(), Failure>;
}
