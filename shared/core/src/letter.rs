//! Dead letters: messages that a queue gave up. Recovery keeps each as a row and never runs its work again; whether it is sent once more is
//! an operator's decision. Sending one again is safe, because messages are doorbells or hints: what they ask for is judged by what the rows
//! and the data in the message say, never by the queue's ids or times.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a letter is kept.
pub const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The queue that gave a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Wake-ups of items.
    Wakes,
    /// Deliveries of GitLab's hooks.
    Hooks,
    /// Offers of repairs, and closings.
    Repairs,
}

impl Origin {
    /// Every queue.
    pub const ALL: [Self; 3] = [Self::Wakes, Self::Hooks, Self::Repairs];

    /// The word of rows and of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wakes => "wakes",
            Self::Hooks => "hooks",
            Self::Repairs => "repairs",
        }
    }
}

/// What was decided about a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing yet.
    Waiting,
    /// It was sent again.
    Redriven,
    /// It is done with.
    Abandoned,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Redriven, Self::Abandoned];

    /// The word of rows and of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Redriven => "redriven",
            Self::Abandoned => "abandoned",
        }
    }
}

/// A letter's row. Its body lies in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The message's id, as the queue had it.
    pub id: String,
    /// Where it came from.
    pub origin: Origin,
    /// What it is about, where it says so: an item, or a tracked queue and a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// When recovery kept it.
    pub kept_at: Timestamp,
    /// What was decided.
    pub state: State,
    /// Who decided, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// How often it was sent again.
    pub redrives: u32,
    /// Moved by every write.
    pub version: u64,
}

/// Who decided about a letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The caller.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// The letter is done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the letter was abandoned")]
pub struct IsAbandoned;

impl Letter {
    /// A letter that was just kept.
    #[must_use]
    pub fn new(id: String, origin: Origin, about: Option<String>, now: Timestamp) -> Self {
        Self { id, origin, about, kept_at: now, state: State::Waiting, decided: None, redrives: 0, version: 1 }
    }

    /// The letter after it was sent again; more than once is fine.
    ///
    /// # Errors
    /// Where it was abandoned.
    pub fn redriven(&self, by: &str, now: Timestamp) -> Result<Self, IsAbandoned> {
        if self.state == State::Abandoned {
            return Err(IsAbandoned);
        }
        Ok(Self { redrives: self.redrives + 1, ..self.decided(State::Redriven, by, now) })
    }

    /// The letter after someone has done with it; the same again changes nothing.
    #[must_use]
    pub fn abandoned(&self, by: &str, now: Timestamp) -> Option<Self> {
        (self.state != State::Abandoned).then(|| self.decided(State::Abandoned, by, now))
    }

    fn decided(&self, state: State, by: &str, at: Timestamp) -> Self {
        Self { state, decided: Some(Decided { by: by.to_owned(), at }), version: self.version + 1, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_sent_again_until_it_is_abandoned() {
        let now = Timestamp::from_millis(5);
        let letter = Letter::new("m1".into(), Origin::Wakes, Some("item".into()), now);
        let again = letter.redriven("local|a", now).unwrap().redriven("local|b", now).unwrap();
        let decided = Some(Decided { by: "local|b".into(), at: now });
        assert_eq!((again.state, again.redrives, again.version, &again.decided), (State::Redriven, 2, 3, &decided));
        let gone = again.abandoned("local|a", now).unwrap();
        assert_eq!((gone.redriven("local|a", now), gone.abandoned("local|a", now)), (Err(IsAbandoned), None));
    }
}
