//! The world of a story: GitLab, Collie's processes, queues and time, and the verbs by which people and machines act.

use crate::effects::{Effects, Process, When};
use crate::failing::{self, News};
use crate::mutant::{Mutant, Store};
use crate::ports::{CountingIds, MemoryArchive, ScheduleWakes, SimClock, SkewedClock, WakeQueue, serve};
use collie_core::access::{Grant, Grants, SubmitGrant};
use collie_core::ci::RetryRules;
use collie_core::files::{FileAction, Verb};
use collie_core::id::{ItemId, ProjectId};
use collie_core::item::Item;
use collie_core::mr::train::MergeMode;
use collie_core::mr::wanted::{ProjectRules, Wanted};
use collie_core::policy::Policy;
use collie_core::repair;
use collie_dynamo::{DynamoItems, MemoryItems, MemoryTracking};
use collie_engine::access::Caller;
use collie_engine::cost::Meter;
use collie_engine::execute::{Ran, Worker};
use collie_engine::ingest::{Ingested, Received};
use collie_engine::ports::{Archive, Forge, IssueTracker, Items, Jobs, Notices, ProjectRef, TrackingRows, Wakes};
use collie_engine::repair::{IssueType, WorkItems};
use collie_engine::settings::{Project, Repair, Settings};
use collie_engine::submit::{Submission, Submitted};
use collie_engine::tracking::{Tracking, TrackingPorts};
use collie_engine::{Engine, Ports, lifecycle, submit};
use futures::future::BoxFuture;
use gitlab_sim::{Clock, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, DEMO_PROJECT_PATH, Delivery, Sim};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// The branch of most stories.
pub const BRANCH: &str = "bot/greeting";
/// A text in every submitted file, which must never leave the archive's content or GitLab.
pub const CANARY: &str = "canary-7f3a9";
const MINUTE: u64 = 60_000;

/// One world; clones share it.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    sim: Sim,
    host: String,
    effects: Effects,
    /// The store as it is, past every fault.
    items: Arc<dyn Items>,
    /// The store as processes see it.
    conditional: Arc<dyn Items>,
    store: Arc<Store>,
    meter: Meter,
    archive: Arc<MemoryArchive>,
    wakes: Arc<WakeQueue>,
    forge: Arc<dyn Forge>,
    tracker: Arc<dyn IssueTracker>,
    rows: Arc<MemoryTracking>,
    news: Arc<News>,
    ids: Arc<CountingIds>,
    hooks_lost: AtomicBool,
    ci_retry: Mutex<RetryRules>,
    policy: Mutex<Policy>,
    by_train: AtomicBool,
    next_tick: AtomicU64,
    crashes: AtomicU64,
}

impl World {
    /// A world whose effects go as planned.
    pub async fn new(effects: Effects) -> Self {
        Self::build(effects, false, None).await
    }

