//! The `issue` work item: one GitLab issue for each failing task of a tracked queue, open while the task has open issues, with a table of
//! them, closed when they close.
//!
//! [`decide`](decide::decide) names the next action, [`plan`] what is to be done on GitLab for the openings as they are, [`text`] what
//! people read there. What is open is never kept in the item: each look reads it anew, so that a lost wake-up costs time only.

pub mod decide;
pub mod plan;
pub mod text;

use crate::error::Failure;
use crate::files::sha256_hex;
use crate::id::BranchIdentity;
use crate::id::ProjectId;
use crate::issue::id::QueueName;
use crate::item::{Document, Item};
use serde::{Deserialize, Serialize};

/// The type's name.
pub const ITEM_TYPE: &str = "issue";

/// Which task of which queue an item is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The queue.
    pub queue: QueueName,
    /// The task.
    pub task: String,
    /// The branch or tag that the queue builds; for people.
    pub reference: String,
}

impl Wanted {
    /// What an item is about.
    ///
    /// # Errors
    /// A `Bug` where the row does not hold what this type writes.
    pub fn of(item: &Item) -> Result<Self, Failure> {
        item.wanted.read()
    }
}

/// The GitLab issue, as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueRef {
    /// Its number in the project.
    pub iid: u64,
    /// Its page.
    pub url: String,
    /// A digest of what it says; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

/// What is known of an item's GitLab issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The issue, once it was made or found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue: Option<IssueRef>,
    /// Whether one may have been made without our knowing: it is looked for before another is made.
    #[serde(default)]
    pub may_exist: bool,
}

impl Facts {
    /// The facts of an item.
    ///
    /// # Errors
    /// A `Bug` where the row does not hold what this type writes.
    pub fn of(item: &Item) -> Result<Self, Failure> {
        item.facts.read()
    }

    /// As the row holds them.
    #[must_use]
    pub fn document(&self) -> Document {
        Document::of(self)
    }
}

/// The identity of a task's item. No branch can have this name: `~` is in none.
#[must_use]
pub fn identity(host: &str, project: ProjectId, queue: &QueueName, task: &str) -> BranchIdentity {
    let task = &sha256_hex(task.as_bytes())[..32];
    BranchIdentity { host: host.to_owned(), project_id: project, source_branch: format!("~{queue}~{task}") }
}
