//! The wait that a host asked for, shared through the store and read at most every two seconds by a process.

use crate::ports::Items;
use collie_core::error::Failure;
use collie_core::item::HostWait;
use collie_core::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const FRESH: Duration = Duration::from_secs(2);

/// What this process knows of hosts' waits.
#[derive(Clone, Default)]
pub(crate) struct Throttle(Arc<Mutex<HashMap<String, Seen>>>);

#[derive(Clone)]
struct Seen {
    at: Timestamp,
    wait: Option<HostWait>,
}

impl Throttle {
    /// Until when calls to a host wait.
    pub(crate) async fn wait(&self, items: &dyn Items, host: &str, now: Timestamp) -> Result<Option<HostWait>, Failure> {
        let seen = self.seen(host).filter(|seen| now.since(seen.at) < FRESH);
        let wait = match seen {
            Some(seen) => seen.wait,
            None => {
                let wait = items.host_wait(host).await?;
                self.remember(host, now, wait.clone());
                wait
            }
        };
        Ok(wait.filter(|wait| wait.until > now))
    }

    /// Stores a wait for all processes.
    pub(crate) async fn set(&self, items: &dyn Items, host: &str, wait: HostWait, now: Timestamp) -> Result<(), Failure> {
        items.set_host_wait(host, &wait).await?;
        self.remember(host, now, Some(wait));
        Ok(())
    }

    fn seen(&self, host: &str) -> Option<Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    fn remember(&self, host: &str, at: Timestamp, wait: Option<HostWait>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), Seen { at, wait });
    }
}
