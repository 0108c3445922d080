//! Why an item is not merging, as callers see it.

use super::{BlockedView, LastErrorView, time};
use collie_core::item::Phase;
use collie_core::mr::facts::Blocker;
use collie_engine::explain::{Explanation, Waiting};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a work item is where it is, and when it is looked at next.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationView {
    /// `active`, `completed`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    phase: Phase,
    /// Why it neither pushes nor merges.
    blocked: Option<BlockedView>,
    /// The next action, where one is due.
    next_action: Option<&'static str>,
    /// What is deferred, and until when.
    waiting_on: Vec<WaitingView>,
    /// Unmet conditions of the merge.
    merge_blockers: Vec<BlockerView>,
    /// When it is looked at next; null once it has ended.
    next_look_at: Option<String>,
    /// The last error.
    last_error: Option<LastErrorView>,
}

/// One deferred dimension.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Waiting)]
pub(crate) struct WaitingView {
    /// Its name.
    dimension: String,
    /// Its variant.
    variant: Option<String>,
    /// Until when.
    until: Option<String>,
    /// Why, for people.
    why: String,
}

/// One unmet condition of the merge.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = MergeBlocker)]
pub(crate) struct BlockerView {
    /// What is missing.
    code: String,
    /// For people.
    detail: String,
    /// Where it was seen.
    source: String,
    /// When it was seen.
    seen_at: String,
}

impl ExplanationView {
    pub(crate) fn of(explanation: Explanation) -> Self {
        Self {
            phase: explanation.phase,
            blocked: explanation.blocked.as_ref().map(BlockedView::of),
            next_action: explanation.next_action,
            waiting_on: explanation.waiting_on.into_iter().map(WaitingView::of).collect(),
            merge_blockers: explanation.merge_blockers.into_iter().map(BlockerView::of).collect(),
            next_look_at: explanation.next_look_at.map(time),
            last_error: explanation.last_error.as_ref().map(LastErrorView::of),
        }
    }
}

impl WaitingView {
    fn of(waiting: Waiting) -> Self {
        let Waiting { dimension, variant, until, why } = waiting;
        Self { dimension, variant, until: until.map(time), why }
    }
}

impl BlockerView {
    fn of(blocker: Blocker) -> Self {
        let Blocker { code, detail, source, seen_at } = blocker;
        Self { code, detail, source, seen_at: time(seen_at) }
    }
}
