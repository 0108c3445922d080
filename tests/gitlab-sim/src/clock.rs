//! Time: a clock that tests move by hand or the wall's, and how long GitLab's background work takes.

use serde::{Deserialize, Serialize};

/// Where a manual clock starts, in ms since the epoch.
pub const MANUAL_START_MS: u64 = 1_780_000_000_000;

/// Which clock a simulator follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Virtual time, moved only by `advance_to` and `advance_by`.
    Manual,
    /// The time of the machine.
    Wall,
}

/// Delays of GitLab's background work, in ms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// From creation of a merge request until it is prepared.
    pub mr_preparation_ms: u64,
    /// How long a mergeability check takes.
    pub mergeability_check_ms: u64,
    /// From a push until merge requests, hooks and events know of it.
    pub push_processing_ms: u64,
    /// From a push (or preparation) until the pipeline exists.
    pub pipeline_creation_ms: u64,
    /// How long a pending job waits for a runner.
    pub job_pickup_ms: u64,
    /// How long a job runs when no rule says otherwise.
    pub job_run_ms: u64,
    /// From an event until its hook is sent.
    pub hook_delivery_ms: u64,
    /// From a merge until the source branch is removed.
    pub branch_removal_ms: u64,
    /// How long a rebase takes.
    pub rebase_ms: u64,
    /// How long the cached branch list lags behind a plain git push.
    pub branch_cache_lag_ms: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            mr_preparation_ms: 2_000,
            mergeability_check_ms: 1_000,
            push_processing_ms: 500,
            pipeline_creation_ms: 1_000,
            job_pickup_ms: 1_000,
            job_run_ms: 10_000,
            hook_delivery_ms: 300,
            branch_removal_ms: 2_000,
            rebase_ms: 1_500,
            branch_cache_lag_ms: 2_000,
        }
    }
}

impl Timing {
    /// Short delays for demonstrations on the wall clock.
    pub fn quick() -> Self {
        Self {
            mr_preparation_ms: 300,
            mergeability_check_ms: 200,
            push_processing_ms: 100,
            pipeline_creation_ms: 200,
            job_pickup_ms: 200,
            job_run_ms: 1_000,
            hook_delivery_ms: 50,
            branch_removal_ms: 300,
            rebase_ms: 300,
            branch_cache_lag_ms: 200,
        }
    }
}

/// The machine's time, in ms since the epoch.
#[allow(clippy::disallowed_methods, reason = "the one place where the simulator reads the wall clock")]
pub(crate) fn wall_now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn format_ms(at_ms: u64, pattern: &str) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.unwrap_or(jiff::Timestamp::UNIX_EPOCH).strftime(pattern).to_string()
}

/// API time: `2026-01-31T18:03:54.120Z`.
pub(crate) fn iso(at_ms: u64) -> String {
    format_ms(at_ms, "%Y-%m-%dT%H:%M:%S.%3fZ")
}

/// Commit time in the API: whole seconds with an offset.
pub(crate) fn commit_time(at_ms: u64) -> String {
    format_ms(at_ms / 1000 * 1000, "%Y-%m-%dT%H:%M:%S.000+00:00")
}

/// Commit time in hooks.
pub(crate) fn hook_commit_time(at_ms: u64) -> String {
    format_ms(at_ms, "%Y-%m-%dT%H:%M:%S+00:00")
}

/// Second-resolution ISO text, as the `*_iso` fields of job hooks.
pub(crate) fn iso_seconds(at_ms: u64) -> String {
    format_ms(at_ms, "%Y-%m-%dT%H:%M:%SZ")
}

/// The text hooks used up to 18.x: `2026-01-31 18:04:10 UTC`.
pub(crate) fn legacy(at_ms: u64) -> String {
    format_ms(at_ms, "%Y-%m-%d %H:%M:%S UTC")
}

/// HTTP date, as in `RateLimit-ResetTime`.
pub(crate) fn http_date(at_ms: u64) -> String {
    format_ms(at_ms, "%a, %d %b %Y %H:%M:%S GMT")
}

/// Parses ISO 8601 or an HTTP date into ms since the epoch.
pub(crate) fn parse_time(text: &str) -> Option<u64> {
    let ms = match text.parse::<jiff::Timestamp>() {
        Ok(at) => at.as_millisecond(),
        Err(_) => jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_millisecond(),
    };
    u64::try_from(ms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_texts() {
        let at = 1_769_882_634_120;
        assert_eq!(iso(at), "2026-01-31T18:03:54.120Z");
        assert_eq!(commit_time(at), "2026-01-31T18:03:54.000+00:00");
        assert_eq!(legacy(at), "2026-01-31 18:03:54 UTC");
        assert_eq!(http_date(at), "Sat, 31 Jan 2026 18:03:54 GMT");
        assert_eq!(parse_time("Sat, 31 Jan 2026 18:03:54 GMT"), Some(1_769_882_634_000));
        assert_eq!(parse_time("2026-01-31T18:03:54.120Z"), Some(at));
    }
}
