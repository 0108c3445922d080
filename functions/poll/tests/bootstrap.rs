//! The real binary, on ticks of the schedule.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken expectation ends the test")]

use collie_core::issue::id::QueueName;
use collie_core::issue::row::{Analysis, Build, BuildIssue, Set};
use collie_core::issue::table::Range;
use collie_engine::ports::TrackingRows as _;
use gitlab_sim::{DEMO_PROJECT_ID, JobRule, JunitCase, JunitReport, Timing};
use lambda_support::{Answer, TRACKED, World, sample};
use serde_json::json;
use std::time::Duration;

const POLL: &str = env!("CARGO_BIN_EXE_poll");
const TIMEOUT: Duration = Duration::from_secs(300);
const CI: &str = "unit: {script: x}\n";

/// Every row of one kind.
async fn rows<T: TryFrom<collie_core::issue::row::Row>>(world: &World, set: Set) -> Vec<T> {
    let page = world.table.tracking.range(&QueueName::new(TRACKED), &Range::first(set, 100)).await.unwrap();
    page.rows.into_iter().filter_map(|(_, row)| T::try_from(row).ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_pipeline_becomes_a_build_with_its_issues() {
    let world = World::start().await;
    world.sim.set_timing(|timing| *timing = Timing { job_run_ms: 0, ..Timing::quick() });
    let report = JunitReport::of([JunitCase::failed("C", "a")].into_iter());
    world.sim.add_job_rule(DEMO_PROJECT_ID, JobRule { report: Some(report), ..JobRule::failed("unit", "script_failure") });
    world.sim.push(DEMO_PROJECT_ID, "main", &[(".gitlab-ci.yml", Some(CI))], "Configure CI", "root");
    let function = world.detecting_function(POLL);
    let pipeline = loop {
        assert_eq!(world.runtime.invoke(sample("poll.json"), TIMEOUT).await, Answer::Response(json!({"looked": true})));
        let Some(id) = world.sim.pipelines(DEMO_PROJECT_ID).last().map(|pipeline| pipeline.id) else { continue };
        let builds: Vec<Build> = rows(&world, Set::Build(collie_core::issue::id::BuildId::new(id.to_string()))).await;
        if builds.first().is_some_and(|build| build.analysis == Analysis::Completed) {
            break id;
        }
    };
    let build = collie_core::issue::id::BuildId::new(pipeline.to_string());
    let met: Vec<BuildIssue> = rows(&world, Set::BuildIssues(build)).await;
    assert_eq!(met.into_iter().map(|issue| issue.key.to_string()).collect::<Vec<_>>(), ["unit / C::a"]);
    assert_eq!(world.runtime.invoke(sample("poll.json"), TIMEOUT).await, Answer::Response(json!({"looked": true})), "again");
    world.assert_no_secret(&function.log());
}
