//! Failed CI jobs, retried by the project's rules (DDR-47). Every story ends by the same count: GitLab made one new try of each
//! try that was retried, whatever went wrong on the way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::ci::RetryRules;
use collie_core::item::{Dimension, Item, Phase, ResultKind};
use collie_core::mr::dims;
use collie_core::time::Timestamp;
use collie_scenarios::effects::When;
use collie_scenarios::world::submission;
use collie_scenarios::{Effects, World, survives_crash_at_every_effect};
use gitlab_sim::{ApiRequest, DEMO_PROJECT_ID, DEMO_REVIEWER_TOKEN, Fault, FaultAction, JobRule, JournalEntry};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const JOB: &str = "unit-tests";

/// A rule for jobs that lost their runner, with these delays.
fn runner_gone(delays: &[&str]) -> Value {
    json!({"name": "runner-gone", "match": {"failure_reason": "runner_system_failure"}, "delays": delays})
}

async fn world(effects: Effects, rules: Value) -> World {
    let world = World::new(effects).await;
    world.retry_ci_jobs(RetryRules::parse(&rules).unwrap());
    world
}

/// The first tries of a job lose their runner.
fn flaky(world: &World, job: &str, tries: u32) {
    for attempt in 1..=tries {
        let rule = JobRule { attempt: Some(attempt), ..JobRule::failed(job, "runner_system_failure") };
        world.sim().add_job_rule(DEMO_PROJECT_ID, rule);
    }
}

/// The calls that asked for another try of a job.
fn retries(world: &World) -> Vec<JournalEntry> {
    let is_retry = |call: &JournalEntry| call.template.ends_with("/jobs/:job_id/retry");
    world.sim().journal().into_iter().filter(is_retry).collect()
}

/// How many new tries GitLab made, each of another try.
fn tries_made(world: &World) -> usize {
    let made: Vec<_> = retries(world).into_iter().filter(|call| call.applied && call.status != 403).map(|call| call.path).collect();
    let distinct: BTreeSet<_> = made.iter().collect();
    assert_eq!(distinct.len(), made.len(), "one try was retried twice: {made:?}");
    made.len()
}

fn logs_read(world: &World) -> Vec<JournalEntry> {
    world.sim().journal().into_iter().filter(|call| call.template.ends_with("/jobs/:job_id/trace")).collect()
}

async fn the_item(world: &World) -> Item {
    world.all_items().await.remove(0)
}

async fn ci_retry(world: &World) -> Dimension {
    the_item(world).await.dimension(&dims::ci_retry())
}

async fn is_deferred(world: &World) -> bool {
    let item = the_item(world).await;
    item.leased_until.is_none() && item.dims.get(&dims::ci_retry()).is_some_and(|d| d.is_needed() && d.pending_until.is_some())
}

/// Failed jobs were looked at, and nothing more will be done about them.
async fn is_at_rest(world: &World) -> bool {
    let item = the_item(world).await;
    let dimension = item.dimension(&dims::ci_retry());
    item.leased_until.is_none() && !dimension.is_needed() && dimension.detail.is_some()
}

async fn let_pass(world: &World, time: Duration) {
    let end = world.sim().now_ms() + time.as_millis() as u64;
    world.until(time + Duration::from_secs(120), || async { world.sim().now_ms() >= end }).await;
}

async fn expect_merged(world: &World) {
    world.until_all_ended(6 * HOUR).await;
    for item in world.all_items().await {
        assert_eq!((item.phase, item.result), (Phase::Completed, Some(ResultKind::Merged)), "{}", world.picture().await);
    }
    world.finish().await;
}

/// Somebody else retries the failed jobs.
fn reviewer_retries(world: &World) {
    let call = |method: &str, path: &str| {
        let request = ApiRequest {
            method: method.into(),
            uri: format!("/api/v4/projects/{DEMO_PROJECT_ID}/{path}"),
            headers: vec![("PRIVATE-TOKEN".into(), DEMO_REVIEWER_TOKEN.into())],
            ..ApiRequest::default()
        };
        serde_json::from_slice::<Value>(&world.sim().call(request).unwrap().body).unwrap()
    };
    for job in call("GET", "jobs?scope[]=failed").as_array().unwrap() {
        call("POST", &format!("jobs/{}/retry", job["id"]));
    }
}

