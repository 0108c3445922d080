//! What is counted for operators, as tracing events of one target: name, value, unit, and fields that tell them apart. The shell of
//! a function turns them into CloudWatch metrics; elsewhere they are lines of a log at DEBUG, since some come with every tick.
//!
//! Fields have few values each, and none of them is a caller's text.

use std::time::Duration;

/// The target of all metrics.
pub const TARGET: &str = "collie::metric";

/// An action of a run, and how it went: `progress`, or the code of its failure.
pub(crate) fn action(action: &str, outcome: &str, took: Duration) {
    tracing::debug!(target: TARGET, metric = "Actions", unit = "Count", value = 1_u64, action, outcome);
    tracing::debug!(target: TARGET, metric = "ActionTime", unit = "Milliseconds", value = millis(took), action);
}

/// A request to GitLab, and the status of its answer; none where there was no answer.
pub fn gitlab_call(call: &str, status: Option<u16>) {
    let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
    tracing::debug!(target: TARGET, metric = "GitLabCalls", unit = "Count", value = 1_u64, call, status);
}

/// A change of a row that was refused, because someone else moved the row.
pub(crate) fn conflict(change: &str) {
    tracing::debug!(target: TARGET, metric = "Conflicts", unit = "Count", value = 1_u64, change);
}

/// A change of a row that was sent again, because the store did not say what became of it.
pub(crate) fn resent(change: &str) {
    tracing::debug!(target: TARGET, metric = "StoreRetries", unit = "Count", value = 1_u64, change);
}

/// An item came to a phase.
pub(crate) fn phase(phase: &str) {
    tracing::debug!(target: TARGET, metric = "Items", unit = "Count", value = 1_u64, phase);
}

/// How long the longest overdue item has been due.
pub(crate) fn due_lag(lag: Duration) {
    tracing::debug!(target: TARGET, metric = "DueLag", unit = "Milliseconds", value = millis(lag));
}

/// A delivery with the right secret that is not what GitLab sends.
pub(crate) fn malformed_hook() {
    tracing::debug!(target: TARGET, metric = "MalformedHooks", unit = "Count", value = 1_u64);
}

/// What came of one delivery of a tracking job.
pub(crate) fn delivery(outcome: &str) {
    tracing::debug!(target: TARGET, metric = "TrackingDeliveries", unit = "Count", value = 1_u64, outcome);
}

/// A tracking job was given to recovery.
pub(crate) fn dead_letter(reason: &str) {
    tracing::debug!(target: TARGET, metric = "TrackingDeadLetters", unit = "Count", value = 1_u64, reason);
}

/// A queue gave a message up.
pub(crate) fn letter(origin: &str) {
    tracing::debug!(target: TARGET, metric = "DeadLetters", unit = "Count", value = 1_u64, origin);
}

/// What came of one recovery of a tracking job.
pub(crate) fn recovery(outcome: &str) {
    tracing::debug!(target: TARGET, metric = "TrackingRecoveries", unit = "Count", value = 1_u64, outcome);
}

/// Issue tracking met what must not happen.
pub(crate) fn tracking_alarm(alarm: &str) {
    tracing::debug!(target: TARGET, metric = "TrackingAlarms", unit = "Count", value = 1_u64, alarm);
}

/// How long the oldest job of a queue has been registered.
pub(crate) fn head_age(queue: &str, age: Duration) {
    tracing::debug!(target: TARGET, metric = "TrackingHeadAge", unit = "Milliseconds", value = millis(age), queue);
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
