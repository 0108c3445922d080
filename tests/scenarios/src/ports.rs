//! The ports that a story plays itself: virtual time, counted ids, an archive in memory, and a wake-up queue that can lose things.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{ItemId, Token};
use collie_core::time::Timestamp;
use collie_engine::ports::{Archive, Clock, Ids, Stored, Wakes};
use collie_gitlab::{Connection, GitLab};
use gitlab_sim::{DEMO_BOT_TOKEN, Sim};
use secrecy::SecretString;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// GitLab behind real HTTP: the host it is called by, and an adapter for it.
pub async fn serve(sim: &Sim) -> (String, Arc<GitLab>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(sim.clone().serve(listener));
    let base_url = reqwest::Url::parse(&format!("http://{host}")).unwrap();
    let token = SecretString::from(DEMO_BOT_TOKEN).into();
    let connection = Connection { host: host.clone(), base_url, token, project_tokens: HashMap::new(), concurrency: 10 };
    let gitlab = GitLab::new(vec![connection], Arc::new(SimClock(sim.clone()))).unwrap();
    (host, Arc::new(gitlab))
}

/// The simulator's clock. Nothing waits on it: a heartbeat never comes due while a call is answered at once.
pub struct SimClock(pub Sim);

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.now_ms())
    }

    async fn sleep(&self, _: Duration) {
        futures::future::pending().await
    }
}

/// The simulator's clock as a machine reads it whose own is wrong.
pub struct SkewedClock {
    /// GitLab, which has the time.
    pub sim: Sim,
    /// By how much this machine is ahead.
    pub skew_ms: i64,
}

#[async_trait]
impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.sim.now_ms().saturating_add_signed(self.skew_ms))
    }

    async fn sleep(&self, _: Duration) {
        futures::future::pending().await
    }
}

/// Ids by counting, jitter by a fixed sequence.
#[derive(Default)]
pub struct CountingIds(AtomicU64);

impl CountingIds {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Ids for CountingIds {
    fn item_id(&self, now: Timestamp) -> ItemId {
        let (ms, n) = (now.as_millis(), self.next());
        ItemId::new(format!("{:08x}-{:04x}-7000-8000-{n:012x}", ms >> 16, ms & 0xffff))
    }

    fn token(&self) -> Token {
        Token::new(format!("t{}", self.next()))
    }

    fn jitter(&self) -> f64 {
        (self.next() % 8) as f64 / 8.0
    }
}

/// Objects in memory.
#[derive(Default)]
pub struct MemoryArchive(Mutex<BTreeMap<String, Vec<u8>>>);

impl MemoryArchive {
    /// Every object.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Archive for MemoryArchive {
    async fn put_new(&self, key: &str, bytes: Vec<u8>) -> Result<Stored, Failure> {
        let mut objects = self.0.lock().unwrap();
        if objects.contains_key(key) {
            return Ok(Stored::Existed);
        }
        objects.insert(key.to_owned(), bytes);
        Ok(Stored::Created)
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }
}

/// The wake-up queue.
pub struct WakeQueue {
    sim: Sim,
    rings: Mutex<BTreeSet<(u64, u64, ItemId)>>,
    count: AtomicU64,
    loses: bool,
}

impl WakeQueue {
    /// A queue; one that `loses` delivers nothing but what the schedule sends.
    #[must_use]
    pub fn new(sim: Sim, loses: bool) -> Arc<Self> {
        Arc::new(Self { sim, rings: Mutex::default(), count: AtomicU64::new(0), loses })
    }

    /// The next ring that is due.
    pub fn take_due(&self) -> Option<ItemId> {
        let mut rings = self.rings.lock().unwrap();
        let first = rings.first().filter(|(at, _, _)| *at <= self.sim.now_ms()).cloned()?;
        rings.remove(&first);
        Some(first.2)
    }

    /// The next ring, due or not.
    pub fn take_any(&self) -> Option<ItemId> {
        self.rings.lock().unwrap().pop_first().map(|(_, _, id)| id)
    }

    /// When the next ring is due.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        self.rings.lock().unwrap().first().map(|(at, _, _)| *at)
    }

    /// Rings, whatever the queue loses.
    pub fn ring(&self, id: &ItemId, delay: Duration) {
        let at = self.sim.now_ms() + delay.as_millis() as u64;
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        self.rings.lock().unwrap().insert((at, n, id.clone()));
    }
}

#[async_trait]
impl Wakes for WakeQueue {
    async fn send(&self, item: &ItemId, delay: Duration) -> Result<(), Failure> {
        if !self.loses {
            self.ring(item, delay);
        }
        Ok(())
    }
}

/// The schedule's own way to ring, which nothing loses.
pub struct ScheduleWakes(pub Arc<WakeQueue>);

#[async_trait]
impl Wakes for ScheduleWakes {
    async fn send(&self, item: &ItemId, delay: Duration) -> Result<(), Failure> {
        self.0.ring(item, delay);
        Ok(())
    }
}
