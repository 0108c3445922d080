//! Field reports about deliveries, second workers, leases and rows: repetition, order, delay and death change nothing but time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "whatever a story does not expect is a failed test")]

use collie_core::event::Event;
use collie_core::id::ItemId;
use collie_core::item::{LEASE, Phase, ResultKind};
use collie_core::mr::events::failed_jobs;
use collie_core::queue::Change;
use collie_core::time::{SKEW, Timestamp};
use collie_engine::execute::Ran;
use collie_engine::submit::Outcome;
use collie_scenarios::effects::When;
use collie_scenarios::world::{BRANCH, submission};
use collie_scenarios::{Effects, Fault, World};
use gitlab_sim::{DEMO_PROJECT_ID, Delivery};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn told() -> (World, ItemId) {
    let world = World::new(Effects::default()).await;
    let id = world.submit(&submission("hello")).await.item.id;
    (world, id)
}

fn with_key(delivery: &Delivery, key: &str) -> Delivery {
    let mut delivery = delivery.clone();
    for (name, value) in &mut delivery.headers {
        if name.eq_ignore_ascii_case("Idempotency-Key") {
            key.clone_into(value);
        }
    }
    delivery
}

fn says(delivery: &Delivery, kind: &str, field: &str, value: &str) -> bool {
    let body = delivery.json();
    body["object_kind"] == kind && body["object_attributes"][field] == value
}

/// Runs whatever is rung for now.
async fn work_off(world: &World) {
    while let Some(id) = world.next_ring() {
        world.work(&id).await;
    }
}

/// Lets GitLab go on by itself until it says such a thing.
fn until_said(world: &World, heard: &mut Vec<Delivery>, wanted: impl Fn(&Delivery) -> bool) -> Delivery {
    for _ in 0..1000 {
        heard.extend(world.sim().take_deliveries());
        if let Some(found) = heard.iter().find(|delivery| wanted(delivery)) {
            return found.clone();
        }
        world.sim().advance_to(world.sim().next_event_at().expect("GitLab has more to do"));
    }
    panic!("it was never said");
}

/// The same event twice: with one key the second is dropped, with two keys both are taken and have one effect.
#[tokio::test]
async fn whk_01() {
    for (key, stored) in [("same", false), ("another", true)] {
        let (world, id) = told().await;
        work_off(&world).await;
        let green = until_said(&world, &mut Vec::new(), |d| says(d, "pipeline", "status", "success"));
        let first = with_key(&green, "same");
        assert!(world.ingest_once(&first).await);
        world.sim().advance_by(1_500);
        let inbox = world.item(&id).await.inbox.len();
        world.ingest_once(&with_key(&green, key)).await;
        assert_eq!(world.item(&id).await.inbox.len(), inbox + usize::from(stored), "{key}");
        world.expect_merged(&id).await;
        assert_eq!((world.merge_calls(), world.commit_calls()), (1, 1));
    }
}

/// A delivery that is sent again days later, by hand, has no second effect, whether its key is still remembered or not. So has a dead letter
/// that is redriven, which comes under another id (SQS-10).
#[tokio::test]
async fn whk_02() {
    let (world, id) = told().await;
    work_off(&world).await;
    let green = until_said(&world, &mut Vec::new(), |d| says(d, "pipeline", "status", "success"));
    world.ingest_once(&green).await;
    world.expect_merged(&id).await;
    let before = (world.item(&id).await, world.sim().journal().len());
    world.sim().advance_by(2 * 24 * 3_600_000);
    for delivery in [green.clone(), with_key(&green, "forgotten")] {
        assert!(!world.ingest_once(&delivery).await);
        work_off(&world).await;
    }
    assert_eq!((world.item(&id).await, world.sim().journal().len()), before);
}

/// The same while the item still waits: the merge request is read again, and nothing is written.
#[tokio::test]
async fn whk_02_on_an_active_item() {
    let world = World::new(Effects::default()).await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.approvals_required = 1);
    let id = world.submit(&submission("hello")).await.item.id;
    work_off(&world).await;
    let green = until_said(&world, &mut Vec::new(), |d| says(d, "pipeline", "status", "success"));
    world.ingest_once(&green).await;
    world.pass(2 * DAY).await;
    let writes = |world: &World| world.sim().journal().iter().filter(|call| call.write && call.applied).count();
    let before = (writes(&world), world.item(&id).await.phase);
    for delivery in [green.clone(), with_key(&green, "forgotten")] {
        world.ingest_once(&delivery).await;
        work_off(&world).await;
    }
    assert_eq!((writes(&world), world.item(&id).await.phase), before);
    world.sim().approve(DEMO_PROJECT_ID, 1, "reviewer");
    world.expect_merged(&id).await;
}

