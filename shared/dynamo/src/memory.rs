//! The store in memory: the rules of [`collie_core::queue`] applied under one lock, with the costs that DynamoDB would have.

use crate::companion::{self, Companion};
use crate::dynamo::letters;
use crate::key;
use crate::units::{self, Footprint, ROW_LIMIT};
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{BranchIdentity, ItemId, MrIid, ProjectId};
use collie_core::item::{BranchHead, Content, HostWait, Item, MrLink, TimelineEntry};
use collie_core::letter::{Letter, State as LetterState};
use collie_core::queue::{Change, Creation, Verdict};
use collie_core::rate::Bucket;
use collie_core::time::Timestamp;
use collie_engine::cost;
use collie_engine::ports::{ChangeError, Created, DueItem, Items, LetterPage, Letters, ListFilter, ListPage, Rates, TimelinePage};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store in memory; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryItems(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    items: BTreeMap<ItemId, Item>,
    contents: BTreeMap<(ItemId, u64), Content>,
    heads: BTreeMap<BranchIdentity, BranchHead>,
    links: BTreeMap<(String, ProjectId, MrIid), MrLink>,
    waits: BTreeMap<String, HostWait>,
    buckets: BTreeMap<String, Bucket>,
    letters: BTreeMap<String, Letter>,
    timelines: BTreeMap<(ItemId, String), TimelineEntry>,
}

