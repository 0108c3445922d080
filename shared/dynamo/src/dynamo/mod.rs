//! The store on DynamoDB: each change one conditional update, or one transaction with the rows beside the item's.

mod change;
mod create;
mod error;
pub(crate) mod letters;
mod read;
mod small;
mod tracking;

pub use tracking::DynamoTracking;

use crate::attribute::{self, Attributes};
use crate::key::{self, Key};
use crate::row;
use crate::units::Footprint;
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use collie_core::error::Failure;
use collie_core::id::{BranchIdentity, ItemId, MrIid, ProjectId};
use collie_core::item::{BranchHead, Content, HostWait, Item, MrLink, TimelineEntry};
use collie_core::queue::{Change, Creation};
use collie_core::rate::Bucket;
use collie_core::time::Timestamp;
use collie_engine::ports::{ChangeError, Created, DueItem, Items, ListFilter, ListPage, Rates, TimelinePage};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How often a write that others keep from happening is sent before its caller hears of it.
const ROUNDS: usize = 5;

/// Rows whose footprints are remembered before all are forgotten.
const SEEN_LIMIT: usize = 1_000;

/// The store on one DynamoDB table; clones share its memory of row sizes.
#[derive(Debug, Clone)]
pub struct DynamoItems {
    client: Client,
    table: String,
    /// How large rows were when last seen: an update's answer shows only the new row, its cost depends on the old one too.
    seen: Arc<Mutex<HashMap<ItemId, Footprint>>>,
}

impl DynamoItems {
    /// The store on this table, which [`crate::schema`] describes.
    #[must_use]
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table, seen: Arc::default() }
    }

    fn remember(&self, item: &Item) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= SEEN_LIMIT {
            seen.clear();
        }
        seen.insert(item.id.clone(), Footprint::of(item));
    }

    fn last_seen(&self, id: &ItemId) -> Option<Footprint> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// The item of a stored row.
    fn decode(&self, attributes: &Attributes) -> Result<Item, Failure> {
        let mut row = attribute::row(attributes);
        row.remove("sk");
        let pk = row.remove("pk");
        let id =
            pk.as_ref().and_then(|pk| key::item_of_partition(pk.as_str()?)).ok_or_else(|| Failure::bug("a row without an item's key"))?;
        let item = row::to_item(&id, row)?;
        self.remember(&item);
        Ok(item)
    }
}

#[async_trait]
impl Rates for DynamoItems {
    async fn bucket(&self, key: &str) -> Result<Option<Bucket>, Failure> {
        self.read_row(&Key::rate(key)).await
    }

    async fn replace_bucket(&self, key: &str, old: Option<Bucket>, new: Bucket) -> Result<bool, Failure> {
        self.write_bucket(key, old, new).await
    }
}

#[async_trait]
impl Items for DynamoItems {
    async fn create(&self, creation: &Creation) -> Result<Created, Failure> {
        self.create_item(creation).await
    }

    async fn change(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        self.change_item(id, change).await
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>, Failure> {
        self.read_item(id).await
    }

    async fn content(&self, id: &ItemId, rev: u64) -> Result<Option<Content>, Failure> {
        self.read_row(&Key::content(id, rev)).await
    }

    async fn head(&self, branch: &BranchIdentity) -> Result<Option<BranchHead>, Failure> {
        self.read_row(&Key::head(branch)).await
    }

    async fn link_mr(&self, branch: &BranchIdentity, iid: MrIid, link: &MrLink) -> Result<(), Failure> {
        self.write_link(branch, iid, link).await
    }

    async fn mr_link(&self, host: &str, project: ProjectId, iid: MrIid) -> Result<Option<MrLink>, Failure> {
        self.read_row(&Key::mr(host, project, iid)).await
    }

    async fn due(&self, shard: u8, until: Timestamp, limit: usize) -> Result<Vec<DueItem>, Failure> {
        self.query_due(shard, until, limit).await
    }

    async fn list(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Failure> {
        self.query_list(filter, before, limit).await
    }

    async fn append_timeline(&self, id: &ItemId, entry: &TimelineEntry) -> Result<(), Failure> {
        self.write_timeline(id, entry).await
    }

    async fn timeline(&self, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Failure> {
        self.query_timeline(id, after, limit).await
    }

    async fn host_wait(&self, host: &str) -> Result<Option<HostWait>, Failure> {
        self.read_row(&Key::wait(host)).await
    }

    async fn set_host_wait(&self, host: &str, wait: &HostWait) -> Result<(), Failure> {
        self.write_wait(host, wait).await
    }
}
