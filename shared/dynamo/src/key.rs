//! Row keys: text parts joined by `#`, each escaped so that different parts never make the same key.

use collie_core::id::{BranchIdentity, ItemId, MrIid, ProjectId};
use collie_core::item::TimelineEntry;

/// Sort key of an item's hot row.
pub(crate) const ITEM: &str = "item";
/// Sort key of a branch head.
pub(crate) const HEAD: &str = "head";
/// Sort key of a host's wait.
pub(crate) const WAIT: &str = "wait";
/// Sort key of an identity's bucket.
pub(crate) const RATE: &str = "rate";
/// Partition of dead letters.
pub(crate) const LETTERS: &str = "letters";
/// How every sort key of a dead letter begins.
pub(crate) const LETTER: &str = "letter#";
/// How every sort key of a timeline begins.
pub(crate) const LOG: &str = "log#";

/// A row's partition and sort key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn new(pk: String, sk: impl Into<String>) -> Self {
        Self { pk, sk: sk.into() }
    }

    pub(crate) fn item(id: &ItemId) -> Self {
        Self::new(item_partition(id), ITEM)
    }

    pub(crate) fn content(id: &ItemId, rev: u64) -> Self {
        Self::new(item_partition(id), format!("spec#{rev:010}"))
    }

    pub(crate) fn log(id: &ItemId, entry: &TimelineEntry) -> Self {
        Self::new(item_partition(id), format!("{LOG}{}", log_cursor(entry)))
    }

    pub(crate) fn head(branch: &BranchIdentity) -> Self {
        let BranchIdentity { host, project_id, source_branch } = branch;
        Self::new(format!("branch#{}#{project_id}#{}", escape(host), escape(source_branch)), HEAD)
    }

    pub(crate) fn mr(host: &str, project: ProjectId, iid: MrIid) -> Self {
        Self::new(format!("mr#{}#{project}#{iid}", escape(host)), ITEM)
    }

    pub(crate) fn wait(host: &str) -> Self {
        Self::new(format!("host#{}", escape(host)), WAIT)
    }

    pub(crate) fn rate(key: &str) -> Self {
        Self::new(format!("identity#{}", escape(key)), RATE)
    }

    /// Of the message with this id, as it is: nothing stands behind it.
    pub(crate) fn letter(id: &str) -> Self {
        Self::new(LETTERS.to_owned(), format!("{LETTER}{id}"))
    }

    /// Bytes that the key takes in its row, attribute names included.
    pub(crate) fn size(&self) -> usize {
        2 + self.pk.len() + 2 + self.sk.len()
    }
}

/// The partition of all rows of one item.
pub(crate) fn item_partition(id: &ItemId) -> String {
    format!("item#{}", escape(id.as_str()))
}

/// The item that a partition belongs to.
pub(crate) fn item_of_partition(pk: &str) -> Option<ItemId> {
    pk.strip_prefix("item#").map(|rest| ItemId::new(unescape(rest)))
}

/// The partition of one project in the list index.
pub(crate) fn list_partition(host: &str, project: ProjectId) -> String {
    format!("{}#{project}", escape(host))
}

/// Where an entry stands in its timeline; sorts by time, then by lease.
pub(crate) fn log_cursor(entry: &TimelineEntry) -> String {
    format!("{:015}#{:010}", entry.at.as_millis(), entry.epoch)
}

/// A part of a key that is not its last.
pub(crate) fn escape(part: &str) -> String {
    part.replace('%', "%25").replace('#', "%23")
}

fn unescape(part: &str) -> String {
    part.replace("%23", "#").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::time::Timestamp;

    fn branch(host: &str, source_branch: &str) -> BranchIdentity {
        BranchIdentity { host: host.into(), project_id: ProjectId(7), source_branch: source_branch.into() }
    }

    #[test]
    fn parts_that_hold_the_separator_stay_apart() {
        let key = |host: &str, name: &str| Key::head(&branch(host, name)).pk;
        assert_eq!(key("git.example:8443", "a#b%c"), "branch#git.example:8443#7#a%23b%25c");
        assert_ne!(key("h", "x#y"), key("h", "x%23y"));
        assert_ne!(key("h#7#a", "b"), key("h", "a#7#b"));
    }

    #[test]
    fn an_item_is_found_again_from_its_partition() {
        for id in ["0198", "a#b", "a%23b", "%25"] {
            assert_eq!(item_of_partition(&item_partition(&ItemId::new(id))), Some(ItemId::new(id)));
        }
        assert_eq!(item_of_partition("branch#x"), None);
    }

    #[test]
    fn revisions_and_runs_sort_as_text() {
        let id = ItemId::new("i");
        assert_eq!(Key::content(&id, 12).sk, "spec#0000000012");
        let entry = TimelineEntry {
            at: Timestamp::from_millis(1_769_882_644_000),
            epoch: 3,
            actor: String::new(),
            steps: Vec::new(),
            waits_for: String::new(),
            gitlab_calls: 0,
            write_units: 0,
        };
        assert_eq!(Key::log(&id, &entry).sk, "log#001769882644000#0000000003");
    }
}