#[tokio::test]
async fn a_flaky_job_is_retried_after_its_delay_and_its_change_is_merged() {
    let world = world(Effects::default(), json!([runner_gone(&["3m"])])).await;
    flaky(&world, JOB, 1);
    let id = world.submit(&submission("hello")).await.item.id;
    world.until(HOUR, || is_deferred(&world)).await;

    let item = world.item(&id).await;
    let until = item.dimension(&dims::ci_retry()).pending_until.unwrap();
    let explained = world.reader().explanation(&item).unwrap();
    let waiting = explained.waiting_on.iter().find(|waiting| waiting.dimension == "needs_ci_retry").unwrap();
    assert_eq!(waiting.until, Some(until));
    assert_eq!(waiting.why, "retry delay of unit-tests by rule runner-gone, after try 1");
    assert_eq!(retries(&world), []);

    expect_merged(&world).await;
    let calls = retries(&world);
    assert_eq!((calls.len(), calls[0].status, tries_made(&world)), (1, 201, 1));
    let late = Timestamp::from_millis(calls[0].at_ms).since(until);
    assert!(calls[0].at_ms >= until.as_millis() && late <= Duration::from_secs(60), "{late:?} late");
}

#[test]
fn a_flaky_job_through_a_crash_at_every_effect() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let world = world(effects, json!([runner_gone(&["1m"])])).await;
        flaky(&world, JOB, 1);
        world.submit(&submission("hello")).await;
        expect_merged(&world).await;
        assert_eq!(tries_made(&world), 1);
    });
    assert!(crashed.runs == crashed.effects * 4 && crashed.effects > 20, "{crashed:?}");
}

#[test]
fn a_rule_that_reads_logs_through_a_crash_at_every_effect_and_without_hooks() {
    let crashed = survives_crash_at_every_effect(|effects| async {
        let rule = json!({"name": "clone", "match": {"message": "early EOF"}, "delays": ["0s"]});
        let world = world(effects, json!([rule])).await;
        world.lose_hooks();
        let trace = Some("fatal: early EOF\nERROR: Job failed: exit code 1\n".to_owned());
        let first = JobRule { attempt: Some(1), trace, ..JobRule::failed(JOB, "script_failure") };
        world.sim().add_job_rule(DEMO_PROJECT_ID, first);
        world.submit(&submission("hello")).await;
        expect_merged(&world).await;
        assert_eq!(tries_made(&world), 1);
    });
    assert_eq!(crashed.runs, crashed.effects * 4);
}

#[tokio::test]
async fn past_its_list_of_delays_a_job_is_recorded_and_retried_no_more() {
    let world = world(Effects::default(), json!([runner_gone(&["0s", "1m"])])).await;
    flaky(&world, JOB, 9);
    world.submit(&submission("hello")).await;
    world.until(HOUR, || async { tries_made(&world) == 2 && is_at_rest(&world).await }).await;
    let_pass(&world, Duration::from_secs(60)).await;
    let detail = ci_retry(&world).await.detail.unwrap();
    assert_eq!(detail["why"], "unit-tests was tried 3 times, no more by rule runner-gone");
    assert_eq!(detail["jobs"][0]["name"], JOB);
    let_pass(&world, 3 * HOUR).await;
    let item = the_item(&world).await;
    assert_eq!((item.phase, item.attempts, tries_made(&world)), (Phase::Active, 0, 2));
    world.finish().await;
}

#[tokio::test]
async fn two_jobs_wait_for_their_own_delays_each() {
    let rules = json!([
        {"name": "slow", "match": {"job_name": "lint"}, "delays": ["10m"]},
        {"name": "fast", "match": {"job_name": "/^unit/"}, "delays": ["1m"]},
    ]);
    let world = world(Effects::default(), rules).await;
    flaky(&world, JOB, 1);
    flaky(&world, "lint", 1);
    world.submit(&submission("hello")).await;
    expect_merged(&world).await;
    let at: Vec<_> = retries(&world).iter().map(|call| call.at_ms).collect();
    assert_eq!((at.len(), tries_made(&world)), (2, 2));
    assert!((480_000..=600_000).contains(&(at[1] - at[0])), "{at:?}");
}

