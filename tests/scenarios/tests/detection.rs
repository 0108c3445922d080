//! Stories of detection: GitLab's pipelines become builds, and what fails in them becomes issues, exactly once and never too early.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and its counts are read")]

use collie_core::issue::delivery::Reason;
use collie_core::issue::row::{Analysis, Event, Outcome};
use collie_engine::tracking::detect::Looked;
use collie_scenarios::Effects;
use collie_scenarios::detected::Detected;
use gitlab_sim::{ApiRequest, DEMO_ADMIN_TOKEN, DEMO_PROJECT_ID, JobOutcome, JobRule, JunitCase, JunitReport, PipelineMode};
use std::collections::BTreeSet;

const CI: &str = "stages: [test, deploy]\nunit: {stage: test, script: x}\nlint: {stage: test, script: x}\n\
                  publish: {stage: deploy, script: x, when: manual}\n";

async fn project(config: &str) -> Detected {
    Detected::new(Effects::default(), config).await
}

fn open(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(key, request)| ((*key).to_owned(), *request)).collect()
}

fn requests(rows: &[(u64, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(pipeline, outcome)| (pipeline.to_string(), (*outcome).to_owned())).collect()
}

fn tasks(names: &[&str]) -> Option<BTreeSet<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[tokio::test]
async fn a_failing_test_opens_an_issue_and_the_next_green_pipeline_closes_it() {
    let world = project(CI).await;
    world.fails("unit", &["a", "b"]);
    let first = world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::a", 1), ("unit / C::b", 1)]));
    world.fails("unit", &["b"]);
    let second = world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::b", 1)]));
    world.passes("unit");
    let third = world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
    assert_eq!(world.requests().await, requests(&[(first, "failed"), (second, "failed"), (third, "succeeded")]));
    assert_eq!(world.queue.seen(3).await.log["unit / C::b"], [(Event::Opened, 1), (Event::Reported, 2), (Event::Closed, 3)]);
    let build = world.build(third).await;
    assert_eq!((build.analysis, build.covered_tasks), (Analysis::Completed, tasks(&["lint", "unit"])));
}

#[tokio::test]
async fn a_running_pipeline_is_waited_for_and_reports_nothing_yet() {
    let world = project("unit: {script: x}\nslow: {script: x}\n").await;
    world.fails("unit", &["a"]);
    world.rule(JobRule { outcome: JobOutcome::Hang, ..JobRule::success("slow") });
    let pipeline = world.push();
    world.run();
    assert_eq!(world.look().await, Some(Ok(Looked { admitted: 1, waiting: 1, ..Looked::default() })));
    assert_eq!(world.look().await, Some(Ok(Looked { waiting: 1, ..Looked::default() })));
    assert_eq!(world.build(pipeline).await.report_seq, 0);
    let slow = world.sim.pipelines(DEMO_PROJECT_ID).last().unwrap().jobs.iter().find(|job| job.name == "slow").unwrap().id;
    assert!(world.sim.finish_job(DEMO_PROJECT_ID, slow, JobOutcome::Success, None));
    assert_eq!(world.look().await, Some(Ok(Looked { ended: 1, ..Looked::default() })));
    world.queue.settle().await;
    assert_eq!(world.open().await, open(&[("unit / C::a", 1)]));
}

#[tokio::test]
async fn a_newer_pipeline_that_ends_first_waits_its_turn() {
    let world = project("unit: {script: x}\n").await;
    world.fails("unit", &["a"]);
    world.rule(JobRule { outcome: JobOutcome::Hang, ..JobRule::success("unit") });
    let slow = world.push();
    world.detect().await;
    world.passes("unit");
    let quick = world.push();
    world.run();
    world.detect().await;
    assert_eq!(world.requests().await, requests(&[(slow, "-"), (quick, "succeeded")]));
    world.fails("unit", &["a"]);
    let job = world.sim.pipelines(DEMO_PROJECT_ID).iter().find(|row| row.id == slow).unwrap().jobs[0].id;
    assert!(world.sim.finish_job(DEMO_PROJECT_ID, job, JobOutcome::Failed, None));
    world.tracked().await;
    assert_eq!(world.queue.seen(2).await.log["unit / C::a"], [(Event::Opened, 1), (Event::Closed, 2)]);
}

#[tokio::test]
async fn a_job_that_is_tried_again_reports_only_what_its_last_try_found() {
    let world = project("unit: {script: x, retry: 1}\nflaky: {script: x, retry: 1}\n").await;
    for (job, cases) in [("unit", &["first"]), ("flaky", &["once"])] {
        let report = Some(JunitReport::of(cases.iter().map(|name| JunitCase::failed("C", name))));
        world.rule(JobRule { attempt: Some(1), report, ..JobRule::failed(job, "script_failure") });
    }
    let report = Some(JunitReport::of([JunitCase::failed("C", "second")]));
    world.rule(JobRule { attempt: Some(2), report, ..JobRule::failed("unit", "script_failure") });
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::second", 1)]));
}

#[tokio::test]
async fn a_try_that_a_person_asks_for_counts_before_the_end_is_told_and_not_after() {
    let world = project("unit: {script: x}\n").await;
    world.rule(JobRule { attempt: Some(1), ..JobRule::failed("unit", "script_failure") });
    let retry = |world: &Detected| {
        let job = world.sim.pipelines(DEMO_PROJECT_ID).last().unwrap().jobs[0].id;
        world.sim.retry_job(DEMO_PROJECT_ID, job, "root").unwrap()
    };
    world.push();
    world.run();
    retry(&world);
    assert_eq!(world.look().await, Some(Ok(Looked { admitted: 1, waiting: 1, ..Looked::default() })));
    world.run();
    world.tracked().await;
    assert_eq!(world.open().await, open(&[]), "the second try went well");
    let late = world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit", 2)]));
    retry(&world);
    world.run();
    world.tracked().await;
    assert_eq!(world.open().await, open(&[("unit", 2)]), "the end was told; the next pipeline closes it");
    assert_eq!(world.build(late).await.status, Some(Outcome::Failed));
    world.passes("unit");
    world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
}

#[tokio::test]
async fn a_job_that_fails_without_a_report_opens_its_task_and_closes_nothing() {
    let world = project(CI).await;
    world.fails("unit", &["a"]);
    world.pushed().await;
    world.passes("unit");
    world.breaks("lint");
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("lint", 2), ("unit / C::a", 1)]), "unit went well, and still nothing is closed");
    world.passes("lint");
    world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
}

