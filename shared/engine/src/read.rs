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
    /// [`Error::NotFound`], and [`Error::Hidden`] where the caller may not see it.
    pub async fn get(&self, caller: &Caller, id: &ItemId) -> Result<(Item, Content), Error> {
        let item = self.visible_item(caller, id).await?;
        let (_, content) = self.latest_content(&item).await?;
        Ok((item, content))
    }

    /// Items that the caller may see, newest first. A page may be short where labels forbid some of its items.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn list(&self, caller: &Caller, filter: ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Error> {
        let filter = ListFilter { seen_by: Some(caller.clone()), ..filter };
        let page = self.ports.items.list(&filter, before, limit).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for item in page.items {
            if self.may_see(caller, &item).await? {
                items.push(item);
            }
        }
        Ok(ListPage { items, next: page.next })
    }

    /// What the item's runs did, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Hidden`] where the caller may not see it.
    pub async fn timeline(&self, caller: &Caller, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Error> {
        self.visible_item(caller, id).await?;
        Ok(self.ports.items.timeline(id, after, limit).await?)
    }
}
