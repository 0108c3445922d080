//! Points in time as every row, port and decision carries them: milliseconds since the Unix epoch.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How far two writers' clocks may differ; every bound that involves another writer's time allows for it.
pub const SKEW: Duration = Duration::from_secs(5);

/// Milliseconds since the Unix epoch, as the writer's clock had it. Shown as RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point `ms` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This much later.
    #[must_use]
    pub const fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.as_millis() as u64))
    }

    /// This much earlier, not before the epoch.
    #[must_use]
    pub const fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by.as_millis() as u64))
    }

    /// How long from `earlier` to this; zero where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Reads RFC 3339, and the legacy text of GitLab's hooks: `2026-01-31 19:04:04 UTC` or `… +0100`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let at: jiff::Timestamp = text.parse().ok().or_else(|| parse_legacy(text))?;
        u64::try_from(at.as_millisecond()).ok().map(Self)
    }
}

fn parse_legacy(text: &str) -> Option<jiff::Timestamp> {
    let text = text.replace(" UTC", " +0000");
    let zoned = jiff::fmt::strtime::parse("%Y-%m-%d %H:%M:%S %z", &text).ok()?;
    zoned.to_timestamp().ok()
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(ms) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms after 1970", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_three_forms_that_gitlab_writes() {
        let want = Some(Timestamp::from_millis(1_769_882_644_000));
        for text in ["2026-01-31 18:04:04 UTC", "2026-01-31 19:04:04 +0100", "2026-01-31T18:04:04.000Z", "2026-01-31T19:04:04+01:00"] {
            assert_eq!(Timestamp::parse(text), want, "{text}");
        }
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn shows_rfc_3339_in_utc_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_769_882_644_120).to_string(), "2026-01-31T18:04:04.120Z");
    }
}