#[tokio::test]
async fn a_skipped_job_closes_nothing_of_its_own_and_the_others_do() {
    let world = project("stages: [build, test]\ncompile: {stage: build, script: x}\nunit: {stage: test, script: x}\n").await;
    world.fails("unit", &["a"]);
    world.pushed().await;
    world.fails("compile", &["c"]);
    let second = world.pushed().await;
    assert_eq!(world.open().await, open(&[("compile / C::c", 2), ("unit / C::a", 1)]));
    assert_eq!(world.build(second).await.covered_tasks, tasks(&["compile"]));
    world.passes("compile");
    world.fails("unit", &["b"]);
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::b", 3)]));
}

#[tokio::test]
async fn an_allowed_failure_is_no_issue_and_closes_nothing_of_its_own() {
    let world = project("unit: {script: x}\n").await;
    world.fails("unit", &["a"]);
    world.pushed().await;
    let config = "unit: {script: x, allow_failure: true}\nlint: {script: x}\n";
    world.sim.push(DEMO_PROJECT_ID, "main", &[(".gitlab-ci.yml", Some(config))], "Allow it", "root");
    world.run();
    world.tracked().await;
    assert_eq!(world.open().await, open(&[("unit / C::a", 1)]));
    world.passes("unit");
    world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
    world.breaks("unit");
    world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
}

#[tokio::test]
async fn parallel_parts_are_one_task_that_is_spoken_of_only_as_a_whole() {
    let world = project("unit: {script: x, parallel: 2}\n").await;
    world.fails("unit 1/2", &["a"]);
    world.fails("unit 2/2", &["b"]);
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::a", 1), ("unit / C::b", 1)]));
    world.rule(JobRule { outcome: JobOutcome::Canceled, ..JobRule::success("unit 2/2") });
    world.fails("unit 1/2", &["c"]);
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::a", 1), ("unit / C::b", 1), ("unit / C::c", 2)]));
    world.passes("unit 1/2");
    world.fails("unit 2/2", &["b"]);
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("unit / C::b", 1)]));
}

