//! Time and randomness, so that use cases are replayable.

use async_trait::async_trait;
use collie_core::id::{ItemId, Token};
use collie_core::time::Timestamp;
use std::time::Duration;

/// The wall clock, and waiting on it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Returns when this much time has passed on this clock. Only heartbeats wait; no use case sleeps.
    async fn sleep(&self, duration: Duration);
}

/// Fresh identifiers and jitter.
pub trait Ids: Send + Sync {
    /// A new item id: a UUIDv7 of this time.
    fn item_id(&self, now: Timestamp) -> ItemId;

    /// A new token.
    fn token(&self) -> Token;

    /// A number in `0.0..1.0`, for jitter.
    fn jitter(&self) -> f64;
}
