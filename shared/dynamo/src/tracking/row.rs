//! A row of issue tracking: its columns are one map, `d`, so that one expression replaces or keeps all of them; and where it is not kept
//! for ever, `exp`.

use crate::row::Row as Attributes;
use crate::schema::TTL_ATTRIBUTE;
use collie_core::error::Failure;
use collie_core::issue::row::{Row, Set};
use collie_core::time::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// How long build issues and the history of requests are kept: 180 days after the tracking of their request, and the week that a queue
/// may let a job wait at most. Counted from when they were written, since they are never written again.
pub const KEPT: Duration = Duration::from_secs(187 * 24 * 60 * 60);

/// The attribute that holds the columns.
pub(crate) const COLUMNS: &str = "d";

/// When a row is not needed any more; none where it is kept for ever.
pub(crate) fn expiry(row: &Row, kept: Duration) -> Option<u64> {
    let written: Timestamp = match row {
        Row::BuildIssue(issue) => issue.first_reported_at,
        Row::History(entry) => entry.at,
        _ => return None,
    };
    Some(written.after(kept).as_millis() / 1000)
}

/// The attributes of a row.
pub(crate) fn attributes(row: &Row, kept: Duration) -> Attributes {
    let expiry = expiry(row, kept).map(|at| (TTL_ATTRIBUTE.to_owned(), Value::from(at)));
    std::iter::once((COLUMNS.to_owned(), row.columns())).chain(expiry).collect()
}

/// The row of attributes; those of a newer version are left alone.
///
/// # Errors
/// A `Bug` where they do not hold what a row of the set needs.
pub(crate) fn read(set: &Set, mut attributes: Attributes) -> Result<Row, Failure> {
    let columns = attributes.remove(COLUMNS).unwrap_or_default();
    Row::read(set, columns).map_err(|e| Failure::bug(format!("a stored row of issue tracking cannot be read: {e}")))
}
