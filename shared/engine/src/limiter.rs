//! Keeps one identity from asking for more changes than its share (reads are not counted).
//!
//! Tokens are drawn from the store in small lots, so that most requests cost no write; a process that ends takes what is left of
//! its lot with it.

use crate::ports::{Clock, Rates};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::rate::{Drawn, Limit};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Identities whose lots a process remembers before it forgets all.
const REMEMBERED: usize = 10_000;
/// The largest lot.
const LARGEST_LOT: u32 = 20;
/// Times a draw that others kept from happening is made again.
const ROUNDS: u32 = 5;
/// How long to wait where others keep drawing.
const CONTENDED: Duration = Duration::from_secs(1);

/// The limit, and what this process has drawn.
#[derive(Clone)]
pub struct Limiter {
    rates: Arc<dyn Rates>,
    clock: Arc<dyn Clock>,
    limit: Limit,
    lots: Arc<Mutex<HashMap<String, u32>>>,
}

impl Limiter {
    /// A limiter over these buckets.
    pub fn new(rates: Arc<dyn Rates>, clock: Arc<dyn Clock>, limit: Limit) -> Self {
        Self { rates, clock, limit, lots: Arc::default() }
    }

    /// Lets one request of an identity through, or says how long it has to wait.
    ///
    /// # Errors
    /// The store's.
    pub async fn admit(&self, identity: &str) -> Result<Option<Duration>, Failure> {
        let key = sha256_hex(identity.as_bytes());
        if self.spend(&key) {
            return Ok(None);
        }
        for _ in 0..ROUNDS {
            let bucket = self.rates.bucket(&key).await?;
            let (tokens, left) = match self.limit.draw(bucket, self.lot(), self.clock.now()) {
                Drawn::Tokens(tokens, left) => (tokens, left),
                Drawn::Empty(wait) => return Ok(Some(wait)),
            };
            if self.rates.replace_bucket(&key, bucket, left).await? {
                self.keep(key, tokens - 1);
                return Ok(None);
            }
        }
        Ok(Some(CONTENDED))
    }

    /// A second's worth.
    fn lot(&self) -> u32 {
        (self.limit.per_minute / 60).clamp(1, LARGEST_LOT)
    }

    fn spend(&self, key: &str) -> bool {
        let mut lots = self.lots();
        let Some(lot) = lots.get_mut(key).filter(|lot| **lot > 0) else { return false };
        *lot -= 1;
        true
    }

    fn keep(&self, key: String, tokens: u32) {
        let mut lots = self.lots();
        if lots.len() >= REMEMBERED {
            lots.clear();
        }
        *lots.entry(key).or_default() += tokens;
    }

    fn lots(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.lots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
