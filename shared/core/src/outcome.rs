//! What an executor brings back, and how it becomes the item's next state (DDR-15).
//!
//! An outcome is a difference, not a row: where callers or events moved the item meanwhile, it is applied to the row as
//! it is then, and each dimension that an enqueue wrote later stays as the enqueue wrote it.

use crate::error::{Class, Failure};
use crate::item::{Blocked, BlockedReason, Dimension, DimensionKey, Document, Item, LastError, Outage, Phase, ResultKind};
use crate::time::Timestamp;
use std::time::Duration;

/// How long an unreachable forge is waited for before the item ends `forge_unreachable`.
pub const MAX_OUTAGE: Duration = Duration::from_secs(24 * 3600);
/// How long an item that is blocked, or has nothing else to do, waits before it is reconciled.
pub const RECHECK: Duration = Duration::from_secs(30 * 60);
/// Over how long those who wait for the same host come back.
const THROTTLE_SPREAD: Duration = Duration::from_secs(10);
/// The longest wait for a host that says "slow down" and not for how long.
const LONGEST_THROTTLE: Duration = Duration::from_secs(3600);
const BACKOFF_BASE: Duration = Duration::from_secs(5);
const BACKOFF_CAP: Duration = Duration::from_secs(600);

/// What one action did.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The type's facts as they are now known; kept even where the action failed.
    pub facts: Option<Document>,
    /// Dimensions it sets.
    pub dims: Vec<(DimensionKey, Dimension)>,
    /// Whether it blocks or frees the item.
    pub block: Block,
    /// Whether it ends the item.
    pub end: Option<End>,
    /// How it went.
    pub effort: Effort,
    /// For people: timeline and audit.
    pub summary: String,
}

/// What happens to `blocked`.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// It stays.
    Keep,
    /// The item is blocked; an unchanged reason keeps its `since`.
    Set(BlockedReason, String),
    /// The cause is gone.
    Clear,
}

/// How an item ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// As wanted.
    Completed(ResultKind),
    /// By someone's wish.
    Cancelled(ResultKind),
    /// By an error.
    Failed(Failure),
}

/// How an action went.
#[derive(Debug, Clone, PartialEq)]
pub enum Effort {
    /// It did what it was to do: `attempts` and `outage` start anew.
    Progress,
    /// It failed in a way that counts as an attempt.
    Attempt(Failure),
    /// The forge could not be reached or answered 5xx.
    Outage(Failure),
    /// It was told to wait; nothing is counted.
    Waited(Failure),
}

impl Outcome {
    /// An outcome that went well and changes nothing by itself.
    pub fn progress(summary: impl Into<String>) -> Self {
        Self { facts: None, dims: Vec::new(), block: Block::Keep, end: None, effort: Effort::Progress, summary: summary.into() }
    }

    /// How it went, in a word: `progress`, or the code of the failure.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (&self.end, &self.effort) {
            (Some(End::Failed(failure)), _) | (_, Effort::Attempt(failure) | Effort::Outage(failure) | Effort::Waited(failure)) => {
                failure.code
            }
            (_, Effort::Progress) => "progress",
        }
    }

    /// The same with a dimension set.
    #[must_use]
    pub fn with(mut self, key: DimensionKey, dimension: Dimension) -> Self {
        self.dims.push((key, dimension));
        self
    }

    /// The same with facts.
    #[must_use]
    pub fn knowing(mut self, facts: Document) -> Self {
        self.facts = Some(facts);
        self
    }

    /// The same, ending the item.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.end = Some(end);
        self
    }

    /// The same, blocking or freeing the item.
    #[must_use]
    pub fn blocking(mut self, block: Block) -> Self {
        self.block = block;
        self
    }

    /// Applies the outcome to a row. Dimensions that an enqueue after `seen` wrote stay; if a caller moved `rev` since
    /// `rev`, neither attempts nor errors nor an end `failed` or `no_change` are written, since they were about something else. An
    /// enqueue after `seen` may be about what had not come up yet when the item was found resolved, so that it is not.
    pub fn apply(&self, item: &mut Item, seen: u64, rev: u64, now: Timestamp) {
        for (key, dimension) in &self.dims {
            if item.dim_seq.get(key).is_none_or(|&at| at <= seen) {
                item.dims.insert(key.clone(), dimension.clone());
            }
        }
        if let Some(facts) = &self.facts {
            item.facts = facts.clone();
        }
        self.apply_block(item, now);
        if item.rev == rev {
            self.apply_effort(item, now);
        }
        match &self.end {
            Some(End::Failed(_) | End::Completed(ResultKind::NoChange)) if item.rev != rev => {}
            Some(End::Completed(ResultKind::Resolved)) if item.dim_seq.values().any(|&at| at > seen) => {}
            Some(end) => apply_end(item, end, now),
            None => {}
        }
        item.updated_at = now;
    }

    fn apply_block(&self, item: &mut Item, now: Timestamp) {
        match &self.block {
            Block::Keep => {}
            Block::Clear => item.blocked = None,
            Block::Set(reason, detail) => {
                let since = item.blocked.as_ref().filter(|b| b.reason == *reason).map_or(now, |b| b.since);
                item.blocked = Some(Blocked { reason: *reason, since, detail: detail.clone() });
            }
        }
    }

    fn apply_effort(&self, item: &mut Item, now: Timestamp) {
        if let Effort::Attempt(failure) | Effort::Waited(failure) = &self.effort
            && was_answered(failure)
        {
            item.outage = None;
        }
        match &self.effort {
            Effort::Progress => {
                item.attempts = 0;
                item.outage = None;
                item.last_error = None;
            }
            Effort::Attempt(failure) => {
                item.attempts += 1;
                item.last_error = Some(LastError::of(failure, now));
            }
            Effort::Outage(failure) => {
                let outage = item.outage.get_or_insert(Outage { since: now, tries: 0 });
                outage.tries += 1;
                item.last_error = Some(LastError::of(failure, now));
            }
            Effort::Waited(failure) => item.last_error = Some(LastError::of(failure, now)),
        }
    }
}