    /// A world on the DynamoDB adapter, over an embedded emulator.
    pub async fn on_dynamo() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
        let client = collie_dynamo::local::client(format!("http://{address}"));
        collie_dynamo::schema::create_table(&client, "collie").await.unwrap();
        let items: Arc<dyn Items> = Arc::new(DynamoItems::new(client, "collie".into()));
        let store = Arc::new(Store::new(MemoryItems::new(), None));
        Self::assemble(Effects::default(), false, Arc::clone(&items), items, store).await
    }

    /// A world whose store follows a wrong protocol, or the right one.
    pub async fn with_protocol(mutant: Option<Mutant>) -> Self {
        Self::build(Effects::default(), false, mutant).await
    }

    /// A world in which every queue is emptied all the time: only the schedule rings.
    pub async fn without_queues(effects: Effects) -> Self {
        Self::build(effects, true, None).await
    }

    async fn build(effects: Effects, loses: bool, mutant: Option<Mutant>) -> Self {
        let memory = MemoryItems::new();
        let store = Arc::new(Store::new(memory.clone(), mutant));
        Self::assemble(effects, loses, Arc::new(memory), store.clone(), store).await
    }

    async fn assemble(effects: Effects, loses: bool, items: Arc<dyn Items>, conditional: Arc<dyn Items>, store: Arc<Store>) -> Self {
        let sim = Sim::demo(Clock::Manual);
        sim.clear_personas(DEMO_PROJECT_ID);
        sim.capture_hooks(true);
        let (host, forge) = serve(&sim).await;
        register_hook(&sim);
        Self(Arc::new(Inner {
            wakes: WakeQueue::new(sim.clone(), loses),
            next_tick: AtomicU64::new(sim.now_ms() + MINUTE),
            sim,
            host,
            effects,
            items,
            conditional,
            store,
            meter: Meter::default(),
            archive: Arc::default(),
            tracker: forge.clone(),
            forge,
            rows: Arc::default(),
            news: Arc::default(),
            ids: Arc::default(),
            hooks_lost: AtomicBool::new(false),
            ci_retry: Mutex::default(),
            policy: Mutex::default(),
            by_train: AtomicBool::new(false),
            crashes: AtomicU64::new(0),
        }))
    }

    /// GitLab.
    #[must_use]
    pub fn sim(&self) -> &Sim {
        &self.0.sim
    }

    /// The effects.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.0.effects
    }

    /// The archive.
    #[must_use]
    pub fn archive(&self) -> &MemoryArchive {
        &self.0.archive
    }

    /// The store, past every fault.
    #[must_use]
    pub fn items(&self) -> &dyn Items {
        self.0.items.as_ref()
    }

    /// Processes that died.
    #[must_use]
    pub fn deaths(&self) -> u64 {
        self.0.crashes.load(Ordering::Relaxed)
    }

    /// What every process of this world has cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.0.meter
    }

    /// The store as processes see it.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Everything in the wake-up queue is lost.
    pub fn empty_queues(&self) {
        while self.0.wakes.take_any().is_some() {}
    }

    /// The next item that the wake-up queue rings for now.
    #[must_use]
    pub fn next_ring(&self) -> Option<ItemId> {
        self.0.wakes.take_due()
    }

    /// From now on failed CI jobs are retried by these rules.
    pub fn retry_ci_jobs(&self, rules: RetryRules) {
        *self.0.ci_retry.lock().unwrap() = rules;
    }

    /// From now on the project has this policy, as after a change of the configuration file.
    pub fn configure_policy(&self, policy: Policy) {
        *self.0.policy.lock().unwrap() = policy;
    }

    /// From now on the project's merges go by train, and Collie is configured so.
    pub fn merge_by_train(&self) {
        self.0.by_train.store(true, Ordering::Relaxed);
        self.sim().set_settings(DEMO_PROJECT_ID, |settings| {
            (settings.merge_trains, settings.pipelines) = (true, gitlab_sim::PipelineMode::MergedResults);
        });
    }

    /// From now on no hook arrives.
    pub fn lose_hooks(&self) {
        self.0.hooks_lost.store(true, Ordering::Relaxed);
    }

    /// Lets something happen once, before or after the next effect of this name.
    pub fn when(&self, on: &str, when: When, act: BoxFuture<'static, ()>) {
        self.0.effects.interject(on, when, act);
    }

    /// Lets held pushes arrive.
    pub async fn release_held_pushes(&self) {
        self.0.effects.release_held(self.0.forge.as_ref()).await;
    }

    /// A new process with its own death.
    fn process(&self) -> (Engine, Arc<Notify>) {
        self.process_off_by(0)
    }

    /// A new process whose clock is wrong by so many milliseconds.
    fn process_off_by(&self, skew_ms: i64) -> (Engine, Arc<Notify>) {
        let death = Arc::new(Notify::new());
        let inner = &self.0;
        let items: Arc<dyn Items> = inner.conditional.clone();
        let archive: Arc<dyn Archive> = inner.archive.clone();
        let ports = Ports {
            items: Arc::new(Process::new(&inner.effects, &death, items)),
            forge: Arc::new(Process::new(&inner.effects, &death, inner.forge.clone())),
            archive: Arc::new(Process::new(&inner.effects, &death, archive)),
            wakes: inner.wakes.clone(),
            clock: Arc::new(SkewedClock { sim: inner.sim.clone(), skew_ms }),
            ids: inner.ids.clone(),
        };
        let tracker: Arc<dyn IssueTracker> = Arc::new(Process::new(&inner.effects, &death, inner.tracker.clone()));
        let issues = IssueType::new(self.tracking_of(&death), tracker);
        (Engine::new(ports, Arc::new(self.settings())).with_type(repair::ITEM_TYPE, Arc::new(issues)), death)
    }

    /// Issue tracking as the process that dies by `death` has it.
    fn tracking_of(&self, death: &Arc<Notify>) -> Tracking {
        let inner = &self.0;
        let (rows, jobs, notices): (Arc<dyn TrackingRows>, Arc<dyn Jobs>, Arc<dyn Notices>) =
            (inner.rows.clone(), inner.news.clone(), inner.news.clone());
        let ports = TrackingPorts {
            rows: Arc::new(Process::new(&inner.effects, death, rows)),
            jobs: Arc::new(Process::new(&inner.effects, death, jobs)),
            notices: Arc::new(Process::new(&inner.effects, death, notices)),
            clock: Arc::new(SimClock(inner.sim.clone())),
        };
        Tracking::new(ports, Arc::new(self.settings()))
    }

    /// Issue tracking past every fault, for those who report.
    pub(crate) fn quiet_tracking(&self) -> Tracking {
        let inner = &self.0;
        let clock = Arc::new(SimClock(inner.sim.clone()));
        let ports = TrackingPorts { rows: inner.rows.clone(), jobs: inner.news.clone(), notices: inner.news.clone(), clock };
        Tracking::new(ports, Arc::new(self.settings()))
    }

    /// A new process that tracks, and repairs by work items.
    pub(crate) fn tracker(&self) -> (Tracking, Arc<Notify>) {
        let (engine, death) = self.process();
        let tracking = self.tracking_of(&death).with_executor(Repair::WorkItem, Arc::new(WorkItems::new(engine)));
        (tracking, death)
    }

    /// What issue tracking has told those who repair.
    pub(crate) fn news(&self) -> &News {
        &self.0.news
    }

    /// An engine past every fault, for reading.
    #[must_use]
    pub fn reader(&self) -> Engine {
        let inner = &self.0;
        let wakes: Arc<dyn Wakes> = Arc::new(ScheduleWakes(inner.wakes.clone()));
        let ports = Ports {
            items: inner.items.clone(),
            forge: inner.forge.clone(),
            archive: inner.archive.clone(),
            wakes,
            clock: Arc::new(SimClock(inner.sim.clone())),
            ids: inner.ids.clone(),
        };
        Engine::new(ports, Arc::new(self.settings()))
    }

    fn settings(&self) -> Settings {
        let merge = if self.0.by_train.load(Ordering::Relaxed) { MergeMode::Train } else { MergeMode::Direct };
        let project = Project {
            path: DEMO_PROJECT_PATH.into(),
            at: ProjectRef { host: self.0.host.clone(), id: ProjectId(DEMO_PROJECT_ID) },
            rules: ProjectRules { merge, ..ProjectRules::default() },
            policy: self.0.policy.lock().unwrap().clone(),
            ci_retry: self.0.ci_retry.lock().unwrap().clone(),
        };
        Settings {
            projects: vec![project],
            handled_types: vec!["mr".into(), "issue".into()],
            queues: vec![failing::queue()],
            max_attempts: 5,
        }
    }

    /// Runs a process until it is done; none where it died.
    pub(crate) async fn live<T>(&self, death: &Notify, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = death.notified() => {
                self.0.crashes.fetch_add(1, Ordering::Relaxed);
                None
            }
            done = self.0.meter.scope(work) => Some(done),
        }
    }

    /// The caller of most stories: of its own items, which it may also have overwrite what stands in their way.
    #[must_use]
    pub fn caller() -> Caller {
        let own = SubmitGrant { overwrite: true, ..SubmitGrant::own_items() };
        Caller::new("local|deps-bot", Grants::new(vec![Grant::Submit(own)]))
    }

    /// Submits; a caller whose connection breaks submits the same again.
    pub async fn submit(&self, submission: &Submission) -> Submitted {
        self.try_submit(submission).await.expect("the submission is fine")
    }

    /// Submits, and says what came of it.
    ///
    /// # Errors
    /// What the caller is told.
    pub async fn try_submit(&self, submission: &Submission) -> Result<Submitted, submit::Error> {
        loop {
            let (engine, death) = self.process();
            match self.live(&death, engine.submit(&Self::caller(), submission)).await {
                Some(Err(submit::Error::Failed(failure))) => assert!(failure.is_indeterminate(), "{failure}"),
                Some(done) => return done,
                None => {}
            }
        }
    }

    /// Asks for an item to be cancelled; a second request while one is pending is what a repeated one finds.
    pub async fn cancel(&self, id: &ItemId) {
        loop {
            let (engine, death) = self.process();
            let asked = self.live(&death, engine.cancel(&Self::caller(), id, None, true)).await;
            match asked {
                Some(Ok(_) | Err(lifecycle::Error::CancelPending | lifecycle::Error::WrongPhase(_))) => return,
                Some(Err(error)) => panic!("cancel: {error}"),
                None => {}
            }
        }
    }

    /// Retries an item; a caller whose connection breaks asks again, and may then find it active.
    pub async fn retry(&self, id: &ItemId, overwrite: bool) {
        let caller = Caller::admin(Self::caller().identity);
        loop {
            let (engine, death) = self.process();
            match self.live(&death, engine.retry(&caller, id, overwrite)).await {
                Some(Ok(_) | Err(lifecycle::Error::WrongPhase("active"))) => return,
                Some(Err(error)) => panic!("retry: {error}"),
                None => {}
            }
        }
    }

    /// Reads an item.
    pub async fn item(&self, id: &ItemId) -> Item {
        self.0.items.item(id).await.unwrap().expect("the item exists")
    }

    /// Every item there is.
    pub async fn all_items(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for id in self.0.effects.items() {
            items.extend(self.0.items.item(&id).await.unwrap());
        }
        items
    }

    /// Gives a worker the item once, as a queue would.
    pub async fn work(&self, id: &ItemId) -> Option<Ran> {
        self.work_off_by(id, 0).await
    }

    /// Gives the item once to a worker whose clock is wrong by so many milliseconds.
    pub async fn work_off_by(&self, id: &ItemId, skew_ms: i64) -> Option<Ran> {
        let (engine, death) = self.process_off_by(skew_ms);
        let worker = Worker { actor: "execute".into(), deadline: None };
        let ran = Box::pin(self.live(&death, engine.execute(id, &worker))).await?;
        match ran {
            Ok(ran) => Some(ran),
            Err(_) => {
                self.0.wakes.ring(id, Duration::from_secs(30));
                None
            }
        }
    }

    async fn deliver(&self) {
        let mut queue: std::collections::VecDeque<_> = self.sim().take_deliveries().into();
        while let Some(delivery) = queue.pop_front() {
            if !self.0.hooks_lost.load(Ordering::Relaxed) && !self.ingest(&delivery).await {
                queue.push_front(delivery);
            }
        }
    }

    /// The active item that a delivery concerns, past every fault.
    pub async fn owner_of(&self, delivery: &Delivery) -> Option<ItemId> {
        let now = collie_core::time::Timestamp::from_millis(self.sim().now_ms());
        let parsed = collie_core::event::Delivery::parse(&delivery.body, now).ok()?;
        let iid = parsed.subject.merge_request()?;
        let link = self.0.items.mr_link(&self.0.host, parsed.project_id, iid).await.unwrap()?;
        Some(link.item_id)
    }

    /// Hands one delivery over once, and says whether it was stored in an inbox.
    pub async fn ingest_once(&self, delivery: &Delivery) -> bool {
        let (engine, death) = self.process();
        let delivery_id = delivery.header("Idempotency-Key").unwrap_or_default();
        let received = Received { host: &self.0.host, delivery_id, body: &delivery.body };
        matches!(self.live(&death, engine.ingest(received)).await, Some(Ok(Ingested::Stored)))
    }

    /// Hands one delivery over; false where the process died or failed, and the queue delivers it again.
    pub async fn ingest(&self, delivery: &Delivery) -> bool {
        let (engine, death) = self.process();
        let delivery_id = delivery.header("Idempotency-Key").unwrap_or_default();
        let received = Received { host: &self.0.host, delivery_id, body: &delivery.body };
        matches!(self.live(&death, engine.ingest(received)).await, Some(Ok(_)))
    }

    /// The schedule's tick.
    pub async fn schedule(&self) {
        self.reader().wake_due().await.expect("the store answers reads");
    }

    /// Lets the world go on until `told`, at most for `horizon` of its time.
    pub async fn until<F: Future<Output = bool>>(&self, horizon: Duration, told: impl Fn() -> F) {
        let end = self.sim().now_ms() + horizon.as_millis() as u64;
        loop {
            self.deliver().await;
            while let Some(id) = self.0.wakes.take_due() {
                self.work(&id).await;
                self.deliver().await;
            }
            if told().await {
                return;
            }
            let tick = self.0.next_tick.load(Ordering::Relaxed);
            let next = [self.sim().next_event_at(), self.0.wakes.next_at(), Some(tick)].into_iter().flatten().min().unwrap_or(tick);
            assert!(next <= end, "the story is not told in time\n{}", self.picture().await);
            self.sim().advance_to(next);
            if next >= tick {
                self.schedule().await;
                self.0.next_tick.store(tick + MINUTE, Ordering::Relaxed);
            }
        }
    }

    /// Lets the world go on until every item is at its end and nothing is due.
    pub async fn until_all_ended(&self, horizon: Duration) {
        self.until(horizon, || async {
            let items = self.all_items().await;
            !items.is_empty() && items.iter().all(|item| !item.is_active() && item.due_at.is_none())
        })
        .await;
    }

    /// What one would see, where a story went wrong.
    pub async fn picture(&self) -> String {
        let mut text = String::new();
        for item in self.all_items().await {
            text += &format!("{}\n", serde_json::to_string_pretty(&item).unwrap());
        }
        for mr in self.sim().merge_requests(DEMO_PROJECT_ID) {
            text += &format!("!{} {} {} {:?} {}\n", mr.iid, mr.state, mr.source_branch, mr.sha, mr.detailed_merge_status);
        }
        let calls = self.sim().journal();
        for call in calls.iter().rev().take(25).rev() {
            text += &format!("{} {} {} -> {}\n", call.at_ms, call.method, call.path, call.status);
        }
        text + &format!("{:#?}", self.effects().log().iter().rev().take(30).collect::<Vec<_>>())
    }
}

