//! From a dead letter to its recovery. Recovery of a job is tried until it has ended: nothing comes after it. Every other letter is kept for an
//! operator to decide about; what it asked for is never done here.

use async_trait::async_trait;
use collie_aws::{DeadLetter, RepairMessage, SqsHolds};
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

/// A closing that the bus put into the queue of repairs.
#[derive(Deserialize)]
struct BusEvent {
    #[serde(rename = "detail-type")]
    kind: String,
}

impl Kept {
    /// What is neither a wake-up nor about repairs is a delivery of GitLab's.
    fn of(record: &Record) -> Self {
        let item = serde_json::from_str::<Wake>(&record.body).ok().map(|wake| (Origin::Wakes, Some(wake.item_id.to_string())));
        let offer =
            || RepairMessage::parse(&record.body).map(|offer| (Origin::Repairs, Some(format!("{}/{}", offer.queue, offer.build_id))));
        let closing = || serde_json::from_str::<BusEvent>(&record.body).ok().filter(|event| event.kind.starts_with("issue."));
        let (origin, about) = item.or_else(offer).or_else(|| closing().map(|_| (Origin::Repairs, None))).unwrap_or((Origin::Hooks, None));
        Self { id: record.message_id.clone(), origin, about, body: record.body.clone() }
    }
}

#[async_trait]
impl Work for Recover {
    type Job = Dead;

    fn read(&self, record: &Record) -> Result<Dead, Failure> {
        let job = DeadLetter::parse(&record.body).map(|letter| Dead::Job(letter, record.receipt_handle.clone()));
        Ok(job.unwrap_or_else(|| Dead::Other(Kept::of(record))))
    }

    async fn run(&self, dead: Dead, _: &Invocation) -> Result<Ended, Failure> {
        match dead {
            Dead::Job(letter, receipt) => self.recover(&letter, &receipt).await,
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
