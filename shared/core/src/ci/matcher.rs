//! The matcher tree: what a rule says about a job, and what that comes to.
//!
//! The keys of one node all have to hold; of a list one has to. Evaluation has four answers, since a log may not have been read,
//! or may not be complete: what is not known stays not known through `not`, and is passed over where the rest decides. Checks of
//! the job's own fields come first, so that a log is asked for only where they leave the answer open.

use super::trace::Trace;
use regex::Regex;

/// What is known of a job without its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobFields<'a> {
    /// Its name.
    pub job_name: &'a str,
    /// Its stage.
    pub stage: &'a str,
    /// Why it failed.
    pub failure_reason: &'a str,
    /// Its status.
    pub status: &'a str,
}

/// What a matcher says of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is one.
    Match,
    /// It is none.
    NoMatch,
    /// Only its log can tell.
    NeedsTrace,
    /// Its log is not complete: look again.
    Undecided,
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Match } else { Self::NoMatch }
    }

    fn inverse(self) -> Self {
        match self {
            Self::Match => Self::NoMatch,
            Self::NoMatch => Self::Match,
            unknown => unknown,
        }
    }
}

/// A text that is given, or a pattern.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// Equals a field; is a part of a message.
    Literal(String),
    /// Is found anywhere; `^` and `$` stand at line ends.
    Regex(Regex),
}

impl Pattern {
    fn equals(&self, field: &str) -> bool {
        match self {
            Self::Literal(text) => text == field,
            Self::Regex(regex) => regex.is_match(field),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Literal(part) => text.contains(part.as_str()),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// A field of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `job_name`.
    JobName,
    /// `stage`.
    Stage,
    /// `failure_reason`.
    FailureReason,
    /// `status`.
    Status,
}

impl Field {
    fn of<'a>(self, job: &JobFields<'a>) -> &'a str {
        match self {
            Self::JobName => job.job_name,
            Self::Stage => job.stage,
            Self::FailureReason => job.failure_reason,
            Self::Status => job.status,
        }
    }
}

/// One key of a node.
#[derive(Debug, Clone)]
pub enum Check {
    /// A field is one of these.
    Field(Field, Vec<Pattern>),
    /// One of these is in the last lines of the log.
    Message {
        /// What to look for.
        patterns: Vec<Pattern>,
        /// Where: in so many lines from the end.
        tail_lines: usize,
    },
    /// Each of these holds.
    All(Vec<Matcher>),
    /// One of these holds.
    Any(Vec<Matcher>),
    /// None of these holds.
    Not(Vec<Matcher>),
}

/// One node of the tree.
#[derive(Debug, Clone)]
pub struct Matcher {
    checks: Vec<Check>,
}

impl Matcher {
    /// A node of which all checks have to hold.
    #[must_use]
    pub fn new(mut checks: Vec<Check>) -> Self {
        checks.sort_by_key(Check::reads_trace);
        Self { checks }
    }

    /// What it says of a job. Without a log, only where the answer depends on it is it asked for.
    #[must_use]
    pub fn evaluate(&self, job: &JobFields<'_>, trace: Option<&Trace>) -> Verdict {
        every(self.checks.iter().map(|check| check.evaluate(job, trace)))
    }

    pub(super) fn reads_trace(&self) -> bool {
        self.checks.iter().any(Check::reads_trace)
    }
}

impl Check {
    fn reads_trace(&self) -> bool {
        match self {
            Self::Field(..) => false,
            Self::Message { .. } => true,
            Self::All(nodes) | Self::Any(nodes) | Self::Not(nodes) => nodes.iter().any(Matcher::reads_trace),
        }
    }

    fn evaluate(&self, job: &JobFields<'_>, trace: Option<&Trace>) -> Verdict {
        let each = |nodes: &[Matcher], join: fn(&mut dyn Iterator<Item = Verdict>) -> Verdict| {
            join(&mut nodes.iter().map(|node| node.evaluate(job, trace)))
        };
        match self {
            Self::Field(field, patterns) => Verdict::of(patterns.iter().any(|pattern| pattern.equals(field.of(job)))),
            Self::Message { patterns, tail_lines } => message(patterns, *tail_lines, trace),
            Self::All(nodes) => each(nodes, |verdicts| every(verdicts)),
            Self::Any(nodes) => each(nodes, |verdicts| one(verdicts)),
            Self::Not(nodes) => each(nodes, |verdicts| one(verdicts)).inverse(),
        }
    }
}

/// An empty log holds nothing, not even what matches the empty text.
fn message(patterns: &[Pattern], tail_lines: usize, trace: Option<&Trace>) -> Verdict {
    let Some(trace) = trace else { return Verdict::NeedsTrace };
    let text = trace.tail(tail_lines);
    match !trace.is_empty() && patterns.iter().any(|pattern| pattern.is_in(text)) {
        true => Verdict::Match,
        false if trace.is_complete() => Verdict::NoMatch,
        false => Verdict::Undecided,
    }
}

