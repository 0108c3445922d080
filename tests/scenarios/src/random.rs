//! Random schedules: a submitter, an ingester, two workers and perhaps a canceller, one step at a time in an order that a
//! seed decides, with crashes, frozen workers whose lease expires, lost doorbells and late writes in between.

use crate::mutant::Mutant;
use crate::schedule::{Act, Schedule, turn};
use crate::world::{World, submission};
use collie_core::decision::Next;
use collie_core::event::Delivery;
use collie_core::id::ItemId;
use collie_core::item::{Item, Phase, ResultKind};
use collie_core::time::{SKEW, Timestamp};
use collie_engine::submit;
use gitlab_sim::DEMO_PROJECT_ID;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SUBMITTER: usize = 0;
const INGESTER: usize = 1;
const WORKERS: [usize; 2] = [2, 3];
const CANCELLER: usize = 4;
const STEPS: usize = 220;
const GREETINGS: [&str; 3] = ["hello", "hi", "hey"];

/// What outsiders were told.
#[derive(Debug, Default, Clone)]
struct Told {
    /// The last submission that was acknowledged.
    greeting: Option<&'static str>,
    /// Events that were acknowledged, with the time they carry.
    events: Vec<(ItemId, Timestamp)>,
    /// Whether a cancel was acknowledged.
    cancelled: bool,
}

type Shared = Arc<Mutex<Told>>;

/// Runs one seed; with `cancels`, somebody cancels.
///
/// # Panics
/// Where an invariant is broken, or an acknowledged thing is lost.
pub async fn run(seed: u64, cancels: bool, mutant: Option<Mutant>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mortality = if seed.is_multiple_of(2) { 3 } else { 25 };
    let world = World::with_protocol(mutant).await;
    let told = Shared::default();
    let mut schedule = Schedule::default();
    for actor in [SUBMITTER, INGESTER, WORKERS[0], WORKERS[1]] {
        schedule.enter(actor, act_of(actor, &world, &told, rng.u64(..))).await;
    }
    if cancels {
        schedule.enter(CANCELLER, act_of(CANCELLER, &world, &told, rng.u64(..))).await;
    }
    for _ in 0..STEPS {
        let before = world.all_items().await;
        happen(&mut rng, mortality, &world, &told, &mut schedule).await;
        events_leave_applied(&world, &before).await;
        nobody_sleeps_on_work(&world).await;
    }
    for actor in [INGESTER, WORKERS[0], WORKERS[1]] {
        schedule.kill(actor).await;
    }
    while let Some(actor) = schedule.waiting().first().copied() {
        schedule.step(actor).await;
    }
    world.empty_queues();
    world.until_all_ended(Duration::from_secs(36 * 3600)).await;
    let told = told.lock().unwrap().clone();
    nothing_acknowledged_is_lost(&world, &told).await;
    world.finish().await;
}

/// One thing happens: mostly a step of somebody, sometimes worse.
async fn happen(rng: &mut fastrand::Rng, mortality: u32, world: &World, told: &Shared, schedule: &mut Schedule) {
    if rng.u32(..100) < mortality && may_die(world).await {
        return die(rng, world, told, schedule).await;
    }
    match rng.u32(..100) {
        0..3 if may_lapse(world).await => world.sim().advance_by(96_000),
        3..14 => {
            let by = rng.u64(200..9_000);
            if may_die(world).await || leases_outlast(world, by).await {
                world.sim().advance_by(by);
            }
        }
        14..17 => world.schedule().await,
        17..21 => world.store().resend(|n| rng.usize(..n)).await,
        _ => {
            let waiting = schedule.waiting();
            if !waiting.is_empty() {
                schedule.step(waiting[rng.usize(..waiting.len())]).await;
            }
        }
    }
}

/// A process dies where it stands, and another takes its place.
async fn die(rng: &mut fastrand::Rng, world: &World, told: &Shared, schedule: &mut Schedule) {
    let actor = [INGESTER, WORKERS[0], WORKERS[1]][rng.usize(..3)];
    schedule.kill(actor).await;
    schedule.enter(actor, act_of(actor, world, told, rng.u64(..))).await;
}

/// Three leases without progress are allowed: the adversary leaves one for the end of the schedule.
async fn may_die(world: &World) -> bool {
    leases_taken(world).await < 2
}

async fn leases_taken(world: &World) -> u32 {
    world.all_items().await.iter().map(|item| item.claims).max().unwrap_or_default()
}

/// The same for leases that run out, as one may before its claim arrives.
async fn may_lapse(world: &World) -> bool {
    leases_taken(world).await + world.effects().claims_under_way() < 2
}

