//! The whole system in one process: what Lambdas, queues and schedules do on AWS, by tasks of one runtime.
//!
//! Rows are on an embedded DynamoDB over SQLite, objects are files, doorbells are channels. All state that counts is in
//! the data directory; a process that is killed loses rings, which the due loop makes up for (INV-13).

mod archive;
mod callers;
mod doorbell;
mod due;
mod forge;
mod hook;
mod lock;
mod missed;
mod simulator;
mod stop;
mod store;
mod tracking;
mod uploads;
mod workers;

pub(crate) use collie_system::{SystemClock, pause};
pub(crate) use forge::MainConnection;
pub(crate) use lock::create_private;
pub(crate) use simulator::Behaviour;

use crate::secrets::Secrets;
use archive::FileArchive;
use collie_api::ApiState;
use collie_auth::Door;
use collie_auth::local::LocalIssuer;
use collie_config::{Configuration, MAIN};
use collie_core::id::ItemId;
use collie_engine::blobs::Blobs;
use collie_engine::letters::DeadLetters;
use collie_engine::limiter::Limiter;
use collie_engine::ports::{CiReports, Clock, IssueTracker, Items, Wakes};
use collie_engine::repair::{IssueType, WorkItems};
use collie_engine::settings::Repair;
use collie_engine::tracking::detect::Detector;
use collie_engine::{Engine, Ports};
use collie_system::RandomIds;
use doorbell::{Doorbell, LocalRedrive};
use forge::{Forge, Reached};
use gitlab_sim::{DEMO_ADMIN_TOKEN, DEMO_BOT_TOKEN, DEMO_PROJECT_PATH};
use hook::{HookSecret, Registrar};
use lock::DataDir;
use missed::Missed;
use secrecy::SecretString;
use serde_json::{Value, json};
use simulator::Simulator;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stop::{Stop, Stopper};
use store::Store;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tracking::Line;
use uploads::LocalUploads;
use workers::Pool;

/// How long requests under way may take to end, once the server is told to stop.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// What to serve.
pub(crate) struct Plan {
    pub(crate) listen: String,
    pub(crate) data_dir: PathBuf,
    pub(crate) configuration: Configuration,
    pub(crate) secrets: Secrets,
    pub(crate) gitlab: Gitlab,
    pub(crate) hooks: Hooks,
    pub(crate) workers: usize,
    pub(crate) take_over_after: Duration,
    /// Where hooks of a connection are not registered: how often waiting items are looked at.
    pub(crate) look_every: Duration,
}

/// Where GitLab is.
pub(crate) enum Gitlab {
    /// In this process.
    Simulated(Behaviour),
    /// Where flags say.
    At(MainConnection),
    /// Where the configuration says.
    Configured,
}

/// Whether hooks are registered on GitLab, and for which address of ours.
pub(crate) enum Hooks {
    /// They are not.
    Leave,
    /// On the connection `main` alone, for the address we listen on: the simulator's.
    OnMain,
    /// On all connections, for the address we listen on.
    Register,
    /// On all connections, for an address by which GitLab reaches us.
    RegisterAt(String),
}

impl Hooks {
    fn cover(&self, connection: &Reached) -> bool {
        match self {
            Self::Leave => false,
            Self::OnMain => connection.slug == MAIN,
            Self::Register | Self::RegisterAt(_) => true,
        }
    }

    /// The address hooks come to, where we listen at `api`.
    fn address<'a>(&'a self, api: &'a str) -> &'a str {
        match self {
            Self::RegisterAt(url) => url.trim_end_matches('/'),
            _ => api,
        }
    }
}

/// What lasts, and what is reached: everything that is there before anything runs.
struct Ground {
    data_dir: DataDir,
    issuer: LocalIssuer,
    callers: Door,
    oauth_proxy: bool,
    simulator: Option<Simulator>,
    forge: Forge,
    store: Store,
    archive: FileArchive,
}

impl Ground {
    async fn open(data_dir: &Path, mut configuration: Configuration, gitlab: Gitlab, secrets: &Secrets) -> Result<Self, String> {
        let data_dir = DataDir::take(data_dir)?;
        let issuer = LocalIssuer::open(&issuer_dir(data_dir.path())).map_err(|error| error.to_string())?;
        let access = std::mem::take(&mut configuration.access);
        let oauth_proxy = access.oauth_proxy;
        let callers = callers::door(issuer.clone(), access, secrets)?;
        let (simulator, main) = place_of(gitlab, &mut configuration).await?;
        let hook_secret = HookSecret::in_directory(&data_dir);
        let forge = Forge::connect(configuration, main, secrets, &hook_secret, Arc::new(SystemClock)).await?;
        let store = Store::open(&data_dir.join("collie.sqlite")).await?;
        let archive = FileArchive::open(&data_dir.join("objects")).map_err(|error| format!("the archive: {error}"))?;
        Ok(Self { data_dir, issuer, callers, oauth_proxy, simulator, forge, store, archive })
    }
}

