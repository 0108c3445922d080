//! Openings are offered to those who repair, once for each opening; closings are told to them.
//!
//! What an executor has taken is kept, so that a message that comes again offers nothing twice; an executor that was called and not yet
//! noted is called again, and is idempotent for an issue and the build that opened it.

use super::Tracking;
use super::read::Paging;
use crate::settings::{Queue, Repair};
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::issue::call::MAX_CHUNK;
use collie_core::issue::hook::Repair as Offer;
use collie_core::issue::id::{QueueName, Source};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Issue, RepairOffer, RowKey};
use collie_core::issue::table::Edit;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Issues of a build that are looked at together.
const PAGE: usize = 100;

/// Someone who repairs.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Its name, in rows.
    fn name(&self) -> &'static str;

    /// Takes issues that opened. Called again for the same ones where a process died in between.
    async fn opened(&self, queue: &Queue, openings: &[Issue]) -> Result<(), Failure>;

    /// Hears that an issue has closed.
    async fn closed(&self, queue: &Queue, key: &IssueKey) -> Result<(), Failure>;
}

/// Executors by what configuration calls them; none repairs nothing.
#[derive(Clone, Default)]
pub(super) struct Executors(BTreeMap<Repair, Arc<dyn Executor>>);

impl Tracking {
    /// Tracking with one more executor.
    #[must_use]
    pub fn with_executor(mut self, name: Repair, executor: Arc<dyn Executor>) -> Self {
        self.executors.0.insert(name, executor);
        self
    }

    /// Offers what opened in a build and is open still to the queue's executor; says how many issues it took.
    ///
    /// # Errors
    /// The store's or the executor's; the message comes again.
    pub async fn repair(&self, queue: &Queue, offer: &Offer) -> Result<usize, Failure> {
        let Some(executor) = self.executors.0.get(&queue.repair) else { return Ok(0) };
        let source = Source { request: offer.request_id, build: offer.build_id.clone() };
        let (mut taken, mut after) = (0, None);
        loop {
            let page = self.openings(&queue.name, &source, Paging { after, limit: PAGE }).await?;
            let pending = self.pending(&queue.name, executor.name(), page.items).await?;
            if !pending.is_empty() {
                executor.opened(queue, &pending).await?;
                self.note_taken(&queue.name, executor.name(), &pending).await?;
                taken += pending.len();
            }
            after = page.next;
            if after.is_none() {
                return Ok(taken);
            }
        }
    }

    /// Tells the queue's executor that an issue has closed.
    ///
    /// # Errors
    /// The executor's; the message comes again.
    pub async fn repaired(&self, queue: &Queue, key: &IssueKey) -> Result<(), Failure> {
        match self.executors.0.get(&queue.repair) {
            Some(executor) => executor.closed(queue, key).await,
            None => Ok(()),
        }
    }

    async fn pending(&self, queue: &QueueName, executor: &str, openings: Vec<Issue>) -> Result<Vec<Issue>, Failure> {
        let mut pending = Vec::with_capacity(openings.len());
        for issue in openings {
            let place = RowKey::repair(executor, &issue.first_seen.build, &issue.key);
            if self.row::<RepairOffer>(queue, &place).await?.is_none() {
                pending.push(issue);
            }
        }
        Ok(pending)
    }

    async fn note_taken(&self, queue: &QueueName, executor: &str, taken: &[Issue]) -> Result<(), Failure> {
        let at = self.ports.clock.now();
        let keep = |issue: &Issue| {
            let row = RepairOffer { key: issue.key.clone(), executor: executor.to_owned(), at };
            Edit::Keep(RowKey::repair(executor, &issue.first_seen.build, &issue.key), row.into())
        };
        for chunk in taken.chunks(MAX_CHUNK) {
            self.ports.rows.write(queue, &chunk.iter().map(keep).collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}
