//! Doorbells: a wake-up says "look at this item"; losing or repeating one changes nothing but time (INV-13).

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use std::time::Duration;

/// The wake-up queue.
#[async_trait]
pub trait Wakes: Send + Sync {
    /// Rings for an item, after a delay of at most 15 minutes.
    async fn send(&self, item: &ItemId, delay: Duration) -> Result<(), Failure>;
}
