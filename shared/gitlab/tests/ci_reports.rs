//! What detection reads of pipelines: against the model of GitLab, and against answers that it does not give.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_core::id::{JobId, PipelineId, ProjectId};
use collie_core::issue::ci::{FailingCase, Pipeline, Standing, Suite, TestReport};
use collie_engine::ports::{CiReports, NewerPipelines};
use gitlab_sim::{CaseStatus, DEMO_PROJECT_ID, JobRule, JunitCase, JunitReport};
use std::collections::BTreeSet;
use support::demo::Demo;
use support::{Stub, answer};

const CI: &str = "stages: [build, test]\nunit: {stage: build, script: x, parallel: 2}\n\
                  child: {stage: build, trigger: {include: child.yml}}\nlint: {stage: build, script: x, allow_failure: true}\n\
                  deploy: {stage: test, script: x, when: manual}\n";
const CHILD: &str = "stages: [test]\ninner: {script: x}\n";

async fn demo() -> Demo {
    let demo = Demo::start().await;
    demo.sim.push(DEMO_PROJECT_ID, "work", &[(".gitlab-ci.yml", Some(CI)), ("child.yml", Some(CHILD))], "CI", "root");
    demo
}

impl Demo {
    async fn newest(&self) -> Pipeline {
        self.gitlab.newest_pipeline(&self.project, "work").await.unwrap().unwrap()
    }

    fn push(&self, n: usize) {
        self.sim.push(DEMO_PROJECT_ID, "work", &[("n", Some(&n.to_string()))], "n", "root");
        self.sim.advance_by(300_000);
    }

    async fn after(&self, known: PipelineId) -> NewerPipelines {
        self.gitlab.pipelines_after(&self.project, "work", known).await.unwrap()
    }
}

fn case(class: &str, name: &str, file: Option<&str>) -> FailingCase {
    FailingCase { class: class.into(), name: name.into(), file: file.map(str::to_owned) }
}

#[tokio::test]
async fn the_builds_of_a_ref_are_those_behind_the_known_one_without_children() {
    let demo = demo().await;
    assert_eq!(demo.gitlab.newest_pipeline(&demo.project, "work").await, Ok(None));
    demo.sim.advance_by(300_000);
    let first = demo.newest().await;
    assert_eq!((first.project, first.source.as_str(), first.standing), (ProjectId(DEMO_PROJECT_ID), "push", Standing::Success));
    assert_eq!(demo.after(first.id).await, NewerPipelines::default());
    (0..3).for_each(|n| demo.push(n));
    let newer = demo.after(first.id).await;
    let ids: Vec<_> = newer.pipelines.iter().map(|row| row.id).collect();
    assert!(!newer.is_cut && ids.len() == 3 && ids.is_sorted() && ids[0] > first.id, "{ids:?}");
    assert_eq!(demo.newest().await.id, ids[2]);
    assert_eq!(demo.gitlab.pipeline(&demo.project, ids[1]).await.unwrap().unwrap(), newer.pipelines[1]);
    assert_eq!(demo.gitlab.pipeline(&demo.project, PipelineId(1)).await, Ok(None));
}

