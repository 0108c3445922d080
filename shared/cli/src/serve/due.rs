//! What happens by the clock: due items are rung for, expired rows are swept, leases of a process that died are given back.

use super::stop::Stop;
use super::store::Database;
use super::uploads::LocalUploads;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::item::{DUE_SHARDS, Item};
use collie_core::queue::Change;
use collie_engine::Engine;
use collie_engine::ports::{ChangeError, Clock as _, Ids as _, Items, Wakes};
use collie_engine::tracking::Tracking;
use collie_engine::tracking::detect::Detector;
use collie_system::{RandomIds, SystemClock, pause};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often due items are looked for; a minute on AWS.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often GitLab's pipelines are read for tracked queues.
const DETECT_EVERY: Duration = Duration::from_secs(5);
/// How often expired rows are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Held items of a shard that are given back at start.
const MOST_HELD: usize = 10_000;

/// Rings for due items and for queues that nobody looked at, at once and then every few seconds.
pub(crate) async fn ring_for_due(engine: Engine, tracking: Tracking, mut stop: Stop) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = stop.given() => return,
            _ = ticks.tick() => look(&engine, &tracking).await,
        }
    }
}

async fn look(engine: &Engine, tracking: &Tracking) {
    if let Err(failure) = tracking.ring_stale().await {
        tracing::warn!(code = failure.code, message = failure.message, "queues cannot be looked at; looking again");
    }
    match engine.wake_due().await {
        Ok(0) => {}
        Ok(woken) => tracing::debug!(woken, "rang for due items"),
        Err(failure) => tracing::warn!(code = failure.code, message = failure.message, "due items cannot be found; looking again"),
    }
}

/// Reads GitLab's pipelines for tracked queues, at once and then every few seconds; a minute on AWS.
pub(crate) async fn detect(detector: Detector, mut stop: Stop) {
    let mut ticks = tokio::time::interval(DETECT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.given() => return,
            // What fails is told queue by queue, and looked at again.
            _ = ticks.tick() => drop(detector.look_at_all().await),
        }
    }
}

/// Removes expired rows and uploads now and then.
pub(crate) async fn sweep(database: Database, uploads: LocalUploads, mut stop: Stop) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            () = stop.given() => return,
            _ = ticks.tick() => {
                sweep_once(database.clone()).await;
                match uploads.sweep().await {
                    Ok(removed) => tracing::debug!(removed, "removed expired uploads"),
                    Err(failure) => tracing::warn!(code = failure.code, "expired uploads cannot be removed"),
                }
            }
        }
    }
}

async fn sweep_once(database: Database) {
    match tokio::task::spawn_blocking(move || database.sweep_ttl()).await {
        Ok(Ok(rows)) => tracing::debug!(rows, "removed expired rows"),
        Ok(Err(error)) => tracing::warn!(%error, "expired rows cannot be removed"),
        Err(_) => tracing::error!("removing expired rows panicked"),
    }
}

/// The items whose leases outlived the process that had this data directory before. The directory's lock says that it is
/// gone, so nobody holds them.
pub(crate) async fn orphans(items: &dyn Items) -> Result<Vec<Item>, Failure> {
    let now = SystemClock.now();
    let mut held = Vec::new();
    for shard in 0..DUE_SHARDS {
        for due in items.due(shard, now, MOST_HELD).await? {
            held.extend(items.item(&due.id).await?.filter(|item| item.leased_until.is_some()));
        }
    }
    Ok(held)
}

/// Gives the leases back once requests that the dead process sent to GitLab have surely ended, so that two writers never
/// overlap. A lease that someone took meanwhile stays theirs: the release names the dead one.
pub(crate) async fn take_over(items: Arc<dyn Items>, doorbell: Arc<dyn Wakes>, orphans: Vec<Item>, after: Duration, mut stop: Stop) {
    if orphans.is_empty() {
        return;
    }
    tracing::info!(items = orphans.len(), ?after, "items of a process that died are taken over");
    tokio::select! {
        () = stop.given() => return,
        () = pause(after) => {}
    }
    for item in orphans {
        match release(items.as_ref(), &item).await {
            Ok(_) => ring(doorbell.as_ref(), &item.id).await,
            Err(error) => tracing::info!(item = %item.id, %error, "not taken over; its lease will end"),
        }
    }
}

async fn release(items: &dyn Items, item: &Item) -> Result<Item, ChangeError> {
    let (epoch, commit_seq) = (item.lease_epoch, item.commit_seq);
    let change = Change::Release { epoch, commit_seq, token: RandomIds.token(), now: SystemClock.now(), died: true };
    items.change(&item.id, &change).await
}

async fn ring(doorbell: &dyn Wakes, id: &ItemId) {
    let _ = doorbell.send(id, Duration::ZERO).await;
}