impl MemoryItems {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes a row past every condition. For models that try out what the conditions rule out.
    pub fn edit(&self, id: &ItemId, change: impl FnOnce(&mut Item)) {
        if let Some(item) = self.state().items.get_mut(id) {
            change(item);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn create(&mut self, creation: &Creation) -> Created {
        let item = &creation.item;
        cost::write_units(units::of_rows(&companion::of_creation(creation)));
        if let Some(found) = self.items.get(&item.id) {
            return if found.write_token == item.write_token { Created::Yes } else { Created::LostRace };
        }
        if !is_seen(self.heads.get(&item.branch), creation.replaces.as_ref()) {
            return Created::LostRace;
        }
        cost::write_units(Footprint::of(item).created());
        self.give_birth(creation);
        Created::Yes
    }

    fn give_birth(&mut self, creation: &Creation) {
        let item = &creation.item;
        self.items.insert(item.id.clone(), item.clone());
        self.contents.insert((item.id.clone(), item.rev), creation.content.clone());
        self.heads.insert(item.branch.clone(), creation.head());
    }

    /// Enqueues are judged before they are sent; every other refusal costs what the write would have.
    fn change(&mut self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        let Some(row) = self.items.get(id).cloned() else {
            if !companion::is_enqueue(change) {
                cost::write_units(units::of_refusal(None, &companion::of_change(id, change, None)));
            }
            return Err(ChangeError::Refused(None));
        };
        let others = companion::of_change(id, change, Some(&row.branch));
        let verdict = change.judge(&row);
        if verdict == Verdict::Apply && self.admits(&row, change) {
            return self.apply(row, change, &others);
        }
        if verdict == Verdict::Apply || !companion::is_enqueue(change) {
            cost::write_units(units::of_refusal(Some(units::item_size(&row)), &others));
        }
        if verdict == Verdict::Landed { Ok(row) } else { Err(ChangeError::Refused(Some(Box::new(row)))) }
    }

    /// Whether the rows beside the item's are as the change believes.
    fn admits(&self, row: &Item, change: &Change) -> bool {
        if let Change::Retry(r) = change {
            return self.heads.get(&row.branch).is_some_and(|head| head.item_id == row.id && head.version == r.head.version);
        }
        companion::successor(change).is_none_or(|next| {
            let head = self.heads.get(&next.item.branch);
            !self.items.contains_key(&next.item.id) && is_seen(head, next.replaces.as_ref())
        })
    }

    fn apply(&mut self, row: Item, change: &Change, others: &[Companion]) -> Result<Item, ChangeError> {
        let mut next = row.clone();
        change.apply(&mut next);
        if companion::is_enqueue(change) && units::item_size(&next) > ROW_LIMIT {
            return Err(ChangeError::TooLarge);
        }
        cost::write_units(units::of_change(Footprint::of(&row), Footprint::of(&next), others) + companion::successor_units(change));
        self.items.insert(next.id.clone(), next.clone());
        self.write_beside(&next, change);
        Ok(next)
    }

    fn write_beside(&mut self, row: &Item, change: &Change) {
        match change {
            Change::Update(u) => {
                self.contents.insert((row.id.clone(), row.rev), u.content.clone());
            }
            Change::Retry(_) => {
                if let Some(head) = self.heads.get_mut(&row.branch) {
                    head.version += 1;
                }
            }
            _ => {}
        }
        if let Some(next) = companion::successor(change) {
            self.give_birth(next);
        }
    }
}

/// Whether a branch head is the one that was seen.
fn is_seen(head: Option<&BranchHead>, seen: Option<&BranchHead>) -> bool {
    match (head, seen) {
        (Some(head), Some(seen)) => head.item_id == seen.item_id && head.version == seen.version,
        (None, None) => true,
        _ => false,
    }
}

#[async_trait]
impl Items for MemoryItems {
    async fn create(&self, creation: &Creation) -> Result<Created, Failure> {
        Ok(self.state().create(creation))
    }

    async fn change(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        self.state().change(id, change)
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>, Failure> {
        Ok(self.state().items.get(id).cloned())
    }

    async fn content(&self, id: &ItemId, rev: u64) -> Result<Option<Content>, Failure> {
        Ok(self.state().contents.get(&(id.clone(), rev)).cloned())
    }

    async fn head(&self, branch: &BranchIdentity) -> Result<Option<BranchHead>, Failure> {
        Ok(self.state().heads.get(branch).cloned())
    }

    async fn link_mr(&self, branch: &BranchIdentity, iid: MrIid, link: &MrLink) -> Result<(), Failure> {
        cost::write_units(1);
        let mut state = self.state();
        let found = state.links.entry((branch.host.clone(), branch.project_id, iid)).or_insert_with(|| link.clone());
        if found.generation < link.generation || found.item_id == link.item_id {
            *found = link.clone();
        }
        Ok(())
    }

    async fn mr_link(&self, host: &str, project: ProjectId, iid: MrIid) -> Result<Option<MrLink>, Failure> {
        Ok(self.state().links.get(&(host.to_owned(), project, iid)).cloned())
    }

    async fn due(&self, shard: u8, until: Timestamp, limit: usize) -> Result<Vec<DueItem>, Failure> {
        let state = self.state();
        let in_shard = state.items.values().filter(|item| item.due_shard == shard);
        let mut due: Vec<_> = in_shard.filter_map(|item| Some(DueItem { id: item.id.clone(), due_at: item.due_at? })).collect();
        due.retain(|item| item.due_at <= until);
        due.sort_by(|a, b| (a.due_at, &a.id).cmp(&(b.due_at, &b.id)));
        due.truncate(limit);
        Ok(due)
    }

    async fn list(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Failure> {
        let state = self.state();
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let older = state.items.range::<ItemId, _>((Bound::Unbounded, end)).rev().map(|(_, item)| item);
        Ok(page(older.filter(|item| filter.admits(item)).take(limit + 1).cloned().collect(), limit))
    }

    async fn append_timeline(&self, id: &ItemId, entry: &TimelineEntry) -> Result<(), Failure> {
        cost::write_units(units::of_timeline(id, entry));
        self.state().timelines.entry((id.clone(), key::log_cursor(entry))).or_insert_with(|| entry.clone());
        Ok(())
    }

    async fn timeline(&self, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Failure> {
        let state = self.state();
        let start = Bound::Excluded((id.clone(), after.unwrap_or_default().to_owned()));
        let later = state.timelines.range((start, Bound::Unbounded)).take_while(|((owner, _), _)| owner == id);
        Ok(timeline_page(later.take(limit + 1).map(|(_, entry)| entry.clone()).collect(), limit))
    }

    async fn host_wait(&self, host: &str) -> Result<Option<HostWait>, Failure> {
        Ok(self.state().waits.get(host).cloned())
    }

    async fn set_host_wait(&self, host: &str, wait: &HostWait) -> Result<(), Failure> {
        cost::write_units(1);
        let mut state = self.state();
        let found = state.waits.entry(host.to_owned()).or_insert_with(|| wait.clone());
        if found.until < wait.until {
            *found = wait.clone();
        }
        Ok(())
    }
}

#[async_trait]
impl Rates for MemoryItems {
    async fn bucket(&self, key: &str) -> Result<Option<Bucket>, Failure> {
        Ok(self.state().buckets.get(key).copied())
    }

    async fn replace_bucket(&self, key: &str, old: Option<Bucket>, new: Bucket) -> Result<bool, Failure> {
        cost::write_units(1);
        let mut state = self.state();
        let fits = state.buckets.get(key).copied() == old;
        if fits {
            state.buckets.insert(key.to_owned(), new);
        }
        Ok(fits)
    }
}

#[async_trait]
impl Letters for MemoryItems {
    async fn keep(&self, letter: &Letter) -> Result<(), Failure> {
        self.state().letters.entry(letter.id.clone()).or_insert_with(|| letter.clone());
        Ok(())
    }

    async fn letter(&self, id: &str) -> Result<Option<Letter>, Failure> {
        Ok(self.state().letters.get(id).cloned())
    }

    async fn letters(&self, state: Option<LetterState>, after: Option<&str>, limit: usize) -> Result<LetterPage, Failure> {
        let all = self.state();
        let behind = all.letters.values().filter(|letter| after.is_none_or(|after| letter.id.as_str() > after));
        let wanted = behind.filter(|letter| state.is_none_or(|state| state == letter.state));
        Ok(letters::page(wanted.take(limit + 1).cloned().collect(), limit))
    }

    async fn replace(&self, letter: &Letter) -> Result<bool, Failure> {
        let mut state = self.state();
        let Some(known) = state.letters.get_mut(&letter.id).filter(|known| known.version + 1 == letter.version) else { return Ok(false) };
        *known = letter.clone();
        Ok(true)
    }
}

/// The page of up to one item more than `limit`.
pub(crate) fn page(mut items: Vec<Item>, limit: usize) -> ListPage {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|item| item.id.clone());
    ListPage { items, next }
}

/// The page of up to one entry more than `limit`.
pub(crate) fn timeline_page(mut entries: Vec<TimelineEntry>, limit: usize) -> TimelinePage {
    let more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| more).map(key::log_cursor);
    TimelinePage { entries, next }
}
