use super::*;
use crate::id::PipelineId;
use crate::mr::events::FailedJob;
use crate::sample::{self, HEAD, NOW, in_seconds, seconds_ago};
use proptest::prelude::*;
use serde::Deserialize as _;

fn rules() -> RetryRules {
    let section = json!([
        {"name": "runner", "match": {"failure_reason": "runner_system_failure", "not": {"job_name": "/^deploy/"}}, "delays": ["0s", "3m"]},
        {"name": "clone", "match": {"message": "timed out", "stage": "test"}, "delays": ["1m"]},
    ]);
    RetryRules::parse(&section).unwrap()
}

fn job(id: u64, name: &str, status: &str, reason: &str, ended_ago: u64) -> Job {
    Job {
        id: JobId(id),
        name: name.into(),
        stage: "test".into(),
        status: status.into(),
        allow_failure: false,
        failure_reason: (status == "failed").then(|| reason.to_owned()),
        finished_at: Some(seconds_ago(ended_ago)),
    }
}

fn gone(id: u64, name: &str, ended_ago: u64) -> Job {
    job(id, name, "failed", "runner_system_failure", ended_ago)
}

/// Each job of the plan in one line.
fn show(tries: &[Job], judged: &Judged) -> Vec<String> {
    let plan = decide(&rules(), tries, judged, NOW);
    plan.jobs.iter().map(|job| format!("{} {:?} {}", job.id, job.step, job.rule.as_deref().unwrap_or("-"))).collect()
}

#[test]
fn only_the_latest_try_of_a_name_that_failed_and_counts_is_looked_at() {
    let judged = Judged::default();
    assert_eq!(show(&[gone(1, "unit", 5)], &judged), ["1 Retry runner"]);
    assert_eq!(show(&[gone(1, "unit", 5), job(2, "unit", "running", "", 0)], &judged), Vec::<String>::new());
    assert_eq!(show(&[job(2, "unit", "success", "", 1), gone(1, "unit", 5)], &judged), Vec::<String>::new());
    assert_eq!(show(&[Job { allow_failure: true, ..gone(1, "unit", 5) }], &judged), Vec::<String>::new());
    assert_eq!(show(&[gone(3, "b", 5), gone(1, "a", 5)], &judged), ["1 Retry runner", "3 Retry runner"]);
}

#[test]
fn the_delay_counts_from_the_jobs_own_end_by_its_earlier_tries_and_past_the_list_it_rests() {
    let judged = Judged::default();
    let first = gone(1, "unit", 600);
    let wait = format!("2 Wait {{ until: {:?} }} runner", in_seconds(170));
    assert_eq!(show(&[gone(2, "unit", 10), first.clone()], &judged), [wait]);
    assert_eq!(show(&[first.clone(), gone(2, "unit", 180)], &judged), ["2 Retry runner"]);
    assert_eq!(show(&[first, gone(2, "unit", 300), gone(3, "unit", 200)], &judged), ["3 Exhausted runner"]);
    assert_eq!(show(&[Job { finished_at: None, ..gone(1, "unit", 0) }], &judged), ["1 Retry runner"]);
}

#[test]
fn a_job_that_no_rule_names_rests_and_one_that_only_its_log_tells_is_to_be_read() {
    let judged = Judged::default();
    let deploy = Job { stage: "deploy".into(), ..gone(1, "deploy-prod", 5) };
    assert_eq!(show(&[deploy], &judged), ["1 NoRule -"]);
    assert_eq!(show(&[job(1, "unit", "failed", "script_failure", 100)], &judged), ["1 ReadTrace -"]);
}

#[test]
fn what_was_found_out_is_remembered_by_the_row_and_not_asked_again() {
    let tries: Vec<_> = (1..=5).map(|id| job(id, &format!("unit {id}"), "failed", "script_failure", 100)).collect();
    let mut judged = Judged::default();
    let found =
        [Judgement::Rule("clone".into()), Judgement::NoRule, Judgement::Refused, Judgement::Rule("gone".into()), Judgement::Undecided];
    for (id, judgement) in (1..).zip(found) {
        judged.note(JobId(id), judgement);
    }
    let look = format!("5 LookAgain {{ until: {:?} }} -", in_seconds(1));
    assert_eq!(show(&tries, &judged), ["1 Retry clone", "2 NoRule -", "3 Refused -", "4 ReadTrace -", &look]);
    let plan = decide(&rules(), &tries, &judged, NOW);
    let record = plan.record("why", &judged);
    assert_eq!(record["judged"], json!({"clone": [1], "/none": [2], "/refused": [3], "gone": [4]}));
    judged.0.remove(&JobId(5));
    assert_eq!(Judged::read(Some(&record)), judged);
    assert_eq!(Judged::read(Some(&json!({"judged": [1], "jobs": 3}))), Judged::default());
    let read_back = Vec::<FailedJob>::deserialize(&record["jobs"]).unwrap();
    assert_eq!((read_back.len(), read_back[0].id, read_back[0].name.as_str()), (5, 1, "unit 1"));
}

