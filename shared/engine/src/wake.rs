//! The schedule: finds due items and rings for them. It carries no state; ringing twice changes nothing.

use crate::Engine;
use collie_core::error::Failure;
use collie_core::item::DUE_SHARDS;
use std::time::Duration;

/// Wake-ups one tick sends at most (`design.md` §6).
pub const WAKES_PER_TICK: usize = 2_000;

impl Engine {
    /// Rings for items that are due, oldest first per shard, and says how many.
    ///
    /// # Errors
    /// Where the store cannot be read; the next tick looks again.
    pub async fn wake_due(&self) -> Result<usize, Failure> {
        let now = self.ports.clock.now();
        let mut sent = 0;
        for shard in 0..DUE_SHARDS {
            for due in self.ports.items.due(shard, now, WAKES_PER_TICK - sent).await? {
                self.ring(&due.id, Duration::ZERO).await;
                sent += 1;
            }
        }
        Ok(sent)
    }
}
