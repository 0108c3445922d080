//! The rounds of one run.

use super::lease::Lease;
use super::shipping::DecisionEntry;
use super::{START_BEFORE, START_WITHIN, WRITE_TIMEOUT, Worker};
use crate::cost::Meter;
use crate::item_type::ItemType;
use crate::metric;
use crate::settings::{Project, Settings};
use crate::{Engine, Ports};
use collie_core::decision::{Action, Next};
use collie_core::error::{Class, Failure};
use collie_core::item::{DimensionKey, Document, HostWait, Item, MAX_CLAIMS, Step, TimelineEntry};
use collie_core::outcome::{self, End, Outcome};
use collie_core::queue::Change;
use collie_core::time::Timestamp;
use futures::FutureExt as _;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// Nothing was to do, or another run has the lease.
    Idle,
    /// The item waits, or is terminal.
    Settled,
    /// Time was up; the item has been rung for again.
    Released,
    /// Another run took over.
    LeaseLost,
}

/// Why an action was not brought to its end.
#[derive(Debug)]
pub enum Stop {
    /// Another run took over: no more writes.
    LeaseLost,
    /// The item was moved by callers or events: decide again.
    Superseded,
    /// The action failed; its class says what that means for the item.
    Failed(Failure),
    /// The row cannot be written: the wake-up is to be delivered again.
    Store(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One run over one item.
pub struct Run<'e> {
    pub(super) engine: &'e Engine,
    /// The row as this run last read or wrote it.
    pub(super) row: Item,
    /// The row with its inbox applied: what is decided and acted on.
    pub(super) work: Item,
    lease: Arc<Lease>,
    worker: &'e Worker,
    meter: Meter,
    started: Timestamp,
    pub(super) steps: Vec<Step>,
    pub(super) shipped: BTreeSet<String>,
    pub(super) decisions: Vec<DecisionEntry>,
    decided: usize,
}

/// Whether the run goes on.
pub(super) enum Flow {
    On,
    End(Ran),
}

impl<'e> Run<'e> {
    pub(super) fn new(engine: &'e Engine, row: Item, worker: &'e Worker, meter: Meter, started: Timestamp) -> Self {
        let lease = Arc::new(Lease::new(row.lease_epoch, row.leased_until.unwrap_or(started)));
        let (steps, shipped, decisions) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { engine, work: row.clone(), row, lease, worker, meter, started, steps, shipped, decisions, decided: 0 }
    }

    /// The item as this round sees it, events applied.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.work
    }

