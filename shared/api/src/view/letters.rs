//! Dead letters, as the API shows them. Never their bodies.

use super::time;
use collie_core::letter::Letter;
use serde::Serialize;
use utoipa::ToSchema;

/// A message that a queue gave up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct LetterView {
    /// The message's id.
    id: String,
    /// The queue: `wakes`, `hooks` or `repairs`.
    origin: &'static str,
    /// What it is about, where it says so.
    about: Option<String>,
    /// `waiting`, `redriven` or `abandoned`.
    state: &'static str,
    /// When recovery kept it, RFC 3339.
    kept_at: String,
    /// How often it was sent again.
    redrives: u32,
    /// Who decided about it last.
    decided_by: Option<String>,
    /// When they did, RFC 3339.
    decided_at: Option<String>,
}

impl LetterView {
    pub(crate) fn of(letter: &Letter) -> Self {
        Self {
            id: letter.id.clone(),
            origin: letter.origin.as_str(),
            about: letter.about.clone(),
            state: letter.state.as_str(),
            kept_at: time(letter.kept_at),
            redrives: letter.redrives,
            decided_by: letter.decided.as_ref().map(|decided| decided.by.clone()),
            decided_at: letter.decided.as_ref().map(|decided| time(decided.at)),
        }
    }
}

/// A page of dead letters.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetterPage)]
pub(crate) struct LetterList {
    /// By id.
    pub(crate) items: Vec<LetterView>,
    /// Where the next page begins; null on the last.
    pub(crate) next_cursor: Option<String>,
}
