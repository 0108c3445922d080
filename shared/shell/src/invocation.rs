//! One call of a function: who it is, and until when it may work.

use collie_core::time::Timestamp;
use lambda_runtime::Context;
use std::time::Duration;

/// What is left between the end of the work and the end of the process's time: for the answer to get out.
pub(crate) const STOP_BEFORE: Duration = Duration::from_secs(2);

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The request's id.
    pub request_id: String,
    /// When Lambda stops the process.
    pub deadline: Timestamp,
}

impl Invocation {
    /// The invocation that the runtime speaks of.
    #[must_use]
    pub fn of(context: &Context) -> Self {
        Self { request_id: context.request_id.clone(), deadline: Timestamp::from_millis(context.deadline) }
    }

    /// How long work may go on.
    #[must_use]
    pub const fn time_left(&self, now: Timestamp) -> Duration {
        self.deadline.before(STOP_BEFORE).since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_before_the_process_is_stopped() {
        let invocation = Invocation { request_id: "r".into(), deadline: Timestamp::from_millis(150_000) };
        assert_eq!(invocation.time_left(Timestamp::from_millis(0)), Duration::from_secs(148));
        assert_eq!(invocation.time_left(Timestamp::from_millis(149_000)), Duration::ZERO);
    }
}