#[tokio::test]
async fn a_deploy_job_that_the_rule_excludes_is_not_retried() {
    let rule = json!({"name": "runner-gone", "delays": ["0s"],
        "match": {"all": [{"failure_reason": "runner_system_failure"}, {"not": {"job_name": "/^deploy/"}}]}});
    let world = world(Effects::default(), json!([rule])).await;
    let ci = "stages: [test, deploy]\nunit-tests: {stage: test, script: [x]}\ndeploy-review: {stage: deploy, script: [x]}\n";
    world.sim().push(DEMO_PROJECT_ID, "main", &[(".gitlab-ci.yml", Some(ci))], "CI", "root");
    flaky(&world, JOB, 1);
    flaky(&world, "deploy-review", 1);
    world.submit(&submission("hello")).await;
    world.until(HOUR, || async { tries_made(&world) == 1 && is_at_rest(&world).await }).await;
    let_pass(&world, 2 * HOUR).await;
    assert_eq!((tries_made(&world), logs_read(&world).len()), (1, 0));
    assert_eq!(ci_retry(&world).await.detail.unwrap()["why"], "no rule retries deploy-review");
    assert_eq!(the_item(&world).await.phase, Phase::Active);
    world.finish().await;
}

#[tokio::test]
async fn a_rule_may_ask_what_the_log_says_and_reads_it_once() {
    let rule = json!({"name": "clone-timeout", "delays": ["1m"],
        "match": {"message": "/^fatal: unable to access .* timed out$/", "stage": "test", "tail_lines": 5}});
    let world = world(Effects::default(), json!([rule])).await;
    let stamp = "2026-01-01T00:00:03.000000Z 01";
    let trace = format!(
        "{stamp}O $ git clone\r\n{stamp}E fatal: unable to acc\n{stamp}E+ess 'https://x/': \u{1b}[1mtimed\u{1b}[0m out\r\n{stamp}O \u{1b}[31;1mERROR: Job failed: exit code 1\n{stamp}O \u{1b}[0;m\n"
    );
    for job in [JOB, "lint"] {
        let trace = (job == JOB).then(|| trace.clone());
        let first = JobRule { attempt: Some(1), trace, ..JobRule::failed(job, "script_failure") };
        world.sim().add_job_rule(DEMO_PROJECT_ID, first);
    }
    world.submit(&submission("hello")).await;
    world.until(HOUR, || async { tries_made(&world) == 1 && is_at_rest(&world).await }).await;
    let_pass(&world, HOUR).await;
    assert_eq!((tries_made(&world), logs_read(&world).len()), (1, 2), "the log of lint says nothing of a clone");
    let jobs: Vec<_> = ci_retry(&world).await.detail.unwrap()["jobs"].as_array().unwrap().iter().map(|job| job["retry"].clone()).collect();
    assert_eq!(jobs, ["no rule retries lint"]);
    world.finish().await;
}

#[tokio::test]
async fn a_job_that_someone_else_has_retried_is_done_with() {
    let world = world(Effects::default(), json!([runner_gone(&["0s"])])).await;
    flaky(&world, JOB, 1);
    let other = world.clone();
    world.when("forge.retry_job", When::Before, Box::pin(async move { reviewer_retries(&other) }));
    world.submit(&submission("hello")).await;
    expect_merged(&world).await;
    let by: Vec<_> = retries(&world).iter().map(|call| (call.user.clone().unwrap(), call.status)).collect();
    assert_eq!(by, [("reviewer".to_owned(), 201), ("collie-bot".to_owned(), 403)]);
    assert_eq!(tries_made(&world), 1);
}

#[tokio::test]
async fn without_any_hook_the_same_pipeline_is_retried_each_time_it_fails() {
    let world = world(Effects::default(), json!([runner_gone(&["0s", "3m"])])).await;
    world.lose_hooks();
    flaky(&world, JOB, 2);
    world.submit(&submission("hello")).await;
    expect_merged(&world).await;
    assert_eq!(tries_made(&world), 2);
}

