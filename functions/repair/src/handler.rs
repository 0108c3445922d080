//! From a message to one call of the use case.

use crate::message::Asked;
use async_trait::async_trait;
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
    type Job = Asked;

    fn read(&self, record: &Record) -> Result<Asked, Failure> {
        Asked::read(&record.body)
    }

    async fn run(&self, asked: Asked, _: &Invocation) -> Result<Ended, Failure> {
        match asked {
            Asked::Offer(queue, offer) => {
                if let Some(queue) = self.configured(&queue) {
                    let taken = self.tracking.repair(queue, &offer).await?;
                    tracing::info!(queue = %queue.name, build = %offer.build_id, taken, "openings of a build are offered for repair");
                }
            }
            Asked::Closed(queue, key) => {
                if let Some(queue) = self.configured(&queue) {
                    self.tracking.repaired(queue, &key).await?;
                }
            }
            Asked::Nothing => {}
        }
        Ok(Ended::Done)
    }
}

impl Repairs {
    /// A queue that is not configured any more has nobody who repairs.
    fn configured(&self, name: &QueueName) -> Option<&Queue> {
        let queue = self.tracking.queue(name.as_str());
        if queue.is_none() {
            tracing::info!(queue = %name, "the queue is not configured; nothing is repaired");
        }
        queue
    }
}
