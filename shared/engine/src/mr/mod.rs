//! The executors of the `mr` type: each performs one action on GitLab and says what it learned.
//!
//! Persist, act, record: an intent is in the row before a commit is pushed, and what became of a write without an answer is
//! read back. What was learned is kept even where the action failed.

mod branch;
mod close;
mod dashboard;
mod empty;
mod ensure;
mod foreign;
mod reconcile;
mod retry_ci;
mod train;

use crate::execute::{Run, Stop};
use crate::item_type::ItemType;
use crate::ports::{Forge, ProjectRef};
use async_trait::async_trait;
use collie_core::decision::{Action, Decision};
use collie_core::error::Failure;
use collie_core::event::Event;
use collie_core::item::{Content, Dimension, DimensionKey, Document, Item, ResultKind};
use collie_core::mr::events::{self, Effect};
use collie_core::mr::facts::{Blocker, Facts};
use collie_core::mr::tree::{self, Listing};
use collie_core::mr::view::{MergeRequest, State};
use collie_core::mr::wanted::{ProjectRules, Wanted};
use collie_core::mr::{decide, dims};
use collie_core::outcome::{Block, End, Outcome};
use collie_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The `mr` item type.
#[derive(Debug, Clone, Copy, Default)]
pub struct MrType;

#[async_trait]
impl ItemType for MrType {
    fn seed(&self, now: Timestamp) -> BTreeMap<DimensionKey, Dimension> {
        dims::seed(now)
    }

    fn takes_submissions(&self) -> bool {
        true
    }

    fn retried(&self, item: &Item, overwrite: bool) -> Result<(Document, Vec<(DimensionKey, Dimension)>), Failure> {
        let wanted = Wanted { overwrite, ..item.wanted.read()? };
        Ok((Document::of(&wanted), vec![(dims::mr(), Dimension::needed())]))
    }

    fn blockers(&self, item: &Item) -> Result<Vec<Blocker>, Failure> {
        Ok(Facts::of(item)?.blockers)
    }

    fn decide(&self, item: &Item, now: Timestamp) -> Result<Decision, Failure> {
        decide::decide(item, now)
    }

    fn concerns(&self, item: &Item, event: &Event) -> Result<bool, Failure> {
        Ok(events::effect(item, event)? != Effect::None)
    }

    fn apply_inbox(&self, item: &Item) -> Result<Item, Failure> {
        events::apply_inbox(item)
    }

    fn look_again(&self) -> DimensionKey {
        dims::reconcile()
    }

    fn dimension_of(&self, action: Action) -> DimensionKey {
        decide::dimension_of(action)
    }

    fn has_more(&self, item: &Item) -> Result<bool, Failure> {
        Ok(!Facts::of(item)?.latest().is_some_and(|build| build.is_of(item)))
    }

    async fn execute(&self, action: Action, run: &mut Run<'_>) -> Option<Result<Outcome, Stop>> {
        let mut work = match Work::begin(run) {
            Ok(work) => work,
            Err(failure) => return Some(Err(failure.into())),
        };
        // Boxed: these futures are large, and every caller's would hold the largest.
        let done = match action {
            decide::CLOSE => Box::pin(work.close()).await,
            decide::ENSURE_MR => Box::pin(work.ensure_mr()).await,
            decide::POST_DASHBOARD => Box::pin(work.post_dashboard()).await,
            decide::RETRY_CI_JOBS => Box::pin(work.retry_ci_jobs()).await,
            decide::CHECK_EMPTY_DIFF => Box::pin(work.check_empty_diff()).await,
            decide::RECONCILE_MR => Box::pin(work.reconcile_mr()).await,
            _ => return None,
        };
        Some(work.finish(action, done).await)
    }
}

/// One action at work: the run, and what is known so far.
struct Work<'w, 'e> {
    run: &'w mut Run<'e>,
    facts: Facts,
    wanted: Wanted,
    at: ProjectRef,
    rules: ProjectRules,
    content: Option<(u64, Content)>,
}