/// What brings work in, and the order that stops it.
struct Intake {
    stop: Stopper,
    http: JoinHandle<()>,
    loops: JoinSet<()>,
}

/// The running system.
pub(crate) struct Server {
    pub(crate) api: String,
    gitlab: String,
    data_dir: DataDir,
    issuer: LocalIssuer,
    simulator: Option<Simulator>,
    store: Store,
    intake: Intake,
    workers: (Stopper, JoinSet<()>),
    queue: Option<String>,
}

/// The directory of a data directory that holds the issuer's key.
pub(crate) fn issuer_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("issuer")
}

impl Server {
    /// Starts everything; returns when the API answers. Hooks are registered before anything looks at GitLab, so that
    /// what happens after the look is heard of.
    pub(crate) async fn start(plan: Plan) -> Result<Self, String> {
        let rate = plan.configuration.rate;
        let ground = Ground::open(&plan.data_dir, plan.configuration, plan.gitlab, &plan.secrets).await?;
        let Ground { data_dir, issuer, callers, oauth_proxy, simulator, forge, store, archive } = ground;
        let listener = TcpListener::bind(&plan.listen).await.map_err(|error| format!("{}: {error}", plan.listen))?;
        let api = url_of(listener.local_addr().map_err(|error| error.to_string())?);
        let gitlab = shown_gitlab(&forge.reached);
        let (door, reached) = (forge.hook_door(), forge.reached);

        let (bell, rings) = doorbell::doorbell();
        let uploads = LocalUploads::new(&api, archive.clone());
        let blobs = Blobs::new(Arc::new(uploads.clone()), Arc::new(archive.clone()), Arc::new(SystemClock));
        let settings = Arc::new(forge.settings);
        let letters = letters(&store, archive.clone(), &bell);
        let line = Line::new(&data_dir);
        let tracking = line.tracking(&store, Arc::clone(&settings));
        let gitlab_port = Arc::new(forge.gitlab);
        let issue_type = IssueType::new(tracking.clone(), Arc::clone(&gitlab_port) as Arc<dyn IssueTracker>);
        let detector = Detector::new(tracking.clone(), Arc::clone(&gitlab_port) as Arc<dyn CiReports>);
        let engine = Engine::new(ports(&store, gitlab_port, archive, &bell), Arc::clone(&settings));
        let engine = engine.with_type(collie_core::repair::ITEM_TYPE, Arc::new(issue_type));
        let tracking = tracking.with_executor(Repair::WorkItem, Arc::new(WorkItems::new(engine.clone())));
        let limiter = Limiter::new(Arc::new(store.items.clone()), Arc::new(SystemClock), rate);
        let (auth, request_ids) = (Arc::new(callers), Arc::new(RandomIds));
        let state = ApiState {
            engine: engine.clone(),
            tracking: tracking.clone(),
            letters,
            blobs,
            limiter,
            auth,
            oauth_proxy,
            hooks: door,
            request_ids,
        };
        let orphans = due::orphans(&store.items).await.map_err(|failure| failure.to_string())?;

        let (stop_intake, stop) = stop::order();
        let http = tokio::spawn(serve_http(listener, collie_api::router(state).merge(uploads.router()), stop.clone()));
        register(&plan.hooks, &reached, &engine, &api).await?;
        let mut loops = JoinSet::new();
        let all_hooked = reached.iter().all(|connection| plan.hooks.cover(connection));
        let look_every = (!all_hooked).then_some(plan.look_every);
        loops.spawn(due::ring_for_due(engine.clone(), tracking.clone(), stop.clone()));
        loops.spawn(due::detect(detector, stop.clone()));
        loops.spawn(due::sweep(store.database.clone(), uploads, stop.clone()));
        loops.spawn(missed(&engine, &store).look(look_every, stop.clone()));
        loops.spawn(due::take_over(Arc::new(store.items.clone()), Arc::new(bell), orphans, plan.take_over_after, stop));
        let intake = Intake { stop: stop_intake, http, loops };
        let queue = settings.queues.first().map(|queue| queue.name.to_string());
        let (stop_workers, stop) = stop::order();
        let mut pools = line.work(tracking, stop.clone());
        pools.spawn(Pool::new(workers::execute(engine, format!("serve/{}", std::process::id())), rings, plan.workers).work(stop));
        let workers = (stop_workers, pools);
        Ok(Self { api, gitlab, data_dir, issuer, simulator, store, intake, workers, queue })
    }

    /// Stops intake, lets what is under way end, and closes the store.
    pub(crate) async fn stop(self) {
        let Self { store, simulator, intake, workers, data_dir, .. } = self;
        let Intake { stop: stop_intake, mut http, loops } = intake;
        stop_intake.stop();
        if tokio::time::timeout(CLOSE_WITHIN, &mut http).await.is_err() {
            http.abort();
            let _ = http.await;
        }
        loops.join_all().await;
        let (stop_workers, pools) = workers;
        stop_workers.stop();
        pools.join_all().await;
        store.close().await;
        if let Some(simulator) = simulator {
            simulator.stop().await;
        }
        drop(data_dir);
    }

