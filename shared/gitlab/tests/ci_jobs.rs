//! Another try of a job, and the end of a log: against the model of GitLab, and against answers that it does not give.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_core::id::{JobId, PipelineId};
use collie_core::time::Timestamp;
use collie_engine::ports::{Forge, JobRetry, ProjectRef, TraceTail};
use collie_gitlab::GitLab;
use gitlab_sim::{DEMO_PROJECT_ID, JobRule, Sim};
use std::time::Duration;
use support::demo::Demo;
use support::{NOW, Stub, answer, refusal};

const LOG: &str = "$ make\nfatal: early EOF\nERROR: Job failed: exit code 1\n";

/// The demonstration project with a pipeline on a branch in which `unit-tests` has failed.
async fn failed_pipeline() -> (Sim, GitLab, ProjectRef, PipelineId) {
    let Demo { sim, gitlab, project } = Demo::start().await;
    let failing = JobRule { attempt: Some(1), trace: Some(LOG.into()), ..JobRule::failed("unit-tests", "script_failure") };
    sim.add_job_rule(DEMO_PROJECT_ID, failing);
    sim.push(DEMO_PROJECT_ID, "work", &[("a", Some("a"))], "a", "developer");
    sim.advance_by(120_000);
    let pipeline = sim.pipelines(DEMO_PROJECT_ID).last().unwrap().id;
    (sim, gitlab, project, PipelineId(pipeline))
}

#[tokio::test]
async fn a_try_is_retried_once_and_the_list_of_all_tries_shows_both() {
    let (sim, gitlab, project, pipeline) = failed_pipeline().await;
    let jobs = gitlab.jobs(&project, pipeline).await.unwrap();
    let failed = jobs.iter().find(|job| job.status == "failed").unwrap().id;
    let Ok(JobRetry::Made(new)) = gitlab.retry_job(&project, failed).await else { panic!("not retried") };
    assert!(new > failed);
    let again = gitlab.retry_job(&project, failed).await;
    let want = "POST …/jobs/:id/retry answered 403: 403 Forbidden - Job is not retryable";
    assert_eq!(again, Ok(JobRetry::NotRetryable(want.to_owned())));
    sim.advance_by(60_000);
    let tries = gitlab.jobs_with_retried(&project, pipeline).await.unwrap();
    let of_name: Vec<_> = tries.iter().filter(|job| job.name == "unit-tests").map(|job| (job.id, job.status.as_str())).collect();
    assert_eq!(of_name, [(new, "success"), (failed, "failed")]);
    assert_eq!(gitlab.jobs(&project, pipeline).await.unwrap().len() + 1, tries.len());
}

#[tokio::test]
async fn of_a_log_the_last_bytes_are_kept_and_a_job_that_is_gone_has_none() {
    let (_sim, gitlab, project, pipeline) = failed_pipeline().await;
    let failed = gitlab.jobs(&project, pipeline).await.unwrap().into_iter().find(|job| job.status == "failed").unwrap().id;
    let tail = |most| gitlab.trace_tail(&project, failed, most);
    let whole = TraceTail { bytes: LOG.into(), is_cut: false };
    assert_eq!(tail(LOG.len()).await, Ok(Some(whole)));
    let end = TraceTail { bytes: LOG.as_bytes()[LOG.len() - 10..].to_vec(), is_cut: true };
    assert_eq!(tail(10).await, Ok(Some(end)));
    assert_eq!(gitlab.trace_tail(&project, JobId(999_999), 10).await, Ok(None));
}

#[tokio::test]
async fn a_log_that_is_larger_than_any_answer_may_be_is_read_to_its_end() {
    let log = format!("{}\nthe end", "x".repeat(64 << 10));
    let stub = Stub::start([answer(200, log.clone())]).await;
    let tail = stub.gitlab().trace_tail(&stub.project(), JobId(7), 1000).await.unwrap().unwrap();
    assert!(tail.is_cut && tail.bytes.len() == 1000 && log.as_bytes().ends_with(&tail.bytes));
    assert_eq!(stub.lines(), ["GET …/jobs/7/trace"]);
}

#[tokio::test]
async fn a_part_of_a_log_is_cut_where_it_is_not_the_first() {
    let part = |range: &str| answer(206, "the end").with("content-range", range);
    let stub = Stub::start([part("bytes 100-106/107"), part("bytes 0-6/7"), answer(416, ""), answer(200, "")]).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let tail = stub.gitlab().trace_tail(&stub.project(), JobId(7), 1000).await.unwrap().unwrap();
        seen.push((String::from_utf8(tail.bytes).unwrap(), tail.is_cut));
    }
    let want = [("the end", true), ("the end", false), ("", false), ("", false)];
    assert_eq!(seen, want.map(|(text, is_cut)| (text.to_owned(), is_cut)));
}

#[tokio::test]
async fn a_throttled_log_says_until_when() {
    let stub = Stub::start([answer(429, "Retry later").with("retry-after", "30")]).await;
    let failure = stub.gitlab().trace_tail(&stub.project(), JobId(7), 1000).await.unwrap_err();
    let until: Timestamp = NOW.after(Duration::from_secs(30));
    assert_eq!((failure.class, failure.code), (Class::Throttled { until }, "forge_throttled"));
}

#[tokio::test]
async fn only_a_refusal_of_the_job_itself_is_an_answer() {
    let scope = r#"{"error":"insufficient_scope","error_description":"Higher privileges.","scope":"api"}"#;
    let table = [
        (refusal(422, "Job is not retryable"), None),
        (refusal(403, "403 Forbidden"), None),
        (answer(403, scope), Some((Class::Unauthorized, "forge_auth"))),
        (refusal(403, "read-only instance"), Some((Class::Transient { answered: false }, "forge_read_only"))),
        (refusal(404, "404 Not found"), Some((Class::Gone, "forge_gone"))),
        (answer(502, "<html>"), Some((Class::Indeterminate, "forge_unanswered"))),
        (answer(201, "{}"), Some((Class::Indeterminate, "forge_unanswered"))),
    ];
    for (canned, want) in table {
        let stub = Stub::start([canned.clone()]).await;
        let told = stub.gitlab().retry_job(&stub.project(), JobId(7)).await;
        let kind = |failure: Failure| (failure.class, failure.code);
        match want {
            None => assert!(matches!(told, Ok(JobRetry::NotRetryable(_))), "{canned:?}: {told:?}"),
            Some(want) => assert_eq!(told.map_err(kind), Err(want), "{canned:?}"),
        }
        assert_eq!(stub.lines(), ["POST …/jobs/7/retry"]);
    }
}
