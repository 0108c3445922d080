//! What GitLab says of a pipeline beyond its jobs: bridges and the pipelines that they start, and JUnit reports.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::{CaseStatus, JobOutcome, JobRule, JunitCase, JunitReport, Status};
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    const PARENT: &str = "stages: [build, test]\ncompile: {stage: build, script: x}\n\
                          child: {stage: test, trigger: {include: ci/child.yml, strategy: depend}}\n";
    const CHILD: &str = "stages: [test]\nunit: {script: x}\n";

    fn push(world: &World, files: &[(&str, &str)]) {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
        world.sim.push(P, "work", &files, "CI", "root");
        world.sim.settle(300_000);
    }

    fn parent(world: &World) -> Value {
        world.get(&project("/pipelines?ref=work"))[0].clone()
    }

    fn of(world: &World, pipeline: &Value, what: &str) -> Value {
        world.get(&project(&format!("/pipelines/{}/{what}", pipeline["id"])))
    }

    #[test]
    fn a_bridge_that_depends_ends_as_its_child_does() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule { attempt: Some(1), ..JobRule::failed("unit", "script_failure") });
        push(&world, &[(".gitlab-ci.yml", PARENT), ("ci/child.yml", CHILD)]);
        let pipeline = parent(&world);
        assert_eq!(pipeline["status"], "failed");
        let names: Vec<Value> = of(&world, &pipeline, "jobs").as_array().unwrap().iter().map(|job| job["name"].clone()).collect();
        assert_eq!(names, ["compile"], "bridges are not among the jobs");
        let bridges = of(&world, &pipeline, "bridges");
        let bridge = &bridges[0];
        let child = &bridge["downstream_pipeline"];
        assert_eq!((bridges.as_array().unwrap().len(), &bridge["name"], &bridge["status"]), (1, &json!("child"), &json!("failed")));
        assert_eq!((&child["source"], &child["status"]), (&json!("parent_pipeline"), &json!("failed")));
        assert_eq!((&child["ref"], &child["sha"]), (&pipeline["ref"], &pipeline["sha"]));
        assert!(bridge.get("artifacts").is_none() && bridge.get("runner").is_none(), "{bridge}");

        let unit = of(&world, child, "jobs")[0]["id"].clone();
        let (status, _) = world.call("POST", &project(&format!("/jobs/{unit}/retry")), Value::Null);
        assert_eq!((status, &of(&world, &pipeline, "bridges")[0]["status"]), (201, &json!("running")));
        assert_eq!(parent(&world)["status"], "running");
        world.sim.settle(300_000);
        assert_eq!((&of(&world, &pipeline, "bridges")[0]["status"], &parent(&world)["status"]), (&json!("success"), &json!("success")));
    }

    #[test]
    fn children_are_listed_only_for_who_asks_for_them() {
        let world = World::new();
        push(&world, &[(".gitlab-ci.yml", PARENT), ("ci/child.yml", CHILD)]);
        let sources = |query: &str| {
            let rows = world.get(&project(&format!("/pipelines{query}")));
            rows.as_array().unwrap().iter().map(|row| row["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(sources("?ref=work"), ["push"]);
        assert_eq!(sources("?ref=work&source=parent_pipeline"), ["parent_pipeline"]);
        assert_eq!(world.get(&project("/pipelines/latest?ref=work"))["source"], "push");
    }

    #[test]
    fn a_bridge_that_does_not_depend_is_done_at_once_and_one_without_a_target_fails() {
        let world = World::new();
        let other = world.sim.create_project("demo/other", &[(".gitlab-ci.yml", CHILD)], "root");
        world.sim.add_job_rule(other, JobRule { outcome: JobOutcome::Hang, ..JobRule::success("unit") });
        let config = "there: {trigger: demo/other}\nnowhere: {trigger: {project: demo/none}}\nmissing: {trigger: {include: none.yml}}\n";
        push(&world, &[(".gitlab-ci.yml", config)]);
        let bridges = of(&world, &parent(&world), "bridges");
        let row = |bridge: &Value| {
            let of_project = bridge["downstream_pipeline"]["project_id"].as_u64();
            (bridge["name"].as_str().unwrap().to_owned(), bridge["status"].clone(), bridge["failure_reason"].clone(), of_project)
        };
        let rows: Vec<_> = bridges.as_array().unwrap().iter().map(row).collect();
        assert_eq!(
            rows,
            [
                ("missing".to_owned(), json!("failed"), json!("downstream_pipeline_creation_failed"), None),
                ("nowhere".to_owned(), json!("failed"), json!("downstream_bridge_project_not_found"), None),
                ("there".to_owned(), json!("success"), Value::Null, Some(other)),
            ]
        );
        let started = &bridges[2]["downstream_pipeline"];
        assert_eq!((&started["source"], &started["ref"], &started["status"]), (&json!("pipeline"), &json!("main"), &json!("running")));
    }

    #[test]
    fn pipelines_are_listed_by_source_time_and_order() {
        let world = World::new();
        world.commit("work", "a", "1");
        world.sim.settle(300_000);
        let (first, at) = (parent(&world), parent(&world)["updated_at"].as_str().unwrap().to_owned());
        world.call("POST", &project("/pipeline"), json!({ "ref": "work" }));
        world.sim.settle(300_000);
        let ids = |query: &str| {
            let rows = world.get(&project(&format!("/pipelines?ref=work{query}")));
            rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
        };
        let second = parent(&world)["id"].clone();
        assert_eq!(ids(""), [second.clone(), first["id"].clone()]);
        assert_eq!(ids("&order_by=updated_at&sort=asc"), [first["id"].clone(), second.clone()]);
        assert_eq!(ids("&source=api"), std::slice::from_ref(&second));
        assert_eq!(ids(&format!("&updated_after={at}")), [second]);
        assert_eq!(ids(&format!("&updated_before={at}")), Vec::<Value>::new());
        for (query, text) in [
            ("status=odd", "status does not have a valid value"),
            ("source=odd", "source does not have a valid value"),
            ("order_by=sha", "order_by does not have a valid value"),
            ("sort=up", "sort does not have a valid value"),
            ("updated_after=soon", "updated_after is invalid"),
        ] {
            assert_eq!(world.call("GET", &project(&format!("/pipelines?{query}")), Value::Null), (400, json!({ "error": text })));
        }
    }

    fn reporting(job: &str, cases: Vec<JunitCase>) -> JobRule {
        JobRule { report: Some(JunitReport::of(cases)), ..JobRule::failed(job, "script_failure") }
    }

    #[test]
    fn parallel_parts_report_into_one_suite() {
        let world = World::new();
        let broken = JunitCase {
            status: CaseStatus::Error,
            execution_time: 2.0,
            system_output: Some("boom".into()),
            ..JunitCase::success("C", "b")
        };
        world.sim.add_job_rule(P, reporting("unit 1/2", vec![JunitCase::success("C", "a"), broken]));
        world.sim.add_job_rule(P, reporting("unit 2/2", vec![JunitCase::failed("C", "c")]));
        push(&world, &[(".gitlab-ci.yml", "unit: {script: x, parallel: 2}\nlint: {script: x}\n")]);
        let pipeline = parent(&world);
        let report = of(&world, &pipeline, "test_report");
        assert_eq!(
            report,
            json!({
                "total_time": 2.0, "total_count": 3, "success_count": 1, "failed_count": 1, "skipped_count": 0, "error_count": 1,
                "test_suites": [{
                    "name": "unit", "total_time": 2.0, "total_count": 3, "success_count": 1, "failed_count": 1, "skipped_count": 0,
                    "error_count": 1, "suite_error": null,
                    "test_cases": [
                        { "status": "error", "name": "b", "classname": "C", "file": null, "execution_time": 2.0, "system_output": "boom",
                          "stack_trace": null, "recent_failures": null },
                        { "status": "failed", "name": "c", "classname": "C", "file": null, "execution_time": 0.0, "system_output": null,
                          "stack_trace": null, "recent_failures": null },
                        { "status": "success", "name": "a", "classname": "C", "file": null, "execution_time": 0.0, "system_output": null,
                          "stack_trace": null, "recent_failures": null },
                    ],
                }],
            })
        );
        let summary = of(&world, &pipeline, "test_report_summary");
        assert_eq!(summary["total"]["count"], 3);
        assert_eq!(summary["test_suites"][0]["build_ids"].as_array().unwrap().len(), 2);
        assert!(summary["test_suites"][0].get("test_cases").is_none());
        let jobs = of(&world, &pipeline, "jobs");
        let types = |job: &Value| job["artifacts"].as_array().unwrap().iter().map(|row| row["file_type"].clone()).collect::<Vec<_>>();
        let uploads: Vec<_> = jobs.as_array().unwrap().iter().map(|job| (job["name"].clone(), types(job))).collect();
        let (with, without) = (vec![json!("junit"), json!("trace")], vec![json!("trace")]);
        assert_eq!(uploads, [(json!("lint"), without), (json!("unit 2/2"), with.clone()), (json!("unit 1/2"), with)]);
    }

    #[test]
    fn a_report_that_cannot_be_read_shows_no_cases() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule { report: Some(JunitReport::broken()), ..JobRule::failed("unit 1/2", "script_failure") });
        world.sim.add_job_rule(P, reporting("unit 2/2", vec![JunitCase::failed("C", "c")]));
        push(&world, &[(".gitlab-ci.yml", "unit: {script: x, parallel: 2}\n")]);
        let suite = &of(&world, &parent(&world), "test_report")["test_suites"][0];
        assert_eq!(suite["suite_error"], "JUnit XML parsing failed: 1:1: FATAL: Document is empty");
        assert_eq!((&suite["test_cases"], &suite["total_count"]), (&json!([]), &json!(0)));
    }

    #[test]
    fn only_the_newest_try_reports_and_gitlab_tries_again_as_configured() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule { attempt: Some(1), ..reporting("unit", vec![JunitCase::failed("C", "a")]) });
        world.sim.add_job_rule(P, JobRule { attempt: Some(2), ..reporting("unit", vec![JunitCase::failed("C", "b")]) });
        push(&world, &[(".gitlab-ci.yml", "unit: {script: x, retry: 1}\n")]);
        let pipeline = parent(&world);
        assert_eq!((&pipeline["status"], world.sim.pipelines(P)[0].jobs[0].attempt), (&json!("failed"), 2));
        let cases = |report: Value| report["test_suites"][0]["test_cases"].as_array().cloned().unwrap_or_default();
        let names: Vec<Value> = cases(of(&world, &pipeline, "test_report")).into_iter().map(|case| case["name"].clone()).collect();
        assert_eq!(names, ["b"]);
        let job = world.sim.pipelines(P)[0].jobs[0].id;
        assert!(world.sim.retry_job(P, job, "root").is_some());
        assert_eq!(of(&world, &pipeline, "test_report")["test_suites"], json!([]));
        world.sim.settle(300_000);
        assert_eq!(world.sim.pipelines(P)[0].status, Status::Success);
    }

    #[test]
    fn a_report_is_as_large_as_it_was_asked_to_be() {
        let world = World::new();
        let report = JunitReport { padding_bytes: 1 << 20, ..JunitReport::of([JunitCase::failed("C", "a")]) };
        world.sim.add_job_rule(P, JobRule { report: Some(report), ..JobRule::failed("unit", "script_failure") });
        push(&world, &[(".gitlab-ci.yml", "unit: {script: x}\n")]);
        let reply = world.raw("GET", &project(&format!("/pipelines/{}/test_report", parent(&world)["id"])), &Value::Null);
        assert!(reply.body.len() > 1 << 20, "{}", reply.body.len());
    }

    #[test]
    fn only_owners_delete_pipelines() {
        let world = World::new();
        push(&world, &[(".gitlab-ci.yml", "unit: {script: x}\n")]);
        let path = project(&format!("/pipelines/{}", parent(&world)["id"]));
        assert_eq!(world.call("DELETE", &path, Value::Null), (403, json!({ "message": "403 Forbidden" })));
        assert_eq!(world.as_user("root").call("DELETE", &path, Value::Null).0, 204);
        for path in [path.clone(), format!("{path}/jobs"), format!("{path}/bridges"), format!("{path}/test_report")] {
            assert_eq!(world.call("GET", &path, Value::Null), (404, json!({ "message": "404 Not found" })));
        }
    }
}
