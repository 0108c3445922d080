//! A batch of queue messages: each record read on its own, each job its own task, each failure reported on its own.
//!
//! * A record without a `messageId` fails the invocation before anything is done: an answer without the id, or with an empty one, would
//!   have the platform repeat or drop the wrong messages.
//! * Records that ask for the same job share one run and its outcome.
//! * Records of one message group (a FIFO queue's) run one after the other. The first that fails holds the later ones of its group back:
//!   they are not run and are reported with it, so that the queue delivers them again in their order.
//! * A job that has to wait is no failure and is not logged as one; its messages, and those behind them in their group, come again.
//! * A panic ends its task alone. When time is up, what still runs is aborted and awaited before the answer: a task that outlives its
//!   handler thaws minutes later and writes.
//! * Known test events are dropped.

mod line;
mod record;
mod report;
mod running;

pub use record::{Record, Unidentified};
pub use report::Report;

use crate::disposition::Disposition;
use crate::invocation::Invocation;
use crate::live::Live;
use async_trait::async_trait;
use collie_core::error::Failure;
use lambda_runtime::{LambdaEvent, service_fn};
use line::Lines;
use running::Running;
use serde::Deserialize;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What a function does with one message.
#[async_trait]
pub trait Work: Send + Sync + 'static {
    /// What a message asks for.
    type Job: PartialEq + Send + 'static;

    /// Reads a message.
    ///
    /// # Errors
    /// Where it is none of this function's.
    fn read(&self, record: &Record) -> Result<Self::Job, Failure>;

    /// Does what a message asks for, and says whether that is all.
    ///
    /// # Errors
    /// Where the message is to be delivered again because something failed.
    async fn run(&self, job: Self::Job, invocation: &Invocation) -> Result<Ended, Failure>;
}

/// How a job ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is done, and its messages may go.
    Done,
    /// It has to wait: its messages are delivered again, and so are those behind them in their group.
    Held,
}

/// The event of a queue.
#[derive(Debug, Deserialize)]
pub struct Batch {
    #[serde(rename = "Records")]
    records: Vec<Value>,
}

/// Serves batches until the process ends.
///
/// # Errors
/// Where the runtime fails.
pub async fn serve<W: Work>(live: Live<W>) -> Result<(), lambda_runtime::Error> {
    let live = Arc::new(live);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Batch>| {
        let (live, invocation) = (Arc::clone(&live), Invocation::of(&event.context));
        async move {
            let work = live.current().await;
            let time_left = invocation.time_left(live.clock().now());
            process(work, event.payload, invocation, time_left).await.map_err(lambda_runtime::Error::from)
        }
    }))
    .await
}

/// Works one batch off, for at most this long.
///
/// # Errors
/// Where a record has no id; nothing has been done then.
pub async fn process<W: Work>(work: Arc<W>, batch: Batch, invocation: Invocation, time_left: Duration) -> Result<Report, Unidentified> {
    let identified = batch.records.into_iter().map(record::identify).collect::<Result<Vec<_>, _>>()?;
    let (mut report, mut lines) = (Report::default(), Lines::default());
    for (id, value) in identified {
        let group = record::group(&value);
        match read(work.as_ref(), &id, value) {
            Ok(Some(job)) => lines.add(group, job, id),
            Ok(None) => tracing::debug!(message_id = id, "a test event is dropped"),
            Err(failure) => {
                Disposition::of(&failure).log(std::slice::from_ref(&id), &failure);
                report.fail(id);
                lines.close(group);
            }
        }
    }
    lines.take_held_back().into_iter().for_each(|id| report.fail(id));
    Running::start(&work, lines, &invocation).finish(time_left, &mut report).await;
    Ok(report)
}

/// The job of a record; none for a test event. Reading is pure, so that a panic of it leaves nothing behind.
fn read<W: Work>(work: &W, id: &str, value: Value) -> Result<Option<W::Job>, Failure> {
    let record = Record::decode(id, value)?;
    if record.is_test_event() {
        return Ok(None);
    }
    let read = catch_unwind(AssertUnwindSafe(|| work.read(&record)));
    read.unwrap_or_else(|_| Err(Failure::bug("reading the message panicked"))).map(Some)
}

#[cfg(test)]
mod tests;
