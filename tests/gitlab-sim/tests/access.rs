//! Who may see and do what, pages, redirects, limits, and reading the repository.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::{LimitShape, RateLimit, Role};
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    fn with_token(world: &World, token: &str) -> World {
        World { sim: world.sim.clone(), token: token.to_owned() }
    }

    #[test]
    fn tokens() {
        let world = World::new();
        let read = |token: &str| with_token(&world, token).call("GET", &project(""), Value::Null);
        assert_eq!(read("unknown"), (401, json!({ "message": "401 Unauthorized" })));
        world.sim.add_token("reviewer", "short", &["api"], Some(world.sim.now_ms() + 10));
        assert_eq!(read("short").0, 200);
        world.sim.advance_by(10);
        let expired = "Token is expired. You can either do re-authorization or token refresh.";
        assert_eq!(read("short"), (401, json!({ "error": "invalid_token", "error_description": expired })));
        world.sim.add_token("reviewer", "gone", &["api"], None);
        world.sim.revoke_token("gone");
        let revoked = "Token was revoked. You have to re-authorize from the user.";
        assert_eq!(read("gone"), (401, json!({ "error": "invalid_token", "error_description": revoked })));
        world.sim.add_token("reviewer", "reads", &["read_api"], None);
        assert_eq!(read("reads").0, 200);
        let (status, body) = with_token(&world, "reads").call("POST", &project("/repository/commits"), json!({}));
        assert_eq!((status, &body["error"], &body["scope"]), (403, &json!("insufficient_scope"), &json!("api")));
        world.sim.add_token("reviewer", "git", &["read_repository"], None);
        assert_eq!(read("git").1["scope"], "api read_api");
    }

    #[test]
    fn rotation_kills_the_old_token() {
        let world = World::new();
        let (status, body) = world.call("POST", "/personal_access_tokens/self/rotate", json!({}));
        assert_eq!((status, &body["expires_at"]), (200, &json!("2026-06-04")));
        assert_eq!(world.call("GET", "/user", Value::Null).0, 401);
        let user = with_token(&world, body["token"].as_str().unwrap()).get("/user");
        assert_eq!((&user["username"], &user["bot"]), (&json!("collie-bot"), &json!(true)));
    }

    #[test]
    fn what_is_not_visible_does_not_exist() {
        let world = World::new();
        world.sim.add_user("stranger", "Stranger");
        let stranger = world.as_user("stranger");
        let missing = (404, json!({ "message": "404 Project Not Found" }));
        assert_eq!(stranger.call("GET", &project("/merge_requests"), Value::Null), missing);
        assert_eq!(world.call("GET", "/projects/999", Value::Null), missing);
        assert_eq!(world.call("GET", "/projects/demo", Value::Null), missing);
        assert_eq!(world.call("GET", "/nowhere", Value::Null), (404, json!({ "error": "404 Not Found" })));
        world.sim.set_public(P, true);
        assert_eq!(stranger.call("GET", &project(""), Value::Null).0, 200);
        world.sim.set_member(P, "stranger", Some(Role::Guest));
        let body = json!({ "source_branch": "a", "target_branch": "b", "title": "t" });
        assert_eq!(stranger.call("POST", &project("/merge_requests"), body), (403, json!({ "message": "403 Forbidden" })));
    }

    #[test]
    fn a_renamed_project_redirects_reads_and_refuses_writes() {
        let world = World::new();
        world.sim.rename_project(P, "demo/renamed");
        let reply = world.raw("GET", "/projects/demo%2Fapp/merge_requests?state=opened", &Value::Null);
        let url = "http://gitlab.sim/api/v4/projects/101/merge_requests?state=opened";
        assert_eq!((reply.status, reply.header("location")), (301, Some(url)));
        assert_eq!(reply.body, format!("This resource has been moved permanently to {url}"));
        let refused = json!({ "message": "Non GET methods are not allowed for moved projects" });
        assert_eq!(world.call("POST", "/projects/demo%2Fapp/merge_requests", json!({})), (405, refused));
        assert_eq!(world.get("/projects/demo%2Frenamed")["id"], P);
    }

    #[test]
    fn offset_pages() {
        let world = World::new();
        for n in 0..5 {
            world.commit(&format!("b{n}"), "a", "1");
        }
        let page = |query: &str| world.raw("GET", &project(&format!("/repository/branches{query}")), &Value::Null);
        let first = page("?per_page=4");
        let headers = ["x-next-page", "x-prev-page", "x-total", "x-total-pages", "x-per-page"]
            .map(|name| first.header(name).unwrap_or("-").to_owned());
        assert_eq!(headers, ["2", "", "6", "2", "4"]);
        assert!(first.header("link").unwrap().contains("/repository/branches?page=2&per_page=4>; rel=\"next\""));
        let last = page("?per_page=4&page=2");
        assert_eq!((last.header("x-next-page"), last.json_body().as_array().unwrap().len()), (Some(""), 2));
        assert_eq!(page("?per_page=1000").header("x-per-page"), Some("100"));
        assert_eq!(page("?page=0").json_body(), json!({ "error": "page does not have a valid value" }));
        assert_eq!(page("?page=600&per_page=100").status, 405);
        let commits = world.raw("GET", &project("/repository/commits"), &Value::Null);
        assert_eq!((commits.header("x-total"), commits.header("x-next-page")), (None, Some("")));
    }

    #[test]
    fn trees_by_keyset_files_and_compare() {
        let world = World::new();
        world.commit("work", "src/deep/x.rs", "pub fn x() {}\n");
        let mut names = Vec::new();
        let mut path = project("/repository/tree?ref=work&recursive=true&per_page=3&pagination=keyset");
        loop {
            let reply = world.raw("GET", &path, &Value::Null);
            names.extend(reply.json_body().as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned()));
            let Some(link) = reply.header("link") else { break };
            let url = link.trim_start_matches('<').split('>').next().unwrap();
            path = url.strip_prefix("http://gitlab.sim/api/v4").unwrap().to_owned();
        }
        let expected = ["src", ".gitlab-ci.yml", "Cargo.toml", "README.md", "src/deep", "src/lib.rs", "src/main.rs", "src/deep/x.rs"];
        assert_eq!(names, expected);
        let missing = world.call("GET", &project("/repository/tree?ref=work&path=none"), Value::Null);
        assert_eq!(missing, (404, json!({ "message": "404 invalid revision or path Not Found" })));
        let file = world.get(&project("/repository/files/src%2Fdeep%2Fx.rs?ref=work"));
        assert_eq!((&file["content"], &file["last_commit_id"]), (&json!("cHViIGZuIHgoKSB7fQo="), &json!(world.sim.branch_head(P, "work"))));
        let raw = world.raw("GET", &project("/repository/files/README.md/raw"), &Value::Null);
        assert_eq!(&raw.body[..], b"# App\n\nA small program.\n");
        let get = |path: &str| world.call("GET", &project(path), Value::Null);
        assert_eq!(get("/repository/files/none?ref=main"), (404, json!({ "message": "404 File Not Found" })));
        assert_eq!(get("/repository/files/none?ref=none"), (404, json!({ "message": "404 Commit Not Found" })));
        let compare = world.get(&project("/repository/compare?from=main&to=work"));
        assert_eq!(
            (&compare["diffs"][0]["diff"], &compare["diffs"][0]["new_file"]),
            (&json!("@@ -0,0 +1 @@\n+pub fn x() {}\n"), &json!(true))
        );
        assert_eq!(compare["commits"].as_array().unwrap().len(), 1);
        assert_eq!(get("/repository/compare?from=main&to=none"), (404, json!({ "message": "404 Ref Not Found" })));
        assert_eq!(get("/repository/compare?to=main"), (400, json!({ "error": "from is missing" })));
        assert_eq!(get("/repository/merge_base?refs[]=main&refs[]=work").1["id"], json!(world.sim.branch_head(P, "main")));
        assert_eq!(get("/repository/merge_base?refs[]=main"), (400, json!({ "message": "400 Bad request - Provide at least 2 refs" })));
        assert_eq!(get("/repository/commits/none"), (404, json!({ "message": "404 Commit Not Found" })));
    }

    #[test]
    fn branches() {
        let world = World::new();
        let path = project("/repository/branches");
        let create = |name: &str, from: &str| world.call("POST", &path, json!({ "branch": name, "ref": from }));
        assert_eq!(create("new/one", "main").0, 201);
        assert_eq!(create("new/one", "main"), (400, json!({ "message": "Branch already exists" })));
        assert_eq!(create("a b", "main"), (400, json!({ "message": "Branch name is invalid" })));
        let text = "Failed to create branch 'b': invalid reference name 'nope'";
        assert_eq!(create("b", "nope"), (400, json!({ "message": text })));
        let one = format!("{path}/new%2Fone");
        assert_eq!(world.get(&one)["name"], "new/one");
        assert_eq!(world.call("GET", &format!("{path}/new/one"), Value::Null).0, 404);
        assert_eq!(world.call("GET", &format!("{path}/none"), Value::Null), (404, json!({ "message": "404 Branch Not Found" })));
        assert_eq!(world.call("GET", &format!("{path}/a%20b"), Value::Null), (400, json!({ "message": "The branch refname is invalid" })));
        let headers =
            vec![("PRIVATE-TOKEN".into(), world.token.clone()), ("If-Unmodified-Since".into(), "Sat, 31 Jan 2026 18:03:54 GMT".into())];
        let request = gitlab_sim::ApiRequest { method: "DELETE".into(), uri: format!("/api/v4{one}"), headers, ..Default::default() };
        assert_eq!(world.sim.call(request).map(|reply| reply.status), Some(412));
        assert_eq!(world.call("DELETE", &one, Value::Null).0, 204);
        assert_eq!(world.call("DELETE", &format!("{path}/main"), Value::Null), (400, json!({ "message": "Failed to remove branch" })));
    }

    #[test]
    fn rate_limits_in_both_shapes() {
        let world = World::new();
        let limit = |shape, retry_after| RateLimit { per_minute: 1, shape, retry_after, path: None };
        world.sim.set_rate_limit(Some(limit(LimitShape::RackAttack, true)));
        assert_eq!(world.call("GET", "/user", Value::Null).0, 200);
        let refused = world.raw("GET", "/user", &Value::Null);
        assert_eq!((refused.status, &refused.body[..]), (429, &b"Retry later\n"[..]));
        assert_eq!((refused.header("retry-after"), refused.header("ratelimit-observed")), (Some("20"), Some("2")));
        world.sim.set_rate_limit(Some(limit(LimitShape::Application, false)));
        let refused = world.raw("GET", "/user", &Value::Null);
        let text = "This endpoint has been requested too many times. Try again later.";
        assert_eq!((refused.status, refused.json_body()), (429, json!({ "message": { "error": text } })));
        assert_eq!(refused.header("retry-after"), None);
        world.sim.advance_by(20_000);
        assert_eq!(world.call("GET", "/user", Value::Null).0, 200);
    }

    #[test]
    fn push_events_are_kept() {
        let world = World::new();
        world.commit("main", "a", "1");
        world.sim.settle(1_000);
        let events = world.get(&project("/events?action=pushed"));
        assert_eq!((&events[0]["action_name"], &events[0]["push_data"]["ref"]), (&json!("pushed to"), &json!("main")));
        assert_eq!(events[0]["push_data"]["commit_to"], json!(world.sim.branch_head(P, "main")));
        assert_eq!(world.get(&project("/events?after=2026-05-28")), json!([]));
    }
}
