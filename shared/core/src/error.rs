//! Errors by what must happen next (`design.md` §5 in one type).

use crate::time::Timestamp;
use std::fmt;

/// What a failed call means for what happens next. The default for anything unclassified is [`Class::Bug`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The caller's or the configuration's fault: the same input gives the same answer.
    Rejected,
    /// A condition failed: someone else moved it. Reload and decide again, or drop.
    Conflict,
    /// Told to slow down; nothing is tried before `until`.
    Throttled {
        /// When calls may go on.
        until: Timestamp,
    },
    /// It did not happen. `answered` tells whether the other side answered below 500, which counts as an attempt.
    Transient {
        /// Whether the other side was there and answered below 500.
        answered: bool,
    },
    /// A write may have happened: read back, then decide.
    Indeterminate,
    /// The credential does not work or may not do this; a person has to change something on the forge.
    Unauthorized,
    /// The entity vanished.
    Gone,
    /// A broken invariant, or anything unclassified.
    Bug,
}

/// A failure that says what must happen next, which public code it has, and what a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What must happen next.
    pub class: Class,
    /// The public code, snake_case; each has a page.
    pub code: &'static str,
    /// For people; never holds a secret or file content.
    pub message: String,
}

impl Failure {
    /// A failure of this class.
    pub fn new(class: Class, code: &'static str, message: impl Into<String>) -> Self {
        Self { class, code, message: message.into() }
    }

    /// The caller's or the configuration's fault.
    pub fn rejected(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Rejected, code, message)
    }

    /// A broken invariant.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Class::Bug, "internal", message)
    }

    /// Whether a write that failed so may have happened.
    #[must_use]
    pub fn is_indeterminate(&self) -> bool {
        self.class == Class::Indeterminate
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_by_its_code_and_its_message() {
        assert_eq!(Failure::rejected("branch_protected", "main is protected").to_string(), "branch_protected: main is protected");
        assert_eq!(Failure::bug("impossible").to_string(), "internal: impossible");
    }

    #[test]
    fn only_an_indeterminate_write_may_have_happened() {
        let may = |class| Failure::new(class, "c", "m").is_indeterminate();
        assert!(may(Class::Indeterminate));
        let others = [Class::Rejected, Class::Conflict, Class::Transient { answered: false }, Class::Unauthorized, Class::Gone, Class::Bug];
        assert!(!others.into_iter().any(may));
    }
}
