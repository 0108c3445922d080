//! The worker of a queue: tracks its oldest job, whatever job rang, batch by batch while there is time.
//!
//! A message may go once the row of its own job is gone. Until then it is held, which is no failure. What counts is counted on the job's
//! row, before the work, so that a crash counts; a job that failed too often, or that no worker can end, is given to recovery, which
//! removes its row.

use super::Tracking;
use super::run::raise;
use crate::metric;
use crate::ports::Written;
use crate::settings::Queue;
use collie_core::error::Failure;
use collie_core::issue::delivery::{Delivery, Reason, Verdict};
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::Job;
use collie_core::time::Timestamp;
use std::time::Duration;

/// When a job that waits is looked at again.
pub const HOLD: Duration = Duration::from_secs(30);
/// The longest wait after a failure.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// What is to become of the message that rang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It has done its work and may go.
    Done,
    /// It comes again after this time.
    Hold(Duration),
}

/// A failure of the store or of those who are told, and when to try again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub struct Setback {
    /// The failure.
    pub failure: Failure,
    /// When to try again.
    pub after: Duration,
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self { failure, after: backoff(1) }
    }
}

impl Tracking {
    /// Works for a queue because of a job's message, or until it has no jobs where none is named. No batch begins after `until`.
    ///
    /// # Errors
    /// Where the store, or telling others, failed; the message comes again.
    pub async fn work(&self, queue: &Queue, rang: Option<RequestId>, until: Timestamp) -> Result<Turn, Setback> {
        loop {
            let Some(oldest) = self.oldest_job(&queue.name).await? else { return Ok(Turn::Done) };
            if self.is_gone(&queue.name, rang, oldest.request).await? {
                return Ok(Turn::Done);
            }
            if let Some(hold) = self.look(queue, &oldest).await? {
                return Ok(Turn::Hold(hold));
            }
            if self.ports.clock.now() >= until {
                return Ok(Turn::Hold(Duration::ZERO));
            }
        }
    }

    /// Whether the job that rang has ended.
    async fn is_gone(&self, queue: &QueueName, rang: Option<RequestId>, oldest: RequestId) -> Result<bool, Failure> {
        match rang {
            Some(job) if job > oldest => Ok(self.job(queue, job).await?.is_none()),
            Some(job) => Ok(job < oldest),
            None => Ok(false),
        }
    }

    /// One delivery of a job; how long to hold it, or none where more can be done at once.
    async fn look(&self, queue: &Queue, job: &Job) -> Result<Option<Duration>, Setback> {
        if job.is_exhausted() {
            self.give_up(&queue.name, job, Reason::Failures).await?;
            return Ok(Some(HOLD));
        }
        let job = job.begun(self.ports.clock.now());
        if self.ports.rows.write(&queue.name, &[job.edit()]).await? == Written::Refused {
            metric::conflict("jobs");
            return Ok(Some(backoff(1)));
        }
        let setback = |failure| Setback { failure, after: backoff(job.failures) };
        let verdict = self.run(&queue.name, Delivery::new(&job, queue.limits)).await.map_err(setback)?;
        metric::delivery(verdict.name());
        self.settle(&queue.name, &job, verdict).await.map_err(setback)
    }

    async fn settle(&self, queue: &QueueName, job: &Job, verdict: Verdict) -> Result<Option<Duration>, Failure> {
        if let Some(next) = job.after(verdict, self.ports.clock.now()) {
            self.ports.rows.write(queue, &[next.edit()]).await?;
        }
        Ok(match verdict {
            Verdict::Ended(ending) => {
                tracing::info!(%queue, request = %job.request, ?ending, "a request's issues are tracked to the end");
                None
            }
            Verdict::Again => None,
            Verdict::Hold(waiting) => {
                tracing::debug!(%queue, request = %job.request, ?waiting, "a job waits");
                Some(HOLD)
            }
            Verdict::Retry(conflict) => {
                tracing::info!(%queue, request = %job.request, ?conflict, "something moved; the job is looked at again");
                Some(backoff(job.failures))
            }
            Verdict::DeadLetter(reason) => {
                self.give_up(queue, job, reason).await?;
                Some(HOLD)
            }
        })
    }

    /// Recovery gets the job; its message is held until recovery has removed the row.
    async fn give_up(&self, queue: &QueueName, job: &Job, reason: Reason) -> Result<(), Failure> {
        if reason == Reason::HistoryConflict {
            raise(queue, reason.as_str());
        }
        metric::dead_letter(reason.as_str());
        tracing::warn!(%queue, request = %job.request, reason = reason.as_str(), "no worker can end this job; recovery takes it");
        self.ports.jobs.dead_letter(queue, job.request, job.failures, reason).await
    }
}

/// One second, doubled with every failure in a row.
fn backoff(failures: u32) -> Duration {
    let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(doubled).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_wait_for_longer_up_to_a_bound() {
        assert_eq!([0, 1, 2, 5, 6, 64, u32::MAX].map(|n| backoff(n).as_secs()), [1, 1, 2, 16, 30, 30, 30]);
    }
}
