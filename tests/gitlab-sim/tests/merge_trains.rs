//! Merge trains: who may join, what each car goes through, and what drops it.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::JobRule;
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    fn on_rails() -> World {
        let world = World::new();
        world.sim.set_settings(P, |settings| settings.merge_trains = true);
        world
    }

    fn join(world: &World, iid: u64, body: Value) -> (u16, Value) {
        world.call("POST", &project(&format!("/merge_trains/merge_requests/{iid}")), body)
    }

    fn car(world: &World, iid: u64) -> Option<String> {
        let (status, body) = world.call("GET", &project(&format!("/merge_trains/merge_requests/{iid}")), Value::Null);
        assert!(matches!(status, 200 | 404), "{body}");
        body["status"].as_str().map(str::to_owned)
    }

    fn fail_on_trains(world: &World, part: &str) {
        let rule = JobRule { ref_contains: Some(part.into()), ..JobRule::failed("unit-tests", "script_failure") };
        world.sim.add_job_rule(P, rule);
    }

    #[test]
    fn a_car_goes_from_idle_to_merged() {
        let world = on_rails();
        let iid = world.ready_mr("work", "a");
        assert_eq!(car(&world, iid), None);
        let (status, cars) = join(&world, iid, json!({ "sha": world.mr(iid)["sha"] }));
        assert_eq!((status, &cars[0]["status"], &cars[0]["merge_request"]["iid"]), (201, &json!("idle"), &json!(iid)));
        assert_eq!(world.mr(iid)["merge_when_pipeline_succeeds"], true);
        let mut seen = vec![car(&world, iid).unwrap()];
        while let Some(at) = world.sim.next_event_at() {
            world.sim.advance_to(at);
            let now = car(&world, iid).unwrap();
            if seen.last() != Some(&now) {
                seen.push(now);
            }
            if seen.len() == 2 {
                assert_eq!(world.mr(iid)["head_pipeline"]["ref"], format!("refs/merge-requests/{iid}/train"));
            }
        }
        assert_eq!(seen, ["idle", "fresh", "merging", "merged"]);
        assert_eq!(world.mr(iid)["state"], "merged");
        let count = |scope: &str| world.get(&project(&format!("/merge_trains?scope={scope}"))).as_array().unwrap().len();
        assert_eq!((count("active"), count("complete")), (0, 1));
    }

    #[test]
    fn refusals() {
        let world = on_rails();
        let iid = world.ready_mr("work", "a");
        let sha = world.mr(iid)["sha"].clone();
        assert_eq!(join(&world, iid, json!({ "sha": "0000" })).0, 409);
        assert_eq!(join(&world, 99, json!({})).0, 404);
        world.sim.add_user("coder", "Coder");
        world.sim.set_member(P, "coder", Some(gitlab_sim::Role::Developer));
        assert_eq!(join(&world.as_user("coder"), iid, json!({ "sha": sha })).0, 401);
        world.sim.set_settings(P, |settings| settings.approvals_required = 1);
        assert_eq!(join(&world, iid, json!({ "sha": sha })).0, 400);
        world.sim.set_settings(P, |settings| (settings.approvals_required, settings.merge_trains) = (0, false));
        assert_eq!(join(&world, iid, json!({ "sha": sha })).0, 403);
        world.sim.set_settings(P, |settings| settings.merge_trains = true);
        assert_eq!((join(&world, iid, json!({ "sha": sha })).0, join(&world, iid, json!({ "sha": sha })).0), (201, 400));
    }

    #[test]
    fn a_merge_past_the_train_has_to_say_so() {
        let world = on_rails();
        let iid = world.ready_mr("work", "a");
        assert_eq!(world.get(&project(""))["merge_trains_enabled"], true);
        assert_eq!(world.merge(iid, json!({})).0, 405);
        assert_eq!(join(&world, iid, json!({})).0, 201);
        let (status, merged) = world.merge(iid, json!({ "skip_merge_train": true }));
        assert_eq!((status, &merged["state"], car(&world, iid).as_deref()), (200, &json!("merged"), Some("skip_merged")));
    }

    #[test]
    fn a_failed_pipeline_drops_the_car() {
        let world = on_rails();
        fail_on_trains(&world, "/train");
        let iid = world.ready_mr("work", "a");
        assert_eq!(join(&world, iid, json!({})).0, 201);
        world.sim.settle(120_000);
        let mr = world.mr(iid);
        assert_eq!((&mr["state"], &mr["merge_when_pipeline_succeeds"], car(&world, iid)), (&json!("opened"), &json!(false), None));
        assert_eq!(mr["head_pipeline"]["status"], "failed");
        assert_eq!(join(&world, iid, json!({})).0, 400);
    }

    #[test]
    fn a_push_or_a_close_drops_the_car() {
        for push in [true, false] {
            let world = on_rails();
            let iid = world.ready_mr("work", "a");
            assert_eq!(join(&world, iid, json!({})).0, 201);
            if push {
                world.commit("work", "b", "2");
            } else {
                world.call("PUT", &project(&format!("/merge_requests/{iid}")), json!({ "state_event": "close" }));
            }
            world.sim.settle(120_000);
            assert_eq!((car(&world, iid), world.mr(iid)["merged_at"].clone()), (None, Value::Null), "{push}");
        }
    }

    #[test]
    fn the_cars_behind_one_that_fails_start_anew_and_are_merged() {
        let world = on_rails();
        let (first, second) = (world.ready_mr("one", "a"), world.ready_mr("two", "b"));
        fail_on_trains(&world, &format!("merge-requests/{first}/train"));
        for iid in [first, second] {
            assert_eq!(join(&world, iid, json!({})).0, 201);
        }
        world.sim.settle(300_000);
        assert_eq!((car(&world, first), car(&world, second).as_deref()), (None, Some("merged")));
        let rows = world.get(&project(&format!("/merge_requests/{second}/pipelines")));
        let on_train = rows.as_array().unwrap().iter().filter(|row| row["ref"].as_str().unwrap().ends_with("/train"));
        assert_eq!(on_train.count(), 2);
        assert_eq!((world.sim.file_at(P, "main", "a"), world.sim.file_at(P, "main", "b").is_some()), (None, true));
    }

    #[test]
    fn a_train_of_two_merges_in_order() {
        let world = on_rails();
        let (first, second) = (world.ready_mr("one", "a"), world.ready_mr("two", "b"));
        for iid in [first, second] {
            assert_eq!(join(&world, iid, json!({})).0, 201);
        }
        world.sim.settle(300_000);
        let at = |iid: u64| world.mr(iid)["merged_at"].as_str().unwrap().to_owned();
        assert!(at(first) < at(second));
    }
}
