//! Shipping audit entries from the row's outbox to the archive (INV-8): at least once, one gzip NDJSON object per batch.

use super::run::Run;
use collie_core::item::AuditEntry;
use std::io::Write as _;

impl Run<'_> {
    /// Ships what the outbox holds; false where some entries are not known to be shipped. Never fails the run.
    pub(super) async fn ship(&mut self) -> bool {
        let pending: Vec<_> = self.row.outbox.iter().filter(|e| !self.shipped.contains(&e.id)).cloned().collect();
        let Some(last) = pending.last() else { return true };
        let stored = match ndjson_gz(&pending) {
            Ok(object) => self.engine.ports.archive.put_new(&object_key(last), object).await.map(|_| ()),
            Err(error) => Err(collie_core::error::Failure::bug(error.to_string())),
        };
        match stored {
            Ok(()) => {
                self.shipped.extend(pending.into_iter().map(|e| e.id));
                true
            }
            Err(failure) => {
                tracing::error!(item = %self.row.id, code = failure.code, "audit entries not shipped; the outbox keeps them");
                false
            }
        }
    }
}

/// `YYYY/MM/DD/HH/MM/<id of the last entry>.ndjson.gz`: the same batch always has the same key.
fn object_key(last: &AuditEntry) -> String {
    let minute: String = last.ts.to_string().chars().take(16).map(|c| if matches!(c, '-' | 'T' | ':') { '/' } else { c }).collect();
    format!("{minute}/{}.ndjson.gz", last.id.replace('/', "-"))
}

fn ndjson_gz(entries: &[AuditEntry]) -> std::io::Result<Vec<u8>> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for entry in entries {
        serde_json::to_writer(&mut gz, entry)?;
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