impl<'w, 'e> Work<'w, 'e> {
    fn begin(run: &'w mut Run<'e>) -> Result<Self, Failure> {
        let project = run.project()?;
        let (at, rules) = (project.at.clone(), project.rules.clone());
        let (facts, wanted) = (Facts::of(run.item())?, run.item().wanted.read()?);
        Ok(Self { run, facts, wanted, at, rules, content: None })
    }

    /// Keeps what was learned, whatever became of the action, and shows an end on the merge request.
    async fn finish(mut self, action: Action, done: Result<Outcome, Stop>) -> Result<Outcome, Stop> {
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(Stop::Failed(failure)) => {
                let failure = self.run.share_wait(failure).await?;
                self.run.outcome_of(failure, action)
            }
            Err(stop) => return Err(stop),
        };
        let outcome = self.shown(outcome);
        if let Some(end) = &outcome.end {
            self.show_end(end).await;
        }
        Ok(outcome.knowing(self.facts.document()))
    }

    /// Where the item gets blocked or free, its note is to say so.
    fn shown(&self, outcome: Outcome) -> Outcome {
        let was = self.item().blocked.as_ref().map(|b| b.reason);
        let changes = match &outcome.block {
            Block::Keep => false,
            Block::Clear => was.is_some(),
            Block::Set(reason, _) => was != Some(*reason),
        };
        let said = outcome.dims.iter().any(|(key, _)| *key == dims::dashboard());
        let silent = outcome.end.is_some() || said || self.facts.mr.is_none();
        if changes && !silent { outcome.with(dims::dashboard(), Dimension::needed()) } else { outcome }
    }

    fn item(&self) -> &Item {
        self.run.item()
    }

    fn forge(&self) -> &'e dyn Forge {
        self.run.ports().forge.as_ref()
    }

    fn now(&self) -> Timestamp {
        self.run.now()
    }

    fn source_branch(&self) -> &str {
        &self.run.item().branch.source_branch
    }

    /// The newest content and its revision, read once.
    async fn content(&mut self) -> Result<(u64, Content), Failure> {
        if self.content.is_none() {
            self.content = Some(self.run.engine().latest_content(self.run.item()).await?);
        }
        self.content.clone().ok_or_else(|| Failure::bug("content was just read"))
    }

    /// Lists directories at a commit; of a missing one also its parents, to see what stands in its way.
    async fn listing(&self, at: &collie_core::id::Sha, directories: BTreeSet<String>) -> Result<Listing, Failure> {
        let (mut listing, mut todo) = (Listing::new(), directories);
        while let Some(directory) = todo.pop_first() {
            if listing.contains_key(&directory) {
                continue;
            }
            let rows = self.forge().tree(&self.at, at, &directory).await?;
            if rows.is_none() && !directory.is_empty() {
                todo.insert(tree::parent(&directory).to_owned());
            }
            listing.insert(directory, rows);
        }
        Ok(listing)
    }

    /// What it means for the item that its merge request is merged, or closed. One that Collie closed for content that is no
    /// longer wanted does not end the item.
    fn ended(&mut self, mr: &MergeRequest) -> Option<Outcome> {
        match mr.state {
            State::Opened | State::Locked => None,
            State::Merged => Some(self.merged(mr)),
            State::Closed if self.facts.is_emptied(self.item()) => Some(self.no_change()),
            State::Closed if self.facts.emptied.is_some() => None,
            State::Closed => {
                let all = self.facts.latest().is_some_and(|build| build.is_of(self.item()));
                let rest = if all { "" } else { "; the update submitted since was not carried out" };
                let summary = format!("!{} was closed by someone else{rest}", mr.iid);
                Some(Outcome::progress(summary).ending(End::Cancelled(ResultKind::Closed)))
            }
        }
    }

    fn merged(&mut self, mr: &MergeRequest) -> Outcome {
        self.facts.merge_commit.clone_from(&mr.merge_commit);
        let head = mr.sha.as_ref().map_or("an unknown head", |sha| sha.short());
        Outcome::progress(format!("!{} is merged at {head}", mr.iid)).ending(End::Completed(ResultKind::Merged))
    }

    fn no_change(&self) -> Outcome {
        let summary = format!("{:?} already holds everything", self.item().target);
        Outcome::progress(summary).ending(End::Completed(ResultKind::NoChange))
    }
}
