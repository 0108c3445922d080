//! From a message to one call of the use case.

use async_trait::async_trait;
use collie_aws::RepairAsked;
use collie_core::error::Failure;
use collie_core::issue::id::QueueName;
use collie_engine::settings::Queue;
use collie_engine::tracking::Tracking;
use collie_shell::Invocation;
use collie_shell::batch::{Ended, Record, Work};

/// Has what opened repaired.
pub(crate) struct Repairs {
    pub(crate) tracking: Tracking,
}

#[async_trait]
impl Work for Repairs {
    type Job = RepairAsked;

    fn read(&self, record: &Record) -> Result<RepairAsked, Failure> {
        let malformed = || Failure::rejected("malformed_repair", "a repair is an offer, or an event of our bus");
        RepairAsked::parse(&record.body).ok_or_else(malformed)
    }

    async fn run(&self, asked: RepairAsked, _: &Invocation) -> Result<Ended, Failure> {
        if let Some(queue) = self.configured(asked.queue()) {
            self.answer(queue, &asked).await?;
        }
        Ok(Ended::Done)
    }
}

impl Repairs {
    async fn answer(&self, queue: &Queue, asked: &RepairAsked) -> Result<(), Failure> {
        match asked {
            RepairAsked::Offer(_, offer) => {
                let taken = self.tracking.repair(queue, offer).await?;
                tracing::info!(queue = %queue.name, build = %offer.build_id, taken, "openings of a build are offered for repair");
            }
            RepairAsked::Closed(_, key) => self.tracking.repaired(queue, key).await?,
            RepairAsked::Opened(..) => {}
        }
        Ok(())
    }

    /// A queue that is not configured any more has nobody who repairs.
    fn configured(&self, name: &QueueName) -> Option<&Queue> {
        let queue = self.tracking.queue(name.as_str());
        if queue.is_none() {
            tracing::info!(queue = %name, "the queue is not configured; nothing is repaired");
        }
        queue
    }
}