#[tokio::test]
async fn children_are_walked_through_their_bridges_and_waited_for() {
    let config = "stages: [test]\nchild: {trigger: {include: ci/child.yml}}\nother: {trigger: demo/other}\n";
    let world = project(config).await;
    let child = "deep: {trigger: {include: ci/deep.yml, strategy: depend}}\n";
    let files = [("ci/child.yml", Some(child)), ("ci/deep.yml", Some("unit: {script: x}\n"))];
    world.sim.push(DEMO_PROJECT_ID, "main", &files, "Children [skip ci]", "root");
    let other = world.sim.create_project("demo/other", &[(".gitlab-ci.yml", "there: {script: x}\n")], "root");
    world.sim.set_member(other, "collie-bot", Some(gitlab_sim::Role::Reporter));
    world.fails("unit", &["a"]);
    world.sim.add_job_rule(other, JobRule { outcome: JobOutcome::Hang, ..JobRule::success("there") });
    let first = world.push();
    world.run();
    assert_eq!(world.look().await, Some(Ok(Looked { admitted: 1, waiting: 1, ..Looked::default() })));
    let report = Some(JunitReport::of([JunitCase::failed("C", "x")]));
    world.sim.add_job_rule(other, JobRule { report, ..JobRule::failed("there", "script_failure") });
    let job = world.sim.pipelines(other)[0].jobs[0].id;
    assert!(world.sim.finish_job(other, job, JobOutcome::Failed, None));
    world.tracked().await;
    assert_eq!(world.open().await, open(&[("child > deep > unit / C::a", 1), ("other > there / C::x", 1)]));
    assert_eq!(world.requests().await, requests(&[(first, "succeeded")]), "children are no requests, and nobody depends on them");
    world.passes("unit");
    world.sim.clear_job_rules(other);
    let second = world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
    let covered = tasks(&["child", "child > deep", "child > deep > unit", "other", "other > there"]);
    assert_eq!(world.build(second).await.covered_tasks, covered);
}

#[tokio::test]
async fn a_pipeline_of_a_project_that_nobody_here_may_read_is_not_spoken_of() {
    let world = project("unit: {script: x}\nother: {trigger: {project: demo/secret, strategy: depend}}\n").await;
    let secret = world.sim.create_project("demo/secret", &[(".gitlab-ci.yml", "there: {script: x}\n")], "root");
    world.fails("unit", &["a"]);
    let first = world.pushed().await;
    assert_eq!((world.open().await, world.build(first).await.covered_tasks), (open(&[("unit / C::a", 1)]), tasks(&["other", "unit"])));
    world.sim.add_job_rule(secret, JobRule::failed("there", "script_failure"));
    world.passes("unit");
    world.pushed().await;
    assert_eq!(world.open().await, open(&[("other", 2), ("unit / C::a", 1)]));
}

#[tokio::test]
async fn a_report_that_is_too_large_or_cannot_be_read_gives_the_analysis_up_and_closes_nothing() {
    let large = JunitReport { padding_bytes: 9 << 20, ..JunitReport::of([JunitCase::failed("C", "b")]) };
    for report in [large, JunitReport::broken()] {
        let world = project(CI).await;
        world.fails("unit", &["a"]);
        world.pushed().await;
        world.reports("unit", report);
        let second = world.push();
        world.run();
        world.detect().await;
        assert_eq!(world.build(second).await.analysis, Analysis::Abandoned);
        world.queue.look().await;
        assert_eq!(world.queue.letters().into_values().collect::<Vec<_>>(), [[Reason::AnalysisAbandoned]]);
        world.queue.settle().await;
        assert_eq!(world.open().await, open(&[("unit / C::a", 1)]));
        world.passes("unit");
        world.pushed().await;
        assert_eq!(world.open().await, open(&[]), "the next build that is known closes it");
    }
}

