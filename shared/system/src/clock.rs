//! The machine's clock.

use async_trait::async_trait;
use collie_core::time::Timestamp;
use collie_engine::ports::Clock;
use std::time::{Duration, UNIX_EPOCH};

/// The time of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the Clock port's adapter: the one place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep(&self, duration: Duration) {
        pause(duration).await;
    }
}

/// Waits at the edge: heartbeats, and commands that look at a server again and again.
#[allow(clippy::disallowed_methods, reason = "the edge of a process that lives on: nothing here is resumed from a row")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
