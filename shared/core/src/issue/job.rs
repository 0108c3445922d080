//! The job of a request: counted before each delivery, so that a crash counts, and cleared by progress and by holds, which are no
//! failures. Messages only say "look again" (INV-13): a job whose message is lost is found by its age.

use super::delivery::Verdict;
use super::id::RequestId;
use super::row::{Job, RowKey};
use super::table::Edit;
use crate::time::Timestamp;
use std::time::Duration;

/// Failures in a row after which a job is for recovery.
pub const MAX_FAILURES: u32 = 10;
/// How old the last look at a job may be before its queue is rung for again.
pub const STALE_AFTER: Duration = Duration::from_secs(120);

impl Job {
    /// The job of a request that was just admitted.
    #[must_use]
    pub const fn new(request: RequestId, now: Timestamp) -> Self {
        Self { request, registered_at: now, last_seen: now, failures: 0, holds: 0, version: 1 }
    }

    /// Whether it has failed too often to be tried again.
    #[must_use]
    pub const fn is_exhausted(&self) -> bool {
        self.failures >= MAX_FAILURES
    }

    /// Whether nobody has looked at it for so long that its message must be lost.
    #[must_use]
    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.since(self.last_seen) > STALE_AFTER
    }

    /// The job while a worker is at it.
    #[must_use]
    pub fn begun(&self, now: Timestamp) -> Self {
        Self { last_seen: now, failures: self.failures.saturating_add(1), version: self.version + 1, ..self.clone() }
    }

    /// The job after a delivery; none where that says nothing, or where it is gone.
    #[must_use]
    pub fn after(&self, verdict: Verdict, now: Timestamp) -> Option<Self> {
        let held = match verdict {
            Verdict::Hold(_) => 1,
            Verdict::Again => 0,
            Verdict::Ended(_) | Verdict::Retry(_) | Verdict::DeadLetter(_) => return None,
        };
        Some(Self { last_seen: now, failures: 0, holds: self.holds + held, version: self.version + 1, ..self.clone() })
    }

    /// Writes it in place of the one before.
    #[must_use]
    pub fn edit(&self) -> Edit {
        Edit::replace(RowKey::job(self.request), self.clone(), Some(self.version - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery::{Conflict, Reason, Waiting};
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn job() -> Job {
        Job::new(RequestId::new(7).unwrap(), NOW)
    }

    #[test]
    fn deliveries_that_fail_or_crash_count_and_holds_and_progress_do_not() {
        let mut job = job();
        for n in 1..=MAX_FAILURES {
            assert!(!job.is_exhausted(), "after {} failures", n - 1);
            job = job.begun(NOW);
        }
        assert!(job.is_exhausted());
        for verdict in [Verdict::Hold(Waiting::Build), Verdict::Again] {
            assert!(!job.after(verdict, NOW).unwrap().is_exhausted());
        }
        for verdict in [Verdict::Retry(Conflict::Issue), Verdict::DeadLetter(Reason::NeverBuilt)] {
            assert_eq!(job.after(verdict, NOW), None);
        }
        assert_eq!(job.after(Verdict::Hold(Waiting::Build), NOW).unwrap().holds, 1);
    }

    #[test]
    fn a_job_is_stale_when_nobody_looked_for_two_minutes() {
        let job = job();
        let stale = |seconds| job.is_stale(NOW.after(Duration::from_secs(seconds)));
        assert_eq!((stale(120), stale(121)), (false, true));
        let seen = NOW.after(Duration::from_secs(121));
        assert!(!job.begun(seen).is_stale(seen));
    }
}
