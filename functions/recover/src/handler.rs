//! From a dead letter to its recovery. Recovery of a job is tried until it has ended: nothing comes after it.

use async_trait::async_trait;
use collie_aws::{DeadLetter, RepairAsked, SqsHolds};
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
    /// Something that was to be repaired.
    Repair(RepairAsked),
    /// Something in the line of jobs that cannot be read.
    Doorbell,
}

#[async_trait]
impl Work for Recover {
    type Job = Dead;

    fn read(&self, record: &Record) -> Result<Dead, Failure> {
        let job = DeadLetter::parse(&record.body).map(|letter| Dead::Job(letter, record.receipt_handle.clone()));
        let repair = || RepairAsked::parse(&record.body).map(Dead::Repair);
        let doorbell = || record.group.is_some().then_some(Dead::Doorbell);
        job.or_else(repair).or_else(doorbell).ok_or_else(unknown)
    }

    async fn run(&self, dead: Dead, _: &Invocation) -> Result<Ended, Failure> {
        match dead {
            Dead::Job(letter, receipt) => self.recover(&letter, &receipt).await,
            Dead::Repair(asked) => Ok(given_up(&asked)),
            Dead::Doorbell => Ok(dropped()),
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
fn given_up(asked: &RepairAsked) -> Ended {
    let queue = asked.queue();
    match asked {
        RepairAsked::Offer(_, offer) => {
            let (build, request) = (&offer.build_id, offer.request_id);
            tracing::error!(code = "repair_given_up", %queue, %build, %request, "openings of a build were not taken for repair");
        }
        RepairAsked::Closed(_, key) | RepairAsked::Opened(_, key) => {
            tracing::error!(code = "repair_given_up", %queue, issue = %key, "what repairs an issue did not hear that it has changed");
        }
    }
    Ended::Done
}

/// In the line of jobs it would keep others of its group waiting. Whoever gave up a job says so again for as long as the job is there.
fn dropped() -> Ended {
    tracing::error!(code = "malformed_dead_letter", "a dead letter of the line of jobs cannot be read and is dropped");
    Ended::Done
}

/// What is not understood is not deleted: it stays among the dead letters, for whoever understands it.
fn unknown() -> Failure {
    Failure::rejected("malformed_dead_letter", "a dead letter names nothing that could be recovered")
}