#[tokio::test]
async fn a_cancelled_pipeline_closes_nothing() {
    let world = project("unit: {script: x}\nslow: {script: x}\n").await;
    world.fails("unit", &["a"]);
    world.fails("slow", &["s"]);
    world.pushed().await;
    world.rule(JobRule { outcome: JobOutcome::Hang, ..JobRule::success("slow") });
    let cancel = async |word: &str| {
        let pipeline = world.push();
        world.run();
        assert!(world.sim.cancel_pipeline(DEMO_PROJECT_ID, pipeline));
        world.tracked().await;
        assert_eq!(world.requests().await.pop(), Some((pipeline.to_string(), word.to_owned())));
        world.open().await
    };
    world.passes("unit");
    assert_eq!(cancel("cancelled").await, open(&[("slow / C::s", 1), ("unit / C::a", 1)]), "although unit went well");
    world.fails("unit", &["b"]);
    let failed = cancel("failed").await;
    assert_eq!(failed, open(&[("slow / C::s", 1), ("unit / C::b", 3)]), "GitLab calls it failed, and only unit is spoken of");
}

#[tokio::test]
async fn a_pipeline_that_is_deleted_is_given_up_and_frees_the_queue() {
    let world = project(CI).await;
    world.fails("unit", &["a"]);
    world.pushed().await;
    world.passes("unit");
    let gone = world.push();
    world.detect().await;
    assert!(world.sim.delete_pipeline(DEMO_PROJECT_ID, gone));
    world.tracked().await;
    assert_eq!(world.build(gone).await.analysis, Analysis::Abandoned);
    assert_eq!(world.open().await, open(&[("unit / C::a", 1)]));
    let last = world.pushed().await;
    assert_eq!(world.open().await, open(&[]));
    assert_eq!(world.requests().await[1..], requests(&[(gone, "cancelled"), (last, "succeeded")]));
}

#[tokio::test]
async fn a_pipeline_that_waits_for_a_person_is_over() {
    let config = "stages: [test, gate, deploy]\nunit: {stage: test, script: x}\n\
                  gate: {stage: gate, script: x, when: manual, allow_failure: false}\ndeploy: {stage: deploy, script: x}\n";
    let world = project(config).await;
    world.rule(JobRule { report: Some(JunitReport::of([JunitCase::failed("C", "a")])), ..JobRule::success("unit") });
    let first = world.pushed().await;
    assert_eq!(world.sim.pipelines(DEMO_PROJECT_ID).last().unwrap().status, gitlab_sim::Status::Manual);
    assert_eq!((world.open().await, world.build(first).await.covered_tasks), (open(&[("unit / C::a", 1)]), tasks(&["unit"])));
    assert_eq!(world.requests().await, requests(&[(first, "succeeded")]));
}

#[tokio::test]
async fn a_configuration_that_is_broken_closes_nothing() {
    let world = project(CI).await;
    world.fails("unit", &["a"]);
    world.pushed().await;
    world.sim.push(DEMO_PROJECT_ID, "main", &[(".gitlab-ci.yml", Some("unit: {stage: none, script: x}\n"))], "Break it", "root");
    world.run();
    world.tracked().await;
    assert_eq!((world.open().await, world.requests().await[1].1.as_str()), (open(&[("unit / C::a", 1)]), "failed"));
}

#[tokio::test]
async fn a_queue_starts_with_its_newest_pipeline_and_goes_on_in_their_order() {
    let world = project(CI).await;
    world.fails("unit", &["a"]);
    let pipelines: Vec<u64> = (0..3).map(|_| world.push()).collect();
    world.run();
    world.tracked().await;
    assert_eq!(world.requests().await, requests(&[(pipelines[2], "failed")]));
    let more: Vec<u64> = (0..60).map(|_| world.push()).collect();
    world.run();
    assert_eq!(world.look().await.unwrap().unwrap().admitted, 50);
    world.tracked().await;
    let seen: Vec<String> = world.requests().await.into_iter().map(|(pipeline, _)| pipeline).collect();
    let want: Vec<String> = pipelines[2..].iter().chain(&more).map(u64::to_string).collect();
    assert_eq!(seen, want);
    assert_eq!(world.open().await, open(&[("unit / C::a", 1)]));
}

