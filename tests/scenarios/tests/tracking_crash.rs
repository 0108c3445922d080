//! Issue tracking, wherever a process dies: what people see in the end is what they see where nothing went wrong.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and its counts are read")]

use collie_core::issue::row::{Analysis, Milestone, Outcome};
use collie_engine::tracking::work::HOLD;
use collie_scenarios::tracked::{Seen, Tracked};
use collie_scenarios::{Effects, survives_crash_at_every_effect};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

type Told<'t> = Pin<Box<dyn Future<Output = ()> + 't>>;

/// A story that ends with this many requests.
struct Story {
    name: &'static str,
    requests: u64,
    tell: fn(&Tracked) -> Told<'_>,
}

const STORIES: [Story; 8] = [
    Story { name: "first opening", requests: 1, tell: |q| Box::pin(async { builds(q, &[&["t/a", "t/b", "u/a"]]).await }) },
    Story { name: "closing", requests: 2, tell: |q| Box::pin(async { builds(q, &[&["t/a", "t/b", "u/a"], &["t/b"]]).await }) },
    Story { name: "reopening", requests: 3, tell: |q| Box::pin(async { builds(q, &[&["t/a"], &[], &["t/a"]]).await }) },
    Story { name: "met again", requests: 2, tell: |q| Box::pin(async { builds(q, &[&["t/a", "t/b"], &["t/a", "t/b"]]).await }) },
    Story { name: "a whole task", requests: 2, tell: |q| Box::pin(async { builds(q, &[&["t/a"], &["u"]]).await }) },
    Story { name: "a cancelled build", requests: 2, tell: |q| Box::pin(cancelled(q)) },
    Story { name: "an abandoned analysis", requests: 3, tell: |q| Box::pin(abandoned(q)) },
    Story { name: "a request that was never built", requests: 2, tell: |q| Box::pin(never_built(q)) },
];

async fn builds(queue: &Tracked, builds: &[&[&str]]) {
    for (n, keys) in builds.iter().enumerate() {
        queue.built(&format!("commit {n}"), keys, Outcome::Failed).await;
    }
    queue.settle().await;
}

async fn cancelled(queue: &Tracked) {
    queue.built("commit 0", &["t/a"], Outcome::Failed).await;
    queue.built("commit 1", &["t/b"], Outcome::Cancelled).await;
    queue.settle().await;
}

async fn abandoned(queue: &Tracked) {
    queue.built("commit 0", &["t/a"], Outcome::Failed).await;
    queue.settle().await;
    let second = queue.start("commit 1").await;
    queue.report(second, &["t/b", "t/c"]).await.unwrap();
    while queue.look().await != Some(HOLD) {}
    queue.end_analysis(second, Analysis::Abandoned, None).await;
    queue.conclude(second, Outcome::Failed).await;
    queue.settle().await;
    queue.built("commit 2", &["t/c"], Outcome::Failed).await;
    queue.settle().await;
}

async fn never_built(queue: &Tracked) {
    let first = queue.admit("commit 0").await;
    queue.conclude(first, Outcome::Failed).await;
    queue.built("commit 1", &["t/a"], Outcome::Failed).await;
    queue.settle().await;
}

/// What is seen in the end, and what was told.
async fn told(story: &Story, effects: Effects) -> (Seen, BTreeSet<String>) {
    let queue = Tracked::new(effects).with_batch(2);
    (story.tell)(&queue).await;
    (queue.seen(story.requests).await, queue.hooks())
}

/// Which of a request's jobs were given up may differ where workers died; a request that is reconciled is reconciled everywhere.
fn outcomes(seen: &Seen) -> Vec<(u64, bool)> {
    let is_reconciled = |milestone: &Milestone| matches!(milestone, Milestone::IssuesReconciled { .. });
    seen.milestones.iter().map(|(request, milestones)| (*request, milestones.iter().any(is_reconciled))).collect()
}

#[test]
fn no_crash_changes_what_people_see() {
    for story in &STORIES {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (want, hooks) = runtime.block_on(told(story, Effects::default()));
        let crashed = survives_crash_at_every_effect(|effects| {
            let (want, hooks) = (want.clone(), hooks.clone());
            async move {
                let (seen, said) = told(story, effects).await;
                assert_eq!(seen.open, want.open, "{}", story.name);
                assert_eq!(seen.log, want.log, "{}", story.name);
                assert_eq!(seen.findings, want.findings, "{}", story.name);
                assert_eq!(outcomes(&seen), outcomes(&want), "{}", story.name);
                assert!(said.is_subset(&hooks), "{}: told what did not happen", story.name);
                let may_be_lost = story.name == "an abandoned analysis";
                assert!(may_be_lost || said == hooks, "{}: {said:?} of {hooks:?}", story.name);
            }
        });
        println!("{}: {} effects, {} faults survived", story.name, crashed.effects, crashed.runs);
    }
}
