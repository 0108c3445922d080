//! Pipelines and jobs: which are made, how rules script them, retries and their refusals.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::{JobOutcome, JobRule, PipelineMode, Status};
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    fn jobs(world: &World, pipeline: &Value, query: &str) -> Vec<String> {
        let rows = world.get(&project(&format!("/pipelines/{pipeline}/jobs{query}")));
        let row = |job: &Value| format!("{} {}", job["name"].as_str().unwrap(), job["status"].as_str().unwrap());
        rows.as_array().unwrap().iter().map(row).collect()
    }

    fn only_pipeline(world: &World) -> Value {
        let rows = world.get(&project("/pipelines"));
        assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
        rows[0].clone()
    }

    #[test]
    fn stage_by_stage() {
        let world = World::new();
        world.commit("work", "a", "1");
        assert_eq!(world.get(&project("/pipelines")), json!([]));
        let mut seen = Vec::new();
        for _ in 0..5 {
            let at = world.sim.next_event_at().unwrap();
            world.sim.advance_to(at);
            if let Some(row) = world.get(&project("/pipelines")).get(0) {
                seen.push((row["status"].as_str().unwrap().to_owned(), jobs(&world, &row["id"], "")));
            }
        }
        let step = |status: &str, lint: &str, tests: &str, compile: &str| {
            (status.to_owned(), vec![format!("lint {lint}"), format!("unit-tests {tests}"), format!("compile {compile}")])
        };
        assert_eq!(
            seen,
            [
                step("pending", "created", "created", "pending"),
                step("running", "created", "created", "running"),
                step("running", "pending", "pending", "success"),
                step("running", "running", "running", "success"),
            ]
        );
        world.sim.settle(60_000);
        let done = world.get(&project(&format!("/pipelines/{}", only_pipeline(&world)["id"])));
        assert_eq!(
            (&done["status"], &done["duration"], &done["source"], &done["ref"]),
            (&json!("success"), &json!(21), &json!("push"), &json!("work"))
        );
    }

    #[test]
    fn a_failed_job_skips_later_stages_and_tells_why() {
        let world = World::new();
        world.sim.add_job_rule(
            P,
            JobRule { trace: Some("boom\n".into()), seconds: Some(2.5), ..JobRule::failed("compile", "runner_system_failure") },
        );
        let iid = world.ready_mr("work", "a");
        let pipeline = only_pipeline(&world);
        assert_eq!(pipeline["status"], "failed");
        assert_eq!(jobs(&world, &pipeline["id"], ""), ["lint skipped", "unit-tests skipped", "compile failed"]);
        assert_eq!(jobs(&world, &pipeline["id"], "?scope[]=failed"), ["compile failed"]);
        assert_eq!(world.detailed(iid), "ci_must_pass");
        let rows = world.get(&project(&format!("/pipelines/{}/jobs", pipeline["id"])));
        assert_eq!((&rows[2]["failure_reason"], &rows[2]["duration"]), (&json!("runner_system_failure"), &json!(2.5)));
        assert!(rows[0].get("failure_reason").is_none());
        let trace = world.raw("GET", &project(&format!("/jobs/{}/trace", rows[2]["id"])), &Value::Null);
        assert_eq!((trace.status, &trace.body[..], trace.header("content-type")), (200, &b"boom\n"[..], Some("text/plain")));
        let empty = world.raw("GET", &project(&format!("/jobs/{}/trace", rows[0]["id"])), &Value::Null);
        assert_eq!((empty.status, empty.body.len()), (200, 0));
        let bad = world.call("GET", &project(&format!("/pipelines/{}/jobs?scope[]=odd", pipeline["id"])), Value::Null);
        assert_eq!(bad, (400, json!({ "error": "scope[0] does not have a valid value" })));
    }

    #[test]
    fn a_retry_is_a_new_job_and_the_second_retry_is_refused() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule { attempt: Some(1), ..JobRule::failed("compile", "script_failure") });
        let iid = world.ready_mr("work", "a");
        let pipeline = only_pipeline(&world)["id"].clone();
        let old = world.get(&project(&format!("/pipelines/{pipeline}/jobs")))[2]["id"].clone();
        let path = project(&format!("/jobs/{old}/retry"));
        let (status, new) = world.call("POST", &path, Value::Null);
        assert_eq!((status, &new["status"], &new["pipeline"]["id"]), (201, &json!("pending"), &pipeline));
        assert_eq!(world.call("POST", &path, Value::Null), (403, json!({ "message": "403 Forbidden - Job is not retryable" })));
        assert_eq!(jobs(&world, &pipeline, ""), ["compile pending", "lint created", "unit-tests created"]);
        assert_eq!(
            jobs(&world, &pipeline, "?include_retried=true"),
            ["compile pending", "lint created", "unit-tests created", "compile failed"]
        );
        assert_eq!(only_pipeline(&world)["status"], "running");
        world.sim.settle(60_000);
        assert_eq!(only_pipeline(&world)["status"], "success");
        assert_eq!(world.detailed(iid), "mergeable");
        let success = project(&format!("/jobs/{}/retry", new["id"]));
        assert_eq!(world.call("POST", &success, Value::Null).0, 201);
    }

    #[test]
    fn pipelines_are_retried_and_canceled() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule { outcome: JobOutcome::Hang, ..JobRule::success("compile") });
        world.commit("work", "a", "1");
        world.sim.settle(60_000);
        let id = only_pipeline(&world)["id"].clone();
        assert_eq!(jobs(&world, &id, ""), ["lint created", "unit-tests created", "compile running"]);
        let (status, canceled) = world.call("POST", &project(&format!("/pipelines/{id}/cancel")), Value::Null);
        assert_eq!((status, &canceled["status"]), (200, &json!("canceled")));
        world.sim.clear_job_rules(P);
        assert_eq!(world.call("POST", &project(&format!("/pipelines/{id}/retry")), Value::Null).0, 201);
        world.sim.settle(60_000);
        assert_eq!(only_pipeline(&world)["status"], "success");
        assert_eq!(world.call("POST", &project(&format!("/pipelines/{id}/retry")), Value::Null).0, 201);
    }

    #[test]
    fn manual_jobs_wait_for_a_person() {
        let world = World::new();
        let config = "stages: [build, deploy]\ncompile: {stage: build, script: x}\npublish: {stage: deploy, when: manual, script: x}\n";
        world.commit("work", ".gitlab-ci.yml", config);
        world.sim.settle(60_000);
        let id = only_pipeline(&world)["id"].clone();
        assert_eq!(jobs(&world, &id, ""), ["publish manual", "compile success"]);
        assert_eq!(only_pipeline(&world)["status"], "success");
        let rows = world.get(&project(&format!("/pipelines/{id}/jobs")));
        let play = |job: &Value| world.call("POST", &project(&format!("/jobs/{}/play", job["id"])), Value::Null);
        assert_eq!(play(&rows[1]), (400, json!({ "message": "400 Bad request - Unplayable Job" })));
        assert_eq!(play(&rows[0]).1["status"], "pending");
        world.sim.settle(60_000);
        assert_eq!(jobs(&world, &id, ""), ["publish success", "compile success"]);
    }

    #[test]
    fn broken_configuration_and_none() {
        let world = World::new();
        world.commit("work", ".gitlab-ci.yml", "stages: [a]\nx: {stage: b, script: y}\n");
        world.sim.push(P, "bare", &[(".gitlab-ci.yml", None)], "No CI", "root");
        world.sim.settle(60_000);
        let broken = world.get(&project(&format!("/pipelines/{}", only_pipeline(&world)["id"])));
        assert_eq!(broken["status"], "failed");
        assert_eq!(broken["yaml_errors"], "x job: chosen stage b does not exist; available stages are a");
        let body = json!({ "ref": "bare" });
        assert_eq!(world.call("POST", &project("/pipeline"), body), (400, json!({ "message": { "base": ["Missing CI config file"] } })));
        let body = json!({ "ref": "absent" });
        assert_eq!(world.call("POST", &project("/pipeline"), body), (400, json!({ "message": { "base": ["Reference not found"] } })));
        assert_eq!(world.call("GET", &project("/pipelines/latest?ref=bare"), Value::Null), (403, json!({ "message": "403 Forbidden" })));
    }

    #[test]
    fn detached_pipelines_run_on_the_merge_requests_ref() {
        let world = World::new();
        world.sim.set_settings(P, |settings| settings.pipelines = PipelineMode::Detached);
        let iid = world.ready_mr("work", "a");
        let pipeline = only_pipeline(&world);
        assert_eq!((&pipeline["ref"], &pipeline["source"]), (&json!("refs/merge-requests/1/head"), &json!("merge_request_event")));
        assert_eq!(pipeline["sha"], world.mr(iid)["sha"]);
        assert_eq!(world.detailed(iid), "mergeable");
        let (status, made) = world.call("POST", &project(&format!("/merge_requests/{iid}/pipelines")), Value::Null);
        assert_eq!((status, &made["status"]), (200, &json!("pending")));
        assert_eq!(world.detailed(iid), "ci_still_running");
        let rows = world.get(&project(&format!("/merge_requests/{iid}/pipelines")));
        assert_eq!(rows.as_array().unwrap().iter().map(|row| &row["id"]).collect::<Vec<_>>(), [&made["id"], &pipeline["id"]]);
    }

    #[test]
    fn merged_results_run_on_a_commit_with_two_parents() {
        let world = World::new();
        world.sim.set_settings(P, |settings| settings.pipelines = PipelineMode::MergedResults);
        let iid = world.ready_mr("work", "a");
        let pipeline = only_pipeline(&world);
        assert_eq!(pipeline["ref"], "refs/merge-requests/1/merge");
        let commit = world.get(&project(&format!("/repository/commits/{}", pipeline["sha"].as_str().unwrap())));
        assert_eq!(commit["parent_ids"], json!([world.sim.branch_head(P, "main"), world.sim.branch_head(P, "work")]));
        assert_eq!(world.detailed(iid), "mergeable");
    }

    #[test]
    fn after_a_push_the_old_head_pipeline_is_shown_but_does_not_count() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        let old = world.mr(iid)["head_pipeline"]["id"].clone();
        world.commit("work", "b", "2");
        world.sim.advance_by(500);
        world.mr(iid);
        world.sim.set_timing(|timing| timing.mergeability_check_ms = 0);
        let mr = world.mr(iid);
        assert_eq!(mr["head_pipeline"]["id"], old);
        assert_ne!(mr["head_pipeline"]["sha"], mr["sha"]);
        world.sim.settle(60_000);
        assert_eq!(world.detailed(iid), "mergeable");
        assert_ne!(world.mr(iid)["head_pipeline"]["id"], old);
    }

    #[test]
    fn a_job_that_hangs_is_ended_by_hand() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule { outcome: JobOutcome::Hang, ..JobRule::success("compile") });
        world.commit("work", "a", "1");
        world.sim.settle(3_600_000);
        let compile = world.sim.pipelines(P)[0].jobs[0].clone();
        assert_eq!((compile.name.as_str(), compile.status), ("compile", Status::Running));
        assert!(world.sim.finish_job(P, compile.id, JobOutcome::Failed, Some("stuck_or_timeout_failure")));
        assert!(!world.sim.finish_job(P, compile.id, JobOutcome::Failed, None));
        assert_eq!(world.sim.pipelines(P)[0].status, Status::Failed);
    }
}
