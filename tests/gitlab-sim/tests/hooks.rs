//! Hooks: their API, their payloads, and their bad habits.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::JobRule;
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    #[test]
    fn the_hooks_api() {
        let world = World::new();
        let path = project("/hooks");
        let post = |body: Value| world.call("POST", &path, body);
        assert_eq!(post(json!({})), (400, json!({ "error": "url is missing" })));
        assert_eq!(post(json!({ "url": "ftp://x" })), (422, json!({ "error": "Invalid url given" })));
        let filter = json!({ "url": "http://x", "push_events_branch_filter": "a b" });
        assert_eq!(post(filter), (422, json!({ "error": "Invalid branch filter given" })));
        let (status, made) = post(json!({ "url": "http://x.example/a", "token": "t", "note_events": true, "name": "n" }));
        assert_eq!(status, 201);
        assert_eq!((&made["push_events"], &made["note_events"], &made["job_events"]), (&json!(true), &json!(true), &json!(false)));
        assert_eq!((&made["token_present"], made.get("token"), &made["alert_status"]), (&json!(true), None, &json!("executable")));
        assert_eq!(post(json!({ "url": "http://x.example/a" })).0, 201);
        let one = format!("{path}/{}", made["id"]);
        assert_eq!(world.call("PUT", &one, Value::Null), (400, json!({ "error": "No parameters provided" })));
        let moved = world.call("PUT", &one, json!({ "url": "http://y.example" })).1;
        assert_eq!((&moved["url"], &moved["token_present"]), (&json!("http://y.example"), &json!(false)));
        assert_eq!(world.get(&path).as_array().unwrap().len(), 2);
        assert_eq!(world.call("DELETE", &one, Value::Null).0, 204);
        assert_eq!(world.call("GET", &one, Value::Null), (404, json!({ "message": "404 Not found" })));
        assert_eq!(world.as_user("developer").call("GET", &path, Value::Null), (403, json!({ "message": "403 Forbidden" })));
    }

    #[test]
    fn a_push_hook_and_its_headers() {
        let world = World::new();
        world.hook(&["push_events"]);
        let before = world.sim.branch_head(P, "main").unwrap();
        let after = world.commit("main", "a", "1");
        world.sim.advance_by(799);
        assert_eq!(world.sim.take_deliveries().len(), 0);
        world.sim.advance_by(1);
        let sent = world.sim.take_deliveries();
        assert_eq!(sent.len(), 1);
        let header = |name: &str| sent[0].header(name).unwrap_or_default().to_owned();
        assert_eq!(header("X-Gitlab-Event"), "Push Hook");
        assert_eq!(header("X-Gitlab-Token"), "s3cret");
        assert_eq!(header("User-Agent"), "GitLab/19.4.1-ee");
        assert_eq!(header("X-Gitlab-Instance"), "http://gitlab.sim");
        assert_eq!((header("Idempotency-Key").len(), header("X-Gitlab-Event-UUID").len()), (36, 36));
        assert_eq!(sent[0].url, "http://hooks.example/gitlab");
        let push = sent[0].json();
        assert_eq!((&push["object_kind"], &push["ref"]), (&json!("push"), &json!("refs/heads/main")));
        assert_eq!((&push["before"], &push["after"], &push["total_commits_count"]), (&json!(before), &json!(after), &json!(1)));
        assert_eq!((&push["commits"][0]["added"], &push["ref_protected"]), (&json!(["a"]), &json!(true)));
    }

    #[test]
    fn creation_and_deletion_of_a_branch_have_zeros() {
        let world = World::new();
        world.hook(&["push_events"]);
        world.commit("work", "a", "1");
        world.sim.settle(60_000);
        world.call("DELETE", &project("/repository/branches/work"), Value::Null);
        world.sim.settle(60_000);
        let zeros = json!("0".repeat(40));
        let sent = world.payloads();
        assert_eq!((&sent[0]["before"], &sent[1]["after"], &sent[1]["checkout_sha"]), (&zeros, &zeros, &Value::Null));
    }

    #[test]
    fn pipeline_and_job_hooks_tell_every_status() {
        let world = World::new();
        world.sim.add_job_rule(P, JobRule::failed("compile", "script_failure"));
        world.hook(&["pipeline_events", "job_events"]);
        world.commit("work", "a", "1");
        world.sim.settle(60_000);
        let sent = world.payloads();
        let pipelines: Vec<_> = sent
            .iter()
            .filter(|hook| hook["object_kind"] == "pipeline")
            .map(|hook| hook["object_attributes"]["status"].as_str().unwrap())
            .collect();
        assert_eq!(pipelines, ["created", "pending", "running", "failed"]);
        let compile: Vec<_> = sent.iter().filter(|hook| hook["build_name"] == "compile").collect();
        let statuses: Vec<_> = compile.iter().map(|hook| hook["build_status"].as_str().unwrap()).collect();
        assert_eq!(statuses, ["created", "pending", "running", "failed"]);
        assert_eq!(
            (&compile[0]["build_failure_reason"], &compile[3]["build_failure_reason"]),
            (&json!("unknown_failure"), &json!("script_failure"))
        );
        assert_eq!(compile[3]["commit"]["id"], compile[3]["pipeline_id"]);
        assert_eq!(compile[0]["build_created_at"], "2026-05-28T20:26:41.000Z");
        world.sim.set_version("18.11.0-ee");
        world.commit("work", "b", "1");
        world.sim.settle(60_000);
        let legacy = world.payloads().into_iter().find(|hook| hook["object_kind"] == "build").unwrap();
        assert!(legacy["build_created_at"].as_str().unwrap().ends_with(" UTC"));
    }

    #[test]
    fn note_and_state_hooks() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        world.hook(&["note_events", "merge_requests_events"]);
        world.call("POST", &project(&format!("/merge_requests/{iid}/notes")), json!({ "body": "Hello" }));
        world.call("PUT", &project(&format!("/merge_requests/{iid}")), json!({ "title": "Draft: x", "add_labels": "l" }));
        world.call("PUT", &project(&format!("/merge_requests/{iid}")), json!({ "state_event": "close" }));
        world.sim.advance_by(300);
        let sent = world.payloads();
        assert_eq!((&sent[0]["object_attributes"]["note"], &sent[0]["merge_request"]["iid"]), (&json!("Hello"), &json!(iid)));
        assert_eq!(sent[1]["changes"]["draft"], json!({ "previous": false, "current": true }));
        assert_eq!(sent[1]["changes"]["labels"]["current"][0]["title"], "l");
        assert_eq!(sent[2]["changes"]["state_id"], json!({ "previous": 1, "current": 2 }));
        assert_eq!(sent[2]["object_attributes"]["detailed_merge_status"], "not_open");
    }

    fn pushes(world: &World, count: usize) -> Vec<String> {
        let made: Vec<String> = (0..count).map(|n| world.commit("main", &format!("f{n}"), "x")).collect();
        world.sim.settle(5_000);
        made
    }

    fn heads(world: &World) -> Vec<String> {
        world.payloads().iter().map(|hook| hook["after"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn duplicates_losses_and_reordering() {
        let world = World::new();
        world.hook(&["push_events"]);
        world.sim.set_hook_habits(|habits| habits.duplicate_every = Some(2));
        let made = pushes(&world, 2);
        let keys: Vec<_> = world
            .sim
            .take_deliveries()
            .iter()
            .map(|sent| (sent.json()["after"].clone(), sent.header("idempotency-key").unwrap().to_owned()))
            .collect();
        assert_eq!(keys.iter().map(|(after, _)| after).collect::<Vec<_>>(), [&made[0], &made[1], &made[1]]);
        assert_eq!(keys[1].1, keys[2].1);
        world.sim.set_hook_habits(|habits| (habits.duplicate_every, habits.reorder) = (None, true));
        let world_two = &world;
        let made: Vec<String> = ["x", "y", "z"].iter().map(|name| world_two.commit("main", name, "1")).collect();
        world.sim.settle(1_000);
        assert_eq!(heads(&world), [made[1].clone(), made[0].clone()]);
        world.sim.advance_by(6_000);
        assert_eq!(heads(&world), [made[2].clone()]);
        world.sim.set_hook_habits(|habits| (habits.reorder, habits.drop_all) = (false, true));
        world.commit("main", "lost", "1");
        world.sim.settle(5_000);
        assert_eq!(heads(&world), Vec::<String>::new());
    }

    #[test]
    fn failures_switch_a_hook_off_and_one_success_on_again() {
        let world = World::new();
        let hook = world.hook(&["push_events"]);
        pushes(&world, 4);
        let sent = world.sim.take_deliveries();
        let alert = || world.get(&project(&format!("/hooks/{hook}")))["alert_status"].clone();
        sent[..3].iter().for_each(|sent| world.sim.note_delivery(sent, false));
        assert_eq!(alert(), "executable");
        world.sim.note_delivery(&sent[3], false);
        assert_eq!(alert(), "temporarily_disabled");
        world.commit("main", "unheard", "1");
        world.sim.settle(5_000);
        assert_eq!(world.sim.take_deliveries().len(), 0);
        world.sim.advance_by(60_000);
        world.commit("main", "heard", "1");
        world.sim.settle(5_000);
        assert_eq!(world.sim.take_deliveries().len(), 1);
        for _ in 0..36 {
            world.sim.note_delivery(&sent[0], false);
        }
        assert_eq!(alert(), "disabled");
        world.sim.note_delivery(&sent[0], true);
        assert_eq!(alert(), "executable");
    }

    #[test]
    fn a_signing_token_signs() {
        let world = World::new();
        let body = json!({ "url": "http://x.example", "signing_token": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" });
        world.call("POST", &project("/hooks"), body);
        pushes(&world, 1);
        let sent = &world.sim.take_deliveries()[0];
        assert_eq!(sent.header("webhook-id"), sent.header("Idempotency-Key"));
        assert_eq!(sent.header("webhook-timestamp"), Some("1780000000"));
        assert!(sent.header("webhook-signature").unwrap().starts_with("v1,"));
        assert_eq!(sent.header("X-Gitlab-Token"), None);
    }

    #[test]
    fn a_test_sends_the_newest_object_at_once() {
        let world = World::new();
        let hook = world.hook(&[]);
        let test = |trigger: &str| world.call("POST", &project(&format!("/hooks/{hook}/test/{trigger}")), Value::Null);
        assert_eq!(test("push_events"), (201, json!({ "message": "201 Created" })));
        assert_eq!(world.payloads()[0]["after"], json!(world.sim.branch_head(P, "main")));
        assert_eq!(test("merge_requests_events").0, 422);
    }
}
