//! Every story, once for every effect and every way in which that effect can go wrong (INV-1 to INV-4, INV-7 to INV-13).
//!
//! How many effects a story has, and how many faults it survived, is printed (`cargo test -p collie-scenarios --test crash -- --nocapture`).
//! Every effect of the undisturbed story is struck by every fault, or the enumeration fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::item::{Phase, ResultKind};
use collie_core::mr::facts::Facts;
use collie_scenarios::effects::When;
use collie_scenarios::world::{BRANCH, submission};
use collie_scenarios::{Crashed, Effects, World, survives_crash_at_every_effect};
use gitlab_sim::DEMO_PROJECT_ID;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn covered(story: &str, crashed: &Crashed) {
    println!("{story}: {} effects, {} faults survived", crashed.effects, crashed.runs);
}

fn greeting_on_main(world: &World) -> String {
    let readme = String::from_utf8(world.sim().file_at(DEMO_PROJECT_ID, "main", "README.md").unwrap()).unwrap();
    let said = readme.split_once("Says ").map_or("", |(_, rest)| rest);
    said.split_once('.').map_or("", |(greeting, _)| greeting).to_owned()
}

async fn has_mr(world: &World) -> bool {
    let items = world.all_items().await;
    items.first().is_some_and(|item| Facts::of(item).unwrap().mr.is_some() && item.leased_until.is_none())
}

async fn is_built(world: &World) -> bool {
    let item = world.all_items().await.remove(0);
    Facts::of(&item).unwrap().current(&item).is_some() && item.leased_until.is_none()
}

async fn expect_merged(world: &World, greetings: &[&str]) {
    world.until_all_ended(6 * HOUR).await;
    let items = world.all_items().await;
    let ends: Vec<_> = items.iter().map(|item| (item.phase, item.result)).collect();
    assert!(ends.iter().all(|end| *end == (Phase::Completed, Some(ResultKind::Merged))), "{ends:?}\n{}", world.picture().await);
    let greeting = greeting_on_main(world);
    assert_eq!(Some(&greeting.as_str()), greetings.last(), "{}", world.picture().await);
    world.finish().await;
}

#[test]
fn create_to_merge() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        world.submit(&submission("hello")).await;
        expect_merged(&world, &["hello"]).await;
        assert_eq!(world.sim().merge_requests(DEMO_PROJECT_ID).len(), 1);
    });
    covered("create to merge", &crashed);
}

#[test]
fn all_webhooks_lost() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        world.lose_hooks();
        world.submit(&submission("hello")).await;
        expect_merged(&world, &["hello"]).await;
    });
    covered("all webhooks lost", &crashed);
}

#[test]
fn every_queue_emptied() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::without_queues(effects).await;
        world.submit(&submission("hello")).await;
        expect_merged(&world, &["hello"]).await;
    });
    covered("every queue emptied", &crashed);
}

#[test]
fn update_of_an_open_merge_request() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        world.submit(&submission("hello")).await;
        world.until(HOUR, || has_mr(&world)).await;
        world.submit(&submission("hi")).await;
        expect_merged(&world, &["hi"]).await;
        assert_eq!(world.sim().merge_requests(DEMO_PROJECT_ID).len(), 1);
    });
    covered("update of an open merge request", &crashed);
}

#[test]
fn update_during_ensure_mr() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        let later = world.clone();
        world.when(
            "forge.create_commit",
            When::After,
            Box::pin(async move {
                later.submit(&submission("hi")).await;
            }),
        );
        world.submit(&submission("hello")).await;
        expect_merged(&world, &["hi"]).await;
        assert_eq!(world.sim().merge_requests(DEMO_PROJECT_ID).len(), 1);
    });
    covered("update during ensure_mr", &crashed);
}

#[test]
fn update_racing_a_merge() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        let later = world.clone();
        world.when(
            "forge.merge",
            When::After,
            Box::pin(async move {
                later.submit(&submission("hi")).await;
            }),
        );
        world.submit(&submission("hello")).await;
        expect_merged(&world, &["hello", "hi"]).await;
        assert_eq!(world.all_items().await.iter().map(|item| item.generation).collect::<Vec<_>>(), [1, 2]);
    });
    covered("update racing a merge", &crashed);
}

#[test]
fn cancel() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        let item = world.submit(&submission("hello")).await.item;
        world.until(HOUR, || has_mr(&world)).await;
        world.cancel(&item.id).await;
        world.until_all_ended(6 * HOUR).await;
        let item = world.item(&item.id).await;
        assert_eq!((item.phase, item.result), (Phase::Cancelled, Some(ResultKind::Cancelled)));
        let states: Vec<_> = world.sim().merge_requests(DEMO_PROJECT_ID).into_iter().map(|mr| mr.state).collect();
        assert_eq!(states, ["closed"]);
        world.finish().await;
    });
    covered("cancel", &crashed);
}

#[test]
fn cancel_racing_a_merge() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        let item = world.submit(&submission("hello")).await.item;
        let (later, id) = (world.clone(), item.id.clone());
        world.when("forge.merge", When::Before, Box::pin(async move { later.cancel(&id).await }));
        world.until_all_ended(6 * HOUR).await;
        let item = world.item(&item.id).await;
        let mr = world.sim().merge_requests(DEMO_PROJECT_ID).remove(0);
        let end = (item.phase, item.result, mr.state.as_str());
        let merged = (Phase::Completed, Some(ResultKind::Merged), "merged");
        let cancelled = (Phase::Cancelled, Some(ResultKind::Cancelled), "closed");
        assert!(end == merged || end == cancelled, "{end:?}");
        world.finish().await;
    });
    covered("cancel racing a merge", &crashed);
}

/// The push of `hi` is held on its way, `hey` is built meanwhile, and then `hi` arrives after all and overwrites it.
#[test]
fn a_late_push_of_our_own() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = World::new(effects).await;
        world.submit(&submission("hello")).await;
        world.until(HOUR, || has_mr(&world)).await;
        world.effects().hold_next_push();
        world.submit(&submission("hi")).await;
        world.until(HOUR, || is_built(&world)).await;
        world.submit(&submission("hey")).await;
        world.until(HOUR, || is_built(&world)).await;
        world.release_held_pushes().await;
        expect_merged(&world, &["hey"]).await;
    });
    covered("a late push of our own", &crashed);
}

#[tokio::test]
async fn an_item_that_kills_its_worker_ends_failed() {
    let world = World::new(Effects::default()).await;
    let item = world.submit(&submission("hello")).await.item;
    world.effects().kill_at("forge.branch");
    world.until_all_ended(DAY).await;
    let item = world.item(&item.id).await;
    assert_eq!((item.phase, item.last_error.map(|e| e.code)), (Phase::Failed, Some("worker_died".to_owned())));
    let deaths = world.effects().log().iter().filter(|name| *name == "forge.branch").count();
    assert_eq!(deaths, 3, "three leases without progress are allowed; the fourth ends the item");
    assert_eq!(world.sim().branch_head(DEMO_PROJECT_ID, BRANCH), None);
    world.finish().await;
}
