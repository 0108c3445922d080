//! The dimensions of the `mr` type.

use crate::item::{Dimension, DimensionKey};
use crate::outcome::RECHECK;
use crate::time::Timestamp;
use std::collections::BTreeMap;

macro_rules! dimensions {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name() -> DimensionKey {
            DimensionKey::new($text)
        }
    )*};
}

dimensions! {
    /// Branch, commit and merge request are to be made what the item wants.
    mr = "needs_mr";
    /// The note is to be posted or edited.
    dashboard = "needs_dashboard";
    /// Failed jobs are to be looked at.
    ci_retry = "needs_ci_retry";
    /// The diff is to be checked for emptiness.
    empty_check = "needs_empty_check";
    /// The merge request is to be read.
    reconcile = "needs_reconcile";
    /// Stands in for the cancel request where its action is deferred.
    close = "needs_close";
}

/// The dimensions a new item is born with.
#[must_use]
pub fn seed(now: Timestamp) -> BTreeMap<DimensionKey, Dimension> {
    BTreeMap::from([
        (mr(), Dimension::needed()),
        (ci_retry(), Dimension::done()),
        (empty_check(), Dimension::deferred(now.after(RECHECK), "regular check for an empty diff")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{NOW, in_seconds};

    #[test]
    fn a_new_item_makes_its_merge_request_first_and_checks_for_an_empty_diff_in_half_an_hour() {
        let want = BTreeMap::from([
            (DimensionKey::new("needs_mr"), Dimension::needed()),
            (DimensionKey::new("needs_ci_retry"), Dimension::done()),
            (DimensionKey::new("needs_empty_check"), Dimension::deferred(in_seconds(1800), "regular check for an empty diff")),
        ]);
        assert_eq!(seed(NOW), want);
    }
}
