//! From a dead letter to its recovery. Recovery of a job is tried until it has ended: nothing comes after it. Every other letter is kept for an
//! operator to decide about; what it asked for is never done here.

use async_trait::async_trait;
use collie_aws::{DeadLetter, RepairAsked, SqsHolds};
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::letter::Origin;
use collie_engine::letters::DeadLetters;
use collie_engine::tracking::Tracking;
use collie_engine::tracking::work::Turn;
use collie_shell::Invocation;
use collie_shell::batch::{Ended, Record, Work};
use serde::Deserialize;
use std::time::Duration;

/// When a recovery that failed is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// Recovers.
pub(crate) struct Recover {
    pub(crate) tracking: Tracking,
    pub(crate) letters: DeadLetters,
    pub(crate) holds: SqsHolds,
}

/// What a dead letter was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dead {
    /// A job, and by what this receipt of its letter is held.
    Job(DeadLetter, String),
    /// Something in the line of jobs that cannot be read.
    Doorbell,
    /// Anything else.
    Other(Kept),
}

/// A letter that is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    id: String,
    origin: Origin,
    about: Option<String>,
    body: String,
}

/// A wake-up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wake {
    item_id: ItemId,
}

impl Kept {
    /// What is neither a wake-up nor about repairs is a delivery of GitLab's.
    fn of(record: &Record) -> Self {
        let item = serde_json::from_str::<Wake>(&record.body).ok().map(|wake| (Origin::Wakes, Some(wake.item_id.to_string())));
        let repair = || RepairAsked::parse(&record.body).map(|asked| (Origin::Repairs, Some(about(&asked))));
        let (origin, about) = item.or_else(repair).unwrap_or((Origin::Hooks, None));
        Self { id: record.message_id.clone(), origin, about, body: record.body.clone() }
    }
}

/// The queue with the build or the issue.
fn about(asked: &RepairAsked) -> String {
    match asked {
        RepairAsked::Offer(queue, offer) => format!("{queue}: build {}", offer.build_id),
        RepairAsked::Closed(queue, key) | RepairAsked::Opened(queue, key) => format!("{queue}: {key}"),
    }
}

#[async_trait]
impl Work for Recover {
    type Job = Dead;

    fn read(&self, record: &Record) -> Result<Dead, Failure> {
        let job = DeadLetter::parse(&record.body).map(|letter| Dead::Job(letter, record.receipt_handle.clone()));
        let doorbell = || record.group.is_some().then_some(Dead::Doorbell);
        Ok(job.or_else(doorbell).unwrap_or_else(|| Dead::Other(Kept::of(record))))
    }

    async fn run(&self, dead: Dead, _: &Invocation) -> Result<Ended, Failure> {
        match dead {
            Dead::Job(letter, receipt) => self.recover(&letter, &receipt).await,
            Dead::Doorbell => Ok(dropped()),
            Dead::Other(Kept { id, origin, about, body }) => self.letters.keep(&id, origin, about, &body).await.map(|()| Ended::Done),
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

/// In the line of jobs it would keep others of its group waiting. Whoever gave up a job says so again for as long as the job is there.
fn dropped() -> Ended {
    tracing::error!(code = "malformed_dead_letter", "a dead letter of the line of jobs cannot be read and is dropped");
    Ended::Done
}
