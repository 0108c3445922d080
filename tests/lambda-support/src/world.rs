//! Everything around a function: Lambda, the table, AWS, GitLab, and callers.

use crate::aws::Aws;
use crate::function::Function;
use crate::runtime::RuntimeApi;
use crate::table::{TABLE, Table};
use collie_auth::local::LocalIssuer;
use collie_aws::{Access, Buckets, Clients, Endpoints, EventBridgeNotices, Keys, S3Archive, SqsJobs, SqsWakes};
use collie_config::Configuration;
use collie_core::files::{FileAction, Verb};
use collie_core::id::ItemId;
use collie_core::issue::hook;
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Analysis, Outcome};
use collie_core::item::Item;
use collie_core::mr::wanted::Wanted;
use collie_engine::access::Caller;
use collie_engine::ports::{Clock as _, Items as _};
use collie_engine::repair::WorkItems;
use collie_engine::settings::Repair;
use collie_engine::submit::Submission;
use collie_engine::tracking::calls::Reported;
use collie_engine::tracking::work::Turn;
use collie_engine::tracking::{Tracking, TrackingPorts};
use collie_engine::{Engine, Ports};
use collie_shell::Forgeless;
use collie_system::{RandomIds, SystemClock};
use gitlab_sim::{Clock, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, DEMO_PROJECT_PATH, Sim, Timing};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;

/// The tracked queue.
pub const TRACKED: &str = "app-main";
/// Who submits.
pub const BOT: &str = "deps-bot";
const QUEUE: &str = "https://sqs.eu-central-1.amazonaws.com/111122223333/collie-wakes";
const JOBS: &str = "https://sqs.eu-central-1.amazonaws.com/111122223333/collie-jobs.fifo";
const DEAD_JOBS: &str = "https://sqs.eu-central-1.amazonaws.com/111122223333/collie-jobs-dead.fifo";
const HOOKS: &str = "https://sqs.eu-central-1.amazonaws.com/111122223333/collie-hooks";
const REPAIRS: &str = "https://sqs.eu-central-1.amazonaws.com/111122223333/collie-repairs";
const SECRET_KEY: &str = "canary-secret-access-key";
const HOOK_SECRET: &str = "canary-hook-secret";

/// The surroundings of functions.
pub struct World {
    /// Lambda.
    pub runtime: RuntimeApi,
    /// SQS, S3, EventBridge and Secrets Manager.
    pub aws: Aws,
    /// The table.
    pub table: Table,
    /// GitLab.
    pub sim: Sim,
    gitlab: String,
    issuer: LocalIssuer,
    directory: TempDir,
    started: AtomicBool,
}

