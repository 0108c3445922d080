//! The schedule: finds due items and rings for them. It carries no state; ringing twice changes nothing.

use crate::Engine;
use crate::metric;
use crate::ports::ChangeError;
use collie_core::error::Failure;
use collie_core::id::Digest;
use collie_core::item::{DUE_SHARDS, Dimension, Item};
use collie_core::queue::{Change, Enqueue};
use std::time::Duration;

/// Wake-ups one tick sends at most (`design.md` §6).
pub const WAKES_PER_TICK: usize = 2_000;

impl Engine {
    /// Makes a waiting item read the truth again now, whatever it waits for, and says whether it will. What an inbox does that
    /// overflows: for operators, and for a process that knows it missed events.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn look_again(&self, item: &Item) -> Result<bool, Failure> {
        let Some(item_type) = self.types.get(&item.item_type) else { return Ok(false) };
        let dims = vec![(item_type.look_again(), Dimension::needed())];
        let enqueue = Enqueue { dims, now: self.ports.clock.now() };
        let digest = Digest::new(self.ports.ids.token().as_str());
        match self.change(&item.id, &Change::Overflow { digest, enqueue }).await {
            Ok(_) => {
                self.ring(&item.id, Duration::ZERO).await;
                Ok(true)
            }
            Err(ChangeError::Failed(failure)) => Err(failure),
            Err(ChangeError::Refused(_) | ChangeError::TooLarge) => Ok(false),
        }
    }

    /// Rings for items that are due, oldest first per shard, and says how many.
    ///
    /// # Errors
    /// Where the store cannot be read; the next tick looks again.
    pub async fn wake_due(&self) -> Result<usize, Failure> {
        self.wake_due_up_to(WAKES_PER_TICK).await
    }

    /// The same, ringing at most this often: what a tick may send less what still waits in the queue. Every shard has a share
    /// of it, so that none with more than that keeps the others waiting.
    ///
    /// # Errors
    /// Where the store cannot be read; the next tick looks again.
    pub async fn wake_due_up_to(&self, limit: usize) -> Result<usize, Failure> {
        let now = self.ports.clock.now();
        let (mut sent, mut oldest) = (0, now);
        for shard in 0..DUE_SHARDS {
            let share = (limit - sent).div_ceil(usize::from(DUE_SHARDS - shard));
            if share == 0 {
                break;
            }
            for due in self.ports.items.due(shard, now, share).await? {
                oldest = oldest.min(due.due_at);
                self.ring(&due.id, Duration::ZERO).await;
                sent += 1;
            }
        }
        metric::due_lag(now.since(oldest));
        Ok(sent)
    }
}