/// The pipeline is seen failed, is retried by a person and fails again, all without a hook: then our rule has its turn.
#[tokio::test]
async fn a_pipeline_that_fails_again_between_two_looks_is_looked_at_again() {
    let rule = json!({"name": "second", "match": {"failure_reason": "api_failure"}, "delays": ["0s", "0s"]});
    let world = world(Effects::default(), json!([rule])).await;
    world.lose_hooks();
    for (attempt, reason) in [(1, "script_failure"), (2, "api_failure")] {
        world.sim().add_job_rule(DEMO_PROJECT_ID, JobRule { attempt: Some(attempt), ..JobRule::failed(JOB, reason) });
    }
    world.submit(&submission("hello")).await;
    world.until(HOUR, || is_at_rest(&world)).await;
    reviewer_retries(&world);
    expect_merged(&world).await;
    let by: Vec<_> = retries(&world).iter().map(|call| call.user.clone().unwrap()).collect();
    assert_eq!((by, tries_made(&world)), (vec!["reviewer".to_owned(), "collie-bot".to_owned()], 2));
}

#[tokio::test]
async fn without_rules_failed_jobs_are_recorded_and_none_is_retried() {
    let world = World::new(Effects::default()).await;
    flaky(&world, JOB, 1);
    world.submit(&submission("hello")).await;
    world.until(HOUR, || is_at_rest(&world)).await;
    let_pass(&world, HOUR).await;
    assert_eq!(ci_retry(&world).await.detail.unwrap()["why"], "no retry rule is configured");
    assert_eq!((retries(&world), the_item(&world).await.phase), (vec![], Phase::Active));
    world.finish().await;
}

#[tokio::test]
async fn a_host_that_throttles_the_log_is_left_alone_and_nothing_is_lost() {
    let world = world(Effects::default(), json!([{"name": "any", "match": {"message": "Job failed"}, "delays": ["0s"]}])).await;
    let first = JobRule { attempt: Some(1), ..JobRule::failed(JOB, "script_failure") };
    world.sim().add_job_rule(DEMO_PROJECT_ID, first);
    world.sim().add_fault(Fault::once("GET", "/trace", FaultAction::FailBefore { status: 429, body: None }));
    world.submit(&submission("hello")).await;
    expect_merged(&world).await;
    assert_eq!((tries_made(&world), logs_read(&world).len()), (1, 2));
}

/// RTY-01: a job of a pipeline that is no longer the head's when its delay ends.
#[tokio::test]
async fn rty_01_a_job_of_an_earlier_head_is_not_retried() {
    let world = world(Effects::default(), json!([runner_gone(&["10m"])])).await;
    flaky(&world, JOB, 1);
    world.submit(&submission("hello")).await;
    world.until(HOUR, || is_deferred(&world)).await;
    world.sim().clear_job_rules(DEMO_PROJECT_ID);
    world.submit(&submission("hi")).await;
    expect_merged(&world).await;
    assert_eq!(retries(&world), []);
}

/// RTY-01, the other way round: the head moves between the look at the logs and the retry.
#[tokio::test]
async fn rty_01_a_head_that_moves_while_logs_are_read_stops_the_retry() {
    let world = world(Effects::default(), json!([{"name": "any", "match": {"message": "Job failed"}, "delays": ["0s"]}])).await;
    let first = JobRule { attempt: Some(1), ..JobRule::failed(JOB, "script_failure") };
    world.sim().add_job_rule(DEMO_PROJECT_ID, first);
    let sim = world.sim().clone();
    let push = async move {
        sim.push(DEMO_PROJECT_ID, collie_scenarios::world::BRANCH, &[("other.txt", Some("x"))], "Mine", "developer");
        sim.advance_by(2_000);
    };
    world.when("forge.trace_tail", When::After, Box::pin(push));
    world.submit(&submission("hello")).await;
    world.until(HOUR, || async { the_item(&world).await.blocked.is_some() }).await;
    assert_eq!((retries(&world), logs_read(&world).len()), (vec![], 1));
    world.finish().await;
}

/// RTY-03: every hook arrives twice and out of order.
#[tokio::test]
async fn rty_03_a_repeated_hook_retries_nothing_twice() {
    let world = world(Effects::default(), json!([runner_gone(&["0s"])])).await;
    world.sim().set_hook_habits(|habits| (habits.duplicate_every, habits.reorder) = (Some(1), true));
    flaky(&world, JOB, 1);
    world.submit(&submission("hello")).await;
    expect_merged(&world).await;
    assert_eq!((retries(&world).len(), tries_made(&world)), (1, 1));
}