impl World {
    /// The demonstration project on a GitLab of its own, an empty table, an empty queue.
    pub async fn start() -> Self {
        let sim = Sim::demo(Clock::Wall);
        sim.set_timing(|timing| *timing = Timing { job_run_ms: 600_000, ..Timing::quick() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gitlab = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(sim.clone().serve(listener));
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("collie.yaml"), configuration(&gitlab)).unwrap();
        let issuer = LocalIssuer::open(&directory.path().join("issuer")).unwrap();
        let aws = Aws::start(&[("collie/gitlab/main", DEMO_BOT_TOKEN), ("collie/gitlab/main-hook", HOOK_SECRET)]).await;
        let (runtime, table, started) = (RuntimeApi::start().await, Table::start().await, AtomicBool::new(false));
        Self { runtime, aws, table, sim, gitlab, issuer, directory, started }
    }

    /// Starts a bootstrap; one in a world. A second would share the Runtime API with the request for work that the first left
    /// waiting there, which may get its event.
    pub fn function(&self, program: &str) -> Function {
        self.function_with(program, &[])
    }

    /// Starts a bootstrap with more variables.
    pub fn function_with(&self, program: &str, more: &[(&'static str, &str)]) -> Function {
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Function::start(program, self.variables().into_iter().chain(more).collect(), self.new_log())
    }

    /// Starts a bootstrap whose configuration says that Collie itself detects the queue's builds.
    pub fn detecting_function(&self, program: &str) -> Function {
        let file = self.directory.path().join("detecting.yaml");
        std::fs::write(&file, configuration(&self.gitlab).replace("ref: main,", "ref: main, detector: gitlab,")).unwrap();
        self.function_with(program, &[("COLLIE_CONFIG_FILE", &file.display().to_string())])
    }

    /// Starts a bootstrap that was told nothing but what Lambda says.
    pub fn untold_function(&self, program: &str) -> Function {
        let of_lambda = self.variables().into_iter().filter(|(name, _)| name.starts_with("AWS_LAMBDA")).collect();
        Function::start(program, of_lambda, self.new_log())
    }

    fn new_log(&self) -> PathBuf {
        assert!(!self.started.swap(true, Ordering::SeqCst), "a world has one function");
        self.directory.path().join("function.log")
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.directory.path().join(name).display().to_string();
        vec![
            ("AWS_LAMBDA_RUNTIME_API", self.runtime.address.clone()),
            ("AWS_LAMBDA_FUNCTION_NAME", "collie".into()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".into()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512".into()),
            ("AWS_REGION", "eu-central-1".into()),
            ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE".into()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.into()),
            ("AWS_ENDPOINT_URL", self.aws.endpoint.clone()),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.table.endpoint.clone()),
            ("COLLIE_TABLE", TABLE.into()),
            ("COLLIE_WAKE_QUEUE_URL", QUEUE.into()),
            ("COLLIE_HOOK_QUEUE_URL", HOOKS.into()),
            ("COLLIE_JOBS_QUEUE_URL", JOBS.into()),
            ("COLLIE_JOBS_DLQ_URL", DEAD_JOBS.into()),
            ("COLLIE_REPAIR_QUEUE_URL", REPAIRS.into()),
            ("COLLIE_EVENT_BUS", "collie-bus".into()),
            ("COLLIE_CONTENT_BUCKET", "content-bucket".into()),
            ("COLLIE_AUDIT_BUCKET", "audit-bucket".into()),
            ("COLLIE_CONFIG_FILE", file("collie.yaml")),
            ("COLLIE_ISSUER_DIR", file("issuer")),
        ]
    }

    /// GitLab's host, as rows have it.
    pub fn host(&self) -> &str {
        self.gitlab.trim_start_matches("http://")
    }

    /// A configuration that functions can use.
    pub fn configuration(&self) -> String {
        configuration(&self.gitlab)
    }

    /// Where GitLab is.
    pub fn gitlab(&self) -> &str {
        &self.gitlab
    }

    /// A token of the local issuer.
    pub fn token(&self) -> String {
        self.token_of(false)
    }

    /// The same, of an admin.
    pub fn admin_token(&self) -> String {
        self.token_of(true)
    }

    fn token_of(&self, admin: bool) -> String {
        let token = self.issuer.token(BOT, admin, Duration::from_secs(600), SystemClock.now()).unwrap();
        token.expose_secret().to_owned()
    }

    /// Submits a change on a branch, as the API would, and forgets that it was rung for.
    pub async fn submit(&self, branch: &str) -> ItemId {
        let caller = Caller::own_items(format!("local|{BOT}"));
        let submitted = self.engine().submit(&caller, &submission(branch)).await.unwrap();
        self.aws.take_sent();
        submitted.item.id
    }

    /// An item's row.
    pub async fn item(&self, id: &ItemId) -> Item {
        self.table.items.item(id).await.unwrap().expect("there is such an item")
    }

    /// Fails where a secret shows in the text.
    pub fn assert_no_secret(&self, text: &str) {
        for secret in [SECRET_KEY, HOOK_SECRET, DEMO_BOT_TOKEN] {
            assert!(!text.contains(secret), "a secret shows");
        }
    }

    /// The use cases over the same table, queue and buckets.
    fn engine(&self) -> Engine {
        let clients = Arc::new(Clients::new(self.access()));
        let buckets = Buckets { content: "content-bucket".into(), audit: "audit-bucket".into() };
        let ports = Ports {
            items: Arc::new(self.table.items.clone()),
            forge: Arc::new(Forgeless),
            archive: Arc::new(S3Archive::new(Arc::clone(&clients), buckets)),
            wakes: Arc::new(SqsWakes::new(clients, QUEUE.into())),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        };
        let settings = Configuration::parse(&configuration(&self.gitlab)).unwrap().settings().unwrap();
        Engine::new(ports, Arc::new(settings))
    }

    /// The use cases of issue tracking over the same table, queues and bus.
    pub fn tracking(&self) -> Tracking {
        let clients = Arc::new(Clients::new(self.access()));
        let ports = TrackingPorts {
            rows: Arc::new(self.table.tracking.clone()),
            jobs: Arc::new(SqsJobs::new(Arc::clone(&clients), JOBS.into(), DEAD_JOBS.into())),
            notices: Arc::new(EventBridgeNotices::new(clients, "collie-bus".into(), REPAIRS.into())),
            clock: Arc::new(SystemClock),
        };
        let settings = Configuration::parse(&configuration(&self.gitlab)).unwrap().settings().unwrap();
        Tracking::new(ports, Arc::new(settings))
    }

    /// Admits a request of the tracked queue whose build has met these issues (task and unit), and has ended with them; forgets that
    /// it was rung for.
    pub async fn build(&self, build: &str, issues: &[(&str, &str)]) -> RequestId {
        let (tracking, queue, build) = (self.tracking(), QueueName::new(TRACKED), BuildId::new(build));
        let request = tracking.admit(&queue, &format!("git@example.com/app@{build}")).await.unwrap().id;
        tracking.associate(&queue, request, &build).await.unwrap();
        let met: Reported = issues.iter().map(|(task, unit)| (IssueKey::new(*task, *unit), None)).collect();
        tracking.report(&queue, &build, &met).await.unwrap();
        tracking.end_analysis(&queue, &build, Analysis::Completed, None).await.unwrap();
        tracking.conclude(&queue, request, Outcome::Failed).await.unwrap();
        self.aws.take_sent();
        request
    }

    /// Tracks all builds of the queue to their end, as `reconcile-issues` would, and forgets what was told.
    pub async fn track(&self) {
        let tracking = self.tracking();
        let queue = tracking.queue(TRACKED).unwrap().clone();
        let until = SystemClock.now().after(Duration::from_secs(600));
        assert_eq!(tracking.work(&queue, None, until).await, Ok(Turn::Done));
        self.aws.take_sent();
        self.aws.take_events();
    }

    /// Has what a build opened repaired, as `repair` would; the ids of the items that were rung for.
    pub async fn repair(&self, build: &str, request: RequestId) -> Vec<String> {
        let tracking = self.tracking().with_executor(Repair::WorkItem, Arc::new(WorkItems::new(self.engine())));
        let offer = hook::Repair { build_id: BuildId::new(build), request_id: request, pass_id: 1 };
        tracking.repair(tracking.queue(TRACKED).unwrap(), &offer).await.unwrap();
        self.aws.take_rung()
    }

    fn access(&self) -> Access {
        let keys = Keys { id: "AKIAEXAMPLE".into(), secret: SecretString::from(SECRET_KEY), session: None };
        let endpoint = Some(self.aws.endpoint.clone());
        let (sqs, s3, eventbridge) = (endpoint.clone(), endpoint.clone(), endpoint.clone());
        let endpoints = Endpoints { dynamodb: None, sqs, s3, eventbridge, secrets_manager: endpoint };
        Access { region: "eu-central-1".into(), keys, endpoints }
    }
}

fn configuration(gitlab: &str) -> String {
    format!(
        "connections: {{main: {{url: '{gitlab}', token: 'secret:gitlab/main', hook_secret: 'secret:gitlab/main-hook'}}}}\n\
         projects: [{{path: {DEMO_PROJECT_PATH}, id: {DEMO_PROJECT_ID}}}]\n\
         queues: {{{TRACKED}: {{project: {DEMO_PROJECT_PATH}, ref: main, repair: work_item}}}}\n"
    )
}

/// A change that everything allows.
#[must_use]
pub fn submission(branch: &str) -> Submission {
    let content = Some(format!("Hello from {branch}.\n").into_bytes());
    let file_path = format!("docs/{}.md", branch.replace('/', "-"));
    let action = FileAction { verb: Verb::Create, file_path, previous_path: None, content, execute_filemode: None, expect: None };
    Submission {
        item_type: "mr".into(),
        project: DEMO_PROJECT_PATH.into(),
        source_branch: branch.into(),
        target_branch: "main".into(),
        title: format!("Greet from {branch}"),
        description: String::new(),
        labels: Vec::new(),
        commit_message: None,
        wanted: Wanted { auto_merge: true, ..Wanted::default() },
        file_actions: vec![action],
    }
}