/// Whether the forge was there and answered, which ends an outage.
fn was_answered(failure: &Failure) -> bool {
    matches!(failure.class, Class::Transient { answered: true } | Class::Throttled { .. } | Class::Unauthorized)
}

fn apply_end(item: &mut Item, end: &End, now: Timestamp) {
    item.blocked = None;
    item.cancel_requested = None;
    match end {
        End::Completed(result) => (item.phase, item.result) = (Phase::Completed, Some(*result)),
        End::Cancelled(result) => (item.phase, item.result) = (Phase::Cancelled, Some(*result)),
        End::Failed(failure) => {
            (item.phase, item.result) = (Phase::Failed, None);
            item.last_error = Some(LastError::of(failure, now));
        }
    }
}

/// What a failed action means: its class decides (`design.md` §5). `dimension` is the one whose turn it was.
#[must_use]
pub fn of_failure(failure: Failure, item: &Item, dimension: &DimensionKey, max_attempts: u32, jitter: f64, now: Timestamp) -> Outcome {
    let summary = failure.to_string();
    let outcome = Outcome::progress(summary);
    let defer = |until, why: &str| (dimension.clone(), Dimension::deferred(until, why));
    match failure.class {
        Class::Rejected | Class::Gone => outcome.ending(End::Failed(failure)),
        Class::Unauthorized => {
            let (key, dim) = defer(now.after(RECHECK), "the forge refuses the credential");
            let detail = failure.message.clone();
            Outcome { effort: Effort::Waited(failure), ..outcome }.with(key, dim).blocking(Block::Set(BlockedReason::Auth, detail))
        }
        Class::Throttled { until } => {
            let (key, dim) = defer(until.after(THROTTLE_SPREAD.mul_f64(jitter.clamp(0.0, 1.0))), "GitLab asked to slow down");
            Outcome { effort: Effort::Waited(failure), ..outcome }.with(key, dim)
        }
        Class::Transient { answered: false } | Class::Indeterminate => {
            if item.outage.is_some_and(|o| now.since(o.since) >= MAX_OUTAGE) {
                let end = Failure::new(
                    Class::Rejected,
                    "forge_unreachable",
                    format!("GitLab has not answered for 24 hours: {}", failure.message),
                );
                return outcome.ending(End::Failed(end));
            }
            let tries = item.outage.map_or(0, |o| o.tries);
            let (key, dim) = defer(now.after(backoff(tries, jitter)), "GitLab does not answer");
            Outcome { effort: Effort::Outage(failure), ..outcome }.with(key, dim)
        }
        Class::Transient { answered: true } | Class::Conflict | Class::Bug => {
            if item.attempts + 1 >= max_attempts {
                return Outcome { effort: Effort::Attempt(failure.clone()), ..outcome }.ending(End::Failed(failure));
            }
            let (key, dim) = defer(now.after(backoff(item.attempts, jitter)), "trying again after an error");
            Outcome { effort: Effort::Attempt(failure), ..outcome }.with(key, dim)
        }
    }
}

/// The code of a refusal that says "slow down" and not for how long.
pub const THROTTLED_UNTIMED: &str = "forge_throttled_untimed";

/// The same failure, with a longer wait where the host refuses again and does not say for how long: twice the time since the last
/// refusal, at most an hour, so that limits with windows of ten minutes are outlasted.
#[must_use]
pub fn lengthened(failure: Failure, item: &Item, now: Timestamp) -> Failure {
    let (Class::Throttled { until }, THROTTLED_UNTIMED) = (failure.class, failure.code) else { return failure };
    let Some(last) = item.last_error.as_ref().filter(|last| last.code == THROTTLED_UNTIMED) else { return failure };
    let twice = now.since(last.at).saturating_mul(2).min(LONGEST_THROTTLE);
    Failure { class: Class::Throttled { until: until.max(now.after(twice)) }, ..failure }
}

/// Exponential backoff with full jitter: between zero and `5 s · 2^tries`, at most 10 minutes, never below one second.
#[must_use]
pub fn backoff(tries: u32, jitter: f64) -> Duration {
    let ceiling = BACKOFF_BASE.saturating_mul(1 << tries.min(10)).min(BACKOFF_CAP);
    ceiling.mul_f64(jitter.clamp(0.0, 1.0)).max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
