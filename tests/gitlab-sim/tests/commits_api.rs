//! The Commits API: what it makes, and every refusal word for word.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::{AccessLevel, ProtectedBranch};
    use serde_json::{Value, json};

    use crate::support::{P, World, message, project};

    fn commit(world: &World, body: Value) -> (u16, Value) {
        world.call("POST", &project("/repository/commits"), body)
    }

    fn with_actions(actions: Value) -> Value {
        json!({ "branch": "main", "commit_message": "Change", "actions": actions })
    }

    #[test]
    fn refusals_of_the_bodys_shape() {
        let world = World::new();
        let one = json!([{ "action": "create", "file_path": "a", "content": "x" }]);
        let table = [
            (json!({ "branch": "", "commit_message": "x", "actions": one }), "branch is required"),
            (json!({ "branch": "main", "actions": one }), "commit_message is required"),
            (json!({ "branch": "main", "commit_message": "x" }), "actions is required"),
            (json!({ "branch": "main", "commit_message": "x", "actions": [] }), "actions is required"),
            (
                json!({ "branch": "b", "commit_message": "x", "actions": one, "start_branch": "main", "start_sha": "1" }),
                "start_branch, start_sha are mutually exclusive",
            ),
            (with_actions(json!([{ "file_path": "a" }])), "actions[0][action] is required"),
            (with_actions(json!([{ "action": "create" }])), "actions[0][file_path] is required"),
            (
                with_actions(json!([{ "action": "touch", "file_path": "a" }])),
                "actions[0][action] must be one of: create, update, move, delete, chmod",
            ),
            (
                with_actions(json!([{ "action": "create", "file_path": "a", "encoding": "hex" }])),
                "actions[0][encoding] must be text or base64",
            ),
            (with_actions(json!([{ "action": "update", "file_path": "a" }])), "actions[0][content] is required for update action"),
            (with_actions(json!([{ "action": "move", "file_path": "a" }])), "actions[0][previous_path] is required for move action"),
            (with_actions(json!([{ "action": "chmod", "file_path": "a" }])), "actions[0][execute_filemode] is required for chmod action"),
            (
                with_actions(json!([{ "action": "chmod", "file_path": "a", "execute_filemode": "yes" }])),
                "actions[0][execute_filemode] must be a boolean",
            ),
        ];
        for (body, reason) in table {
            let expected = json!({ "message": format!("400 Bad request - {reason}") });
            assert_eq!(commit(&world, body), (400, expected));
        }
    }

    #[test]
    fn refusals_of_the_service_have_no_prefix_and_no_path() {
        let world = World::new();
        world.commit("taken", "dir/inner.txt", "x");
        let main = world.sim.branch_head(P, "main").unwrap();
        let create = |path: &str| json!([{ "action": "create", "file_path": path, "content": "x" }]);
        let on = |branch: &str, extra: Value| {
            let mut body = json!({ "branch": branch, "commit_message": "x", "actions": create("new") });
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            body
        };
        let stale = json!([{ "action": "update", "file_path": "Cargo.toml", "content": "x", "last_commit_id": "0".repeat(40) }]);
        let table = [
            (with_actions(create("README.md")), "A file with this name already exists"),
            (
                with_actions(json!([{ "action": "move", "file_path": "README.md", "previous_path": "Cargo.toml" }])),
                "A file with this name already exists",
            ),
            (with_actions(create("src")), "A directory with this name already exists"),
            (with_actions(json!([{ "action": "update", "file_path": "no", "content": "x" }])), "A file with this name doesn't exist"),
            (with_actions(json!([{ "action": "delete", "file_path": "no" }])), "A file with this name doesn't exist"),
            (
                with_actions(json!([{ "action": "chmod", "file_path": "no", "execute_filemode": true }])),
                "A file with this name doesn't exist",
            ),
            (with_actions(json!([{ "action": "move", "file_path": "b", "previous_path": "no" }])), "A file with this name doesn't exist"),
            (with_actions(create("../x")), "Path cannot include directory traversal"),
            (with_actions(create("")), "You must provide a file path"),
            (with_actions(create("a//b")), "invalid path: 'a//b'"),
            (with_actions(stale), "The file has changed since you started editing it: Cargo.toml"),
            (on("absent", json!({})), "You can only create or edit files when you are on a branch"),
            (on("new", json!({ "start_branch": "absent" })), "You can only create or edit files when you are on a branch"),
            (
                on("taken", json!({ "start_branch": "main" })),
                "A branch called 'taken' already exists. Switch to that branch in order to make changes",
            ),
            (
                on("taken", json!({ "start_sha": main })),
                "A branch called 'taken' already exists. Switch to that branch in order to make changes",
            ),
            (
                on("a b", json!({ "start_branch": "main" })),
                "Something went wrong when we tried to create 'a b' for you: Branch name is invalid",
            ),
            (on("new", json!({ "start_sha": "main" })), "Invalid start_sha 'main'"),
            (on("new", json!({ "start_sha": "1".repeat(40) })), "Cannot find start_sha '1111111111111111111111111111111111111111'"),
        ];
        for (body, text) in table {
            assert_eq!(commit(&world, body.clone()), (400, json!({ "message": text })), "{body}");
        }
        assert_eq!(world.sim.branch_head(P, "main").unwrap(), main);
    }

    #[test]
    fn the_right_to_push_is_asked_before_the_body_is_read() {
        let world = World::new();
        let refused = json!({ "message": "403 Forbidden - You are not allowed to push into this branch" });
        let developer = world.as_user("developer");
        assert_eq!(commit(&developer, json!({ "branch": "main" })), (403, refused.clone()));
        let rule =
            ProtectedBranch { pattern: "bot/*".into(), push: AccessLevel::NoOne, merge: AccessLevel::NoOne, allow_force_push: false };
        world.sim.protect(P, vec![rule]);
        assert_eq!(commit(&world, json!({ "branch": "bot/x" })), (403, refused));
    }

    #[test]
    fn broken_json_has_its_own_shape() {
        let world = World::new();
        let headers = vec![("PRIVATE-TOKEN".into(), world.token.clone())];
        let uri = format!("/api/v4{}", project("/repository/commits"));
        let reply = world.sim.call(gitlab_sim::ApiRequest { method: "POST".into(), uri, headers, body: "{".into() }).unwrap();
        assert_eq!((reply.status, reply.json_body()), (400, json!({ "message": "Invalid json", "error": "Invalid json" })));
    }

    #[test]
    fn all_actions_in_one_commit_on_a_new_branch() {
        let world = World::new();
        let actions = json!([
            { "action": "create", "file_path": "empty" },
            { "action": "create", "file_path": "bin", "content": "AAE=", "encoding": "base64" },
            { "action": "update", "file_path": "README.md", "content": "# New\n" },
            { "action": "move", "file_path": "lib.rs", "previous_path": "src/lib.rs" },
            { "action": "move", "file_path": "main.rs", "previous_path": "src/main.rs", "content": "" },
            { "action": "delete", "file_path": ".gitlab-ci.yml" },
            { "action": "chmod", "file_path": "bin", "execute_filemode": true },
        ]);
        let body = json!({ "branch": "work/1", "start_branch": "main", "commit_message": "All at once\n\nBody", "actions": actions,
                           "author_name": "Ann", "author_email": "ann@example.org" });
        let (status, made) = commit(&world, body);
        assert_eq!(status, 201);
        assert_eq!(made["title"], "All at once");
        assert_eq!(made["author_name"], "Ann");
        assert_eq!(made["committer_name"], "Collie");
        assert_eq!(made["parent_ids"], json!([world.sim.branch_head(P, "main")]));
        assert_eq!(made["created_at"], "2026-05-28T20:26:40.000+00:00");
        assert_eq!(world.sim.branch_head(P, "work/1").as_deref(), made["id"].as_str());
        let file = |path: &str| world.sim.file_at(P, "work/1", path);
        assert_eq!(file("empty"), Some(vec![]));
        assert_eq!(file("bin"), Some(vec![0, 1]));
        assert_eq!(file("main.rs"), Some(vec![]));
        assert_eq!(file("lib.rs"), world.sim.file_at(P, "main", "src/lib.rs"));
        assert_eq!((file("src/lib.rs"), file(".gitlab-ci.yml")), (None, None));
        let tree = world.get(&project("/repository/tree?ref=work%2F1"));
        let modes: Vec<_> = tree
            .as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", row["mode"].as_str().unwrap(), row["name"].as_str().unwrap()))
            .collect();
        assert_eq!(modes, ["100644 Cargo.toml", "100644 README.md", "100755 bin", "100644 empty", "100644 lib.rs", "100644 main.rs"]);
    }

    #[test]
    fn force_drops_what_was_on_the_branch() {
        let world = World::new();
        world.commit("work", "a", "1");
        let body = json!({ "branch": "work", "start_branch": "main", "force": true, "commit_message": "Again",
                           "actions": [{ "action": "create", "file_path": "b", "content": "2" }] });
        assert_eq!(commit(&world, body).0, 201);
        assert_eq!(world.sim.file_at(P, "work", "a"), None);
        assert_eq!(world.sim.commits(P, "work").len(), 2);
        let body = json!({ "branch": "main", "start_sha": world.sim.branch_head(P, "work"), "force": true, "commit_message": "x",
                           "actions": [{ "action": "create", "file_path": "c" }] });
        let text = "You are not allowed to force push code to a protected branch on this project.";
        assert_eq!(commit(&world, body), (400, json!({ "message": text })));
    }

    #[test]
    fn a_current_last_commit_id_passes() {
        let world = World::new();
        let first = world.sim.branch_head(P, "main").unwrap();
        world.commit("main", "other", "x");
        let update =
            |id: &str| with_actions(json!([{ "action": "update", "file_path": "README.md", "content": "new", "last_commit_id": id }]));
        let head = world.sim.branch_head(P, "main").unwrap();
        let (status, body) = commit(&world, update(&head));
        assert_eq!((status, message(&body)), (400, "The file has changed since you started editing it: README.md"));
        assert_eq!(commit(&world, update(&first)).0, 201);
    }

    #[test]
    fn single_files() {
        let world = World::new();
        let path = project("/repository/files/docs%2Fa.md");
        let body = json!({ "branch": "main", "commit_message": "Doc", "content": "a" });
        assert_eq!(world.call("POST", &path, body.clone()), (201, json!({ "file_path": "docs/a.md", "branch": "main" })));
        assert_eq!(world.call("POST", &path, body.clone()), (400, json!({ "message": "A file with this name already exists" })));
        assert_eq!(world.call("PUT", &path, body.clone()).0, 200);
        assert_eq!(world.call("DELETE", &path, body).0, 204);
        assert_eq!(world.sim.file_at(P, "main", "docs/a.md"), None);
    }

    #[test]
    fn the_fourth_large_body_in_half_a_minute_is_too_many() {
        let world = World::new();
        let headers = vec![("PRIVATE-TOKEN".into(), world.token.clone())];
        let body = format!("{{\"branch\":\"main\"}}{}", " ".repeat(21 << 20));
        let uri = format!("/api/v4{}", project("/repository/commits"));
        let request = gitlab_sim::ApiRequest { method: "POST".into(), uri, headers, body: body.into() };
        for expected in [400, 400, 400, 429] {
            assert_eq!(world.sim.call(request.clone()).map(|reply| reply.status), Some(expected));
        }
        world.sim.advance_by(30_000);
        assert_eq!(world.sim.call(request).map(|reply| reply.status), Some(400));
    }
}
