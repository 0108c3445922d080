//! One run over one item: claim, then rounds of {apply events, decide, act, commit}, then exit (§4 of the protocol).
//!
//! Upholds INV-3 (every write names lease, `wake_seq` and `commit_seq`), INV-4 (an exit that missed an enqueue is refused),
//! INV-8 (entries travel in the row's outbox and are shipped afterwards) and INV-10 (what is not done waits with a time).
//! What an action does is the item type's business; when it may start, that its lease lasts, and that its outcome is
//! recorded on the row as it is then, is decided here.

mod lease;
mod recording;
mod run;
pub(crate) mod shipping;

pub use run::{Ran, Run, Stop};

use crate::Engine;
use crate::cost::Meter;
use crate::ports::ChangeError;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::queue::Change;
use collie_core::time::Timestamp;
use std::time::Duration;

/// A new action starts only while less than this has passed since the run began (DDR-44).
pub const START_WITHIN: Duration = Duration::from_secs(60);
/// A new action starts only while more than this is left.
pub const START_BEFORE: Duration = Duration::from_secs(70);
/// How long the longest write to the forge may take; a lease must outlast it.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Who runs, and until when.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Function and request id, for the audit trail.
    pub actor: String,
    /// When the process will be stopped.
    pub deadline: Option<Timestamp>,
}

impl Engine {
    /// Runs an item until it waits, is done, or time is up. Where there is nothing to do, or another run has the lease, the
    /// wake-up is spent: the row's `due_at` is still there.
    ///
    /// # Errors
    /// Where the row could not be written: the wake-up is to be delivered again.
    pub async fn execute(&self, id: &ItemId, worker: &Worker) -> Result<Ran, Failure> {
        let meter = Meter::nested();
        meter.scope(self.execute_metered(id, worker, &meter)).await
    }

    async fn execute_metered(&self, id: &ItemId, worker: &Worker, meter: &Meter) -> Result<Ran, Failure> {
        let now = self.ports.clock.now();
        let token = self.ports.ids.token();
        match self.change(id, &Change::Claim { now, token }).await {
            Ok(row) if self.settings.handles(&row.item_type) => Run::new(self, row, worker, meter.clone(), now).drive().await,
            Ok(row) => self.hand_back(&row).await,
            Err(ChangeError::Refused(_)) => Ok(Ran::Idle),
            Err(ChangeError::Failed(failure)) => Err(failure),
            Err(ChangeError::TooLarge) => Err(Failure::bug("a claim made the row too large")),
        }
    }

    /// Leaves an item of a type that this deployment does not handle as it was.
    async fn hand_back(&self, row: &collie_core::item::Item) -> Result<Ran, Failure> {
        let (epoch, commit_seq) = (row.lease_epoch, row.commit_seq);
        let now = self.ports.clock.now().after(collie_core::outcome::RECHECK);
        let release = Change::Release { epoch, commit_seq, token: self.ports.ids.token(), now, died: false };
        match self.change(&row.id, &release).await {
            Ok(_) | Err(ChangeError::Refused(_)) => Ok(Ran::Idle),
            Err(error) => Err(Failure::bug(error.to_string())),
        }
    }
}