fn register_hook(sim: &Sim) {
    let body = serde_json::json!({"url": "http://127.0.0.1:9/hook", "push_events": false, "merge_requests_events": true,
        "pipeline_events": true, "job_events": true});
    let request = gitlab_sim::ApiRequest {
        method: "POST".into(),
        uri: format!("/api/v4/projects/{DEMO_PROJECT_ID}/hooks"),
        headers: vec![("PRIVATE-TOKEN".into(), DEMO_BOT_TOKEN.into()), ("Content-Type".into(), "application/json".into())],
        body: body.to_string().into_bytes().into(),
    };
    assert_eq!(sim.call(request).map(|reply| reply.status), Some(201), "the hook is registered");
}

/// A submission of most stories: one file changed, one added, to be merged when ready.
#[must_use]
pub fn submission(greeting: &str) -> Submission {
    let file = |verb, path: &str, text: String| FileAction {
        verb,
        file_path: path.into(),
        previous_path: None,
        content: Some(text.into_bytes()),
        execute_filemode: None,
        expect: None,
    };
    Submission {
        item_type: "mr".into(),
        project: DEMO_PROJECT_PATH.into(),
        source_branch: BRANCH.into(),
        target_branch: "main".into(),
        title: format!("Greet with {greeting}"),
        description: "A friendlier greeting.".into(),
        labels: vec!["greeting".into()],
        commit_message: None,
        wanted: Wanted { auto_merge: true, ..Wanted::default() },
        file_actions: vec![
            file(Verb::Update, "README.md", format!("# App\n\nSays {greeting}. {CANARY}\n")),
            file(Verb::Create, &format!("greetings/{greeting}"), format!("{greeting} {CANARY}\n")),
        ],
    }
}
