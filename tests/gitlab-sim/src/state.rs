//! All state of one simulator, and the queue of background work in time order.
//!
//! Work is run by `run_until`: each task sees `now_ms` as the moment it was due, so a run is the
//! same whether the clock jumps or creeps.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::{Token, User};
use crate::clock::{Clock, MANUAL_START_MS, Timing, wall_now_ms};
use crate::deliveries::{Deliveries, Delivery};
use crate::faults::Faults;
use crate::journal::JournalEntry;
use crate::oidc::Signing;
use crate::pipelines::PipelinePlan;
use crate::project::Project;
use crate::pushes::Push;
use crate::rate_limits::RateLimiter;

/// Background work.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    PrepareMr { project: u64, iid: u64 },
    CheckMr { project: u64, iid: u64 },
    AfterPush { project: u64, push: Push },
    CreatePipeline { project: u64, plan: PipelinePlan },
    StartJob { project: u64, job: u64 },
    FinishJob { project: u64, job: u64 },
    RemoveBranch { project: u64, branch: String, tip: String, user: u64 },
    RefreshBranches { project: u64 },
    Rebase { project: u64, iid: u64, user: u64 },
    RefreshTrain { project: u64, target: String },
    MergeCar { project: u64, iid: u64 },
    PersonaApproves { project: u64, iid: u64, user: u64 },
    Deliver { delivery: Box<Delivery> },
    FlushHeldDelivery,
    ReleaseHold { hold: u64 },
}

impl Task {
    fn name(&self) -> &'static str {
        match self {
            Self::PrepareMr { .. } => "prepare_merge_request",
            Self::CheckMr { .. } => "check_mergeability",
            Self::AfterPush { .. } => "process_push",
            Self::CreatePipeline { .. } => "create_pipeline",
            Self::StartJob { .. } => "start_job",
            Self::FinishJob { .. } => "finish_job",
            Self::RemoveBranch { .. } => "remove_branch",
            Self::RefreshBranches { .. } => "refresh_branch_cache",
            Self::Rebase { .. } => "rebase",
            Self::RefreshTrain { .. } => "refresh_merge_train",
            Self::MergeCar { .. } => "merge_train_car",
            Self::PersonaApproves { .. } => "persona_approves",
            Self::Deliver { .. } => "deliver_hook",
            Self::FlushHeldDelivery => "flush_held_delivery",
            Self::ReleaseHold { .. } => "release_hold",
        }
    }
}

/// Counters that give out ids, one per kind.
#[derive(Debug, Default)]
pub(crate) struct Ids(BTreeMap<&'static str, u64>);

impl Ids {
    pub(crate) fn next(&mut self, kind: &'static str) -> u64 {
        let start = match kind {
            "project" => 100,
            "user" => 500,
            "merge_request" => 3_000,
            "pipeline" => 9_000,
            "job" => 70_000,
            "note" => 50_000,
            "label" => 800,
            "issue" => 6_000,
            _ => 0,
        };
        let slot = self.0.entry(kind).or_insert(start);
        *slot += 1;
        *slot
    }
}

/// Everything the simulator knows.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) now_ms: u64,
    pub(crate) timing: Timing,
    pub(crate) version: String,
    pub(crate) base_url: String,
    pub(crate) ids: Ids,
    pub(crate) users: BTreeMap<u64, User>,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) projects: BTreeMap<u64, Project>,
    pub(crate) renamed: BTreeMap<String, u64>,
    pub(crate) faults: Faults,
    pub(crate) limiter: RateLimiter,
    pub(crate) journal: Vec<JournalEntry>,
    pub(crate) deliveries: Deliveries,
    pub(crate) signing: Signing,
    queue: BTreeMap<(u64, u64), Task>,
    next_task: u64,
}

impl State {
    pub(crate) fn new(clock: Clock) -> Self {
        let now_ms = match clock {
            Clock::Manual => MANUAL_START_MS,
            Clock::Wall => wall_now_ms(),
        };
        Self {
            clock,
            now_ms,
            timing: Timing::default(),
            version: "19.4.1-ee".to_owned(),
            base_url: "http://gitlab.sim".to_owned(),
            ids: Ids::default(),
            users: BTreeMap::new(),
            tokens: BTreeMap::new(),
            projects: BTreeMap::new(),
            renamed: BTreeMap::new(),
            faults: Faults::default(),
            limiter: RateLimiter::default(),
            journal: Vec::new(),
            deliveries: Deliveries::default(),
            signing: Signing::default(),
            queue: BTreeMap::new(),
            next_task: 0,
        }
    }

    /// The major version modelled, by which some answers differ.
    pub(crate) fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(19)
    }

    pub(crate) fn project(&self, id: u64) -> Option<&Project> {
        self.projects.get(&id)
    }

    pub(crate) fn project_mut(&mut self, id: u64) -> Option<&mut Project> {
        self.projects.get_mut(&id)
    }

    pub(crate) fn schedule(&mut self, after_ms: u64, task: Task) {
        self.next_task += 1;
        self.queue.insert((self.now_ms + after_ms, self.next_task), task);
    }

    pub(crate) fn next_task_at(&self) -> Option<u64> {
        self.queue.first_key_value().map(|((due, _), _)| *due)
    }

    /// The scheduled work, soonest first.
    pub(crate) fn scheduled(&self) -> Vec<Value> {
        self.queue.iter().map(|((due, _), task)| json!({ "at_ms": due, "task": task.name() })).collect()
    }

    /// Follows the wall clock, if that is the one; a manual clock stays.
    pub(crate) fn tick(&mut self) {
        if self.clock == Clock::Wall {
            self.run_until(wall_now_ms());
        }
    }

    /// Runs all work due up to `until_ms` in order and moves the clock there.
    pub(crate) fn run_until(&mut self, until_ms: u64) {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until_ms {
                break;
            }
            let ((due, _), task) = entry.remove_entry();
            self.now_ms = self.now_ms.max(due);
            self.run(task);
        }
        self.now_ms = self.now_ms.max(until_ms);
    }

    fn run(&mut self, task: Task) {
        let _ = match task {
            Task::PrepareMr { project, iid } => self.prepare_mr(project, iid),
            Task::CheckMr { project, iid } => self.finish_check(project, iid),
            Task::AfterPush { project, push } => self.process_push(project, &push),
            Task::CreatePipeline { project, plan } => self.create_pipeline(project, &plan).map(drop),
            Task::StartJob { project, job } => self.start_job(project, job),
            Task::FinishJob { project, job } => self.finish_job(project, job),
            Task::RemoveBranch { project, branch, tip, user } => self.remove_merged_branch(project, &branch, &tip, user),
            Task::RefreshBranches { project } => self.refresh_branch_cache(project),
            Task::Rebase { project, iid, user } => self.finish_rebase(project, iid, user),
            Task::RefreshTrain { project, target } => self.refresh_train(project, &target),
            Task::MergeCar { project, iid } => self.merge_car(project, iid),
            Task::PersonaApproves { project, iid, user } => self.persona_approves(project, iid, user),
            Task::Deliver { delivery } => self.deliver(*delivery),
            Task::FlushHeldDelivery => self.flush_held_delivery(),
            Task::ReleaseHold { hold } => self.release_hold(hold),
        };
    }
}
