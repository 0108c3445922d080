//! Audit entries (DDR-17, 28, 38): written with the change itself, shipped afterwards (INV-8).

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One entry of the audit trail. Absent fields are left out; entries in a row stay below 200 bytes of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Deterministic: the same change always has the same id.
    pub id: String,
    /// When the change was made.
    pub ts: Timestamp,
    /// `submitted`, `phase_change`, `dimension_change`, `decision`, `action`, `event_applied`, `auth` or `admin`.
    pub event_type: String,
    /// Caller, worker, or `system`.
    pub actor: String,
    /// Phase and action before; omitted on creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_state: Option<StateChange>,
    /// Phase and action after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_state: Option<StateChange>,
    /// What caused it.
    pub trigger: Trigger,
    /// Anything else; never repeats state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

/// The part of an item's state that audit entries carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// The phase.
    pub phase: super::Phase,
    /// The action that was next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// What caused a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// `api`, `worker`, `decider`, `event` or `schedule`.
    pub source: String,
    /// The action carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The public code of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
