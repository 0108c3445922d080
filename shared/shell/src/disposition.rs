//! What a failure means for the message that led to it. Both ways the message is reported as failed and comes again; what
//! differs is what operators make of it.

use collie_core::error::{Class, Failure};

/// What is expected of a message that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Delivered again, it will do.
    Repeat,
    /// The same message will fail the same way, until the queue sets it aside as a dead letter.
    DeadLetter,
}

impl Disposition {
    /// What a failure means. Non-retryable by default.
    #[must_use]
    pub const fn of(failure: &Failure) -> Self {
        match failure.class {
            Class::Conflict | Class::Throttled { .. } | Class::Transient { .. } | Class::Indeterminate => Self::Repeat,
            Class::Rejected | Class::Unauthorized | Class::Gone | Class::Bug => Self::DeadLetter,
        }
    }

    /// Logs a message's failure: the one place that does.
    pub(crate) fn log(self, message_ids: &[String], failure: &Failure) {
        let (code, message) = (failure.code, failure.message.as_str());
        match self {
            Self::Repeat => tracing::warn!(?message_ids, code, message, "message failed; it comes again"),
            Self::DeadLetter => tracing::error!(?message_ids, code, message, "message failed and will not do"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::time::Timestamp;

    #[test]
    fn what_passes_by_itself_is_repeated_and_all_else_is_set_aside() {
        let of = |class| Disposition::of(&Failure::new(class, "c", "m"));
        let until = Timestamp::from_millis(1);
        let passing = [Class::Conflict, Class::Throttled { until }, Class::Transient { answered: true }, Class::Indeterminate];
        let lasting = [Class::Rejected, Class::Unauthorized, Class::Gone, Class::Bug];
        assert!(passing.into_iter().all(|class| of(class) == Disposition::Repeat));
        assert!(lasting.into_iter().all(|class| of(class) == Disposition::DeadLetter));
    }
}
