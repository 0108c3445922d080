//! Names of queues, requests and builds. Requests are ordered by number; builds have no order of their own.

use crate::id::text_id;
use serde::{Deserialize, Serialize};
use std::fmt;

text_id! {
    /// A tracked line of builds, such as one project's main branch; a configured slug.
    QueueName;
    /// A build, as its CI names it. Opaque, never compared for order.
    BuildId;
}

/// A request's number within its queue: positive, never used twice, compared as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(u64);

impl RequestId {
    /// The largest number, so that every language's signed integer holds it.
    const MAX: u64 = i64::MAX as u64;

    /// The request with this number; none for zero and for what is too large.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number == 0 || number > Self::MAX { None } else { Some(Self(number)) }
    }

    /// The request after `latest`, or the first. None where the numbers have run out.
    #[must_use]
    pub const fn after(latest: Option<Self>) -> Option<Self> {
        match latest {
            None => Some(Self(1)),
            Some(Self(number)) => Self::new(number + 1),
        }
    }

    /// Reads the canonical decimal: no sign, no leading zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = Self::new(text.parse().ok()?)?;
        (id.to_string() == text).then_some(id)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Twenty digits, which sort as text the way numbers sort.
    #[must_use]
    pub fn padded(self) -> String {
        format!("{:020}", self.0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A build and the request that it was made for: the request gives the order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// The order.
    pub request: RequestId,
    /// The build.
    pub build: BuildId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> RequestId {
        RequestId::new(number).unwrap()
    }

    #[test]
    fn only_the_canonical_decimal_is_read() {
        assert_eq!(RequestId::parse("10"), Some(id(10)));
        for bad in ["", "0", "-1", "+1", "01", "1 ", "request/q/1", "9223372036854775808", "18446744073709551616", "1.0"] {
            assert_eq!(RequestId::parse(bad), None, "{bad}");
        }
        assert_eq!(RequestId::parse("9223372036854775807").map(RequestId::number), Some(i64::MAX as u64));
    }

    #[test]
    fn requests_sort_as_numbers_also_where_they_are_text() {
        for (earlier, later) in [(9, 10), (99, 100), (2, 10)] {
            assert!(id(earlier) < id(later) && id(earlier).padded() < id(later).padded());
            assert!(id(earlier).to_string() > id(later).to_string(), "plain text would sort them the wrong way");
        }
    }

    #[test]
    fn numbers_start_at_one_and_end() {
        assert_eq!((RequestId::after(None), RequestId::after(Some(id(9)))), (Some(id(1)), Some(id(10))));
        assert_eq!(RequestId::after(RequestId::new(i64::MAX as u64)), None);
    }
}
