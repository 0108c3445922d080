//! What a caller wants of a merge request beside files and target, and the hash by which a change of it is seen.

use super::ticket::PipelineRule;
use crate::files::sha256_hex;
use crate::item::Content;
use serde::{Deserialize, Serialize};

/// What happens where the target changed what the item changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The item is blocked until someone decides.
    #[default]
    Block,
    /// The item's content wins.
    Overwrite,
}

/// The flags of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Whether Collie merges when everything is ready.
    pub auto_merge: bool,
    /// Whether the commits are squashed.
    pub squash: bool,
    /// Whether the source branch goes away with the merge.
    pub remove_source_branch: bool,
    /// Whether the merge request is a draft.
    pub draft: bool,
    /// What happens on a conflict.
    pub on_conflict: OnConflict,
    /// Whether commits of others on the branch may be overwritten; set by a retry with `overwrite`.
    #[serde(default)]
    pub overwrite: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            auto_merge: false,
            squash: false,
            remove_source_branch: true,
            draft: false,
            on_conflict: OnConflict::Block,
            overwrite: false,
        }
    }
}

/// The settings of a project that decisions need; from configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRules {
    /// Whether merges need a pipeline.
    pub pipelines: PipelineRule,
    /// The label that marks merge requests of this service, without its `managed-by::` prefix.
    pub service: String,
}

impl Default for ProjectRules {
    fn default() -> Self {
        Self { pipelines: PipelineRule::Required, service: "collie".into() }
    }
}

/// The hash of everything a submission says except files and target.
#[must_use]
pub fn metadata_hash(content: &Content, wanted: &Wanted) -> String {
    let mut labels: Vec<_> = content.labels.iter().collect();
    labels.sort_unstable();
    labels.dedup();
    let flags = Wanted { overwrite: false, ..*wanted };
    let canonical = serde_json::json!([content.title, content.description, labels, content.commit_message, flags]);
    sha256_hex(canonical.to_string().as_bytes())[..32].to_owned()
}