/// A world in which `open`, `update` with `oldrev`, `approved` and `pipeline success` have been said and none has arrived.
async fn four_events() -> (World, ItemId, Vec<Delivery>) {
    let world = World::new(Effects::default()).await;
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.approvals_required = 1);
    let id = world.submit(&submission("hello")).await.item.id;
    work_off(&world).await;
    let mut heard = Vec::new();
    let open = until_said(&world, &mut heard, |d| says(d, "merge_request", "action", "open"));
    world.amend(&[]);
    let pushed = until_said(&world, &mut heard, |d| d.json()["object_attributes"]["oldrev"].is_string());
    world.sim().advance_by(1_000);
    assert!(world.sim().approve(DEMO_PROJECT_ID, 1, "reviewer"));
    let approved = until_said(&world, &mut heard, |d| says(d, "merge_request", "action", "approved"));
    let head = world.head();
    let green = until_said(&world, &mut heard, |d| says(d, "pipeline", "status", "success") && says(d, "pipeline", "sha", &head));
    (world, id, vec![open, pushed, approved, green])
}

fn orders() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for n in 0..256 {
        let order = [n / 64, n / 16 % 4, n / 4 % 4, n % 4];
        if order.iter().collect::<BTreeSet<_>>().len() == 4 {
            all.push(order);
        }
    }
    all
}

/// What one would see at the end: the item, and what was written to GitLab.
async fn seen(world: &World, id: &ItemId) -> (String, BTreeSet<(String, String)>) {
    let item = world.item(id).await;
    let facts = world.facts(id).await;
    let state = format!(
        "{:?} {:?} {:?} {} {:?}",
        item.phase,
        item.result,
        item.blocked,
        item.attempts,
        facts.builds.iter().map(|b| b.number).collect::<Vec<_>>()
    );
    let calls = world.sim().journal();
    let writes = calls.iter().filter(|c| c.write && c.user.as_deref() == Some("collie-bot") && !c.template.ends_with("/hooks"));
    (state, writes.map(|c| (c.method.clone(), c.path.clone())).collect())
}

/// In all 24 orders, each with each of the four said twice: the same item and the same writes.
#[tokio::test]
async fn whk_04() {
    let mut first = None;
    let orders = orders();
    assert_eq!(orders.len(), 24);
    for order in orders {
        for twice in 0..4 {
            let (world, id, events) = four_events().await;
            for index in order.into_iter().chain([twice]) {
                world.ingest_once(&with_key(&events[index], &format!("{index}"))).await;
                work_off(&world).await;
                world.sim().advance_by(300);
            }
            world.lose_hooks();
            world.expect_merged(&id).await;
            let seen = seen(&world, &id).await;
            let first = first.get_or_insert_with(|| seen.clone());
            assert_eq!(&seen, first, "{order:?}, {twice} twice");
        }
    }
}

/// A wake-up that is delivered again while the first worker acts: the second sees the lease, does nothing and is acknowledged.
#[tokio::test]
async fn sqs_07() {
    let (world, id) = told().await;
    let (second, twin, saw) = (world.clone(), id.clone(), Arc::new(Mutex::new(None)));
    let slot = saw.clone();
    let redelivered = Box::pin(async move {
        second.sim().advance_by(50_000);
        let calls = second.sim().journal().len();
        let ran = second.work(&twin).await;
        *slot.lock().unwrap() = Some((ran, second.sim().journal().len() - calls, second.item(&twin).await.due_at.is_some()));
    });
    world.when("forge.create_commit", When::Before, redelivered);
    world.work(&id).await;
    assert_eq!(*saw.lock().unwrap(), Some((Some(Ran::Idle), 0, true)));
    world.expect_merged(&id).await;
    assert_eq!(world.commit_calls(), 1);
}

/// The process dies after the commit and before its record: before the lease ends nobody acts, afterwards the commit is found.
#[tokio::test]
async fn sqs_08() {
    let (world, id) = told().await;
    world.effects().strike_next("forge.create_commit", Fault::CrashAfter);
    assert_eq!(world.work(&id).await, None);
    let calls = world.sim().journal().len();
    world.sim().advance_by(30_000);
    assert_eq!(world.work(&id).await, Some(Ran::Idle));
    let item = world.item(&id).await;
    assert_eq!((world.sim().journal().len(), item.due_at.is_some(), item.claims), (calls, true, 1));
    world.sim().advance_by(70_000);
    assert_eq!(world.work(&id).await, Some(Ran::Settled));
    let item = world.item(&id).await;
    assert_eq!((world.commit_calls(), world.the_mr().iid, item.attempts, item.claims), (1, 1, 0, 0));
    world.expect_merged(&id).await;
}

