//! What writes cost: DynamoDB's sizes of rows and the write units that follow from them (`README.md`, write units).

use crate::companion::Companion;
use crate::key::Key;
use crate::row::{self, Row};
use collie_core::id::ItemId;
use collie_core::item::{Item, Phase, TimelineEntry};
use collie_core::time::Timestamp;
use serde_json::{Number, Value};

/// The largest hot row that an enqueue may leave behind.
pub const ROW_LIMIT: usize = 8 * 1024;

/// Bytes of an item's hot row as DynamoDB counts them: attribute names and values, keys included.
#[must_use]
pub fn item_size(item: &Item) -> usize {
    row_size(&Key::item(&item.id), &row::of_item(item))
}

/// Bytes of a row.
pub(crate) fn row_size(key: &Key, row: &Row) -> usize {
    key.size() + row.iter().map(|(name, value)| name.len() + value_size(value)).sum::<usize>()
}

/// Bytes of one value.
pub(crate) fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 1,
        Value::Number(number) => number_size(number),
        Value::String(text) => packed_size(text).unwrap_or(text.len()),
        Value::Array(list) => 3 + list.iter().map(|v| 1 + value_size(v)).sum::<usize>(),
        Value::Object(map) => 3 + map.iter().map(|(name, v)| 1 + name.len() + value_size(v)).sum::<usize>(),
    }
}

/// Two digits per byte and one byte more; zeros at the ends do not count.
fn number_size(number: &Number) -> usize {
    let text = number.to_string();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len().div_ceil(2) + 1 + usize::from(text.starts_with('-'))
}

fn packed_size(text: &str) -> Option<usize> {
    crate::pack::pack(text).map(|bytes| bytes.len())
}

/// What a write's cost depends on: the size of an item's row, and what the indexes hold of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) size: usize,
    due_at: Option<Timestamp>,
    phase: Phase,
}

impl Footprint {
    pub(crate) fn of(item: &Item) -> Self {
        Self { size: item_size(item), due_at: item.due_at, phase: item.phase }
    }

    /// Units of a row that was not there before; the list and due indexes each get an entry.
    pub(crate) fn created(self) -> u32 {
        1 + u32::from(self.due_at.is_some())
    }

    /// Index units of going from `old` to this.
    fn index_units(self, old: Self) -> u32 {
        let due = match (old.due_at, self.due_at) {
            (Some(before), Some(after)) if before != after => 2,
            (None, Some(_)) | (Some(_), None) => 1,
            _ => 0,
        };
        due + u32::from(old.phase != self.phase)
    }
}

/// Units of one row's write: its larger image.
pub(crate) fn of_size(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).max(1)
}

/// Units of an item's row going from `old` to `new`, doubled where other rows are written in the same transaction.
pub(crate) fn of_change(old: Footprint, new: Footprint, others: &[Companion]) -> u32 {
    doubled(of_size(old.size.max(new.size)), others) + new.index_units(old)
}

/// Units of a refused condition: what the write would have cost without indexes, an absent row counting as a small one.
pub(crate) fn of_refusal(size: Option<usize>, others: &[Companion]) -> u32 {
    doubled(of_size(size.unwrap_or(0)), others)
}

/// Units of rows written in one transaction, without index entries.
pub(crate) fn of_rows(rows: &[Companion]) -> u32 {
    2 * sum(rows)
}

/// Units of a timeline entry.
pub(crate) fn of_timeline(id: &ItemId, entry: &TimelineEntry) -> u32 {
    of_size(row_size(&Key::log(id, entry), &row::of_timeline(entry)))
}

fn doubled(item: u32, others: &[Companion]) -> u32 {
    if others.is_empty() { item } else { 2 * (item + sum(others)) }
}

fn sum(rows: &[Companion]) -> u32 {
    rows.iter().map(|row| of_size(row_size(&row.key, &row.row))).sum()
}