/// RTY-03: GitLab does not retry the job at all.
#[tokio::test]
async fn rty_03_a_refusal_ends_the_jobs_entry_and_not_the_item() {
    for (status, body) in [(403, "403 Forbidden - Job is not retryable"), (422, "Job cannot be retried"), (404, "404 Not found")] {
        let world = world(Effects::default(), json!([runner_gone(&["0s"])])).await;
        flaky(&world, JOB, 1);
        let body = Some(json!({ "message": body }).to_string());
        world.sim().add_fault(Fault::always("POST", "/retry", FaultAction::FailBefore { status, body }));
        world.submit(&submission("hello")).await;
        world.until(HOUR, || async { !retries(&world).is_empty() && is_at_rest(&world).await }).await;
        let_pass(&world, 2 * HOUR).await;
        let (item, detail) = (the_item(&world).await, ci_retry(&world).await.detail.unwrap());
        assert_eq!((item.phase, item.attempts, retries(&world).len()), (Phase::Active, 0, 1), "{status}");
        assert_eq!(detail["jobs"][0]["retry"], "GitLab does not retry unit-tests");
        world.finish().await;
    }
}

/// RTY-03: the answer to a retry is lost, whether or not it was made.
#[tokio::test]
async fn rty_03_a_lost_answer_is_read_back() {
    for action in [FaultAction::DropAfterApplying, FaultAction::DropBefore, FaultAction::FailAfterApplying { status: 502 }] {
        let world = world(Effects::default(), json!([runner_gone(&["0s"])])).await;
        flaky(&world, JOB, 1);
        world.sim().add_fault(Fault::once("POST", "/retry", action));
        world.submit(&submission("hello")).await;
        expect_merged(&world).await;
        assert_eq!(tries_made(&world), 1);
    }
}

/// RTY-05: the hook comes before the whole log does.
#[tokio::test]
async fn rty_05_a_log_that_lacks_its_end_is_looked_at_again() {
    let rule = json!({"name": "system", "match": {"message": "/^ERROR: Job failed \\(system failure\\)/"}, "delays": ["0s"]});
    let world = world(Effects::default(), json!([rule])).await;
    let trace = Some("Preparing\n$ make\nERROR: Job failed (system failure): prepare environment\n".to_owned());
    let first = JobRule { attempt: Some(1), trace, ..JobRule::failed(JOB, "script_failure") };
    world.sim().add_job_rule(DEMO_PROJECT_ID, first);
    let half = FaultAction::FailBefore { status: 200, body: Some("Preparing\n$ make\n".into()) };
    world.sim().add_fault(Fault::once("GET", "/trace", half));
    world.submit(&submission("hello")).await;
    world.until(HOUR, || is_deferred(&world)).await;
    assert_eq!(ci_retry(&world).await.why(), "the log of unit-tests is not complete yet");
    expect_merged(&world).await;
    let at: Vec<_> = logs_read(&world).iter().map(|call| call.at_ms).collect();
    assert!(at.len() == 2 && (10_000..=70_000).contains(&(at[1] - at[0])), "{at:?}");
    assert_eq!(tries_made(&world), 1);
}

/// RTY-05, without an end: a runner that died writes no last line. After a minute what is there is what there is.
#[tokio::test]
async fn rty_05_a_log_that_never_ends_is_judged_as_it_is() {
    let rule = json!({"name": "any", "match": {"not": {"message": "assertion failed"}}, "delays": ["0s"]});
    let world = world(Effects::default(), json!([rule])).await;
    let first = JobRule { attempt: Some(1), trace: Some("Preparing\n".into()), ..JobRule::failed(JOB, "runner_system_failure") };
    world.sim().add_job_rule(DEMO_PROJECT_ID, first);
    world.submit(&submission("hello")).await;
    expect_merged(&world).await;
    assert_eq!(tries_made(&world), 1);
    let read = logs_read(&world).len();
    assert!((2..=8).contains(&read), "{read}");
}
