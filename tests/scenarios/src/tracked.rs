//! A tracked queue on virtual time: callers report, workers and recovery do what they do, processes die, and what people see is read back.

use crate::effects::{Effects, Process};
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::issue::delivery::{Limits, Reason};
use collie_core::issue::hook::Notice;
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Analysis, Event, Finding, HistoryEntry, LogEntry, Milestone, OpenMark, Outcome, RequestIssue, Row, Set};
use collie_core::issue::table::Range;
use collie_core::time::Timestamp;
use collie_dynamo::MemoryTracking;
use collie_engine::ports::{Clock, Jobs, Notices, TrackingRows};
use collie_engine::settings::{Detector, Queue, Repair, Settings};
use collie_engine::tracking::calls::{Error, Reported};
use collie_engine::tracking::work::Turn;
use collie_engine::tracking::{Tracking, TrackingPorts};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// Looks at the queue that one story may take.
const MOST_LOOKS: usize = 2_000;
/// How long one delivery goes on.
const DELIVERY: Duration = Duration::from_secs(40);
/// How long a message stays away after its process died.
const VISIBILITY: Duration = Duration::from_secs(360);

/// A clock that stands still until it is moved.
pub struct HandClock(AtomicU64);

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, _: Duration) {
        futures::future::pending().await
    }
}

/// The line of jobs: whether somebody rang, and who is to be given up.
#[derive(Default)]
struct Line {
    rung: Mutex<bool>,
    letters: Mutex<BTreeMap<RequestId, Vec<Reason>>>,
}

#[async_trait]
impl Jobs for Line {
    async fn ring(&self, _: &QueueName, _: RequestId, _: &str) -> Result<(), Failure> {
        *self.rung.lock().unwrap() = true;
        Ok(())
    }

    async fn dead_letter(&self, _: &QueueName, job: RequestId, _: u32, reason: Reason) -> Result<(), Failure> {
        self.letters.lock().unwrap().entry(job).or_default().push(reason);
        Ok(())
    }
}

/// What was told.
#[derive(Default)]
struct Told(Mutex<Vec<Notice>>);

#[async_trait]
impl Notices for Told {
    async fn publish(&self, _: &QueueName, notice: &Notice) -> Result<(), Failure> {
        self.0.lock().unwrap().push(notice.clone());
        Ok(())
    }
}

/// A queue, and everything around it.
pub struct Tracked {
    effects: Effects,
    /// The rows.
    pub rows: Arc<MemoryTracking>,
    clock: Arc<HandClock>,
    line: Arc<Line>,
    told: Arc<Told>,
    queue: Queue,
}

/// What a person sees of a queue, without times and versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Open issues, each with the request that opened it.
    pub open: Vec<(String, u64)>,
    /// The history of every issue.
    pub log: BTreeMap<String, Vec<(Event, u64)>>,
    /// What each request meant.
    pub findings: BTreeMap<u64, Vec<(String, Finding)>>,
    /// What happened to each request.
    pub milestones: BTreeMap<u64, Vec<Milestone>>,
}

impl Tracked {
    /// An empty queue.
    #[must_use]
    pub fn new(effects: Effects) -> Self {
        let queue = Queue {
            name: QueueName::new("app-main"),
            project: "group/app".to_owned(),
            reference: "main".to_owned(),
            detector: Detector::None,
            repair: Repair::None,
            limits: Limits::default(),
        };
        let clock = Arc::new(HandClock(AtomicU64::new(1_769_882_644_000)));
        Self { effects, rows: Arc::default(), clock, line: Arc::default(), told: Arc::default(), queue }
    }

