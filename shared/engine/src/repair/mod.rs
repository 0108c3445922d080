//! The `issue` work item type: keeps one GitLab issue for each failing task of a tracked queue. Its items come from Collie itself, one
//! identity for each task ([`WorkItems`]); what is open is read at each look.
//!
//! Persist, act, record: that an issue may exist is in the row before one is made, and what became of a write without an answer is read
//! back by the hidden marker and our author id.

mod sync;
mod work_items;

pub use work_items::WorkItems;

use crate::execute::{Run, Stop};
use crate::item_type::ItemType;
use crate::ports::IssueTracker;
use crate::tracking::Tracking;
use async_trait::async_trait;
use collie_core::decision::{Action, Decision};
use collie_core::error::Failure;
use collie_core::event::Event;
use collie_core::item::{Dimension, DimensionKey, Document, Item};
use collie_core::outcome::Outcome;
use collie_core::repair::decide;
use collie_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type.
#[derive(Clone)]
pub struct IssueType {
    tracking: Tracking,
    tracker: Arc<dyn IssueTracker>,
}

impl IssueType {
    /// The type over what is tracked and where issues are kept.
    #[must_use]
    pub fn new(tracking: Tracking, tracker: Arc<dyn IssueTracker>) -> Self {
        Self { tracking, tracker }
    }
}

#[async_trait]
impl ItemType for IssueType {
    fn seed(&self, _now: Timestamp) -> BTreeMap<DimensionKey, Dimension> {
        decide::seed()
    }

    fn retried(&self, item: &Item, _overwrite: bool) -> Result<(Document, Vec<(DimensionKey, Dimension)>), Failure> {
        Ok((item.wanted.clone(), vec![(decide::needs_issue(), Dimension::needed())]))
    }

    fn decide(&self, item: &Item, now: Timestamp) -> Result<Decision, Failure> {
        decide::decide(item, now)
    }

    /// No event of GitLab is about it.
    fn concerns(&self, _item: &Item, _event: &Event) -> Result<bool, Failure> {
        Ok(false)
    }

    fn apply_inbox(&self, item: &Item) -> Result<Item, Failure> {
        Ok(Item { inbox: Vec::new(), ..item.clone() })
    }

    fn look_again(&self) -> DimensionKey {
        decide::needs_issue()
    }

    fn dimension_of(&self, action: Action) -> DimensionKey {
        decide::dimension_of(action)
    }

    fn has_more(&self, _item: &Item) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn execute(&self, action: Action, run: &mut Run<'_>) -> Option<Result<Outcome, Stop>> {
        match action {
            decide::SYNC_ISSUE => Some(Box::pin(self.sync(run)).await),
            decide::CLOSE_ISSUE => Some(Box::pin(self.close(run)).await),
            _ => None,
        }
    }
}
