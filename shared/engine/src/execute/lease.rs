//! Keeping a lease while an action runs, and knowing when it is gone. A lease is not a lock: it only makes a second writer
//! unlikely; conditions make it harmless.

use super::Stop;
use crate::Engine;
use crate::ports::ChangeError;
use collie_core::id::ItemId;
use collie_core::item::LEASE;
use collie_core::queue::Change;
use collie_core::time::{SKEW, Timestamp};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often a running action's lease is extended.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A held lease.
#[derive(Debug)]
pub(super) struct Lease {
    epoch: u64,
    until: AtomicU64,
    lost: AtomicBool,
}

impl Lease {
    pub(super) fn new(epoch: u64, until: Timestamp) -> Self {
        Self { epoch, until: AtomicU64::new(until.as_millis()), lost: AtomicBool::new(false) }
    }

    fn until(&self) -> Timestamp {
        Timestamp::from_millis(self.until.load(Ordering::Relaxed))
    }

    /// Makes sure that the lease outlasts a write to the forge that may take this long.
    pub(super) async fn outlast(&self, engine: &Engine, id: &ItemId, write: Duration) -> Result<(), Stop> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(Stop::LeaseLost);
        }
        if self.until() < engine.ports.clock.now().after(write).after(SKEW) {
            self.beat(engine, id).await?;
        }
        Ok(())
    }

    async fn beat(&self, engine: &Engine, id: &ItemId) -> Result<(), Stop> {
        let until = engine.ports.clock.now().after(LEASE);
        match engine.change(id, &Change::Heartbeat { epoch: self.epoch, until }).await {
            Ok(_) => {
                self.until.store(until.as_millis(), Ordering::Relaxed);
                Ok(())
            }
            Err(ChangeError::Failed(failure)) => Err(Stop::Store(failure)),
            Err(_) => {
                self.lost.store(true, Ordering::Relaxed);
                Err(Stop::LeaseLost)
            }
        }
    }

    /// Extends the lease every ten seconds until it is lost. A store that does not answer is tried again at the next beat.
    pub(super) async fn keep(&self, engine: &Engine, id: &ItemId) -> Result<Infallible, Stop> {
        loop {
            engine.ports.clock.sleep(HEARTBEAT).await;
            match self.beat(engine, id).await {
                Ok(()) | Err(Stop::Store(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
    }
}
