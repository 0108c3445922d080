//! Retrying failed CI jobs (DDR-47): which jobs a project's rules name, and when each of them is retried.
//!
//! * [`config`] reads the rules once, with all problems at once.
//! * [`matcher`] says of a job, and of its log where that is needed: match, no match, or not known yet.
//! * [`trace`] turns a job's log into the text that patterns see.
//! * [`plan`] decides from a pipeline's jobs which of them are retried now, which later, and which not any more.
//!
//! Everything is linear in its input: patterns are compiled when configuration loads, by an engine that does not backtrack. What
//! asks GitLab, and retries, is the executor; that a job is retried once is held by GitLab, which refuses a second retry of one try.

pub mod config;
pub mod matcher;
pub mod plan;
pub mod trace;

pub use config::{ConfigError, RetryRule, RetryRules};
pub use matcher::{JobFields, Matcher, Verdict};
pub use plan::{Halt, JobPlan, Judged, Judgement, Plan, Step};
pub use trace::Trace;

#[cfg(test)]
mod cases;