/// A frozen worker whose lease was taken over makes no call after it wakes up, and its row writes are refused.
#[tokio::test]
async fn ddb_01() {
    let (world, id) = told().await;
    let (rival, its, after) = (world.clone(), id.clone(), Arc::new(Mutex::new(0)));
    let slot = after.clone();
    let frozen = Box::pin(async move {
        rival.sim().advance_by(96_000);
        assert_eq!(rival.work(&its).await, Some(Ran::Settled));
        *slot.lock().unwrap() = rival.sim().journal().len();
    });
    world.when("items.commit", When::After, frozen);
    let ran = world.work(&id).await;
    assert_eq!((ran, world.sim().journal().len()), (Some(Ran::LeaseLost), *after.lock().unwrap()));
    let item = world.item(&id).await;
    assert_eq!((item.lease_epoch, item.leased_until, world.commit_calls()), (2, None, 1));
    world.expect_merged(&id).await;
    assert_eq!(world.the_mr().iid, 1);
}

/// A dead holder's lease, long expired, is taken at the first attempt of a fresh process.
#[tokio::test]
async fn ddb_02() {
    let (world, id) = told().await;
    world.effects().strike_next("forge.branch", Fault::CrashBefore);
    assert_eq!(world.work(&id).await, None);
    world.sim().advance_by(90_000 + 3_600_000);
    assert_eq!(world.work(&id).await, Some(Ran::Settled));
    world.expect_merged(&id).await;
}

/// Clocks that differ within the margin: at no instant do two believe that they hold the lease, and a dead one's is taken in time.
#[tokio::test]
async fn ddb_03() {
    for skew in [-4_000_i64, 0, 4_000] {
        let (world, id) = told().await;
        let start = world.sim().now_ms();
        let claim = |at: u64, token: &str| Change::Claim { now: Timestamp::from_millis(at), token: collie_core::id::Token::new(token) };
        let held = world.items().change(&id, &claim(start, "holder")).await.unwrap();
        let until = held.leased_until.unwrap().as_millis();
        assert_eq!(until - start, LEASE.as_millis() as u64);
        let mut taken = None;
        for at in (start..start + 120_000).step_by(500) {
            if world.items().change(&id, &claim(at.saturating_add_signed(skew), "rival")).await.is_ok() {
                taken = Some(at);
                break;
            }
        }
        let taken = taken.unwrap();
        assert!(taken > until, "both hold it at {taken}, skew {skew}");
        assert!(taken <= until + SKEW.as_millis() as u64 + 4_000 + 500, "taken too late at {taken}, skew {skew}");
    }
}

/// Clocks that differ beyond it: both run, one commits, and GitLab has one commit and one merge request.
#[tokio::test]
async fn ddb_03_beyond_the_margin() {
    let (world, id) = told().await;
    let (rival, its) = (world.clone(), id.clone());
    let overlap = Box::pin(async move {
        rival.sim().advance_by(80_000);
        assert_eq!(rival.work_off_by(&its, 20_000).await, Some(Ran::Settled));
    });
    world.when("forge.create_commit", When::Before, overlap);
    assert_eq!(world.work(&id).await, Some(Ran::LeaseLost));
    let applied = world.sim().journal().iter().filter(|c| c.method == "POST" && c.path.ends_with("/commits") && c.status == 201).count();
    assert_eq!((applied, world.the_mr().iid), (1, 1));
    world.expect_merged(&id).await;
}