#[tokio::test]
async fn a_look_that_was_overtaken_never_admits_an_older_pipeline_behind_a_newer_one() {
    let world = project(CI).await;
    let (tracking, name) = (world.queue.tracking(), world.queue.name());
    let seen = tracking.head(name).await.unwrap();
    world.queue.admit("newer").await;
    assert_eq!(tracking.admit_behind(name, "older", seen.as_ref()).await, Ok(None));
    let seen = tracking.head(name).await.unwrap();
    let behind = tracking.admit_behind(name, "next", seen.as_ref()).await.unwrap().unwrap();
    assert_eq!((behind.id.number(), behind.is_new), (2, true));
    let again = tracking.admit_behind(name, "newer", None).await.unwrap().unwrap();
    assert_eq!((again.id.number(), again.is_new), (1, false));
}

#[tokio::test]
async fn pipelines_of_merge_requests_and_other_branches_are_no_builds() {
    let world = project(CI).await;
    world.breaks("unit");
    world.sim.push(DEMO_PROJECT_ID, "feature", &[("x", Some("x"))], "Feature", "developer");
    world.run();
    world.sim.set_settings(DEMO_PROJECT_ID, |settings| settings.pipelines = PipelineMode::MergedResults);
    let body = r#"{"source_branch":"feature","target_branch":"main","title":"Feature"}"#;
    let headers = vec![("PRIVATE-TOKEN".into(), DEMO_ADMIN_TOKEN.into()), ("Content-Type".into(), "application/json".into())];
    let uri = format!("/api/v4/projects/{DEMO_PROJECT_ID}/merge_requests");
    world.sim.call(ApiRequest { method: "POST".into(), uri, headers, body: body.into() }).unwrap();
    world.run();
    let made: Vec<_> = world.sim.pipelines(DEMO_PROJECT_ID).into_iter().map(|pipeline| pipeline.reference).collect();
    assert_eq!(made, ["feature", "refs/merge-requests/1/merge"]);
    assert_eq!(world.look().await, Some(Ok(Looked::default())));
    assert_eq!((world.requests().await, world.open().await), (vec![], vec![]));
}

#[tokio::test]
async fn what_callers_admit_themselves_is_left_to_them() {
    let world = project(CI).await;
    world.passes("unit");
    let first = world.pushed().await;
    let theirs = world.queue.start("commit 7").await;
    let next = world.push();
    world.run();
    world.detect().await;
    let uris: Vec<String> = world.requests().await.into_iter().map(|(uri, _)| uri).collect();
    assert_eq!(uris, [first.to_string(), "commit 7".to_owned(), next.to_string()]);
    world.queue.conclude(theirs, Outcome::Succeeded).await;
    world.queue.end_analysis(theirs, Analysis::Completed, None).await;
    world.tracked().await;
    assert_eq!(world.queue.letters().len(), 0);
}

#[tokio::test]
async fn a_gitlab_that_does_not_answer_changes_nothing_but_time() {
    let world = project(CI).await;
    world.fails("unit", &["a"]);
    world.push();
    world.run();
    for route in ["/pipelines?", "/jobs", "/bridges", "/test_report"] {
        world.sim.add_fault(gitlab_sim::Fault::once("GET", route, gitlab_sim::FaultAction::DropBefore));
        let failed = world.look().await.unwrap().unwrap_err();
        assert_eq!(failed.code, "forge_unreachable", "{route}");
    }
    world.tracked().await;
    assert_eq!(world.open().await, open(&[("unit / C::a", 1)]));
}

#[tokio::test]
async fn a_look_makes_few_calls_and_never_more_than_it_may() {
    let world = project(CI).await;
    let calls = |world: &Detected| world.meter.gitlab_calls();
    world.fails("unit", &["a"]);
    world.push();
    world.look().await;
    let (first, waiting) = (calls(&world), calls(&world));
    assert_eq!(first, 2, "the newest pipeline, and how it stands");
    world.look().await;
    assert_eq!(calls(&world) - waiting, 2);
    world.run();
    let before = calls(&world);
    world.look().await;
    assert_eq!(calls(&world) - before, 5, "the list, the pipeline, its jobs, its bridges, its report");
    world.queue.settle().await;
    let before = calls(&world);
    world.look().await;
    assert_eq!(calls(&world) - before, 1, "nothing is new");
    for _ in 0..50 {
        world.push();
    }
    world.run();
    let before = calls(&world);
    let looked = world.look().await.unwrap().unwrap();
    assert_eq!((calls(&world) - before, looked.admitted, looked.ended, looked.is_cut), (200, 50, 49, true));
}
