//! What callers read: one item, lists, timelines.

use crate::Engine;
use crate::access::Caller;
use crate::lifecycle::Error;
use crate::ports::{ListFilter, ListPage, TimelinePage};
use collie_core::id::ItemId;
use collie_core::item::{Content, Item};

impl Engine {
    /// An item with its newest content.
    ///
    /// # Errors
    /// [`Error::NotFound`] also where the caller may not see it.
    pub async fn get(&self, caller: &Caller, id: &ItemId) -> Result<(Item, Content), Error> {
        let item = self.own_item(caller, id).await?;
        let (_, content) = self.latest_content(&item).await?;
        Ok((item, content))
    }

    /// Items, newest first; a caller who is no admin sees their own.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn list(&self, caller: &Caller, filter: ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Error> {
        let own = (!caller.admin).then(|| caller.identity.clone());
        if filter.caller.is_some() && own.is_some() && filter.caller != own {
            return Ok(ListPage { items: Vec::new(), next: None });
        }
        let filter = ListFilter { caller: own.or(filter.caller), ..filter };
        Ok(self.ports.items.list(&filter, before, limit).await?)
    }

    /// What the item's runs did, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] also where the caller may not see it.
    pub async fn timeline(&self, caller: &Caller, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Error> {
        self.own_item(caller, id).await?;
        Ok(self.ports.items.timeline(id, after, limit).await?)
    }
}
