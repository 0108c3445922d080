//! The registry of item types (DDR-2, 7, 8): all that the generic layer asks of a type.

use crate::execute::{Run, Stop};
use async_trait::async_trait;
use collie_core::decision::{Action, Decision};
use collie_core::error::Failure;
use collie_core::event::Event;
use collie_core::item::{Dimension, DimensionKey, Document, Item};
use collie_core::mr::facts::Blocker;
use collie_core::outcome::Outcome;
use collie_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A type of item.
#[async_trait]
pub trait ItemType: Send + Sync {
    /// The dimensions a new item is born with.
    fn seed(&self, now: Timestamp) -> BTreeMap<DimensionKey, Dimension>;

    /// Whether callers may submit items of this type; others come from Collie itself.
    fn takes_submissions(&self) -> bool {
        false
    }

    /// What a retry of an item wants, and which dimensions it needs at once.
    fn retried(&self, item: &Item, overwrite: bool) -> Result<(Document, Vec<(DimensionKey, Dimension)>), Failure>;

    /// Every unmet condition of the item's end that is known.
    fn blockers(&self, _item: &Item) -> Result<Vec<Blocker>, Failure> {
        Ok(Vec::new())
    }

    /// The one next action, or a wait.
    fn decide(&self, item: &Item, now: Timestamp) -> Result<Decision, Failure>;

    /// Whether an event changes anything for this item.
    fn concerns(&self, item: &Item, event: &Event) -> Result<bool, Failure>;

    /// The item with its inbox applied in order, and empty.
    fn apply_inbox(&self, item: &Item) -> Result<Item, Failure>;

    /// What an event that does not fit into the inbox asks for.
    fn look_again(&self) -> DimensionKey;

    /// The dimension whose turn it is when this action runs.
    fn dimension_of(&self, action: Action) -> DimensionKey;

    /// Whether a merged item holds content that was not merged, and needs a next life.
    fn has_more(&self, item: &Item) -> Result<bool, Failure>;

    /// Performs an action. None where this type has no executor for it.
    async fn execute(&self, action: Action, run: &mut Run<'_>) -> Option<Result<Outcome, Stop>>;
}

/// Item types by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn ItemType>>);

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The registry with one more type.
    #[must_use]
    pub fn with(mut self, name: &'static str, item_type: Arc<dyn ItemType>) -> Self {
        self.0.insert(name, item_type);
        self
    }

    /// The type with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn ItemType> {
        self.0.get(name).map(AsRef::as_ref)
    }
}