/// One that does not hold decides; then what is not known.
fn every(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut all = Verdict::Match;
    for verdict in verdicts {
        all = match (all, verdict) {
            (_, Verdict::NoMatch) => return Verdict::NoMatch,
            (Verdict::NeedsTrace, _) | (_, Verdict::NeedsTrace) => Verdict::NeedsTrace,
            (Verdict::Undecided, _) | (_, Verdict::Undecided) => Verdict::Undecided,
            _ => Verdict::Match,
        };
    }
    all
}

/// One that holds decides; then what is not known.
fn one(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut answer = Verdict::NoMatch;
    for verdict in verdicts {
        answer = match (answer, verdict) {
            (_, Verdict::Match) => return Verdict::Match,
            (Verdict::NeedsTrace, _) | (_, Verdict::NeedsTrace) => Verdict::NeedsTrace,
            (Verdict::Undecided, _) | (_, Verdict::Undecided) => Verdict::Undecided,
            _ => Verdict::NoMatch,
        };
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::config;
    use serde_json::json;

    const JOB: JobFields<'_> =
        JobFields { job_name: "unit-tests", stage: "test", failure_reason: "runner_system_failure", status: "failed" };

    fn says(tree: serde_json::Value, trace: Option<&Trace>) -> Verdict {
        config::matcher(&tree).unwrap().evaluate(&JOB, trace)
    }

    #[test]
    fn keys_of_a_node_all_hold_and_of_a_list_one_does() {
        use Verdict::{Match, NoMatch};
        let table = [
            (json!({"job_name": "unit-tests"}), Match),
            (json!({"job_name": "unit"}), NoMatch),
            (json!({"job_name": "/unit/"}), Match),
            (json!({"job_name": "/^tests/"}), NoMatch),
            (json!({"job_name": ["lint", "unit-tests"]}), Match),
            (json!({"job_name": "unit-tests", "stage": "build"}), NoMatch),
            (json!({"status": "failed", "failure_reason": "/^runner_/", "stage": "test"}), Match),
            (json!({"all": [{"stage": "test"}, {"not": {"job_name": "/^deploy/"}}]}), Match),
            (json!({"any": [{"stage": "build"}, {"stage": "test"}], "not": {"stage": "test"}}), NoMatch),
            (json!({"not": [{"stage": "build"}, {"stage": "deploy"}]}), Match),
            (json!({"not": {"not": {"any": [{"job_name": "x"}, {"all": [{"stage": "test"}]}]}}}), Match),
        ];
        for (tree, want) in table {
            assert_eq!(says(tree.clone(), None), want, "{tree}");
        }
    }

    #[test]
    fn the_log_is_asked_for_only_where_the_fields_leave_it_open() {
        use Verdict::{Match, NeedsTrace, NoMatch};
        let table = [
            (json!({"message": "x"}), NeedsTrace),
            (json!({"message": "x", "stage": "build"}), NoMatch),
            (json!({"message": "x", "stage": "test"}), NeedsTrace),
            (json!({"any": [{"message": "x"}, {"stage": "test"}]}), Match),
            (json!({"any": [{"message": "x"}, {"stage": "build"}]}), NeedsTrace),
            (json!({"not": {"message": "x"}}), NeedsTrace),
            (json!({"all": [{"message": "x"}, {"stage": "build"}]}), NoMatch),
            (json!({"not": {"message": "x", "stage": "build"}}), Match),
        ];
        for (tree, want) in table {
            assert_eq!(says(tree.clone(), None), want, "{tree}");
        }
    }

    #[test]
    fn a_log_that_is_not_complete_says_only_what_it_holds() {
        use Verdict::{Match, NoMatch, Undecided};
        let half = Trace::of_tail(b"$ make\nfatal: early EOF", false, false);
        let table = [
            (json!({"message": "early EOF"}), Match),
            (json!({"message": "system failure"}), Undecided),
            (json!({"not": {"message": "system failure"}}), Undecided),
            (json!({"not": {"message": "early EOF"}}), NoMatch),
            (json!({"any": [{"message": "system failure"}, {"stage": "test"}]}), Match),
            (json!({"all": [{"message": "system failure"}, {"stage": "build"}]}), NoMatch),
        ];
        for (tree, want) in table {
            assert_eq!(says(tree.clone(), Some(&half)), want, "{tree}");
        }
        let nothing_yet = Trace::of_tail(b"", false, false);
        assert_eq!(says(json!({"message": "/.*/"}), Some(&nothing_yet)), Undecided);
        assert_eq!(says(json!({"message": "/.*/"}), Some(&Trace::settled(b""))), NoMatch);
    }
}
