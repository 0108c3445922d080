//! Runs items as they are rung for: a bounded number at once, never one item twice, each in a task of its own.
//!
//! A panic ends its task alone; the item is claimable again when its lease is over. Told to stop, the pool starts nothing
//! more and returns when every run has ended.

use super::doorbell::{Ring, Schedule};
use super::stop::Stop;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_engine::Engine;
use collie_engine::execute::{Ran, Worker};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

/// When an item whose row could not be written is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

type Run = Result<(tokio::task::Id, Result<Ran, Failure>), JoinError>;

/// The pool.
pub(crate) struct Pool {
    engine: Engine,
    worker: Worker,
    limit: usize,
    rings: mpsc::UnboundedReceiver<Ring>,
    schedule: Schedule,
    runs: JoinSet<Result<Ran, Failure>>,
    items: HashMap<tokio::task::Id, ItemId>,
}

impl Pool {
    /// A pool of at most `limit` runs at once.
    pub(crate) fn new(engine: Engine, rings: mpsc::UnboundedReceiver<Ring>, actor: String, limit: usize) -> Self {
        let worker = Worker { actor, deadline: None };
        Self { engine, worker, limit, rings, schedule: Schedule::default(), runs: JoinSet::new(), items: HashMap::new() }
    }

    /// Works until told to stop, and then until nothing is under way.
    pub(crate) async fn work(mut self, mut stop: Stop) {
        loop {
            self.start_due();
            let (next, idle) = (self.wait_until(), self.runs.is_empty());
            tokio::select! {
                () = stop.given() => break,
                Some(ring) = self.rings.recv() => self.schedule.ring(ring),
                Some(run) = self.runs.join_next_with_id(), if !idle => self.ended(run),
                () = sleep_until(next), if next.is_some() => {}
            }
        }
        tracing::info!(under_way = self.runs.len(), "workers take nothing more");
        while let Some(run) = self.runs.join_next_with_id().await {
            self.ended(run);
        }
    }

    fn start_due(&mut self) {
        while self.runs.len() < self.limit {
            let Some(id) = self.schedule.start(Instant::now()) else { return };
            let (engine, worker, item) = (self.engine.clone(), self.worker.clone(), id.clone());
            let task = self.runs.spawn(async move { engine.execute(&item, &worker).await });
            self.items.insert(task.id(), id);
        }
    }

    /// None while the pool is full: only an end makes room.
    fn wait_until(&self) -> Option<Instant> {
        self.schedule.next_at().filter(|_| self.runs.len() < self.limit)
    }

    fn ended(&mut self, run: Run) {
        let (task, ran) = match run {
            Ok((task, ran)) => (task, Some(ran)),
            Err(error) => (error.id(), None),
        };
        let Some(id) = self.items.remove(&task) else { return };
        self.schedule.finish(&id);
        match ran {
            Some(Ok(ran)) => tracing::debug!(item = %id, ?ran, "run ended"),
            Some(Err(failure)) => self.failed(id, &failure),
            None => tracing::error!(item = %id, "a run panicked; the item is looked at again when its lease is over"),
        }
    }

    fn failed(&mut self, id: ItemId, failure: &Failure) {
        tracing::warn!(item = %id, code = failure.code, message = failure.message, "the item's row could not be written; trying again");
        self.schedule.ring(Ring { id, at: Instant::now() + TRY_AGAIN });
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
