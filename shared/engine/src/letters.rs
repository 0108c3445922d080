//! What happens to messages that queues gave up: recovery keeps them, operators look, send them again or put an end to them.
//!
//! The body goes to the archive before the row is written, and a letter is sent before its row says so: a crash in between leaves a row
//! that still waits, and sending once more changes nothing but time.

use crate::access::actor;
use crate::execute::shipping::{audit_object, minute_of};
use crate::metric;
use crate::ports::{Archive, Clock, LetterPage, Letters, Redrive};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::item::{AuditEntry, Trigger};
use collie_core::letter::{Letter, Origin, State};
use std::sync::Arc;

/// Times a letter that others decide about is read again.
const ROUNDS: u32 = 5;
/// Who keeps letters.
const RECOVERY: &str = "collie|recover";

/// Why nothing was decided.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is no such letter.
    #[error("there is no such dead letter")]
    NotFound,
    /// It is done with.
    #[error("the dead letter was abandoned")]
    Abandoned,
    /// Its body is not in the archive any more.
    #[error("the dead letter's body has expired")]
    Expired,
    /// Others kept deciding about it.
    #[error("others are deciding about this dead letter")]
    Contended,
    /// A store or a queue failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The use cases. Cheap to clone.
#[derive(Clone)]
pub struct DeadLetters {
    /// The rows.
    pub letters: Arc<dyn Letters>,
    /// The bodies, and the audit trail.
    pub archive: Arc<dyn Archive>,
    /// The queues.
    pub redrive: Arc<dyn Redrive>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl DeadLetters {
    /// Keeps a message that a queue gave up. The same message again changes nothing.
    ///
    /// # Errors
    /// The archive's or the store's; the dead letter comes again.
    pub async fn keep(&self, id: &str, origin: Origin, about: Option<String>, body: &str) -> Result<(), Failure> {
        let now = self.clock.now();
        self.archive.put_new(&body_key(id), body.as_bytes().to_vec()).await?;
        let letter = Letter::new(id.to_owned(), origin, about, now);
        self.letters.keep(&letter).await?;
        self.audit(&letter, "dead_letter_kept", RECOVERY).await?;
        metric::letter(origin.as_str());
        tracing::error!(
            letter = id,
            origin = origin.as_str(),
            about = letter.about,
            "a queue gave a message up; an operator has to decide"
        );
        Ok(())
    }

    /// Letters by id.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn list(&self, state: Option<State>, after: Option<&str>, limit: usize) -> Result<LetterPage, Failure> {
        self.letters.letters(state, after, limit).await
    }

    /// One letter.
    ///
    /// # Errors
    /// [`Error::NotFound`], or the store's.
    pub async fn show(&self, id: &str) -> Result<Letter, Error> {
        self.letters.letter(id).await?.ok_or(Error::NotFound)
    }

    /// Sends a letter to its queue again.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn redrive(&self, id: &str, by: &str) -> Result<Letter, Error> {
        let letter = self.show(id).await?;
        letter.redriven(by, self.clock.now()).map_err(|_| Error::Abandoned)?;
        let body = self.archive.get(&body_key(id)).await?.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(Error::Expired)?;
        self.redrive.send(letter.origin, &body).await?;
        self.decide(id, by, "dead_letter_redriven", |letter| letter.redriven(by, self.clock.now()).ok()).await
    }

    /// Puts an end to a letter.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn abandon(&self, id: &str, by: &str) -> Result<Letter, Error> {
        self.decide(id, by, "dead_letter_abandoned", |letter| letter.abandoned(by, self.clock.now())).await
    }

    /// Replaces the row by what becomes of it; where that is nothing, it stays as it is.
    async fn decide(&self, id: &str, by: &str, event: &str, next: impl Fn(&Letter) -> Option<Letter>) -> Result<Letter, Error> {
        for _ in 0..ROUNDS {
            let letter = self.show(id).await?;
            let Some(next) = next(&letter) else { return Ok(letter) };
            if self.letters.replace(&next).await? {
                self.audit(&next, event, by).await?;
                return Ok(next);
            }
        }
        Err(Error::Contended)
    }

    async fn audit(&self, letter: &Letter, event: &str, by: &str) -> Result<(), Failure> {
        let entry = AuditEntry {
            id: format!("letter/{}/{}", letter.id, letter.version),
            ts: letter.decided.as_ref().map_or(letter.kept_at, |decided| decided.at),
            event_type: event.to_owned(),
            actor: actor(by),
            old_state: None,
            new_state: None,
            trigger: Trigger { source: letter.origin.as_str().into(), action: None, reason: letter.about.clone(), error: None },
            metadata: None,
        };
        let digest = &sha256_hex(entry.id.as_bytes())[..32];
        self.archive.put_new(&format!("{}/letter-{digest}.ndjson.gz", minute_of(entry.ts)), audit_object(&entry)?).await?;
        Ok(())
    }
}

/// Where a letter's body lies. Ids come from a queue, and are no path.
fn body_key(id: &str) -> String {
    format!("deliveries/dead/{}", sha256_hex(id.as_bytes()))
}