/// Errors, events and history never make a row unwritable.
#[tokio::test]
async fn ddb_05() {
    let (world, id) = told().await;
    work_off(&world).await;
    let mut heard = Vec::new();
    let open = until_said(&world, &mut heard, |d| says(d, "merge_request", "action", "open"));
    for n in 0..200 {
        let mut body = open.json();
        body["user"]["id"] = json!(77);
        body["object_attributes"]["action"] = json!(format!("{n}{}", "\u{1F600}".repeat(90)));
        let delivery = Delivery { body: body.to_string().into_bytes().into(), ..with_key(&open, &format!("key {n}")) };
        assert!(world.ingest(&delivery).await);
    }
    let row = serde_json::to_string(&world.item(&id).await).unwrap();
    assert!(row.len() < 16 * 1024, "{}", row.len());
    let long = "x".repeat(100_000);
    world.gitlab_answers("GET", "/projects/:id/merge_requests/:merge_request_iid", 3, 500, &format!(r#"{{"message":"{long}"}}"#));
    world.expect_merged(&id).await;
}

/// A long branch of multi-byte letters is stored or refused, never an error of the table.
#[tokio::test]
async fn ddb_06() {
    let world = World::on_dynamo().await;
    let mut long = submission("hello");
    long.source_branch = format!("bot/{}", "\u{5B57}".repeat(240));
    match world.try_submit(&long).await {
        Ok(submitted) => assert_eq!(world.item(&submitted.item.id).await.branch.source_branch, long.source_branch),
        Err(error) => assert!(matches!(error, collie_engine::submit::Error::Policy(_)), "{error}"),
    }
}

/// Ids beyond what a double can hold arrive as they were sent.
#[tokio::test]
async fn ddb_07() {
    let world = World::on_dynamo().await;
    let id = world.submit(&submission("hello")).await.item.id;
    work_off(&world).await;
    let (job, pipeline) = (9_007_199_254_740_993_u64, u64::MAX);
    let body = json!({"object_kind": "build", "project_id": DEMO_PROJECT_ID, "ref": BRANCH, "build_id": job, "pipeline_id": pipeline,
        "build_name": "unit", "build_stage": "test", "build_status": "failed", "build_failure_reason": "script_failure"});
    let delivery = Delivery {
        project_id: DEMO_PROJECT_ID,
        hook_id: 1,
        url: String::new(),
        headers: vec![("Idempotency-Key".into(), "k".into())],
        body: body.to_string().into_bytes().into(),
        at_ms: 0,
    };
    assert!(world.ingest_once(&delivery).await);
    let stored = world.item(&id).await;
    let ids: Vec<_> = stored
        .inbox
        .iter()
        .map(|entry| &entry.event)
        .filter_map(|e| if let Event::Job { id, pipeline, .. } = e { Some((id.0, pipeline.0)) } else { None })
        .collect();
    assert_eq!(ids, [(job, pipeline)]);
    let applied = collie_core::mr::events::apply_inbox(&stored).unwrap();
    assert_eq!(failed_jobs(&applied).iter().map(|job| job.id).collect::<Vec<_>>(), [job]);
}

/// Two submissions at one moment make one item; the loser finds the winner's.
#[tokio::test]
async fn ddb_09() {
    for (second, outcome) in [("hello", Outcome::Unchanged), ("hi", Outcome::Updated)] {
        let world = World::on_dynamo().await;
        let (rival, other) = (world.clone(), submission(second));
        let won = Arc::new(Mutex::new(None));
        let slot = won.clone();
        world.when(
            "items.create",
            When::Before,
            Box::pin(async move { *slot.lock().unwrap() = Some(rival.submit(&submission("hello")).await) }),
        );
        let lost = world.submit(&other).await;
        let won = won.lock().unwrap().clone().unwrap();
        assert_eq!((won.outcome, lost.outcome, &won.item.id), (Outcome::Created, outcome, &lost.item.id));
        let stored = world.items().head(&won.item.branch).await.unwrap().unwrap();
        assert_eq!((stored.item_id, stored.generation), (won.item.id, 1));
    }
}

/// A person's close that is said after their reopen changes nothing: the truth is read.
#[tokio::test]
async fn a_late_close_after_a_reopen() {
    let (world, id) = told().await;
    work_off(&world).await;
    let mut heard = Vec::new();
    until_said(&world, &mut heard, |d| says(d, "merge_request", "action", "open"));
    world.reviewer("PUT", "/merge_requests/1", &json!({"state_event": "close"}));
    world.sim().advance_by(1_000);
    world.reviewer("PUT", "/merge_requests/1", &json!({"state_event": "reopen"}));
    let close = until_said(&world, &mut heard, |d| says(d, "merge_request", "action", "close"));
    let reopen = until_said(&world, &mut heard, |d| says(d, "merge_request", "action", "reopen"));
    for delivery in [reopen, close] {
        world.ingest_once(&delivery).await;
        work_off(&world).await;
    }
    world.expect_merged(&id).await;
    assert_eq!(world.end_of(&id).await, (Phase::Completed, Some(ResultKind::Merged), None));
}
