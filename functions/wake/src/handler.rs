//! From a tick of the schedule to wake-ups and jobs. The event carries nothing that counts.

use collie_aws::SqsWakes;
use collie_core::error::Failure;
use collie_engine::Engine;
use collie_engine::tracking::Tracking;
use collie_engine::wake::WAKES_PER_TICK;
use serde_json::{Value, json};

/// Rings for due items, and for tracked queues whose oldest job nobody looks at.
pub(crate) struct Wake {
    pub(crate) engine: Engine,
    pub(crate) tracking: Tracking,
    pub(crate) queue: SqsWakes,
}

impl Wake {
    /// One look at everything that is due. What a full queue leaves no room for is still due at the next tick. Items and jobs do not
    /// wait for each other: where one look fails, the other has its turn.
    pub(crate) async fn tick(&self) -> Result<Value, Failure> {
        let woken = self.look().await.inspect_err(|failure| {
            tracing::error!(code = failure.code, message = failure.message, "due items are not rung for; the next tick looks again");
        });
        let rung = self.tracking.ring_stale().await.inspect_err(|failure| {
            tracing::error!(code = failure.code, message = failure.message, "not all stale jobs are rung for; the next tick looks again");
        });
        Ok(json!({ "woken": woken?, "rung": rung? }))
    }

    async fn look(&self) -> Result<usize, Failure> {
        let waiting = self.queue.depth().await?;
        let woken = self.engine.wake_due_up_to(room(waiting)).await?;
        tracing::info!(woken, waiting, "rang for due items");
        Ok(woken)
    }
}

/// How many wake-ups may be sent while so many wait.
const fn room(waiting: usize) -> usize {
    WAKES_PER_TICK.saturating_sub(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_taken_off_what_may_be_sent() {
        assert_eq!([0, 1, 1_999, 2_000, 90_000].map(room), [2_000, 1_999, 1, 0, 0]);
    }
}
