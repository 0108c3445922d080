//! What a submission does to the current life of its identity (DDR-39, DDR-40).

use crate::files::ContentHash;
use crate::item::{Item, Phase};
use serde::Serialize;

/// What a submission wants, as far as it can be compared with a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired<'a> {
    /// The files.
    pub content_hash: &'a ContentHash,
    /// Everything else but the target.
    pub metadata_hash: &'a str,
    /// The target branch.
    pub target: &'a str,
}

/// What a submission does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Upsert {
    /// A new item, with the next generation.
    Create,
    /// Nothing, not even `updated_at`.
    Unchanged,
    /// New title, description, labels, message or flags; no commit.
    UpdateMetadata,
    /// New files or another target.
    UpdateContent,
    /// A failed item becomes active with this content.
    Revive,
    /// Refused: the item is about to be cancelled.
    CancelPending,
}

/// Decides by what is found for the identity; the first rule that fits wins.
///
/// 1. Nothing, or a completed or cancelled item: `Create`.
/// 2. A failed item: `Revive`.
/// 3. A cancel is pending: `CancelPending`.
/// 4. Other files or target: `UpdateContent`. 5. Other metadata: `UpdateMetadata`. 6. `Unchanged`.
#[must_use]
pub fn decide(found: Option<&Item>, desired: &Desired<'_>) -> Upsert {
    let Some(item) = found else { return Upsert::Create };
    match item.phase {
        Phase::Completed | Phase::Cancelled => Upsert::Create,
        Phase::Failed => Upsert::Revive,
        Phase::Active if item.cancel_requested.is_some() => Upsert::CancelPending,
        Phase::Active if item.content_hash != *desired.content_hash || item.target != desired.target => Upsert::UpdateContent,
        Phase::Active if item.metadata_hash != desired.metadata_hash => Upsert::UpdateMetadata,
        Phase::Active => Upsert::Unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::BlockedReason;
    use crate::sample;

    fn decided(item: Option<&Item>, content: &str, metadata: &str, target: &str) -> Upsert {
        decide(item, &Desired { content_hash: &sample::content_hash(content), metadata_hash: metadata, target })
    }

    /// The same submission again, then with other metadata, other files, another target, and everything else.
    fn row(item: Option<&Item>) -> [Upsert; 5] {
        [
            decided(item, "3.5.1", "meta", "main"),
            decided(item, "3.5.1", "other", "main"),
            decided(item, "3.5.2", "meta", "main"),
            decided(item, "3.5.1", "meta", "stable"),
            decided(item, "3.5.2", "other", "stable"),
        ]
    }

    #[test]
    fn what_a_submission_does_is_decided_by_what_is_found_and_what_differs() {
        use Upsert::{CancelPending, Create, Revive, Unchanged, UpdateContent, UpdateMetadata};
        let active = sample::built();
        let phase = |phase| Item { phase, ..sample::built() };
        let blocked = Item { blocked: Some(sample::blocked(BlockedReason::Conflict)), ..sample::built() };
        let cancelling = |phase| Item { cancel_requested: Some(sample::cancel_request()), phase, ..sample::built() };
        let cases = [
            (None, [Create; 5]),
            (Some(phase(Phase::Completed)), [Create; 5]),
            (Some(phase(Phase::Cancelled)), [Create; 5]),
            (Some(phase(Phase::Failed)), [Revive; 5]),
            (Some(active), [Unchanged, UpdateMetadata, UpdateContent, UpdateContent, UpdateContent]),
            (Some(blocked), [Unchanged, UpdateMetadata, UpdateContent, UpdateContent, UpdateContent]),
            (Some(cancelling(Phase::Active)), [CancelPending; 5]),
            (Some(cancelling(Phase::Failed)), [Revive; 5]),
            (Some(cancelling(Phase::Completed)), [Create; 5]),
        ];
        for (item, want) in cases {
            assert_eq!(row(item.as_ref()), want, "{:?}", item.map(|i| (i.phase, i.cancel_requested, i.blocked)));
        }
    }

    #[test]
    fn the_words_are_snake_case() {
        assert_eq!(serde_json::to_value(Upsert::UpdateMetadata).unwrap(), "update_metadata");
    }
}
