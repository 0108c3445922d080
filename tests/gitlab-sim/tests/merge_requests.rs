//! Merge requests: creation, the machine of mergeability, merging, and what pushes do to them.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::{MergeMethod, Persona, PipelineMode, SquashOption};
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    fn create(world: &World, body: Value) -> (u16, Value) {
        world.call("POST", &project("/merge_requests"), body)
    }

    fn statuses(mr: &Value) -> (String, String) {
        let text = |name: &str| mr[name].as_str().unwrap().to_owned();
        (text("merge_status"), text("detailed_merge_status"))
    }

    fn pair(left: &str, right: &str) -> (String, String) {
        (left.to_owned(), right.to_owned())
    }

    #[test]
    fn refusals_of_creation() {
        let world = World::new();
        world.commit("work", "a", "1");
        world.open_mr("work");
        let body = |source: &str, target: &str| json!({ "source_branch": source, "target_branch": target, "title": "T" });
        let table = [
            (json!({ "target_branch": "main", "title": "T" }), 400, json!({ "error": "source_branch is missing" })),
            (json!({ "source_branch": "work", "title": "T" }), 400, json!({ "error": "target_branch is missing" })),
            (json!({ "source_branch": "work", "target_branch": "main" }), 400, json!({ "error": "title is missing" })),
            (body("main", "main"), 422, json!({ "message": ["You can't use same project/branch for source and target"] })),
            (body("work", "main"), 409, json!({ "message": ["Another open merge request already exists for this source branch: !1"] })),
            (body("absent", "main"), 400, json!({ "message": { "source_branch": ["does not exist"] } })),
        ];
        for (request, status, answer) in table {
            assert_eq!(create(&world, request), (status, answer));
        }
        world.sim.set_version("18.11.0-ee");
        let (status, made) = create(&world, body("absent", "main"));
        assert_eq!((status, &made["sha"]), (201, &Value::Null));
    }

    #[test]
    fn a_branch_pushed_by_git_is_unknown_to_the_cache_for_a_while() {
        let world = World::new();
        world.sim.push(P, "pushed", &[("a", Some("1"))], "Push", "developer");
        let body = json!({ "source_branch": "pushed", "target_branch": "main", "title": "T" });
        let branch = project("/repository/branches/pushed");
        assert_eq!(create(&world, body.clone()), (400, json!({ "message": { "source_branch": ["does not exist"] } })));
        assert_eq!((world.call("HEAD", &branch, Value::Null).0, world.call("GET", &branch, Value::Null).0), (404, 200));
        world.sim.advance_by(2_000);
        assert_eq!(world.call("HEAD", &branch, Value::Null).0, 204);
        assert_eq!(create(&world, body).0, 201);
    }

    #[test]
    fn preparing_unchecked_checking_then_the_result() {
        let world = World::new();
        world.hook(&["merge_requests_events"]);
        world.commit("work", "a", "1");
        let iid = world.open_mr("work");
        assert_eq!(statuses(&world.mr(iid)), pair("checking", "preparing"));
        assert_eq!(world.mr(iid)["prepared_at"], Value::Null);
        world.sim.advance_by(2_300);
        let hooks = world.payloads();
        assert_eq!(hooks.len(), 1);
        assert_eq!(hooks[0]["object_attributes"]["action"], "open");
        assert_eq!(hooks[0]["changes"]["merge_status"], json!({ "previous": "preparing", "current": "unchecked" }));
        assert_eq!(statuses(&world.mr(iid)), pair("unchecked", "unchecked"));
        assert_eq!(statuses(&world.mr(iid)), pair("checking", "checking"));
        world.sim.advance_by(1_000);
        assert_eq!(statuses(&world.mr(iid)), pair("can_be_merged", "ci_still_running"));
        world.sim.settle(60_000);
        let done = world.mr(iid);
        assert_eq!(statuses(&done), pair("can_be_merged", "mergeable"));
        assert_eq!(done["head_pipeline"]["status"], "success");
        assert_eq!(done["changes_count"], "1");
        assert_eq!(done["user"]["can_merge"], true);
    }

    #[test]
    fn only_a_caller_who_may_update_starts_a_check() {
        let world = World::new();
        world.commit("work", "a", "1");
        let iid = world.open_mr("work");
        world.sim.settle(60_000);
        world.sim.add_user("reader", "Reader");
        world.sim.set_member(P, "reader", Some(gitlab_sim::Role::Reporter));
        let reader = world.as_user("reader");
        for _ in 0..3 {
            assert_eq!(reader.detailed(iid), "unchecked");
            world.sim.advance_by(5_000);
        }
        assert_eq!(reader.mr(iid)["user"]["can_merge"], false);
    }

    #[test]
    fn every_reason_in_its_order() {
        let world = World::new();
        world.sim.set_settings(P, |settings| {
            settings.approvals_required = 1;
            settings.only_allow_merge_if_all_discussions_are_resolved = true;
        });
        let iid = world.ready_mr("work", "a");
        let path = project(&format!("/merge_requests/{iid}"));
        world.call("PUT", &path, json!({ "title": "Draft: work" }));
        let thread = world.sim.open_discussion(P, iid, "reviewer", "Why?").unwrap();
        assert_eq!(world.detailed(iid), "not_approved");
        assert!(world.sim.approve(P, iid, "reviewer"));
        assert_eq!(world.detailed(iid), "draft_status");
        world.call("PUT", &path, json!({ "title": "Work" }));
        assert_eq!(world.detailed(iid), "discussions_not_resolved");
        assert!(world.sim.resolve_discussion(P, iid, &thread, "reviewer", true));
        assert_eq!(world.detailed(iid), "mergeable");
        world.sim.close_mr(P, iid);
        assert_eq!(world.detailed(iid), "not_open");
    }

    #[test]
    fn a_push_to_the_target_unchecks_siblings_and_finds_the_conflict() {
        let world = World::new();
        world.sim.set_settings(P, |settings| settings.pipelines = PipelineMode::None);
        world.sim.set_settings(P, |settings| settings.only_allow_merge_if_pipeline_succeeds = false);
        let iid = world.ready_mr("work", "a");
        world.hook(&["merge_requests_events"]);
        assert_eq!(world.detailed(iid), "mergeable");
        world.sim.push(P, "main", &[("a", Some("other\n"))], "Rival", "root");
        assert_eq!(world.detailed(iid), "mergeable");
        world.sim.advance_by(500);
        assert_eq!(statuses(&world.mr(iid)), pair("unchecked", "unchecked"));
        world.sim.settle(10_000);
        let found = world.mr(iid);
        assert_eq!((statuses(&found), &found["has_conflicts"]), (pair("cannot_be_merged", "conflict"), &json!(true)));
        world.sim.push(P, "main", &[("b", Some("x"))], "More", "root");
        world.sim.advance_by(500);
        let again = world.mr(iid);
        assert_eq!((statuses(&again), &again["has_conflicts"]), (pair("cannot_be_merged_recheck", "conflict"), &json!(false)));
        assert_eq!(statuses(&world.mr(iid)), pair("checking", "checking"));
        assert_eq!(world.payloads(), Vec::<Value>::new());
    }

    #[test]
    fn a_push_to_the_source_sends_oldrev_and_resets_approvals() {
        let world = World::new();
        world.sim.set_settings(P, |settings| settings.reset_approvals_on_push = true);
        let iid = world.ready_mr("work", "a");
        world.sim.approve(P, iid, "reviewer");
        world.sim.settle(10_000);
        world.hook(&["merge_requests_events"]);
        let old = world.sim.branch_head(P, "work").unwrap();
        let new = world.commit("work", "a", "2\n");
        assert_eq!(world.mr(iid)["sha"], old);
        world.sim.settle(60_000);
        let hooks = world.payloads();
        let actions: Vec<_> = hooks.iter().map(|hook| hook["object_attributes"]["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["unapproved", "update"]);
        assert_eq!(hooks[0]["object_attributes"]["system_action"], "approvals_reset_on_push");
        assert_eq!(hooks[1]["object_attributes"]["oldrev"], old);
        assert_eq!(hooks[1]["object_attributes"]["last_commit"]["id"], new);
        assert_eq!(world.mr(iid)["sha"], new);
        assert_eq!(world.sim.merge_requests(P)[0].approved_by, Vec::<String>::new());
    }

    #[test]
    fn merge_answers_in_their_order() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        let sha = world.sim.branch_head(P, "work").unwrap();
        assert_eq!(world.merge(99, json!({})), (404, json!({ "message": "404 Not found" })));
        let developer = world.as_user("developer");
        assert_eq!(developer.merge(iid, json!({ "sha": "x" })), (401, json!({ "message": "401 Unauthorized" })));
        let text = format!("SHA does not match HEAD of source branch: {sha}");
        assert_eq!(world.merge(iid, json!({ "sha": "1".repeat(40) })), (409, json!({ "message": text })));
        world.sim.set_settings(P, |settings| settings.approvals_required = 1);
        assert_eq!(world.merge(iid, json!({ "sha": sha })), (405, json!({ "message": "405 Method Not Allowed" })));
        world.sim.set_settings(P, |settings| settings.approvals_required = 0);
        world.sim.set_settings(P, |settings| settings.require_sha_on_merge = true);
        assert_eq!(world.merge(iid, json!({})), (400, json!({ "message": "400 Bad request - SHA must be provided when merging" })));
        let before = world.sim.branch_head(P, "main").unwrap();
        let (status, merged) = world.merge(iid, json!({ "sha": sha }));
        assert_eq!((status, merged["state"].as_str()), (200, Some("merged")));
        let head = &world.sim.commits(P, "main")[0];
        assert_eq!(merged["merge_commit_sha"], head.sha);
        assert_eq!(head.parents, [before, sha.clone()]);
        assert_eq!(head.message, "Merge branch 'work' into 'main'\n\nMerge work\n\nSee merge request demo/app!1");
        assert_eq!(world.merge(iid, json!({ "sha": sha })).0, 405);
        assert!(world.sim.branch_head(P, "work").is_some());
        world.sim.advance_by(2_000);
        assert_eq!(world.sim.branch_head(P, "work"), None);
        assert_eq!(world.mr(iid)["state"], "merged");
    }

    #[test]
    fn a_head_that_moved_unseen_fails_the_attempt() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        world.commit("work", "b", "2");
        assert_eq!(world.merge(iid, json!({})), (422, json!({ "message": "Branch cannot be merged" })));
        let error = "Branch has been updated since the merge was requested. Please review the changes.";
        assert_eq!(world.mr(iid)["merge_error"], error);
        assert_eq!(world.mr(iid)["state"], "opened");
    }

    #[test]
    fn a_conflict_is_405_and_was_422_before_18() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        world.sim.push(P, "main", &[("a", Some("other"))], "Rival", "root");
        world.sim.settle(60_000);
        assert_eq!(world.merge(iid, json!({})).0, 405);
        world.sim.set_version("17.11.7-ee");
        assert_eq!(world.merge(iid, json!({})), (422, json!({ "message": "Branch cannot be merged" })));
    }

    #[test]
    fn squash_fast_forward_and_rebase() {
        let world = World::new();
        world.sim.set_settings(P, |settings| {
            settings.merge_method = MergeMethod::Ff;
            settings.squash = SquashOption::Always;
            settings.only_allow_merge_if_pipeline_succeeds = false;
        });
        world.commit("work", "a", "1");
        let iid = world.ready_mr("work", "b");
        world.sim.push(P, "main", &[("c", Some("x"))], "Rival", "root");
        world.sim.settle(10_000);
        world.mr(iid);
        world.sim.settle(10_000);
        assert_eq!(world.detailed(iid), "need_rebase");
        assert_eq!(world.merge(iid, json!({})).0, 405);
        let path = project(&format!("/merge_requests/{iid}/rebase"));
        assert_eq!(world.call("PUT", &path, Value::Null), (202, json!({ "rebase_in_progress": true })));
        assert_eq!(world.call("PUT", &path, Value::Null).0, 409);
        world.sim.settle(60_000);
        let main = world.sim.branch_head(P, "main").unwrap();
        let (status, merged) = world.merge(iid, json!({}));
        assert_eq!((status, &merged["merge_commit_sha"]), (200, &Value::Null));
        let head = &world.sim.commits(P, "main")[0];
        assert_eq!(merged["squash_commit_sha"], head.sha);
        assert_eq!((&head.parents, head.message.as_str()), (&vec![main], "Merge work"));
    }

    #[test]
    fn pushes_close_and_merge() {
        let world = World::new();
        world.commit("gone", "a", "1");
        let head = world.commit("landed", "b", "2");
        let (gone, landed) = (world.open_mr("gone"), world.open_mr("landed"));
        world.sim.settle(60_000);
        world.hook(&["merge_requests_events"]);
        world.sim.delete_branch(P, "gone", "root");
        world.sim.force_push(P, "main", &head, "root");
        world.sim.settle(60_000);
        assert_eq!((&world.mr(gone)["state"], &world.mr(gone)["closed_by"]["username"]), (&json!("closed"), &json!("root")));
        assert_eq!((&world.mr(landed)["state"], &world.mr(landed)["merge_user"]["username"]), (&json!("merged"), &json!("root")));
        let actions: Vec<_> =
            world.payloads().iter().map(|hook| hook["object_attributes"]["action"].as_str().unwrap().to_owned()).collect();
        assert_eq!(actions, ["close", "merge"]);
    }

    #[test]
    fn a_force_push_back_to_the_target_leaves_it_open() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        world.sim.force_push(P, "work", &world.sim.branch_head(P, "main").unwrap(), "root");
        world.sim.settle(60_000);
        world.mr(iid);
        world.sim.settle(60_000);
        assert_eq!(world.detailed(iid), "commits_status");
    }

    #[test]
    fn approvals() {
        let world = World::new();
        world.sim.set_settings(P, |settings| settings.approvals_required = 2);
        let iid = world.ready_mr("work", "a");
        world.hook(&["merge_requests_events"]);
        let path = |rest: &str| project(&format!("/merge_requests/{iid}{rest}"));
        assert_eq!(world.call("POST", &path("/approve"), json!({})), (401, json!({ "message": "401 Unauthorized" })));
        let (reviewer, developer) = (world.as_user("reviewer"), world.as_user("developer"));
        assert_eq!(reviewer.call("POST", &path("/approve"), json!({ "sha": "x" })).0, 409);
        let (status, body) = reviewer.call("POST", &path("/approve"), json!({}));
        assert_eq!((status, &body["approved"], &body["approvals_left"]), (201, &json!(false), &json!(1)));
        assert_eq!(reviewer.call("POST", &path("/approve"), json!({})).0, 304);
        assert_eq!(developer.call("POST", &path("/approve"), json!({})).1["approved"], true);
        assert_eq!(developer.call("POST", &path("/unapprove"), json!({})).0, 201);
        assert_eq!(developer.call("POST", &path("/unapprove"), json!({})).0, 304);
        world.sim.settle(1_000);
        let actions: Vec<_> =
            world.payloads().iter().map(|hook| hook["object_attributes"]["action"].as_str().unwrap().to_owned()).collect();
        assert_eq!(actions, ["approval", "approved", "unapproved"]);
    }

    #[test]
    fn the_reviewer_persona_approves_by_herself() {
        let world = World::new();
        world.sim.add_persona(P, Persona { user: "reviewer".into(), approves_after_ms: 5_000, title_contains: None });
        world.commit("work", "a", "1");
        world.open_mr("work");
        world.sim.advance_by(6_999);
        assert_eq!(world.sim.merge_requests(P)[0].approved_by, Vec::<String>::new());
        world.sim.advance_by(1);
        assert_eq!(world.sim.merge_requests(P)[0].approved_by, ["reviewer"]);
    }

    #[test]
    fn updates_labels_and_reopening() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        let path = project(&format!("/merge_requests/{iid}"));
        let update = |body: Value| world.call("PUT", &path, body);
        assert_eq!(update(json!({})).0, 400);
        assert_eq!(update(json!({ "add_labels": "p::1,bug" })).1["labels"], json!(["bug", "p::1"]));
        assert_eq!(update(json!({ "add_labels": ["p::2"], "remove_labels": "bug" })).1["labels"], json!(["p::2"]));
        let events = world.get(&format!("{path}/resource_label_events"));
        let seen: Vec<_> = events
            .as_array()
            .unwrap()
            .iter()
            .map(|event| format!("{} {}", event["action"].as_str().unwrap(), event["label"]["name"].as_str().unwrap()))
            .collect();
        assert_eq!(seen, ["add p::1", "add bug", "remove p::1", "add p::2", "remove bug"]);
        assert_eq!(update(json!({ "description": "Text\n/label ~x\n```\n/close\n```" })).1["description"], "Text\n```\n/close\n```");
        assert_eq!(update(json!({ "state_event": "close" })).1["state"], "closed");
        let second = world.open_mr("work");
        let text = format!("Another open merge request already exists for this source branch: !{second}");
        assert_eq!(update(json!({ "state_event": "reopen" })), (409, json!({ "message": [text] })));
        world.sim.close_mr(P, second);
        world.sim.delete_branch(P, "work", "root");
        assert_eq!(update(json!({ "state_event": "reopen" })).0, 422);
        world.sim.set_version("18.11.0-ee");
        assert_eq!(update(json!({ "state_event": "reopen" })).1["state"], "opened");
    }

    #[test]
    fn auto_merge_waits_for_the_pipeline() {
        let world = World::new();
        world.commit("work", "a", "1");
        let iid = world.open_mr("work");
        world.sim.advance_by(4_000);
        let (status, set) = world.merge(iid, json!({ "auto_merge": true }));
        assert_eq!((status, &set["state"], &set["merge_when_pipeline_succeeds"]), (200, &json!("opened"), &json!(true)));
        world.sim.settle(60_000);
        let merged = world.mr(iid);
        assert_eq!((&merged["state"], &merged["merge_user"]["username"]), (&json!("merged"), &json!("collie-bot")));
    }

    #[test]
    fn notes_and_quick_actions() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        let path = project(&format!("/merge_requests/{iid}/notes"));
        let (status, note) = world.call("POST", &path, json!({ "body": "Hello\n/label ~seen" }));
        assert_eq!((status, &note["body"], &note["noteable_iid"]), (201, &json!("Hello"), &json!(iid)));
        let (status, only) = world.call("POST", &path, json!({ "body": "/unlabel ~seen" }));
        assert_eq!((status, only), (202, json!({ "commands_changes": {}, "summary": ["Removed seen label."] })));
        assert_eq!(world.call("POST", &path, json!({})), (400, json!({ "error": "body is missing" })));
        let one = format!("{path}/{}", note["id"]);
        assert_eq!(world.call("PUT", &one, json!({ "body": "Edited" })).1["body"], "Edited");
        assert_eq!(world.get(&path).as_array().unwrap().len(), 1);
        assert_eq!(world.sim.notes(P, iid)[0].body, "Edited");
        assert_eq!(world.call("GET", &format!("{path}/1"), Value::Null), (404, json!({ "message": "404 Not found" })));
    }

    #[test]
    fn lists_go_stale_until_the_row_changes() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        let listed = || world.get(&project("/merge_requests?state=opened&source_branch=work"))[0]["detailed_merge_status"].clone();
        assert_eq!(listed(), "mergeable");
        world.sim.set_settings(P, |settings| settings.approvals_required = 1);
        assert_eq!((listed(), world.detailed(iid).as_str()), (json!("mergeable"), "not_approved"));
        world.call("PUT", &project(&format!("/merge_requests/{iid}")), json!({ "add_labels": "x" }));
        world.sim.advance_by(1);
        world.call("PUT", &project(&format!("/merge_requests/{iid}")), json!({ "add_labels": "y" }));
        assert_eq!(listed(), "not_approved");
    }

    #[test]
    fn merge_ref_and_reset_of_approvals() {
        let world = World::new();
        let iid = world.ready_mr("work", "a");
        let path = |rest: &str| project(&format!("/merge_requests/{iid}/{rest}"));
        let commit = world.get(&path("merge_ref"))["commit_id"].as_str().unwrap().to_owned();
        assert_eq!(world.sim.commits(P, &commit)[0].parents[1], world.sim.branch_head(P, "work").unwrap());
        world.sim.approve(P, iid, "reviewer");
        assert_eq!(world.as_user("reviewer").call("PUT", &path("reset_approvals"), Value::Null).0, 401);
        assert_eq!(world.call("PUT", &path("reset_approvals"), Value::Null).0, 202);
        assert_eq!(world.sim.merge_requests(P)[0].approved_by, Vec::<String>::new());
        world.sim.push(P, "main", &[("a", Some("other"))], "Rival", "root");
        let refused = json!({ "message": "Merge request is not mergeable" });
        assert_eq!(world.call("GET", &path("merge_ref"), Value::Null), (400, refused));
    }
}
