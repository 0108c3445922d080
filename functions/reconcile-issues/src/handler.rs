//! From a job's message to work for its queue. A message goes only when its job is gone; until then it is hidden for as long as the use
//! case says and reported as failed, since SQS deletes what is not.

use async_trait::async_trait;
use collie_aws::{JobMessage, SqsHolds};
use collie_core::error::Failure;
use collie_engine::tracking::Tracking;
use collie_engine::tracking::work::Turn;
use collie_shell::Invocation;
use collie_shell::batch::{Ended, Record, Work};
use std::time::Duration;

/// What must be left of an invocation for another batch of keys to begin.
const BATCH_TIME: Duration = Duration::from_secs(30);
/// When a message of a queue that is not configured is looked at again.
const UNCONFIGURED: Duration = Duration::from_secs(600);

/// Works for queues.
pub(crate) struct Reconcile {
    pub(crate) tracking: Tracking,
    pub(crate) holds: SqsHolds,
}

/// A message: its job, and by what this receipt of it is held. None where it cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rang(Option<(JobMessage, String)>);

#[async_trait]
impl Work for Reconcile {
    type Job = Rang;

    fn read(&self, record: &Record) -> Result<Rang, Failure> {
        Ok(Rang(JobMessage::parse(&record.body).map(|message| (message, record.receipt_handle.clone()))))
    }

    async fn run(&self, Rang(job): Rang, invocation: &Invocation) -> Result<Ended, Failure> {
        match job {
            Some((message, receipt)) => self.work(&message, &receipt, invocation).await,
            None => Ok(dropped()),
        }
    }
}

impl Reconcile {
    async fn work(&self, message: &JobMessage, receipt: &str, invocation: &Invocation) -> Result<Ended, Failure> {
        let JobMessage { queue: name, request } = message;
        let Some(queue) = self.tracking.queue(name.as_str()) else {
            tracing::warn!(queue = %name, %request, "the queue is not configured; its job waits");
            return Ok(self.held(receipt, UNCONFIGURED).await);
        };
        match self.tracking.work(queue, Some(*request), invocation.deadline.before(BATCH_TIME)).await {
            Ok(Turn::Done) => Ok(Ended::Done),
            Ok(Turn::Hold(time)) => Ok(self.held(receipt, time).await),
            Err(setback) => {
                self.held(receipt, setback.after).await;
                Err(setback.failure)
            }
        }
    }

    /// A message that cannot be hidden comes again when the queue's own time is over: late, but in its place.
    async fn held(&self, receipt: &str, time: Duration) -> Ended {
        if let Err(failure) = self.holds.hold(receipt, time).await {
            tracing::warn!(code = failure.code, message = failure.message, "a message is not held; it comes again later than it should");
        }
        Ended::Held
    }
}

/// What cannot be read names no job, and would keep its group's jobs waiting for as long as SQS keeps it. The schedule rings for them.
fn dropped() -> Ended {
    tracing::error!(code = "malformed_job", "a message of the jobs queue cannot be read and is dropped");
    Ended::Done
}