    /// The same with batches of this many keys.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.queue.limits.batch = batch;
        self
    }

    /// The queue's name.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        &self.queue.name
    }

    /// Time passes.
    pub fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// The use cases without a process around them: what cannot go wrong.
    #[must_use]
    pub fn tracking(&self) -> Tracking {
        let rows = Arc::clone(&self.rows) as Arc<dyn TrackingRows>;
        let (jobs, notices) = (Arc::clone(&self.line) as Arc<dyn Jobs>, Arc::clone(&self.told) as Arc<dyn Notices>);
        self.use_cases(TrackingPorts { rows, jobs, notices, clock: Arc::clone(&self.clock) as Arc<dyn Clock> })
    }

    fn use_cases(&self, ports: TrackingPorts) -> Tracking {
        let settings = Settings { projects: vec![], handled_types: vec![], queues: vec![self.queue.clone()], max_attempts: 5 };
        Tracking::new(ports, Arc::new(settings))
    }

    /// Something that a process does; none where it died.
    async fn process<T, F: Future<Output = T>>(&self, work: impl FnOnce(Tracking) -> F) -> Option<T> {
        let death = Arc::new(Notify::new());
        let rows: Arc<dyn TrackingRows> = Arc::new(Process::new(&self.effects, &death, Arc::clone(&self.rows) as Arc<dyn TrackingRows>));
        let jobs: Arc<dyn Jobs> = Arc::new(Process::new(&self.effects, &death, Arc::clone(&self.line) as Arc<dyn Jobs>));
        let notices: Arc<dyn Notices> = Arc::new(Process::new(&self.effects, &death, Arc::clone(&self.told) as Arc<dyn Notices>));
        let tracking = self.use_cases(TrackingPorts { rows, jobs, notices, clock: Arc::clone(&self.clock) as Arc<dyn Clock> });
        tokio::select! {
            biased;
            done = work(tracking) => Some(done),
            () = death.notified() => None,
        }
    }

    /// A call, made again by its caller until it is answered.
    async fn call<T, F: Future<Output = Result<T, Error>>>(&self, call: impl Fn(Tracking) -> F) -> Result<T, Error> {
        for _ in 0..3 {
            match self.process(&call).await {
                Some(Err(Error::Failed(_))) | None => {}
                Some(answered) => return answered,
            }
        }
        panic!("a call was not answered three times")
    }

    /// Admits a uri.
    pub async fn admit(&self, uri: &str) -> RequestId {
        let queue = &self.queue.name;
        self.call(|tracking| async move { tracking.admit(queue, uri).await }).await.unwrap().id
    }

    /// Admits the next request with its build.
    pub async fn start(&self, uri: &str) -> RequestId {
        let (queue, id) = (&self.queue.name, self.admit(uri).await);
        let build = &build_of(id);
        self.call(|tracking| async move { tracking.associate(queue, id, build).await }).await.unwrap();
        id
    }

    /// Reports issues, `task/unit` or a whole task.
    pub async fn report(&self, request: RequestId, keys: &[&str]) -> Result<usize, Error> {
        let (queue, build) = (&self.queue.name, &build_of(request));
        let issues: &Reported = &keys.iter().map(|name| (key(name), None)).collect();
        self.call(|tracking| async move { tracking.report(queue, build, issues).await }).await
    }

    /// Ends the analysis.
    pub async fn end_analysis(&self, request: RequestId, ended: Analysis, covered: Option<&[&str]>) {
        let (queue, build) = (&self.queue.name, &build_of(request));
        let covered: &Option<BTreeSet<String>> = &covered.map(|tasks| tasks.iter().map(|task| (*task).to_owned()).collect());
        self.call(|tracking| async move { tracking.end_analysis(queue, build, ended, covered.clone()).await }).await.unwrap();
    }

    /// Ends the request.
    pub async fn conclude(&self, request: RequestId, outcome: Outcome) {
        let queue = &self.queue.name;
        self.call(|tracking| async move { tracking.conclude(queue, request, outcome).await }).await.unwrap();
    }

    /// A whole build.
    pub async fn built(&self, uri: &str, keys: &[&str], outcome: Outcome) -> RequestId {
        let id = self.start(uri).await;
        for chunk in keys.chunks(500) {
            self.report(id, chunk).await.unwrap();
        }
        self.end_analysis(id, Analysis::Completed, None).await;
        self.conclude(id, outcome).await;
        id
    }

    /// Whether somebody rang since the last look.
    #[must_use]
    pub fn is_rung(&self) -> bool {
        std::mem::take(&mut *self.line.rung.lock().unwrap())
    }

    /// One look at the queue: how long its message is held, or none where it is gone. Where the process died, or failed, the message comes
    /// again.
    pub async fn look(&self) -> Option<Duration> {
        let (queue, until) = (&self.queue, self.clock.now().after(DELIVERY));
        match self.process(|tracking| async move { tracking.work(queue, None, until).await }).await {
            Some(Ok(Turn::Done)) => None,
            Some(Ok(Turn::Hold(after))) => Some(after),
            Some(Err(setback)) => Some(setback.after),
            None => Some(VISIBILITY),
        }
    }

    /// Recovers what was given up; whether there was something.
    pub async fn recover(&self) -> bool {
        let Some(job) = self.line.letters.lock().unwrap().keys().next().copied() else { return false };
        let queue = &self.queue.name;
        let done = self.process(|tracking| async move { tracking.recover(queue, job).await }).await;
        if let Some(Ok(Turn::Done)) = done {
            self.line.letters.lock().unwrap().remove(&job);
        }
        true
    }

    /// The jobs that were given up and are not dealt with, each with why.
    #[must_use]
    pub fn letters(&self) -> BTreeMap<RequestId, Vec<Reason>> {
        self.line.letters.lock().unwrap().clone()
    }

    /// Everything goes on until no job is left.
    pub async fn settle(&self) {
        for _ in 0..MOST_LOOKS {
            while self.recover().await {}
            match self.look().await {
                None if self.letters().is_empty() => return,
                None => {}
                Some(hold) => self.pass(hold.max(Duration::from_millis(1))),
            }
        }
        panic!("after {MOST_LOOKS} looks a job is left: {:?}", self.tracking().standing(&self.queue.name).await);
    }

    /// What was told so far.
    #[must_use]
    pub fn told(&self) -> Vec<Notice> {
        self.told.0.lock().unwrap().clone()
    }

    /// The ids of what was told of openings and closings, once each.
    #[must_use]
    pub fn hooks(&self) -> BTreeSet<String> {
        let id = |notice: &Notice| match notice {
            Notice::Hook(hook) => Some(hook.event_of(&self.queue.name).id),
            Notice::Repair(_) => None,
        };
        self.told().iter().filter_map(id).collect()
    }

    /// All rows of a set.
    pub async fn rows<T: TryFrom<Row>>(&self, set: Set) -> Vec<(String, T)> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.rows.range(&self.queue.name, &Range::behind(set.clone(), after, 1_000)).await.unwrap();
            after = page.rows.last().map(|(at, _)| at.clone());
            found.extend(page.rows.into_iter().map(|(at, row)| (at, T::try_from(row).ok().unwrap())));
            if !page.more {
                return found;
            }
        }
    }

    /// What people see of requests 1 to `requests`.
    pub async fn seen(&self, requests: u64) -> Seen {
        let mut seen = Seen { open: vec![], log: BTreeMap::new(), findings: BTreeMap::new(), milestones: BTreeMap::new() };
        for (_, mark) in self.rows::<OpenMark>(Set::Open).await {
            let issue = self.tracking().issue(&self.queue.name, &mark.key).await.unwrap();
            seen.open.push((mark.key.to_string(), issue.first_seen.request.number()));
        }
        for (_, issue) in self.rows::<collie_core::issue::row::Issue>(Set::Issues).await {
            let entries = self.rows::<LogEntry>(Set::Log(issue.key.clone())).await;
            let told = entries.into_iter().map(|(_, entry)| (entry.event, entry.source.request.number()));
            seen.log.insert(issue.key.to_string(), told.collect());
        }
        for number in 1..=requests {
            let id = RequestId::new(number).unwrap();
            let found = self.rows::<RequestIssue>(Set::RequestIssues(id)).await;
            seen.findings.insert(number, found.into_iter().map(|(_, row)| (row.key.to_string(), row.result)).collect());
            let history = self.rows::<HistoryEntry>(Set::History(id)).await;
            seen.milestones.insert(number, history.into_iter().map(|(_, entry)| entry.milestone).collect());
        }
        seen
    }
}

/// The build that a request of these stories has.
#[must_use]
pub fn build_of(request: RequestId) -> BuildId {
    BuildId::new(format!("b{request}"))
}

/// `task/unit`, or a whole task.
#[must_use]
pub fn key(name: &str) -> IssueKey {
    let (task, unit) = name.split_once('/').unwrap_or((name, ""));
    IssueKey::new(task, unit)
}
