//! How many changes one identity may ask for: a token bucket. Pure; what is left is a value that callers store.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Parts of one token, so that a bucket fills evenly between whole ones.
const PARTS: u64 = 1_000;
const MINUTE_MS: u64 = 60_000;

/// A limit: so many at once, and so many again in each minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Tokens a minute; also what a full bucket holds.
    pub per_minute: u32,
}

/// What an identity has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Thousandths of a token.
    pub parts: u64,
    /// When that was so.
    pub at: Timestamp,
}

/// What came of drawing tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// So many, at least one, and what is left.
    Tokens(u32, Bucket),
    /// None; there will be one after this long.
    Empty(Duration),
}

impl Limit {
    /// Draws up to `most` tokens. An identity without a bucket has a full one; a clock that went back refills nothing.
    #[must_use]
    pub fn draw(self, bucket: Option<Bucket>, most: u32, now: Timestamp) -> Drawn {
        let parts = bucket.map_or(self.full(), |bucket| self.refilled(bucket, now));
        let at = bucket.map_or(now, |bucket| bucket.at.max(now));
        let tokens = u32::try_from(parts / PARTS).unwrap_or(u32::MAX).min(most);
        if tokens == 0 {
            return Drawn::Empty(self.time_for(PARTS.saturating_sub(parts)));
        }
        Drawn::Tokens(tokens, Bucket { parts: parts - u64::from(tokens) * PARTS, at })
    }

    fn full(self) -> u64 {
        u64::from(self.per_minute) * PARTS
    }

    fn refilled(self, bucket: Bucket, now: Timestamp) -> u64 {
        let elapsed = u64::try_from(now.since(bucket.at).as_millis()).unwrap_or(u64::MAX).min(MINUTE_MS);
        (bucket.parts + elapsed * self.full() / MINUTE_MS).min(self.full())
    }

    fn time_for(self, parts: u64) -> Duration {
        Duration::from_millis((parts * MINUTE_MS).div_ceil(self.full().max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: Limit = Limit { per_minute: 6 };

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + ms)
    }

    #[test]
    fn a_full_bucket_gives_a_minutes_tokens_and_then_one_at_a_time() {
        let Drawn::Tokens(6, empty) = LIMIT.draw(None, 10, at(0)) else { panic!("a new identity has a full bucket") };
        assert_eq!(LIMIT.draw(Some(empty), 1, at(0)), Drawn::Empty(Duration::from_secs(10)));
        assert_eq!(LIMIT.draw(Some(empty), 1, at(9_999)), Drawn::Empty(Duration::from_millis(10)));
        assert_eq!(LIMIT.draw(Some(empty), 1, at(10_000)), Drawn::Tokens(1, Bucket { parts: 0, at: at(10_000) }));
        assert_eq!(LIMIT.draw(Some(empty), 10, at(3_600_000)), Drawn::Tokens(6, Bucket { parts: 0, at: at(3_600_000) }));
    }

    #[test]
    fn a_clock_that_went_back_refills_nothing_and_takes_nothing() {
        let bucket = Bucket { parts: 1_500, at: at(60_000) };
        assert_eq!(LIMIT.draw(Some(bucket), 1, at(0)), Drawn::Tokens(1, Bucket { parts: 500, at: at(60_000) }));
    }

    proptest! {
        /// However the calls come, no identity gets more than a full bucket and what a steady flow gives.
        #[test]
        fn nobody_gets_more_than_the_limit(per_minute in 1u32..2_000, gaps in proptest::collection::vec((0u64..90_000, 1u32..50), 1..60)) {
            let limit = Limit { per_minute };
            let (mut bucket, mut now, mut got) = (None, 0, 0u64);
            for (gap, most) in gaps {
                now += gap;
                if let Drawn::Tokens(tokens, left) = limit.draw(bucket, most, at(now)) {
                    got += u64::from(tokens);
                    bucket = Some(left);
                }
            }
            prop_assert!(got * MINUTE_MS <= u64::from(per_minute) * (MINUTE_MS + now));
        }
    }
}
