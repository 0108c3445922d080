//! Runs what is rung for: a bounded number at once, never one thing twice, each in a task of its own.
//!
//! A panic ends its task alone; the rows say when to look again. Told to stop, the pool starts nothing more and returns when every
//! run has ended.

use super::doorbell::{Ring, Rings, Schedule};
use super::stop::Stop;
use collie_core::id::ItemId;
use collie_engine::Engine;
use collie_engine::execute::Worker;
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::pin::Pin;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

/// When an item whose row could not be written is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// A run, which says when to look again without a further ring; none where a ring, or the clock, tells.
pub(crate) type Run = Pin<Box<dyn Future<Output = Option<Duration>> + Send>>;
type Ended = Result<(tokio::task::Id, Option<Duration>), JoinError>;

/// The pool.
pub(crate) struct Pool<K> {
    run: Box<dyn Fn(K) -> Run + Send + Sync>,
    limit: usize,
    rings: Rings<K>,
    schedule: Schedule<K>,
    runs: JoinSet<Option<Duration>>,
    under_way: HashMap<tokio::task::Id, K>,
}

impl<K: Clone + Eq + Ord + Hash + Display> Pool<K> {
    /// A pool of at most `limit` runs at once.
    pub(crate) fn new(run: impl Fn(K) -> Run + Send + Sync + 'static, rings: Rings<K>, limit: usize) -> Self {
        Self { run: Box::new(run), limit, rings, schedule: Schedule::default(), runs: JoinSet::new(), under_way: HashMap::new() }
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
            let task = self.runs.spawn((self.run)(id.clone()));
            self.under_way.insert(task.id(), id);
        }
    }

    /// None while the pool is full: only an end makes room.
    fn wait_until(&self) -> Option<Instant> {
        self.schedule.next_at().filter(|_| self.runs.len() < self.limit)
    }

    fn ended(&mut self, run: Ended) {
        let (task, again) = match run {
            Ok((task, again)) => (task, Some(again)),
            Err(error) => (error.id(), None),
        };
        let Some(id) = self.under_way.remove(&task) else { return };
        self.schedule.finish(&id);
        match again {
            Some(Some(after)) => self.schedule.ring(Ring { id, at: Instant::now() + after }),
            Some(None) => {}
            None => tracing::error!(run = %id, "a run panicked; what it was for is looked at again by the clock"),
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}

/// Runs items by the use case.
pub(crate) fn execute(engine: Engine, actor: String) -> impl Fn(ItemId) -> Run + Send + Sync {
    let worker = Worker { actor, deadline: None };
    move |id| {
        let (engine, worker) = (engine.clone(), worker.clone());
        Box::pin(async move { run_item(&engine, &worker, &id).await })
    }
}

async fn run_item(engine: &Engine, worker: &Worker, id: &ItemId) -> Option<Duration> {
    match engine.execute(id, worker).await {
        Ok(ran) => {
            tracing::debug!(item = %id, ?ran, "run ended");
            None
        }
        Err(failure) => {
            tracing::warn!(item = %id, code = failure.code, message = failure.message, "the item's row could not be written; trying again");
            Some(TRY_AGAIN)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::doorbell::{Doorbell, doorbell};
    use super::super::stop;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use tokio::sync::Semaphore;

    /// What runs did: which began, how many were under way at most; each ends with a permit of `gate`.
    #[derive(Clone)]
    struct Watched {
        begun: Arc<Mutex<Vec<String>>>,
        under_way: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
        gate: Arc<Semaphore>,
    }

    impl Watched {
        fn new(permits: usize) -> Self {
            let gate = Arc::new(Semaphore::new(permits));
            Self { begun: Arc::default(), under_way: Arc::default(), most: Arc::default(), gate }
        }

        async fn run(self, id: ItemId) -> Option<Duration> {
            self.begun.lock().unwrap().push(id.to_string());
            self.most.fetch_max(self.under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            assert_ne!(id.as_str(), "panics");
            None
        }

        /// Returns once this many runs have begun.
        async fn begun(&self, count: usize) {
            while self.begun.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        }
    }

    fn started(watched: &Watched, limit: usize) -> (Doorbell<ItemId>, stop::Stopper, tokio::task::JoinHandle<()>) {
        let (bell, rings) = doorbell();
        let (stopper, stop) = stop::order();
        let runs = watched.clone();
        let pool = Pool::new(move |id| Box::pin(runs.clone().run(id)), rings, limit);
        (bell, stopper, tokio::spawn(pool.work(stop)))
    }

    fn ring(bell: &Doorbell<ItemId>, ids: &[&str]) {
        for id in ids {
            bell.ring(ItemId::new(*id), Duration::ZERO);
        }
    }

    #[tokio::test]
    async fn runs_are_bounded_and_none_is_cut_off_by_the_end() {
        let watched = Watched::new(0);
        let (bell, stopper, pool) = started(&watched, 2);
        ring(&bell, &["a", "b", "c"]);
        watched.begun(2).await;
        stopper.stop();
        watched.gate.add_permits(2);
        pool.await.unwrap();
        assert_eq!(*watched.begun.lock().unwrap(), ["a", "b"]);
        assert_eq!((watched.under_way.load(Ordering::SeqCst), watched.most.load(Ordering::SeqCst)), (0, 2));
    }

    #[tokio::test]
    async fn an_item_rung_for_while_it_runs_runs_once_more_afterwards() {
        let watched = Watched::new(0);
        let (bell, stopper, pool) = started(&watched, 2);
        ring(&bell, &["a"]);
        watched.begun(1).await;
        ring(&bell, &["a", "a", "b"]);
        watched.begun(2).await;
        watched.gate.add_permits(3);
        watched.begun(3).await;
        stopper.stop();
        pool.await.unwrap();
        assert_eq!(*watched.begun.lock().unwrap(), ["a", "b", "a"]);
    }

    #[tokio::test]
    async fn a_panic_ends_its_run_alone() {
        let watched = Watched::new(9);
        let (bell, stopper, pool) = started(&watched, 1);
        ring(&bell, &["panics", "b", "panics"]);
        watched.begun(2).await;
        ring(&bell, &["panics"]);
        watched.begun(3).await;
        stopper.stop();
        pool.await.unwrap();
    }
}
