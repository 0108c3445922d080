//! Refused calls in the audit trail (DDR-28): who was refused what, and why. Never a token, and never more than a caller can be told.
//!
//! What an attacker can make us write is bounded: of all refusals of one caller (everyone without a good token is one), one call and one
//! code, the first of each minute is written, under an id that all processes share; the others are lines in the log. Beyond
//! [`MAX_A_MINUTE`] different ones, a process writes one more entry, which says so. A trail that cannot be written to refuses nobody.

use crate::Engine;
use crate::access::actor;
use crate::execute::shipping::{audit_object, minute_of};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::item::{AuditEntry, Trigger};
use collie_core::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Different refusals that one process writes in a minute.
const MAX_A_MINUTE: usize = 500;
/// Whoever has no good token.
const ANONYMOUS: &str = "anonymous";
/// Characters of a reason.
const MAX_REASON: usize = 200;

/// A refused call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused<'a> {
    /// Who called, where that is known.
    pub identity: Option<&'a str>,
    /// Method and route, without what the caller put in.
    pub call: &'a str,
    /// The public code.
    pub code: &'a str,
    /// What the caller was told.
    pub why: &'a str,
}

/// The refusals of this minute that were written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent(Arc<Mutex<Minute>>);

#[derive(Debug, Default)]
struct Minute {
    name: String,
    written: BTreeSet<String>,
}

/// Whether a refusal is written.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    First,
    /// There are too many; this entry stands for the rest of the minute.
    Last,
    Known,
}

impl Recent {
    fn take(&self, minute: &str, digest: &str) -> Turn {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.name != minute {
            *recent = Minute { name: minute.to_owned(), written: BTreeSet::new() };
        }
        let before = recent.written.len();
        if before > MAX_A_MINUTE || !recent.written.insert(digest.to_owned()) {
            return Turn::Known;
        }
        if before == MAX_A_MINUTE { Turn::Last } else { Turn::First }
    }
}

impl Engine {
    /// Writes a refused call into the audit trail, if it is the first of its kind in this minute.
    pub async fn audit_refusal(&self, refused: &Refused<'_>) {
        let now = self.ports.clock.now();
        let (minute, actor) = (minute_of(now), refused.identity.map_or_else(|| ANONYMOUS.to_owned(), actor));
        let digest = sha256_hex(format!("{actor}\n{}\n{}", refused.call, refused.code).as_bytes());
        let digest = &digest[..32];
        let metadata = match self.refusals.take(&minute, digest) {
            Turn::Known => return,
            Turn::First => "the first of its kind in this minute",
            Turn::Last => "too many kinds in this minute; the others are in the log",
        };
        let entry = entry(refused, format!("auth/{minute}/{digest}"), actor, metadata, now);
        if let Err(failure) = self.write_refusal(&format!("{minute}/auth-{digest}.ndjson.gz"), &entry).await {
            tracing::error!(code = failure.code, "a refused call is not in the audit trail");
        }
    }

    async fn write_refusal(&self, key: &str, entry: &AuditEntry) -> Result<(), Failure> {
        self.ports.archive.put_new(key, audit_object(entry)?).await.map(|_| ())
    }
}

fn entry(refused: &Refused<'_>, id: String, actor: String, metadata: &str, now: Timestamp) -> AuditEntry {
    let reason = refused.why.chars().take(MAX_REASON).collect();
    let trigger =
        Trigger { source: "api".into(), action: Some(refused.call.into()), reason: Some(reason), error: Some(refused.code.into()) };
    AuditEntry { id, ts: now, event_type: "auth".into(), actor, old_state: None, new_state: None, trigger, metadata: Some(metadata.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_once_a_minute_and_kinds_are_bounded() {
        let recent = Recent::default();
        assert_eq!((recent.take("1", "a"), recent.take("1", "a"), recent.take("2", "a")), (Turn::First, Turn::Known, Turn::First));
        let turns: Vec<_> = (0..MAX_A_MINUTE + 100).map(|n| recent.take("3", &n.to_string())).collect();
        let count = |wanted: &Turn| turns.iter().filter(|turn| *turn == wanted).count();
        assert_eq!((count(&Turn::First), count(&Turn::Last), count(&Turn::Known)), (MAX_A_MINUTE, 1, 99));
    }
}