#[test]
fn a_log_that_is_not_complete_is_looked_at_in_ten_seconds_and_as_it_is_after_a_minute() {
    let mut judged = Judged::default();
    judged.note(JobId(1), Judgement::Undecided);
    let at = |ended_ago| {
        let plan = decide(&rules(), &[job(1, "unit", "failed", "script_failure", ended_ago)], &judged, NOW);
        (plan.next_look(NOW).map(|(at, _)| at), plan.jobs[0].is_settled)
    };
    assert_eq!(at(1), (Some(in_seconds(10)), false));
    assert_eq!(at(55), (Some(in_seconds(5)), false));
    assert_eq!(at(60), (Some(in_seconds(1)), true));
}

#[test]
fn the_next_look_is_the_earliest_and_says_why() {
    let earlier = gone(1, "unit", 600);
    let plan = decide(&rules(), &[earlier, gone(2, "unit", 10), gone(9, "lint\n", 900), gone(10, "lint\n", 30)], &Judged::default(), NOW);
    let (until, why) = plan.next_look(NOW).unwrap();
    assert_eq!((until, why.as_str()), (in_seconds(150), "retry delay of lint\\n by rule runner, after try 2"));
    assert_eq!(decide(&rules(), &[], &Judged::default(), NOW).next_look(NOW), None);
}

#[test]
fn a_row_records_as_many_jobs_as_fit_and_remembers_all() {
    let tries: Vec<_> = (1..=80).map(|id| gone(id, &format!("{id} {}", "ö".repeat(300)), 5)).collect();
    let plan = decide(&rules(), &tries, &Judged::default(), NOW);
    assert_eq!(plan.jobs.len(), MAX_JOBS);
    let mut judged = Judged::default();
    plan.jobs.iter().for_each(|job| judged.note(job.id, Judgement::NoRule));
    let record = plan.record("why", &judged);
    assert!(record.to_string().len() < MAX_RECORD_BYTES + 512, "{}", record.to_string().len());
    assert!(record["jobs"].as_array().unwrap().len() >= 5);
    assert_eq!(Judged::read(Some(&record)), judged);
}

fn mr(pipeline: Option<(&str, &str)>) -> MergeRequest {
    let pipeline =
        pipeline.map(|(git_ref, sha)| Pipeline { id: PipelineId(7), git_ref: git_ref.into(), sha: Sha::new(sha), status: "failed".into() });
    MergeRequest { head_pipeline: pipeline, ..sample::merge_request() }
}

#[test]
fn only_the_head_pipeline_of_an_open_merge_request_with_our_head_is_retried() {
    let head = Sha::new(HEAD);
    let asked = |mr: &MergeRequest| pipeline_of(mr, Some(&head)).map(|pipeline| pipeline.id.0);
    assert_eq!(asked(&mr(Some(("bot/x", HEAD)))), Ok(7));
    assert_eq!(asked(&mr(Some(("refs/merge-requests/1/merge", "result")))), Ok(7));
    assert_eq!(asked(&mr(Some(("refs/merge-requests/1/head", "earlier")))), Err(Halt::OldPipeline));
    assert_eq!(asked(&mr(None)), Err(Halt::NoPipeline));
    let other = MergeRequest { sha: Some(Sha::new("theirs")), ..mr(Some(("bot/x", "theirs"))) };
    assert_eq!(asked(&other), Err(Halt::ForeignHead));
    assert_eq!(pipeline_of(&MergeRequest { sha: None, ..mr(None) }, None), Err(Halt::ForeignHead));
    for state in [State::Closed, State::Merged, State::Locked] {
        assert_eq!(asked(&MergeRequest { state, ..mr(Some(("bot/x", HEAD))) }), Err(Halt::NotOpen));
    }
}

fn any_try() -> impl Strategy<Value = Job> {
    let status = prop_oneof![3 => Just("failed"), 1 => Just("success"), 1 => Just("running")];
    let reason = prop_oneof![Just("runner_system_failure"), Just("script_failure")];
    let parts = (1..40_u64, prop_oneof![Just("a"), Just("b"), Just("deploy")], status, reason, 0..1000_u64);
    parts.prop_map(|(id, name, status, reason, ended_ago)| job(id, name, status, reason, ended_ago))
}

proptest! {
    #[test]
    fn at_most_the_latest_try_of_a_name_is_retried_and_never_more_often_than_the_list(
        mut tries in prop::collection::vec(any_try(), 0..12), shift in 0..12_usize,
    ) {
        tries.sort_by_key(|job| job.id);
        tries.dedup_by_key(|job| job.id);
        let plan = decide(&rules(), &tries, &Judged::default(), NOW);
        for due in plan.due() {
            let of_name: Vec<_> = tries.iter().filter(|job| job.name == due.name).collect();
            prop_assert_eq!(of_name.last().map(|job| (job.id, job.status.as_str())), Some((due.id, "failed")));
            prop_assert!(of_name.len() <= 2 && due.name != "deploy");
        }
        let by = shift.min(tries.len());
        tries.rotate_left(by);
        prop_assert_eq!(decide(&rules(), &tries, &Judged::default(), NOW), plan);
    }

    #[test]
    fn a_look_is_never_in_the_past(tries in prop::collection::vec(any_try(), 0..12)) {
        if let Some((until, _)) = decide(&rules(), &tries, &Judged::default(), NOW).next_look(NOW) {
            prop_assert!(until > NOW);
        }
    }
}