    /// The line that says where everything is.
    pub(crate) fn ready_line(&self) -> Value {
        let token_command = format!("collie token --data-dir {}", shell_word(&self.data_dir.path().display().to_string()));
        let mut line = json!({ "ready": true, "api": self.api, "gitlab": self.gitlab, "token_command": token_command });
        if self.simulator.is_some() {
            line["project"] = json!(DEMO_PROJECT_PATH);
            line["connection"] = json!(MAIN);
            line["queue"] = json!(self.queue);
            line["gitlab_token"] = json!(DEMO_ADMIN_TOKEN);
        }
        line
    }

    /// Makes a token.
    pub(crate) fn token(&self, name: &str, ttl: Duration) -> Result<SecretString, String> {
        self.issuer.token(name, false, ttl, SystemClock.now()).map_err(|error| error.to_string())
    }

    /// Where GitLab is.
    pub(crate) fn gitlab(&self) -> &str {
        &self.gitlab
    }
}

/// Starts the simulator where it is wanted, and says where `main` is.
async fn place_of(gitlab: Gitlab, configuration: &mut Configuration) -> Result<(Option<Simulator>, Option<MainConnection>), String> {
    let behaviour = match gitlab {
        Gitlab::Simulated(behaviour) => behaviour,
        Gitlab::At(main) => return Ok((None, Some(main))),
        Gitlab::Configured => return Ok((None, None)),
    };
    let simulator = Simulator::start(&behaviour).await?;
    if configuration.projects.is_empty() {
        configuration.projects.push(simulator::project());
        configuration.queues.push(simulator::queue());
    }
    let url = simulator.url.parse().map_err(|_| "the simulator's address is no URL")?;
    let main = MainConnection { url, token: SecretString::from(DEMO_BOT_TOKEN).into() };
    Ok((Some(simulator), Some(main)))
}

fn ports(store: &Store, gitlab: Arc<collie_gitlab::GitLab>, archive: FileArchive, bell: &Doorbell<ItemId>) -> Ports {
    Ports {
        items: Arc::new(store.items.clone()) as Arc<dyn Items>,
        forge: gitlab,
        archive: Arc::new(archive),
        wakes: Arc::new(bell.clone()) as Arc<dyn Wakes>,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
    }
}

/// No queue of this process gives anything up; what another deployment kept can be looked at.
fn letters(store: &Store, archive: FileArchive, bell: &Doorbell<ItemId>) -> DeadLetters {
    DeadLetters {
        letters: Arc::new(store.items.clone()),
        archive: Arc::new(archive),
        redrive: Arc::new(LocalRedrive(bell.clone())),
        clock: Arc::new(SystemClock),
    }
}

fn missed(engine: &Engine, store: &Store) -> Missed {
    Missed { items: Arc::new(store.items.clone()), engine: engine.clone() }
}

async fn serve_http(listener: TcpListener, router: axum::Router, mut stop: Stop) {
    let until = async move { stop.given().await };
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(until).await {
        tracing::error!(%error, "the API stopped");
    }
}

async fn register(hooks: &Hooks, reached: &[Reached], engine: &Engine, api: &str) -> Result<(), String> {
    for connection in reached.iter().filter(|connection| hooks.cover(connection)) {
        let registrar = Registrar::new(connection, hooks.address(api))?;
        for project in engine.settings().projects.iter().filter(|project| project.at.host == connection.host) {
            registrar.register(project.at.id).await?;
        }
    }
    Ok(())
}

/// The address by which this machine reaches the listener.
fn url_of(address: SocketAddr) -> String {
    let loopback: std::net::IpAddr = if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
    let ip = if address.ip().is_unspecified() { loopback } else { address.ip() };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

fn shown_gitlab(reached: &[Reached]) -> String {
    let main = reached.iter().find(|r| r.slug == MAIN).or(reached.first());
    main.map(|r| r.base_url.as_str().trim_end_matches('/').to_owned()).unwrap_or_default()
}

/// The text as one word of a shell.
fn shell_word(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    if plain && !text.is_empty() { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_reached_by_loopback() {
        assert_eq!(url_of("0.0.0.0:80".parse().unwrap()), "http://127.0.0.1:80");
        assert_eq!(url_of("10.0.0.7:8080".parse().unwrap()), "http://10.0.0.7:8080");
        assert_eq!(url_of("[::]:80".parse().unwrap()), "http://[::1]:80");
    }

    #[test]
    fn a_path_with_blanks_is_one_word() {
        assert_eq!(shell_word("/tmp/a b"), "'/tmp/a b'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(".collie"), ".collie");
    }
}
