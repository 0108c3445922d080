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
        Self(self.0.saturating_add(millis(by)))
    }

    /// This much earlier, not before the epoch.
    #[must_use]
    pub const fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
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

/// Reads a length of time as configuration writes it: `0s`, `3m`, `1h`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_number)?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

const fn millis(of: Duration) -> u64 {
    let millis = of.as_millis();
    if millis > u64::MAX as u128 { u64::MAX } else { millis as u64 }
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
    use proptest::prelude::*;

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

    #[test]
    fn what_no_calendar_holds_is_still_shown_and_what_is_before_1970_is_not_read() {
        assert_eq!(Timestamp::from_millis(u64::MAX).to_string(), "18446744073709551615 ms after 1970");
        for text in ["1969-12-31T23:59:59Z", "1969-12-31 23:59:59 UTC", "2026-13-01T00:00:00Z", "2026-01-31 18:04:04", ""] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_stops_at_the_ends_of_time() {
        let (first, last) = (Timestamp::from_millis(0), Timestamp::from_millis(u64::MAX));
        assert_eq!((first.before(SKEW), last.after(SKEW)), (first, last));
        assert_eq!((last.before(Duration::MAX), first.after(Duration::MAX)), (first, last));
        assert_eq!((first.since(last), last.since(first)), (Duration::ZERO, Duration::from_millis(u64::MAX)));
    }

    /// Milliseconds until the year 9999.
    fn any_time() -> impl Strategy<Value = Timestamp> {
        (0..253_402_000_000_000_u64).prop_map(Timestamp::from_millis)
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(at in any_time()) {
            prop_assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        }

        #[test]
        fn rows_hold_plain_milliseconds(at in any_time()) {
            let text = serde_json::to_string(&at).unwrap();
            prop_assert_eq!(&text, &at.as_millis().to_string());
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), at);
        }

        #[test]
        fn later_and_earlier_undo_each_other(at in any_time(), ms in 0..1_000_000_000_u64) {
            let by = Duration::from_millis(ms);
            prop_assert_eq!((at.after(by).before(by), at.after(by).since(at)), (at, by));
        }

        #[test]
        fn the_legacy_text_is_read_in_any_zone(seconds in 0..4_000_000_000_u64, hours in 0_u64..14) {
            let at = Timestamp::from_millis(seconds * 1000);
            let local = at.after(Duration::from_secs(hours * 3600)).to_string();
            let text = format!("{} {} +{hours:02}00", &local[..10], &local[11..19]);
            prop_assert_eq!(Timestamp::parse(&text), Some(at));
        }

        #[test]
        fn reading_is_total(text in "\\PC{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
