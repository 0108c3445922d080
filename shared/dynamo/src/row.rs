//! An item as a row: each field one attribute with a short name, so that a typical row stays within two write units.
//!
//! A row is a JSON object here; [`crate::units`] measures it and the DynamoDB adapter turns it into attribute values.

use crate::key;
use crate::schema::TTL_ATTRIBUTE;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::item::{AuditEntry, Dimension, InboxEntry, Item, TimelineEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;

/// A row without its key.
pub(crate) type Row = Map<String, Value>;

/// Names as the domain and as the table has them.
type Names = &'static [(&'static str, &'static str)];

/// Fields of [`Item`] and their attributes. An attribute keeps its name for ever.
const ITEM: Names = &[
    ("item_type", "type"),
    ("branch", "br"),
    ("project", "path"),
    ("caller_identity", "by"),
    ("generation", "gen"),
    ("previous_item_id", "prev"),
    ("created_at", "cat"),
    ("updated_at", "uat"),
    ("phase", "phase"),
    ("result", "res"),
    ("blocked", "blk"),
    ("last_error", "err"),
    ("attempts", "att"),
    ("outage", "out"),
    ("cancel_requested", "can"),
    ("retried_at", "rat"),
    ("last_event_at", "eat"),
    ("rev", "rev"),
    ("wake_seq", "ws"),
    ("lease_epoch", "le"),
    ("commit_seq", "cs"),
    ("claims", "cl"),
    ("write_token", "wt"),
    ("commit_token", "ct"),
    ("lease_token", "lt"),
    ("leased_until", "lu"),
    ("actionable", "act"),
    ("due_at", "due_at"),
    ("due_shard", "due_shard"),
    ("dims", "dims"),
    ("dim_seq", "dseq"),
    ("inbox", "inbox"),
    ("recent", "seen"),
    ("outbox", "log"),
    ("content_hash", "ch"),
    ("metadata_hash", "mh"),
    ("target", "tgt"),
    ("policy_version", "pol"),
    ("wanted", "want"),
    ("facts", "fact"),
];

/// Fields of [`Dimension`].
const DIMENSION: Names = &[("status", "s"), ("pending_until", "u"), ("detail", "d")];

/// Fields of [`InboxEntry`].
const INBOX: Names = &[("digest", "d"), ("event", "e")];

/// Fields of [`AuditEntry`].
const AUDIT: Names = &[
    ("id", "id"),
    ("ts", "ts"),
    ("event_type", "e"),
    ("actor", "by"),
    ("old_state", "o"),
    ("new_state", "n"),
    ("trigger", "t"),
    ("metadata", "m"),
];

/// How long a timeline is kept.
const TIMELINE_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The attribute that puts an item into the list index.
pub(crate) const LIST_PROJECT: &str = "list_project";

/// The attribute of an item's field.
pub(crate) fn attribute(field: &'static str) -> &'static str {
    short(ITEM, field).unwrap_or(field)
}

/// Any value as JSON. What JSON cannot hold becomes null and fails when read.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A dimension as rows hold it.
pub(crate) fn dimension(value: &Dimension) -> Value {
    rename(json(value), DIMENSION, short)
}

/// An inbox entry as rows hold it.
pub(crate) fn inbox_entry(value: &InboxEntry) -> Value {
    rename(json(value), INBOX, short)
}

/// An audit entry as rows hold it.
pub(crate) fn audit_entry(value: &AuditEntry) -> Value {
    rename(json(value), AUDIT, short)
}

/// The row of an item.
pub(crate) fn of_item(item: &Item) -> Row {
    let mut row = object(json(item));
    row.remove("id");
    map_parts(&mut row, short);
    let mut row = object(rename(Value::Object(row), ITEM, short));
    row.insert(LIST_PROJECT.into(), key::list_partition(&item.branch.host, item.branch.project_id).into());
    row
}

/// The item of a row; attributes of a newer version are left alone.
///
/// # Errors
/// A `Bug` where the row is not one of an item.
pub(crate) fn to_item(id: &ItemId, row: Row) -> Result<Item, Failure> {
    let mut fields = object(rename(Value::Object(row), ITEM, long));
    map_parts(&mut fields, long);
    fields.insert("id".into(), json(id));
    read(fields)
}

/// Any plain row.
///
/// # Errors
/// A `Bug` where the row does not hold what its kind needs.
pub(crate) fn read<T: DeserializeOwned>(row: Row) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(row)).map_err(|e| Failure::bug(format!("a stored row cannot be read: {e}")))
}

/// A plain value as a row.
pub(crate) fn of<T: Serialize>(value: &T) -> Row {
    object(json(value))
}

/// The row of a timeline entry, which expires.
pub(crate) fn of_timeline(entry: &TimelineEntry) -> Row {
    let mut row = of(entry);
    row.insert(TTL_ATTRIBUTE.into(), (entry.at.after(TIMELINE_KEPT).as_millis() / 1000).into());
    row
}

type Lookup = fn(Names, &str) -> Option<&'static str>;

fn short(names: Names, field: &str) -> Option<&'static str> {
    names.iter().find(|(name, _)| *name == field).map(|(_, attribute)| *attribute)
}

fn long(names: Names, attribute: &str) -> Option<&'static str> {
    names.iter().find(|(_, name)| *name == attribute).map(|(field, _)| *field)
}

fn object(value: Value) -> Row {
    match value {
        Value::Object(map) => map,
        _ => Row::new(),
    }
}

fn rename(value: Value, names: Names, lookup: Lookup) -> Value {
    let Value::Object(map) = value else { return value };
    Value::Object(map.into_iter().map(|(name, value)| (lookup(names, &name).map_or(name, str::to_owned), value)).collect())
}

/// Renames inside the parts whose shape is known. Called while the outer names are the domain's.
fn map_parts(fields: &mut Row, lookup: Lookup) {
    if let Some(Value::Object(dims)) = fields.get_mut("dims") {
        dims.values_mut().for_each(|value| *value = rename(value.take(), DIMENSION, lookup));
    }
    for (list, names) in [("inbox", INBOX), ("outbox", AUDIT)] {
        if let Some(Value::Array(entries)) = fields.get_mut(list) {
            entries.iter_mut().for_each(|value| *value = rename(value.take(), names, lookup));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_fields_share_an_attribute() {
        for names in [ITEM, DIMENSION, INBOX, AUDIT] {
            let attributes: BTreeSet<_> = names.iter().map(|(_, attribute)| attribute).collect();
            assert_eq!(attributes.len(), names.len());
            let fields: BTreeSet<_> = names.iter().map(|(field, _)| field).collect();
            assert!(names.iter().all(|(field, attribute)| field == attribute || !fields.contains(attribute)), "{names:?}");
        }
    }
}