/// Time that runs out on a lease is a death too.
async fn leases_outlast(world: &World, ms: u64) -> bool {
    let then = Timestamp::from_millis(world.sim().now_ms() + ms);
    world.all_items().await.iter().all(|item| item.leased_until.is_none_or(|until| until > then))
}

fn act_of(actor: usize, world: &World, told: &Shared, seed: u64) -> Act {
    let (world, told) = (world.clone(), Arc::clone(told));
    match actor {
        SUBMITTER => Box::pin(submit_all(world, told, seed)),
        INGESTER => Box::pin(ingest_all(world, told, seed)),
        CANCELLER => Box::pin(cancel_one(world, told, seed)),
        _ => Box::pin(work(world)),
    }
}

async fn submit_all(world: World, told: Shared, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for greeting in GREETINGS {
        for _ in 0..rng.u32(..40) {
            turn().await;
        }
        match world.try_submit(&submission(greeting)).await {
            Ok(_) => told.lock().unwrap().greeting = Some(greeting),
            Err(submit::Error::CancelPending | submit::Error::Contended) => {}
            Err(error) => panic!("submit {greeting}: {error}"),
        }
    }
}

async fn ingest_all(world: World, told: Shared, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    loop {
        let mut deliveries = world.sim().take_deliveries();
        rng.shuffle(&mut deliveries);
        for delivery in deliveries {
            let owner = world.owner_of(&delivery).await;
            let stored = world.ingest_once(&delivery).await;
            if let (Some(id), true) = (owner, stored) {
                let now = Timestamp::from_millis(world.sim().now_ms());
                let event = Delivery::parse(&delivery.body, now).unwrap().event;
                told.lock().unwrap().events.push((id, event.at()));
            }
            if rng.bool() {
                world.ingest_once(&delivery).await;
            }
        }
        turn().await;
    }
}

async fn cancel_one(world: World, told: Shared, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..20 + rng.u32(..120) {
        turn().await;
    }
    if let Some(id) = world.effects().items().last().cloned() {
        world.cancel(&id).await;
        told.lock().unwrap().cancelled = true;
    }
}

async fn work(world: World) {
    loop {
        match world.next_ring() {
            Some(id) => drop(world.work(&id).await),
            None => turn().await,
        }
    }
}

/// An item that nobody holds, that nobody will be rung for, and that is not due soon, has nothing to do now.
async fn nobody_sleeps_on_work(world: &World) {
    let now = Timestamp::from_millis(world.sim().now_ms());
    for item in world.all_items().await {
        let asleep =
            item.is_active() && item.leased_until.is_none() && !item.actionable && item.due_at.is_none_or(|due| due > now.after(SKEW));
        let pending = !item.inbox.is_empty() || matches!(collie_core::mr::decide::decide(&item, now).unwrap().next, Next::Act(_));
        assert!(!(asleep && pending), "asleep with work pending: {item:#?}");
    }
}

/// An event leaves the inbox in the write that applies it, and in no other.
async fn events_leave_applied(world: &World, before: &[Item]) {
    for old in before {
        let item = world.item(&old.id).await;
        for entry in &old.inbox {
            let applied = !item.is_active() || item.last_event_at >= Some(entry.event.at());
            assert!(applied || item.inbox.contains(entry), "an event has left the inbox and was not applied: {entry:?} of {item:#?}");
        }
    }
}

async fn nothing_acknowledged_is_lost(world: &World, told: &Told) {
    let items = world.all_items().await;
    for (id, at) in &told.events {
        let item = world.item(id).await;
        assert!(item.last_event_at >= Some(*at), "an acknowledged event is lost: {at} of {item:#?}");
    }
    for item in &items {
        ended_as_gitlab_says(world, item);
    }
    if !told.cancelled {
        let ends: Vec<_> = items.iter().map(|item| (item.phase, item.result)).collect();
        assert!(ends.iter().all(|end| *end == (Phase::Completed, Some(ResultKind::Merged))), "{ends:?}\n{}", world.picture().await);
        let readme = String::from_utf8(world.sim().file_at(DEMO_PROJECT_ID, "main", "README.md").unwrap()).unwrap();
        let greeting = told.greeting.unwrap();
        assert!(readme.contains(&format!("Says {greeting}.")), "acknowledged {greeting:?} and merged {readme:?}");
    }
}

fn ended_as_gitlab_says(world: &World, item: &Item) {
    let facts = collie_core::mr::facts::Facts::of(item).unwrap();
    let Some(iid) = facts.mr.map(|mr| mr.iid.0) else { return };
    let mr = world.sim().merge_requests(DEMO_PROJECT_ID).into_iter().find(|mr| mr.iid == iid).unwrap();
    let want = if item.phase == Phase::Completed { "merged" } else { "closed" };
    assert_eq!(mr.state, want, "the item is {:?}: {item:#?}", item.phase);
}
