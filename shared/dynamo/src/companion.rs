//! The rows that are written in one transaction with an item's row: contents, branch heads and next lives.

use crate::key::Key;
use crate::row::{self, Row};
use crate::units::Footprint;
use collie_core::id::{BranchIdentity, ItemId};
use collie_core::item::{BranchHead, Content};
use collie_core::queue::{Change, Creation};

/// What a transaction believes of one of its rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Belief {
    /// It is not there.
    Absent,
    /// It is this branch head.
    Head(BranchHead),
}

/// One row beside the item's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Companion {
    pub(crate) key: Key,
    pub(crate) row: Row,
    pub(crate) belief: Belief,
}

impl Companion {
    fn absent(key: Key, row: Row) -> Self {
        Self { key, row, belief: Belief::Absent }
    }

    fn content(id: &ItemId, rev: u64, content: &Content) -> Self {
        Self::absent(Key::content(id, rev), row::of(content))
    }

    /// The head as it was seen, still the item's own, with its version moved.
    fn kept_head(id: &ItemId, branch: &BranchIdentity, seen: &BranchHead) -> Self {
        let own = BranchHead { item_id: id.clone(), ..seen.clone() };
        let next = BranchHead { version: own.version + 1, ..own.clone() };
        Self { key: Key::head(branch), row: row::of(&next), belief: Belief::Head(own) }
    }
}

/// The rows of a creation, the item's first.
pub(crate) fn of_creation(creation: &Creation) -> [Companion; 3] {
    let item = &creation.item;
    let head = Companion {
        key: Key::head(&item.branch),
        row: row::of(&creation.head()),
        belief: creation.replaces.clone().map_or(Belief::Absent, Belief::Head),
    };
    [Companion::absent(Key::item(&item.id), row::of_item(item)), Companion::content(&item.id, item.rev, &creation.content), head]
}

/// The rows beside the item's that a change writes; none where one update does. A retry moves the head of `branch`.
pub(crate) fn of_change(id: &ItemId, change: &Change, branch: Option<&BranchIdentity>) -> Vec<Companion> {
    match change {
        Change::Update(u) => vec![Companion::content(id, u.rev + 1, &u.content)],
        Change::Retry(r) => branch.map(|branch| Companion::kept_head(id, branch, &r.head)).into_iter().collect(),
        Change::Commit(c) => c.successor.as_deref().map(of_creation).map(Vec::from).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The next life that a change brings into being.
pub(crate) fn successor(change: &Change) -> Option<&Creation> {
    match change {
        Change::Commit(c) => c.successor.as_deref(),
        _ => None,
    }
}

/// Index units of the next life, where there is one.
pub(crate) fn successor_units(change: &Change) -> u32 {
    successor(change).map_or(0, |next| Footprint::of(&next.item).created())
}

/// Whether a change is an enqueue: its writer holds no lease, so it is judged against the row before it is sent.
pub(crate) fn is_enqueue(change: &Change) -> bool {
    match change {
        Change::Update(_) | Change::Retry(_) | Change::Cancel(_) | Change::Append { .. } | Change::Overflow { .. } => true,
        Change::Claim { .. } | Change::Heartbeat { .. } | Change::Commit(_) | Change::Exit { .. } | Change::Release { .. } => false,
    }
}
