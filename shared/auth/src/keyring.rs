//! The keys of one issuer, kept until they are old, and asked for again where a token needs others (JWT-06).
//!
//! * A fetch is shared by all requests that want one, and goes on where the request that began it goes away.
//! * Between the beginnings of two fetches lies [`COOL_DOWN`], whatever tokens ask for. Only where no key was ever had, a failed one
//!   is repeated sooner.
//! * The last good keys stay while their issuer does not answer.

use crate::keys::KeySet;
use crate::source::{FetchError, Source};
use collie_core::time::Timestamp;
use collie_engine::ports::Clock;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The least time between two fetches.
const COOL_DOWN: Duration = Duration::from_secs(60);
/// The same where there are no keys yet.
const COOL_DOWN_WITHOUT_KEYS: Duration = Duration::from_secs(10);
/// Keys older than this are asked for again before they are used: a key that its issuer withdrew must not count for ever.
const MAX_AGE: Duration = Duration::from_secs(900);

type Fetched = Result<Arc<KeySet>, FetchError>;
type Fetch = Shared<BoxFuture<'static, Fetched>>;

/// The keys of one issuer.
pub(crate) struct Keyring {
    name: String,
    source: Arc<Source>,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// Whether the last fetch failed.
    is_down: bool,
    not_before: Timestamp,
    under_way: Option<Fetch>,
}

/// The issuer cannot be asked, and what it said before is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Down;

impl Keyring {
    /// An empty keyring; the name is for logs.
    pub(crate) fn new(name: String, source: Source, clock: Arc<dyn Clock>) -> Self {
        Self { name, source: Arc::new(source), clock, state: Arc::default() }
    }

    /// The keys, asked for where there are none or they are old.
    pub(crate) async fn keys(&self) -> Result<Arc<KeySet>, Down> {
        let known = self.lock().keys.clone();
        match known {
            Some(keys) if self.clock.now() < keys.at.after(MAX_AGE) => Ok(keys),
            known => self.fetch().await.or(known).ok_or(Down),
        }
    }

    /// Newer keys than those that were no use. None where they were asked for a moment ago.
    pub(crate) async fn newer_than(&self, seen: &Arc<KeySet>) -> Result<Option<Arc<KeySet>>, Down> {
        let known = self.lock().keys.clone();
        let found = match known.filter(|known| !Arc::ptr_eq(known, seen)) {
            Some(known) => Some(known),
            None => self.fetch().await.filter(|fetched| !Arc::ptr_eq(fetched, seen)),
        };
        if found.is_none() && self.lock().is_down { Err(Down) } else { Ok(found) }
    }

    /// Begins or joins a fetch; none where it fails, or where it is too early for one.
    async fn fetch(&self) -> Option<Arc<KeySet>> {
        let fetch = self.begin_or_join()?;
        fetch.await.ok()
    }

    fn begin_or_join(&self) -> Option<Fetch> {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.under_way.is_none() && now >= state.not_before {
            state.not_before = now.after(COOL_DOWN);
            state.under_way = Some(self.begin(now));
        }
        state.under_way.clone()
    }

    fn begin(&self, now: Timestamp) -> Fetch {
        let (name, source, state) = (self.name.clone(), Arc::clone(&self.source), Arc::clone(&self.state));
        let fetch = async move {
            let fetched = source.fetch(now).await.map(Arc::new);
            finish(&mut lock(&state), &name, &fetched, now);
            fetched
        };
        fetch.boxed().shared()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finish(state: &mut State, issuer: &str, fetched: &Fetched, began_at: Timestamp) {
    state.under_way = None;
    state.is_down = fetched.is_err();
    match fetched {
        Ok(keys) => state.keys = Some(Arc::clone(keys)),
        Err(error) => {
            tracing::warn!(issuer, %error, "the keys of an issuer cannot be fetched; the last good ones stay");
            if state.keys.is_none() {
                state.not_before = began_at.after(COOL_DOWN_WITHOUT_KEYS);
            }
        }
    }
}
