//! What an event means for a merge request item (DDR-33, DDR-38). Pure: the same for every order and repetition.
//!
//! No event sets a phase: a merge or a close makes Collie read the merge request. Our own user's echo is compared with what
//! we know and then dropped.

use super::dims;
use super::facts::{Facts, PipelineRef};
use crate::ci::plan::MAX_RECORD_BYTES;
use crate::error::Failure;
use crate::event::Event;
use crate::id::Sha;
use crate::item::{Dimension, DimensionKey, Item};
use serde::{Deserialize, Serialize};

/// Jobs that a row records at most.
const JOBS_KEPT: usize = crate::ci::plan::MAX_JOBS;

/// A failed job, as the `needs_ci_retry` dimension records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedJob {
    /// This try.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its stage.
    pub stage: String,
    /// Why it failed.
    pub failure_reason: String,
}

/// What an event asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it writes nothing.
    None,
    /// The merge request is to be read.
    Reconcile,
    /// A push of ours replaced a head that Collie had not verified: someone pushed in that instant.
    Overwrote(Sha),
    /// The head pipeline has finished.
    PipelineFinished(PipelineRef),
    /// A job of the head pipeline has failed.
    JobFailed(FailedJob),
}

/// What an event asks of an item.
///
/// # Errors
/// A `Bug` where the row does not hold what this type writes.
pub fn effect(item: &Item, event: &Event) -> Result<Effect, Failure> {
    let facts = Facts::of(item)?;
    Ok(match event {
        Event::MergeRequest { iid, action, head, oldrev, user, .. } => {
            let ours = facts.mr.as_ref().is_some_and(|mr| mr.iid == *iid && mr.author == *user);
            let known = |sha: &Option<_>| sha.as_ref().is_none_or(|sha| facts.has_verified(sha));
            if let Some(old) = oldrev
                && ours
                && !known(oldrev)
                && facts.may_have_pushed(head.as_ref())
            {
                return Ok(Effect::Overwrote(old.clone()));
            }
            if ours && action != "merge" && action != "close" && known(head) && known(oldrev) { Effect::None } else { Effect::Reconcile }
        }
        Event::Pipeline { status, .. } if !is_finished(status) => Effect::None,
        Event::Pipeline { id, status, sha, .. } => {
            Effect::PipelineFinished(PipelineRef { id: *id, status: status.clone(), sha: sha.clone(), listed: false })
        }
        Event::Job { status, .. } if status != "failed" => Effect::None,
        Event::Job { pipeline, .. } if facts.pipeline.as_ref().is_some_and(|p| p.id > *pipeline) => Effect::None,
        Event::Job { id, name, stage, failure_reason, .. } => {
            Effect::JobFailed(FailedJob { id: id.0, name: name.clone(), stage: stage.clone(), failure_reason: failure_reason.clone() })
        }
    })
}

/// Applies the whole inbox in the order of the events' own times, whatever the order of their deliveries, and empties it.
///
/// # Errors
/// A `Bug` where the row does not hold what this type writes.
pub fn apply_inbox(item: &Item) -> Result<Item, Failure> {
    let mut next = item.clone();
    let mut inbox = std::mem::take(&mut next.inbox);
    inbox.sort_by_cached_key(|entry| (entry.event.at(), serde_json::to_string(&entry.event).unwrap_or_default()));
    for entry in inbox {
        apply(&mut next, &entry.event)?;
    }
    Ok(next)
}

fn apply(item: &mut Item, event: &Event) -> Result<(), Failure> {
    item.last_event_at = item.last_event_at.max(Some(event.at()));
    match effect(item, event)? {
        Effect::None => return Ok(()),
        Effect::Reconcile => {}
        Effect::Overwrote(sha) => {
            let mut facts = Facts::of(item)?;
            facts.replaced(sha, event.at());
            item.facts = facts.document();
        }
        Effect::PipelineFinished(pipeline) => {
            let mut facts = Facts::of(item)?;
            let known = facts.pipeline.as_ref().is_some_and(|p| PipelineRef { listed: false, ..p.clone() } == pipeline);
            if facts.verified_head() == Some(&pipeline.sha) && !known {
                facts.pipeline = Some(pipeline);
                item.facts = facts.document();
            }
        }
        Effect::JobFailed(job) => {
            record_job(item, job);
            return Ok(());
        }
    }
    set(item, dims::reconcile(), Dimension::needed());
    Ok(())
}

fn record_job(item: &mut Item, job: FailedJob) {
    let mut jobs = failed_jobs(item);
    if jobs.iter().all(|have| have.id != job.id) && jobs.len() < JOBS_KEPT {
        jobs.push(job);
    }
    let mut dimension = have_failed(&jobs);
    let before = item.dimension(&dims::ci_retry()).detail;
    if let (Some(detail), Some(judged)) = (&mut dimension.detail, before.as_ref().and_then(|detail| detail.get("judged"))) {
        detail["judged"] = judged.clone();
    }
    set(item, dims::ci_retry(), dimension);
}

/// The dimension that has failed jobs looked at. It names them as far as there is room; which have failed is read again.
#[must_use]
pub fn have_failed(jobs: &[FailedJob]) -> Dimension {
    let mut room = MAX_RECORD_BYTES;
    let fitting = jobs.iter().take(JOBS_KEPT).take_while(|job| {
        let size = serde_json::to_string(job).map_or(usize::MAX, |text| text.len() + 1);
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let detail = serde_json::json!({ "why": "jobs have failed", "jobs": fitting.collect::<Vec<_>>() });
    Dimension { detail: Some(detail), ..Dimension::needed() }
}

/// The failed jobs that the row records.
#[must_use]
pub fn failed_jobs(item: &Item) -> Vec<FailedJob> {
    let detail = item.dimension(&dims::ci_retry()).detail;
    let jobs = detail.as_ref().and_then(|d| d.get("jobs"));
    jobs.and_then(|jobs| Vec::deserialize(jobs).ok()).unwrap_or_default()
}

fn set(item: &mut Item, key: DimensionKey, dimension: Dimension) {
    item.dims.insert(key, dimension);
}

/// Whether a pipeline of this status will not move by itself.
#[must_use]
pub fn is_finished(status: &str) -> bool {
    matches!(status, "success" | "failed" | "canceled" | "skipped")
}

#[cfg(test)]
mod tests;
