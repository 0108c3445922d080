//! What an item's runs did, as callers see it.

use super::time;
use collie_core::item::{Step, TimelineEntry};
use collie_engine::ports::TimelinePage;
use serde::Serialize;
use utoipa::ToSchema;

/// A page of runs, oldest first.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub(crate) struct TimelineView {
    /// The runs.
    entries: Vec<EntryView>,
    /// The `cursor` of the next page; null on the last.
    next_cursor: Option<String>,
}

/// One run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct EntryView {
    /// When it began.
    at: String,
    /// Who ran it.
    actor: String,
    /// The lease under which it ran.
    epoch: u64,
    /// What it did, in order.
    steps: Vec<StepView>,
    /// What the item waits for afterwards.
    waits_for: String,
    /// Calls to GitLab.
    gitlab_calls: u32,
    /// Write units of the store.
    write_units: u32,
}

/// One step of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Step)]
pub(crate) struct StepView {
    /// The action, or `events` for events applied.
    action: String,
    /// What came of it.
    outcome: String,
    /// Calls to GitLab in this step.
    gitlab_calls: u32,
}

impl TimelineView {
    pub(crate) fn of(page: TimelinePage) -> Self {
        let next_cursor = page.next.as_deref().map(crate::page::cursor);
        Self { entries: page.entries.into_iter().map(EntryView::of).collect(), next_cursor }
    }
}

impl EntryView {
    fn of(entry: TimelineEntry) -> Self {
        Self {
            at: time(entry.at),
            actor: entry.actor,
            epoch: entry.epoch,
            steps: entry.steps.into_iter().map(StepView::of).collect(),
            waits_for: entry.waits_for,
            gitlab_calls: entry.gitlab_calls,
            write_units: entry.write_units,
        }
    }
}

impl StepView {
    fn of(step: Step) -> Self {
        let Step { action, outcome, gitlab_calls, .. } = step;
        Self { action, outcome, gitlab_calls }
    }
}
