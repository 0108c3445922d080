//! The keys of one issuer, kept until they are old, and asked for again where a token needs others (JWT-06).
//!
//! * A fetch is shared by all requests that want one, and goes on where the request that began it goes away.
//! * Between the beginnings of two fetches that tokens ask for lies [`COOL_DOWN`], whatever they say. A fetch of first or of newer keys
//!   is none of them, unless it was made for a token that finds no key in it: so a new key counts at its first use, also where the
//!   old ones were fetched a moment ago.
//! * A fetch that failed is repeated no sooner than that either. Only where no key was ever had, it is.
//! * The last good keys stay while their issuer does not answer.

use crate::keys::KeySet;
use crate::source::{FetchError, Source};
use collie_core::time::Timestamp;
use collie_engine::ports::Clock;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The least time between two fetches that tokens ask for, and after one that failed.
const COOL_DOWN: Duration = Duration::from_secs(60);
/// The same after a failure where there are no keys yet.
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

/// Keys to look at a token with.
pub(crate) struct Known {
    pub(crate) keys: Arc<KeySet>,
    /// Whether they were fetched for this very token: there are no newer ones.
    is_fresh: bool,
}

/// Why keys are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// There are none, or they are old.
    Age,
    /// A token fits none of them.
    Token,
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
    pub(crate) async fn keys(&self) -> Result<Known, Down> {
        let kept = self.lock().keys.clone();
        if let Some(keys) = kept.clone().filter(|keys| self.clock.now() < keys.at.after(MAX_AGE)) {
            return Ok(Known { keys, is_fresh: false });
        }
        match self.fetch(Cause::Age).await {
            Some(keys) => Ok(Known { keys, is_fresh: true }),
            None => kept.map(|keys| Known { keys, is_fresh: false }).ok_or(Down),
        }
    }

    /// Newer keys than those that were no use. None where they were asked for a moment ago.
    pub(crate) async fn newer_than(&self, seen: &Known) -> Result<Option<Arc<KeySet>>, Down> {
        if seen.is_fresh {
            let mut state = self.lock();
            state.not_before = state.not_before.max(seen.keys.at.after(COOL_DOWN));
            return Ok(None);
        }
        let kept = self.lock().keys.clone();
        let found = match kept.filter(|kept| !Arc::ptr_eq(kept, &seen.keys)) {
            Some(kept) => Some(kept),
            None => self.fetch(Cause::Token).await.filter(|fetched| !Arc::ptr_eq(fetched, &seen.keys)),
        };
        if found.is_none() && self.lock().is_down { Err(Down) } else { Ok(found) }
    }

    /// Begins or joins a fetch; none where it fails, or where it is too early for one.
    async fn fetch(&self, cause: Cause) -> Option<Arc<KeySet>> {
        let fetch = self.begin_or_join(cause)?;
        fetch.await.ok()
    }

    fn begin_or_join(&self, cause: Cause) -> Option<Fetch> {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.under_way.is_none() && now >= state.not_before {
            if cause == Cause::Token {
                state.not_before = now.after(COOL_DOWN);
            }
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
            let pause = if state.keys.is_some() { COOL_DOWN } else { COOL_DOWN_WITHOUT_KEYS };
            state.not_before = state.not_before.max(began_at.after(pause));
        }
    }
}
