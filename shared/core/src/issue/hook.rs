//! What others are told: openings and closings, and that there may be something to repair. Told again, it has the same id.

use super::id::{BuildId, QueueName, RequestId};
use super::key::IssueKey;
use super::row::{Event, Issue, Status};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a program publishes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Notice {
    /// An issue was opened or closed.
    Hook(Hook),
    /// A pass has opened what a build reported.
    Repair(Repair),
}

/// An opening or closing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hook {
    /// Opened or closed.
    pub event: Event,
    /// The issue.
    pub key: IssueKey,
    /// The build that did it.
    pub build: BuildId,
    /// When.
    pub at: Timestamp,
}

/// Openings first seen in one build are to be offered to those who repair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Repair {
    /// The build.
    pub build_id: BuildId,
    /// Its request.
    pub request_id: RequestId,
    /// The pass: the same for every repetition.
    pub pass_id: u64,
}

/// An opening or closing as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookEvent {
    /// The same for every repetition.
    pub id: String,
    /// Who says so.
    pub source: &'static str,
    /// `issue.opened` or `issue.closed`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// When it happened.
    pub timestamp_ms: u64,
    /// Zero: the payload has no versions.
    pub version: u32,
    /// Who and what.
    pub payload: HookPayload,
}

/// Identity only: the state is read from the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookPayload {
    /// The queue.
    pub queue: String,
    /// The task.
    pub task_id: String,
    /// The unit; empty for the whole task.
    pub unit_id: String,
    /// The build that opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening_build_id: Option<String>,
    /// The build that closed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing_build_id: Option<String>,
}

impl Hook {
    /// What is to be told of a row whose last change was just recorded.
    #[must_use]
    pub fn of(issue: &Issue) -> Self {
        let event = if issue.status == Status::Open { Event::Opened } else { Event::Closed };
        Self { event, key: issue.key.clone(), build: issue.changed_by.build.clone(), at: issue.changed_at }
    }

    /// As others see it.
    #[must_use]
    pub fn event_of(&self, queue: &QueueName) -> HookEvent {
        let kind = if self.event == Event::Closed { "issue.closed" } else { "issue.opened" };
        let build = Some(self.build.to_string());
        let (opening, closing) = if self.event == Event::Closed { (None, build) } else { (build, None) };
        let (task, unit) = (self.key.task().to_owned(), self.key.unit().to_owned());
        HookEvent {
            id: format!("{kind}/{}", digest([queue.as_str(), &task, &unit, self.build.as_str()])),
            source: "collie",
            kind,
            timestamp_ms: self.at.as_millis(),
            version: 0,
            payload: HookPayload {
                queue: queue.to_string(),
                task_id: task,
                unit_id: unit,
                opening_build_id: opening,
                closing_build_id: closing,
            },
        }
    }
}

/// Each part with its length, so that no two lists of parts make one digest.
fn digest(parts: [&str; 4]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn closed(task: &str, unit: &str) -> Hook {
        Hook { event: Event::Closed, key: IssueKey::new(task, unit), build: BuildId::new("b1"), at: Timestamp::from_millis(7) }
    }

    #[test]
    fn a_closing_is_told_with_identity_alone() {
        let event = closed("unit tests", "a::b").event_of(&QueueName::new("app-main"));
        let told = json!({"id": event.id, "source": "collie", "type": "issue.closed", "timestamp_ms": 7, "version": 0,
            "payload": {"queue": "app-main", "task_id": "unit tests", "unit_id": "a::b", "closing_build_id": "b1"}});
        assert_eq!(serde_json::to_value(&event).unwrap(), told);
        assert_eq!(event.id, "issue.closed/94f9e1da578b47d1fc74b7506c256bfee5c625b8d193b7365e89ebdf4f90430a");
    }

    #[test]
    fn the_id_is_the_same_again_and_of_nothing_else() {
        let queue = QueueName::new("q");
        let id = |hook: &Hook| hook.event_of(&queue).id;
        assert_eq!(id(&closed("a", "b")), id(&Hook { at: Timestamp::from_millis(9), ..closed("a", "b") }));
        assert_ne!(id(&closed("ab", "")), id(&closed("a", "b")));
        assert_ne!(id(&closed("a", "b")), id(&Hook { event: Event::Opened, ..closed("a", "b") }));
    }
}
