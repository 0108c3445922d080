//! Random builds, tracked however workers take turns, against an oracle that knows one build after the other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use collie_core::issue::row::{Analysis, Event, Finding, Outcome};
use collie_scenarios::Effects;
use collie_scenarios::tracked::Tracked;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const KEYS: [&str; 7] = ["t/a", "t/b", "t/c", "u/a", "u/b", "t", "v"];

/// What a build reports, and how it ends.
#[derive(Debug, Clone)]
struct Build {
    reports: BTreeSet<&'static str>,
    outcome: Outcome,
    covered: Option<Vec<&'static str>>,
    /// Whether workers look before it ends.
    looked_at: bool,
}

fn any_build() -> impl Strategy<Value = Build> {
    let outcome = prop_oneof![4 => Just(Outcome::Failed), 2 => Just(Outcome::Succeeded), 1 => Just(Outcome::Cancelled)];
    let units = proptest::collection::btree_set(proptest::sample::select(&KEYS[..5]), 0..5);
    let tasks = proptest::option::weighted(0.15, proptest::sample::select(&KEYS[5..]));
    let covered = proptest::option::weighted(0.3, proptest::sample::subsequence(vec!["t", "u"], 0..=2));
    (units, tasks, outcome, covered, any::<bool>()).prop_map(|(mut reports, task, outcome, covered, looked_at)| {
        reports.extend(task);
        Build { reports, outcome, covered, looked_at }
    })
}

/// One build after the other, by the rules as people would tell them.
#[derive(Default)]
struct Oracle {
    open: BTreeMap<String, u64>,
    log: BTreeMap<String, Vec<(Event, u64)>>,
    findings: BTreeMap<u64, BTreeMap<String, Finding>>,
}

impl Oracle {
    fn build(&mut self, request: u64, build: &Build) {
        let shown = |key: &str| key.replace('/', " / ");
        let found = self.findings.entry(request).or_default();
        for key in &build.reports {
            let is_new = !self.open.contains_key(&shown(key));
            let (event, finding) = if is_new { (Event::Opened, Finding::New) } else { (Event::Reported, Finding::Existing) };
            self.open.entry(shown(key)).or_insert(request);
            self.log.entry(shown(key)).or_default().push((event, request));
            found.insert(shown(key), finding);
        }
        let closes = build.outcome != Outcome::Cancelled && build.reports.iter().all(|key| key.contains('/'));
        let speaks_for = |key: &str| build.covered.as_ref().is_none_or(|tasks| tasks.contains(&key.split('/').next().unwrap().trim()));
        for key in KEYS.iter().filter(|key| closes && !build.reports.contains(*key) && speaks_for(key)) {
            if self.open.remove(&shown(key)).is_some() {
                self.log.entry(shown(key)).or_default().push((Event::Closed, request));
                found.insert(shown(key), Finding::Closed);
            }
        }
    }
}

async fn run(queue: &Tracked, builds: &[Build]) {
    for (n, build) in builds.iter().enumerate() {
        let request = queue.start(&format!("commit {n}")).await;
        let reports: Vec<_> = build.reports.iter().copied().collect();
        let (early, late) = reports.split_at(reports.len() / 2);
        queue.report(request, early).await.unwrap();
        if build.looked_at {
            queue.look().await;
        }
        queue.report(request, late).await.unwrap();
        queue.end_analysis(request, Analysis::Completed, build.covered.as_deref()).await;
        queue.conclude(request, build.outcome).await;
    }
    queue.settle().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rows_say_what_one_build_after_the_other_means(builds in proptest::collection::vec(any_build(), 1..6), batch in 2_usize..5) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let requests = builds.len() as u64;
        let seen = runtime.block_on(async {
            let queue = Tracked::new(Effects::default()).with_batch(batch);
            run(&queue, &builds).await;
            queue.seen(requests).await
        });
        let mut oracle = Oracle::default();
        (1..).zip(&builds).for_each(|(request, build)| oracle.build(request, build));
        prop_assert_eq!(seen.open.into_iter().collect::<BTreeMap<_, _>>(), oracle.open);
        prop_assert_eq!(seen.log, oracle.log);
        let findings: BTreeMap<u64, BTreeMap<_, _>> = seen.findings.into_iter().map(|(n, found)| (n, found.into_iter().collect())).collect();
        prop_assert_eq!(findings, oracle.findings);
    }
}
