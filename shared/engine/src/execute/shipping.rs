//! Shipping audit entries to the archive (INV-8): at least once, one gzip NDJSON object per batch.
//!
//! Changes come from the row's outbox, where they travelled with the change itself. Decisions are the run's own: each holds the
//! snapshot it was made on, so that it can be made again; one that a crash loses changed nothing.

use super::run::Run;
use collie_core::decision::{Decision, Next, Rule};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::item::{AuditEntry, Item, Trigger};
use collie_core::time::Timestamp;
use serde::Serialize;
use std::io::Write as _;

/// An entry as the archive holds it: with the item it is about.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    entry: &'a AuditEntry,
    item_id: &'a str,
    item_type: &'a str,
}

/// A decision that can be made again: `decide(snapshot, ts)` gives `next` and `report`.
#[derive(Debug, Serialize)]
pub(super) struct DecisionEntry {
    id: String,
    ts: Timestamp,
    event_type: &'static str,
    actor: &'static str,
    item_id: String,
    item_type: String,
    trigger: Trigger,
    next: Next,
    report: Vec<Rule>,
    snapshot_hash: String,
    snapshot: Item,
}

impl DecisionEntry {
    /// The entry of the `nth` decision of a run.
    pub(super) fn of(item: &Item, decision: &Decision, nth: usize, at: Timestamp) -> Self {
        let action = match &decision.next {
            Next::Act(action) => Some(action.0.to_owned()),
            Next::Wait { .. } | Next::Rest => None,
        };
        Self {
            id: format!("{}/run/{}/decision/{nth}", item.id, item.lease_epoch),
            ts: at,
            event_type: "decision",
            actor: "system",
            item_id: item.id.to_string(),
            item_type: item.item_type.clone(),
            trigger: Trigger { source: "decider".into(), action, reason: None, error: None },
            next: decision.next.clone(),
            report: decision.report.clone(),
            snapshot_hash: sha256_hex(&serde_json::to_vec(item).unwrap_or_default()),
            snapshot: item.clone(),
        }
    }
}

impl Run<'_> {
    /// Ships what the outbox holds, with the run's decisions so far; false where some entries are not known to be shipped. Never
    /// fails the run.
    pub(super) async fn ship(&mut self) -> bool {
        let pending: Vec<_> = self.row.outbox.iter().filter(|e| !self.shipped.contains(&e.id)).cloned().collect();
        let Some(last) = pending.last() else { return true };
        let stored = match self.object_of(&pending) {
            Ok(object) => self.engine.ports.archive.put_new(&object_key(last), object).await.map(|_| ()),
            Err(error) => Err(Failure::bug(error.to_string())),
        };
        match stored {
            Ok(()) => {
                self.shipped.extend(pending.into_iter().map(|e| e.id));
                self.decisions.clear();
                true
            }
            Err(failure) => {
                tracing::error!(item = %self.row.id, code = failure.code, "audit entries not shipped; the outbox keeps them");
                false
            }
        }
    }

    fn object_of(&self, pending: &[AuditEntry]) -> std::io::Result<Vec<u8>> {
        let (item_id, item_type) = (self.row.id.as_str(), self.row.item_type.as_str());
        let mut lines = Vec::new();
        for entry in pending {
            lines.push(serde_json::to_vec(&Line { entry, item_id, item_type })?);
        }
        for decision in &self.decisions {
            lines.push(serde_json::to_vec(decision)?);
        }
        ndjson_gz(&lines)
    }
}

/// `YYYY/MM/DD/HH/MM/<id of the last entry>.ndjson.gz`: the same batch always has the same key.
fn object_key(last: &AuditEntry) -> String {
    format!("{}/{}.ndjson.gz", minute_of(last.ts), last.id.replace('/', "-"))
}

/// `YYYY/MM/DD/HH/MM`
pub(crate) fn minute_of(at: Timestamp) -> String {
    at.to_string().chars().take(16).map(|c| if matches!(c, '-' | 'T' | ':') { '/' } else { c }).collect()
}

/// An object of the audit trail that holds one entry.
pub(crate) fn audit_object(entry: &AuditEntry) -> Result<Vec<u8>, Failure> {
    let unwritable = |error: &dyn std::fmt::Display| Failure::bug(format!("an audit entry cannot be written: {error}"));
    let line = serde_json::to_vec(entry).map_err(|error| unwritable(&error))?;
    ndjson_gz(&[line]).map_err(|error| unwritable(&error))
}

fn ndjson_gz(lines: &[Vec<u8>]) -> std::io::Result<Vec<u8>> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for line in lines {
        gz.write_all(line)?;
        gz.write_all(b"\n")?;
    }
    gz.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::item::Trigger;
    use collie_core::time::Timestamp;

    #[test]
    fn a_batch_is_keyed_by_the_minute_and_id_of_its_last_entry() {
        let trigger = Trigger { source: "worker".into(), action: None, reason: None, error: None };
        let entry = AuditEntry {
            id: "item/run/1/2".into(),
            ts: Timestamp::from_millis(1_769_882_644_120),
            event_type: "action".into(),
            actor: "execute".into(),
            old_state: None,
            new_state: None,
            trigger,
            metadata: None,
        };
        assert_eq!(object_key(&entry), "2026/01/31/18/04/item-run-1-2.ndjson.gz");
    }
}
