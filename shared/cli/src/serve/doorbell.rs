//! Doorbells in process: what is to be looked at (items, queues, dead letters), and when.
//!
//! A ring is kept in memory alone; one that is lost costs time, because the due loop finds what it was for (INV-13). Rings for one
//! thing become one, at the earliest time any of them asked for.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::letter::Origin;
use collie_engine::ports::{Redrive, Wakes};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// One ring.
#[derive(Debug)]
pub(crate) struct Ring<K> {
    pub(crate) id: K,
    pub(crate) at: Instant,
}

/// Rings; the other end is a worker pool's.
#[derive(Debug, Clone)]
pub(crate) struct Doorbell<K>(mpsc::UnboundedSender<Ring<K>>);

/// Where a doorbell is heard.
pub(crate) type Rings<K> = mpsc::UnboundedReceiver<Ring<K>>;

/// A doorbell and where it is heard.
pub(crate) fn doorbell<K>() -> (Doorbell<K>, Rings<K>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Doorbell(sender), receiver)
}

impl<K> Doorbell<K> {
    /// Rings. A pool that has stopped hears nothing, and needs not: what it is for stays in the rows.
    pub(crate) fn ring(&self, id: K, delay: Duration) {
        let _ = self.0.send(Ring { id, at: Instant::now() + delay });
    }
}

#[async_trait]
impl Wakes for Doorbell<ItemId> {
    async fn send(&self, item: &ItemId, delay: Duration) -> Result<(), Failure> {
        self.ring(item.clone(), delay);
        Ok(())
    }
}

/// Rings for the item of a wake-up that is sent again. Other letters come from queues that this process does not have.
#[derive(Debug, Clone)]
pub(crate) struct LocalRedrive(pub(crate) Doorbell<ItemId>);

#[async_trait]
impl Redrive for LocalRedrive {
    async fn send(&self, origin: Origin, body: &str) -> Result<(), Failure> {
        let item = serde_json::from_str::<serde_json::Value>(body).ok().and_then(|wake| Some(ItemId::new(wake.get("item_id")?.as_str()?)));
        match item.filter(|_| origin == Origin::Wakes) {
            Some(item) => self.0.send(&item, Duration::ZERO).await,
            None => Err(Failure::rejected("letter_not_sent", "this process has no such queue; redrive the letter where it came from")),
        }
    }
}

/// What is to be looked at, without what is under way.
#[derive(Debug)]
pub(crate) struct Schedule<K> {
    order: BTreeSet<(Instant, K)>,
    times: HashMap<K, Instant>,
    running: HashSet<K>,
}

impl<K> Default for Schedule<K> {
    fn default() -> Self {
        Self { order: BTreeSet::new(), times: HashMap::new(), running: HashSet::new() }
    }
}

impl<K: Clone + Eq + Ord + Hash> Schedule<K> {
    /// Notes a ring; of several for one thing, the earliest counts.
    pub(crate) fn ring(&mut self, ring: Ring<K>) {
        let known = self.times.get(&ring.id).copied();
        if known.is_some_and(|known| known <= ring.at) {
            return;
        }
        self.times.insert(ring.id.clone(), ring.at);
        if self.running.contains(&ring.id) {
            return;
        }
        if let Some(known) = known {
            self.order.remove(&(known, ring.id.clone()));
        }
        self.order.insert((ring.at, ring.id));
    }

    /// The next whose time has come; it is under way until [`Schedule::finish`].
    pub(crate) fn start(&mut self, now: Instant) -> Option<K> {
        let due = self.order.first().is_some_and(|(at, _)| *at <= now);
        let (_, id) = if due { self.order.pop_first()? } else { return None };
        self.times.remove(&id);
        self.running.insert(id.clone());
        Some(id)
    }

    /// It is under way no longer; a ring for it meanwhile counts now.
    pub(crate) fn finish(&mut self, id: &K) {
        self.running.remove(id);
        if let Some(at) = self.times.get(id) {
            self.order.insert((*at, id.clone()));
        }
    }

    /// When the next is to be looked at.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(id: &str, at: Instant) -> Ring<ItemId> {
        Ring { id: ItemId::new(id), at }
    }

    fn started(schedule: &mut Schedule<ItemId>, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| schedule.start(now)).map(|id| id.to_string()).collect()
    }

    #[test]
    fn items_start_in_the_order_of_their_times_and_not_before() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        let second = Duration::from_secs(1);
        schedule.ring(ring("late", now + 2 * second));
        schedule.ring(ring("soon", now + second));
        schedule.ring(ring("now", now));
        assert_eq!(started(&mut schedule, now), ["now"]);
        assert_eq!(schedule.next_at(), Some(now + second));
        assert_eq!(started(&mut schedule, now + 3 * second), ["soon", "late"]);
        assert_eq!(schedule.next_at(), None);
    }

    #[test]
    fn rings_for_one_item_become_one_at_the_earliest_time() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        for seconds in [5, 1, 3] {
            schedule.ring(ring("a", now + Duration::from_secs(seconds)));
        }
        assert_eq!(schedule.next_at(), Some(now + Duration::from_secs(1)));
        assert_eq!(started(&mut schedule, now + Duration::from_secs(9)), ["a"]);
    }

    #[test]
    fn an_item_under_way_is_not_started_again_until_it_finishes() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        schedule.ring(ring("a", now));
        assert_eq!(started(&mut schedule, now), ["a"]);
        schedule.ring(ring("a", now));
        assert_eq!(started(&mut schedule, now), [""; 0]);
        schedule.finish(&ItemId::new("a"));
        assert_eq!(started(&mut schedule, now), ["a"]);
        schedule.finish(&ItemId::new("a"));
        assert_eq!(started(&mut schedule, now), [""; 0]);
    }
}
