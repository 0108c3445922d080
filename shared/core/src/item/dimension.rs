//! Readiness signals that move on their own (DDR-1, 3, 38, 45, 48).

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A trigger such as `needs_mr`, with an optional variant after `|`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DimensionKey(String);

impl DimensionKey {
    /// The dimension without a variant.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The dimension of one variant.
    #[must_use]
    pub fn with_variant(name: &str, variant: &str) -> Self {
        Self(format!("{name}|{variant}"))
    }

    /// The name without the variant.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('|').map_or(self.0.as_str(), |(name, _)| name)
    }

    /// The variant.
    #[must_use]
    pub fn variant(&self) -> Option<&str> {
        self.0.split_once('|').map(|(_, variant)| variant)
    }

    /// The text rows use.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DimensionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether there is something to do; rows say `"true"` or `"false"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Something is to be done.
    True,
    /// Nothing is to be done.
    False,
}

/// One readiness signal. The default, something to do at once, is what an absent one means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// Whether there is something to do.
    pub status: Status,
    /// Not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_until: Option<Timestamp>,
    /// Why it waits, or what it is about; small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<serde_json::Value>,
}

impl Default for Dimension {
    fn default() -> Self {
        Self { status: Status::True, pending_until: None, detail: None }
    }
}

impl Dimension {
    /// Something to do, at once.
    #[must_use]
    pub fn needed() -> Self {
        Self::default()
    }

    /// Nothing to do.
    #[must_use]
    pub fn done() -> Self {
        Self { status: Status::False, ..Self::default() }
    }

    /// Something to do, not before `until`, because of `why`.
    #[must_use]
    pub fn deferred(until: Timestamp, why: &str) -> Self {
        Self { pending_until: Some(until), detail: Some(serde_json::json!({ "why": why })), ..Self::default() }
    }

    /// Whether there is something to do at all, now or later.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.status == Status::True
    }

    /// Until when a needed one waits; none where it is actionable now or not needed.
    #[must_use]
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.pending_until.filter(|&until| self.is_needed() && until > now)
    }

    /// Whether there is something to do now.
    #[must_use]
    pub fn is_actionable(&self, now: Timestamp) -> bool {
        self.is_needed() && self.waits_until(now).is_none()
    }

    /// Why it waits, for people.
    #[must_use]
    pub fn why(&self) -> &str {
        self.detail.as_ref().and_then(|d| d.get("why")).and_then(serde_json::Value::as_str).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_dimension_is_actionable_and_a_deferred_one_is_not_until_its_time() {
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
        assert!(Dimension::default().is_actionable(early));
        assert!(!Dimension::done().is_actionable(early));
        let deferred = Dimension::deferred(late, "pipeline");
        assert_eq!((deferred.is_actionable(early), deferred.waits_until(early)), (false, Some(late)));
        assert_eq!((deferred.is_actionable(late), deferred.waits_until(late)), (true, None));
        assert_eq!(deferred.why(), "pipeline");
    }

    #[test]
    fn a_key_keeps_name_and_variant_apart() {
        let key = DimensionKey::with_variant("needs_build", "api");
        assert_eq!((key.name(), key.variant(), key.as_str()), ("needs_build", Some("api"), "needs_build|api"));
        assert_eq!(DimensionKey::new("needs_mr").variant(), None);
    }
}