    /// The engine that runs it.
    pub(crate) fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// The ports.
    #[must_use]
    pub fn ports(&self) -> &'e Ports {
        &self.engine.ports
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.engine.ports.clock.now()
    }

    /// The project of the item.
    ///
    /// # Errors
    /// `Rejected` where it is no longer configured.
    pub fn project(&self) -> Result<&'e Project, Failure> {
        let settings: &'e Settings = &self.engine.settings;
        settings
            .project_of(&self.work.branch)
            .ok_or_else(|| Failure::rejected("unknown_project", format!("project {:?} is not configured any more", self.work.project)))
    }

    /// To be called right before every write to the forge: the lease must outlast it.
    ///
    /// # Errors
    /// [`Stop::LeaseLost`] where another run took over.
    pub async fn before_write(&self) -> Result<(), Stop> {
        self.lease.outlast(self.engine, &self.row.id, WRITE_TIMEOUT).await
    }

    /// Records facts before a side effect, so that a crash leaves a marker. Callers and events that moved the item win.
    ///
    /// # Errors
    /// [`Stop::Superseded`] where the item was moved, [`Stop::LeaseLost`] where the lease is gone.
    pub async fn record_intent(&mut self, facts: Document) -> Result<(), Stop> {
        let intent = Outcome::progress("intent").knowing(facts);
        self.write_intent(&intent).await
    }

    pub(super) async fn drive(mut self) -> Result<Ran, Failure> {
        let ran = self.rounds().await;
        if matches!(ran, Ok(Ran::Settled | Ran::Released)) {
            self.ship().await;
            self.write_timeline().await;
        }
        ran
    }

    async fn rounds(&mut self) -> Result<Ran, Failure> {
        self.ship().await;
        loop {
            let flow = match self.round().await {
                Err(Stop::Failed(failure)) => self.give_up(failure).await,
                other => other,
            };
            match flow {
                Ok(Flow::On) => {}
                Ok(Flow::End(ran)) => return Ok(ran),
                Err(Stop::LeaseLost) => return Ok(Ran::LeaseLost),
                Err(Stop::Store(failure) | Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Superseded) => {
                    if let Flow::End(ran) = self.reload().await? {
                        return Ok(ran);
                    }
                }
            }
        }
    }

    async fn round(&mut self) -> Result<Flow, Stop> {
        if self.row.claims > MAX_CLAIMS && self.row.is_active() {
            return self.give_up(Failure::rejected("worker_died", "three runs over this item died without progress")).await;
        }
        self.work = if self.row.is_active() { self.item_type()?.apply_inbox(&self.row)? } else { self.row.clone() };
        let now = self.now();
        let decision = self.item_type()?.decide(&self.work, now)?;
        if decision.next != Next::Rest {
            self.decisions.push(DecisionEntry::of(&self.work, &decision, self.decided, now));
            self.decided += 1;
        }
        match decision.next {
            Next::Act(action) if self.may_start() => {
                let (calls, begun) = (self.meter.gitlab_calls(), self.now());
                let outcome = self.perform(action).await?;
                metric::action(action.0, outcome.word(), self.now().since(begun));
                self.note_step(action, &outcome, calls);
                self.record(action, &outcome).await
            }
            Next::Act(_) => self.release().await,
            Next::Wait { until } => self.exit(until).await,
            Next::Rest => self.settle().await,
        }
    }

    pub(super) fn item_type(&self) -> Result<&'e dyn ItemType, Failure> {
        self.engine.type_of(&self.row)
    }

    fn may_start(&self) -> bool {
        let now = self.now();
        now.since(self.started) < START_WITHIN && self.worker.deadline.is_none_or(|end| end.since(now) > START_BEFORE)
    }

    /// Runs the executor of an action while its lease is kept; a failure becomes the outcome that its class says.
    async fn perform(&mut self, action: Action) -> Result<Outcome, Stop> {
        if let Some(wait) = self.host_wait().await? {
            let failure = Failure::new(Class::Throttled { until: wait.until }, "throttled", wait.reason);
            return Ok(self.outcome_of(failure, action));
        }
        let item_type = self.item_type()?;
        let (engine, id) = (self.engine, self.row.id.clone());
        let lease = Arc::clone(&self.lease);
        let done = {
            let mut acting = item_type.execute(action, self).fuse();
            let mut keeping = Box::pin(lease.keep(engine, &id)).fuse();
            futures::select_biased! {
                done = acting => done,
                lost = keeping => match lost {
                    Ok(never) => match never {},
                    Err(stop) => return Err(stop),
                },
            }
        };
        let nobody = || Failure::rejected("no_executor", format!("no executor is registered for {}", action.0));
        match done.unwrap_or_else(|| Err(Stop::Failed(nobody()))) {
            Ok(outcome) => Ok(outcome),
            Err(Stop::Failed(failure)) => {
                let failure = self.share_wait(failure).await?;
                Ok(self.outcome_of(failure, action))
            }
            Err(stop) => Err(stop),
        }
    }

    /// What a failure of this action means for the item.
    pub(crate) fn outcome_of(&self, failure: Failure, action: Action) -> Outcome {
        let dimension = self.item_type().map_or_else(|_| DimensionKey::new(action.0), |t| t.dimension_of(action));
        let jitter = self.engine.ports.ids.jitter();
        outcome::of_failure(failure, &self.work, &dimension, self.engine.settings.max_attempts, jitter, self.now())
    }

    async fn host_wait(&self) -> Result<Option<HostWait>, Stop> {
        let host = &self.row.branch.host;
        self.engine.throttle.wait(self.engine.ports.items.as_ref(), host, self.now()).await.map_err(Stop::Store)
    }

    /// Tells all functions to leave a host alone that asked for it, for longer where it asked before.
    pub(crate) async fn share_wait(&self, failure: Failure) -> Result<Failure, Stop> {
        let failure = outcome::lengthened(failure, &self.work, self.now());
        let Class::Throttled { until } = failure.class else { return Ok(failure) };
        let wait = HostWait { until, reason: failure.message.clone() };
        let items = self.engine.ports.items.as_ref();
        self.engine.throttle.set(items, &self.row.branch.host, wait, self.now()).await.map_err(Stop::Store)?;
        Ok(failure)
    }

    /// Ends the item with a failure that no action can answer for.
    async fn give_up(&mut self, failure: Failure) -> Result<Flow, Stop> {
        tracing::error!(item = %self.row.id, code = failure.code, "the item cannot be driven");
        let outcome = Outcome::progress(failure.to_string()).ending(End::Failed(failure));
        self.work = self.row.clone();
        let action = Action("give_up");
        self.note_step(action, &outcome, self.meter.gitlab_calls());
        self.record(action, &outcome).await
    }

    fn note_step(&mut self, action: Action, outcome: &Outcome, calls_before: u32) {
        let gitlab_calls = self.meter.gitlab_calls() - calls_before;
        self.steps.push(Step { action: action.0.to_owned(), outcome: outcome.summary.clone(), gitlab_calls, sha: None });
    }

    async fn write_timeline(&self) {
        if self.steps.is_empty() {
            return;
        }
        let entry = TimelineEntry {
            at: self.started,
            epoch: self.row.lease_epoch,
            actor: self.worker.actor.clone(),
            steps: self.steps.clone(),
            waits_for: self.waits_for(),
            gitlab_calls: self.meter.gitlab_calls(),
            write_units: self.meter.write_units(),
        };
        if let Err(failure) = self.engine.ports.items.append_timeline(&self.row.id, &entry).await {
            tracing::warn!(item = %self.row.id, code = failure.code, "timeline entry not written");
        }
    }

    /// What the item waits for after this run, for people: the last rule that is deferred, which is the closed gate or the next look.
    fn waits_for(&self) -> String {
        if !self.row.is_active() {
            return String::new();
        }
        if let Some(blocked) = &self.row.blocked {
            return blocked.detail.clone();
        }
        let decision = self.item_type().and_then(|t| t.decide(&self.row, self.now()));
        decision.map_or_else(
            |_| String::new(),
            |d| {
                let waiting = crate::explain::waiting_on(&d);
                waiting.into_iter().next_back().map(|w| w.why).unwrap_or_default()
            },
        )
    }

    async fn release(&mut self) -> Result<Flow, Stop> {
        let (epoch, commit_seq) = (self.row.lease_epoch, self.row.commit_seq);
        let release = Change::Release { epoch, commit_seq, token: self.engine.ports.ids.token(), now: self.now(), died: false };
        match self.write(&release).await? {
            true => {
                self.engine.ring(&self.row.id, Duration::ZERO).await;
                Ok(Flow::End(Ran::Released))
            }
            false => Err(Stop::LeaseLost),
        }
    }
}
