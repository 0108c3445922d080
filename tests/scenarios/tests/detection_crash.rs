//! Detection, wherever its process dies: what people see in the end is what they see where nothing went wrong.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and its counts are read")]

use collie_scenarios::detected::Detected;
use collie_scenarios::tracked::Seen;
use collie_scenarios::{Effects, survives_crash_at_every_effect};
use gitlab_sim::{DEMO_PROJECT_ID, JunitReport};
use std::future::Future;
use std::pin::Pin;

type Told<'t> = Pin<Box<dyn Future<Output = ()> + 't>>;
type Requests = Vec<(String, String)>;

struct Story {
    name: &'static str,
    requests: u64,
    tell: fn(&Detected) -> Told<'_>,
}

const STORIES: [Story; 4] = [
    Story { name: "opened and closed", requests: 2, tell: |world| Box::pin(opened_and_closed(world)) },
    Story { name: "a whole task", requests: 2, tell: |world| Box::pin(whole_task(world)) },
    Story { name: "a report that cannot be read", requests: 2, tell: |world| Box::pin(broken(world)) },
    Story { name: "a pipeline that was deleted", requests: 2, tell: |world| Box::pin(deleted(world)) },
];

async fn opened_and_closed(world: &Detected) {
    world.fails("unit", &["a", "b"]);
    world.pushed().await;
    world.fails("unit", &["b"]);
    world.pushed().await;
}

async fn whole_task(world: &Detected) {
    world.fails("unit", &["a"]);
    world.pushed().await;
    world.breaks("unit");
    world.pushed().await;
}

async fn broken(world: &Detected) {
    world.fails("unit", &["a"]);
    world.pushed().await;
    world.reports("unit", JunitReport::broken());
    world.pushed().await;
}

async fn deleted(world: &Detected) {
    world.fails("unit", &["a"]);
    world.pushed().await;
    let gone = world.push();
    world.detect().await;
    assert!(world.sim.delete_pipeline(DEMO_PROJECT_ID, gone));
    world.tracked().await;
}

async fn told(story: &Story, effects: Effects) -> (Seen, Requests) {
    let world = Detected::new(effects, "unit: {script: x}\nlint: {script: x}\n").await;
    (story.tell)(&world).await;
    (world.queue.seen(story.requests).await, world.requests().await)
}

#[test]
fn no_crash_of_the_detector_changes_what_people_see() {
    for story in &STORIES {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (want, requests) = runtime.block_on(told(story, Effects::default()));
        let crashed = survives_crash_at_every_effect(|effects| {
            let (want, requests) = (want.clone(), requests.clone());
            async move {
                let (seen, said) = told(story, effects).await;
                assert_eq!((seen.open, seen.log, said), (want.open, want.log, requests), "{}", story.name);
            }
        });
        println!("{}: {} effects, {} faults survived", story.name, crashed.effects, crashed.runs);
    }
}
