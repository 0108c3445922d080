//! From a dead letter to its recovery. Recovery of a job is tried until it has ended: nothing comes after it.

use async_trait::async_trait;
use collie_aws::{DeadLetter, RepairMessage, SqsHolds};
use collie_core::error::Failure;
use collie_engine::tracking::Tracking;
use collie_engine::tracking::work::Turn;
use collie_shell::Invocation;
use collie_shell::batch::{Ended, Record, Work};
use std::time::Duration;

/// When a recovery that failed is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Recovers.
pub(crate) struct Recover {
    pub(crate) tracking: Tracking,
    pub(crate) holds: SqsHolds,
}

/// What a dead letter was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dead {
    /// A job, and by what this receipt of its letter is held.
    Job(DeadLetter, String),
    /// An offer of repairs.
    Offer(RepairMessage),
    /// Anything else, by its message's id.
    Other(String),
}

#[async_trait]
impl Work for Recover {
    type Job = Dead;

    fn read(&self, record: &Record) -> Result<Dead, Failure> {
        let job = DeadLetter::parse(&record.body).map(|letter| Dead::Job(letter, record.receipt_handle.clone()));
        let offer = || RepairMessage::parse(&record.body).map(Dead::Offer);
        Ok(job.or_else(offer).unwrap_or_else(|| Dead::Other(record.message_id.clone())))
    }

    async fn run(&self, dead: Dead, _: &Invocation) -> Result<Ended, Failure> {
        match dead {
            Dead::Job(letter, receipt) => self.recover(&letter, &receipt).await,
            Dead::Offer(message) => Ok(given_up(&message)),
            Dead::Other(message_id) => Ok(unknown(&message_id)),
        }
    }
}

impl Recover {
    async fn recover(&self, letter: &DeadLetter, receipt: &str) -> Result<Ended, Failure> {
        let (turn, failure) = match self.tracking.recover(&letter.queue, letter.request).await {
            Ok(turn) => (turn, None),
            Err(failure) => (Turn::Hold(TRY_AGAIN), Some(failure)),
        };
        let Turn::Hold(time) = turn else { return Ok(Ended::Done) };
        if let Err(unheld) = self.holds.hold(receipt, time).await {
            tracing::warn!(code = unheld.code, message = unheld.message, "a dead letter is not held; it comes again later than it should");
        }
        failure.map_or(Ok(Ended::Held), Err)
    }
}

/// The executor is not called again: what it has taken is in the rows, what is open stays open and shows in every list.
fn given_up(message: &RepairMessage) -> Ended {
    let RepairMessage { queue, build_id, request_id, .. } = message;
    tracing::error!(code = "repair_given_up", %queue, build = %build_id, request = %request_id, "openings of a build were not taken for repair");
    Ended::Done
}

/// Doorbells carry no state, so that one which cannot be read loses nothing but time.
fn unknown(message_id: &str) -> Ended {
    tracing::error!(code = "malformed_dead_letter", message_id, "a dead letter names nothing that could be recovered");
    Ended::Done
}
