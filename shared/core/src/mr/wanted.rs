//! What a caller wants of a merge request beside files and target, and the hash by which a change of it is seen.

use super::ticket::PipelineRule;
use super::train::MergeMode;
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
    /// How merges are made.
    pub merge: MergeMode,
    /// The label that marks merge requests of this service, without its `managed-by::` prefix.
    pub service: String,
}

impl Default for ProjectRules {
    fn default() -> Self {
        Self { pipelines: PipelineRule::Required, merge: MergeMode::Direct, service: "collie".into() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, action};

    type Change = fn(&mut Content, &mut Wanted);

    fn hash(change: Change) -> String {
        let (mut content, mut wanted) = (sample::content(), Wanted::default());
        change(&mut content, &mut wanted);
        metadata_hash(&content, &wanted)
    }

    #[test]
    fn everything_a_submission_says_beside_files_and_target_changes_the_hash() {
        let changes: [Change; 13] = [
            |_, _| (),
            |content, _| content.title.push('!'),
            |content, _| content.description.clear(),
            |content, _| content.commit_message.push('!'),
            |content, _| content.labels.push("more".into()),
            |content, _| content.labels.clear(),
            |content, _| content.labels = vec!["bot,deps".into()],
            |content, _| (content.title, content.description) = (String::new(), "Bump opensslTo 3.5.1.".into()),
            |_, wanted| wanted.auto_merge = true,
            |_, wanted| wanted.squash = true,
            |_, wanted| wanted.remove_source_branch = false,
            |_, wanted| wanted.draft = true,
            |_, wanted| wanted.on_conflict = OnConflict::Overwrite,
        ];
        let hashes: std::collections::BTreeSet<_> = changes.map(hash).into_iter().collect();
        assert_eq!(hashes.len(), changes.len());
        assert!(hashes.iter().all(|hash| hash.len() == 32 && hash.chars().all(|c| c.is_ascii_hexdigit())));
    }

    #[test]
    fn order_and_repetition_of_labels_files_and_a_retrys_permission_do_not() {
        let changes: [Change; 4] = [
            |content, _| content.labels.reverse(),
            |content, _| content.labels.push("bot".into()),
            |content, _| content.actions = vec![action(crate::files::Verb::Delete, "other", None)],
            |_, wanted| wanted.overwrite = true,
        ];
        for change in changes {
            assert_eq!(hash(change), hash(|_, _| ()));
        }
    }

    #[test]
    fn the_defaults_merge_nothing_and_a_row_without_overwrite_does_not_allow_it() {
        let text = r#"{"auto_merge":false,"squash":false,"remove_source_branch":true,"draft":false,"on_conflict":"block"}"#;
        assert_eq!(serde_json::from_str::<Wanted>(text).unwrap(), Wanted::default());
        assert_eq!(
            ProjectRules::default(),
            ProjectRules { pipelines: PipelineRule::Required, merge: MergeMode::Direct, service: "collie".into() }
        );
    }

    #[test]
    fn the_hash_stays_the_same_from_release_to_release() {
        assert_eq!(hash(|_, _| ()), "c57f773843b2bf0fc34b884220530ec0");
    }
}