#[tokio::test]
async fn more_pages_than_are_read_are_cut_at_the_far_end() {
    let row = |id: u64| format!(r#"{{"id":{id},"project_id":4242,"source":"push","status":"success","ref":"main"}}"#);
    let page = |id: u64, next: &str| answer(200, format!("[{}]", row(id))).with("x-next-page", next);
    let stub = Stub::start((0..5).map(|n| page(90 - n, &(n + 2).to_string()))).await;
    let newer = stub.gitlab().pipelines_after(&stub.project(), "main", PipelineId(7)).await.unwrap();
    let ids: Vec<_> = newer.pipelines.iter().map(|row| row.id.0).collect();
    assert_eq!((ids, newer.is_cut), (vec![86, 87, 88, 89, 90], true));
    assert_eq!(stub.lines()[1], "GET …/pipelines?ref=main&order_by=id&sort=desc&per_page=100&page=2");
}

#[tokio::test]
async fn jobs_and_bridges_are_told_apart_and_reports_are_seen() {
    let demo = demo().await;
    let report = JunitReport::of([JunitCase::success("C", "a")]);
    demo.sim.add_job_rule(DEMO_PROJECT_ID, JobRule { report: Some(report), ..JobRule::failed("unit 1/2", "script_failure") });
    demo.sim.add_job_rule(DEMO_PROJECT_ID, JobRule::failed("lint", "script_failure"));
    demo.sim.advance_by(300_000);
    let pipeline = demo.newest().await;
    assert_eq!(pipeline.standing, Standing::Failed);
    let jobs = demo.gitlab.pipeline_jobs(&demo.project, pipeline.id).await.unwrap();
    let mut rows: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.standing, job.allow_failure, job.has_report)).collect();
    rows.sort_by_key(|row| row.0);
    assert_eq!(
        rows,
        [
            ("deploy", Standing::Skipped, true, false),
            ("lint", Standing::Failed, true, false),
            ("unit 1/2", Standing::Failed, false, true),
            ("unit 2/2", Standing::Success, false, false),
        ]
    );
    let bridges = demo.gitlab.bridges(&demo.project, pipeline.id).await.unwrap();
    let child = bridges[0].downstream.clone().unwrap();
    assert_eq!((bridges.len(), bridges[0].name.as_str(), bridges[0].standing), (1, "child", Standing::Success));
    assert_eq!((child.project, child.source.as_str(), child.standing), (demo.project.id, "parent_pipeline", Standing::Success));
}

#[tokio::test]
async fn of_a_test_report_the_failing_cases_are_kept() {
    let demo = demo().await;
    let broken = JunitCase { status: CaseStatus::Error, file: Some("c_test.rs".into()), ..JunitCase::success("C", "broken") };
    let report = JunitReport::of([JunitCase::success("C", "fine"), JunitCase::failed("", "failed"), broken]);
    demo.sim.add_job_rule(DEMO_PROJECT_ID, JobRule { report: Some(report), ..JobRule::failed("unit 2/2", "script_failure") });
    demo.sim.add_job_rule(DEMO_PROJECT_ID, JobRule { report: Some(JunitReport::broken()), ..JobRule::success("lint") });
    demo.sim.advance_by(300_000);
    let read = demo.gitlab.test_report(&demo.project, demo.newest().await.id, 1 << 20).await;
    let failing = BTreeSet::from([case("", "failed", None), case("C", "broken", Some("c_test.rs"))]);
    let lint = Suite { name: "lint".into(), is_broken: true, failing: BTreeSet::new() };
    assert_eq!(read, Ok(TestReport::Read(vec![lint, Suite { name: "unit".into(), is_broken: false, failing }])));
}

#[tokio::test]
async fn a_report_over_the_cap_is_an_answer_and_one_that_is_no_report_a_failure() {
    let demo = demo().await;
    let report = JunitReport { padding_bytes: 70_000, ..JunitReport::of([JunitCase::failed("C", "a")]) };
    demo.sim.add_job_rule(DEMO_PROJECT_ID, JobRule { report: Some(report), ..JobRule::failed("unit 1/2", "script_failure") });
    demo.sim.advance_by(300_000);
    let id = demo.newest().await.id;
    let read = |most| demo.gitlab.test_report(&demo.project, id, most);
    assert_eq!(read(70_000).await, Ok(TestReport::TooLarge));
    assert!(matches!(read(80_000).await, Ok(TestReport::Read(suites)) if suites.len() == 1));
    let kind = |read: Result<TestReport, Failure>| read.map_err(|failure| (failure.class, failure.code));
    assert_eq!(kind(demo.gitlab.test_report(&demo.project, PipelineId(1), 100).await), Err((Class::Gone, "forge_gone")));
    let stub = Stub::start([answer(200, "[]")]).await;
    let odd = stub.gitlab().test_report(&stub.project(), PipelineId(7), 100).await;
    assert_eq!(kind(odd), Err((Class::Bug, "forge_unclassified")));
}

#[tokio::test]
async fn gitlabs_own_sample_of_a_bridge_is_read() {
    let stub = Stub::start([answer(200, include_str!("samples/pipeline_bridges.json"))]).await;
    let bridges = stub.gitlab().bridges(&stub.project(), PipelineId(90_001)).await.unwrap();
    assert_eq!((bridges[0].id, bridges[0].name.as_str(), bridges[0].standing), (JobId(700_020), "child", Standing::Success));
    assert_eq!(bridges[0].downstream.as_ref().map(|child| (child.id, child.project)), Some((PipelineId(90_002), ProjectId(4242))));
}
