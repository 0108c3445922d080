//! What writes of issue tracking cost, by the sizes of their rows. One edit: the larger of the row before and after; refused, the row as
//! it is. Several: twice each row as it is written, whether or not it happens; of a row that a transaction changes or removes, its writer
//! does not know the size, and it is taken for a small one.

use super::{place, row};
use crate::units::{of_size, row_size};
use collie_core::issue::id::QueueName;
use collie_core::issue::row::{Row, RowKey};
use collie_core::issue::table::Edit;
use std::time::Duration;

/// Units of a write of one edit on the row as it is.
pub(crate) fn of_one(queue: &QueueName, edit: &Edit, old: Option<&Row>, kept: Duration) -> u32 {
    let key = edit.key();
    let size = |row: Option<&Row>| row.map_or(0, |row| size(queue, &key, row, kept));
    let new = edit.apply(old).filter(|_| edit.is_admitted(old));
    of_size(size(old).max(size(new.as_ref())))
}

/// Units of a write of several edits.
pub(crate) fn of_all(queue: &QueueName, edits: &[Edit], kept: Duration) -> u32 {
    let written = |edit: &Edit| match edit {
        Edit::Put(key, row, _) | Edit::Keep(key, row) => size(queue, key, row, kept),
        Edit::Remove(_) | Edit::Change(..) => 0,
    };
    2 * edits.iter().map(|edit| of_size(written(edit))).sum::<u32>()
}

/// Bytes of a row as DynamoDB counts them.
fn size(queue: &QueueName, key: &RowKey, row: &Row, kept: Duration) -> usize {
    row_size(&place::key(queue, key), &row::attributes(row, kept))
}
