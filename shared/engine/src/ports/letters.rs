//! Dead letters and the queues that they may be sent to again.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::letter::{Letter, Origin, State};

/// A page of letters, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterPage {
    /// The letters.
    pub items: Vec<Letter>,
    /// The id to pass as `after` for the next page.
    pub next: Option<String>,
}

/// The letters' rows.
#[async_trait]
pub trait Letters: Send + Sync {
    /// Keeps a letter; one that is kept stays as it is.
    async fn keep(&self, letter: &Letter) -> Result<(), Failure>;

    /// Reads a letter.
    async fn letter(&self, id: &str) -> Result<Option<Letter>, Failure>;

    /// Letters behind an id, in this state, or in any. A page may be short, or empty, and still have more behind it.
    async fn letters(&self, state: Option<State>, after: Option<&str>, limit: usize) -> Result<LetterPage, Failure>;

    /// Puts a letter in the place of the one that is a version older; false where another did so.
    async fn replace(&self, letter: &Letter) -> Result<bool, Failure>;
}

/// The queues.
#[async_trait]
pub trait Redrive: Send + Sync {
    /// Sends a body to the queue that had given it up.
    async fn send(&self, origin: Origin, body: &str) -> Result<(), Failure>;
}
