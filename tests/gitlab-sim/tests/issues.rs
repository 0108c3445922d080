//! Issues of a project and the notes on them.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use gitlab_sim::{DEMO_BOT_TOKEN, Role};
    use serde_json::{Value, json};

    use crate::support::{P, World, project};

    fn create(world: &World, body: Value) -> Value {
        let (status, body) = world.call("POST", &project("/issues"), body);
        assert_eq!(status, 201, "{body}");
        body
    }

    fn iids(world: &World, query: &str) -> Vec<u64> {
        let rows = world.get(&project(&format!("/issues{query}")));
        rows.as_array().unwrap().iter().map(|row| row["iid"].as_u64().unwrap()).collect()
    }

    #[test]
    fn an_issue_is_made_read_edited_and_closed() {
        let world = World::new();
        let made = create(&world, json!({ "title": "It fails", "description": "Since today.", "labels": "bug,ci::red" }));
        assert_eq!((&made["iid"], &made["state"], &made["labels"]), (&json!(1), &json!("opened"), &json!(["bug", "ci::red"])));
        assert_eq!(
            (&made["author"]["username"], &made["web_url"]),
            (&json!("collie-bot"), &json!("http://gitlab.sim/demo/app/-/issues/1"))
        );
        let path = project("/issues/1");
        assert_eq!(world.get(&path), made);
        world.sim.advance_by(5_000);
        let edit = json!({ "title": "It failed", "description": "It is over.", "add_labels": "ci::green", "remove_labels": ["bug"] });
        let (status, edited) = world.call("PUT", &path, edit);
        assert_eq!((status, &edited["title"], &edited["labels"]), (200, &json!("It failed"), &json!(["ci::green"])));
        let (_, closed) = world.call("PUT", &path, json!({ "state_event": "close" }));
        assert_eq!((&closed["state"], &closed["closed_by"]["username"]), (&json!("closed"), &json!("collie-bot")));
        assert!(closed["closed_at"].is_string());
        let (_, open) = world.call("PUT", &path, json!({ "state_event": "reopen" }));
        assert_eq!((&open["state"], &open["closed_at"], &open["closed_by"]), (&json!("opened"), &Value::Null, &Value::Null));
        assert_eq!(world.sim.issues(P)[0].title, "It failed");
    }

    #[test]
    fn bad_requests_have_gitlabs_texts() {
        let world = World::new();
        create(&world, json!({ "title": "One" }));
        let post = |body: Value| world.call("POST", &project("/issues"), body);
        let put = |body: Value| world.call("PUT", &project("/issues/1"), body);
        assert_eq!(post(json!({})), (400, json!({ "error": "title is missing" })));
        assert_eq!(post(json!({ "title": " " })), (400, json!({ "message": { "title": ["can't be blank"] } })));
        let long = json!({ "message": { "title": ["is too long (maximum is 255 characters)"] } });
        assert_eq!(post(json!({ "title": "x".repeat(256) })), (400, long));
        assert_eq!(put(json!({ "state_event": "shut" })), (400, json!({ "error": "state_event does not have a valid value" })));
        let (status, body) = put(json!({ "colour": "red" }));
        assert_eq!(status, 400);
        assert!(body["error"].as_str().unwrap().ends_with("title are missing, at least one parameter must be provided"), "{body}");
        assert_eq!(world.call("GET", &project("/issues/9"), Value::Null), (404, json!({ "message": "404 Not found" })));
        world.sim.set_settings(P, |settings| settings.issues_enabled = false);
        assert_eq!(world.call("GET", &project("/issues"), Value::Null), (403, json!({ "message": "403 Forbidden" })));
    }

    #[test]
    fn quick_actions_are_carried_out_in_descriptions_and_notes() {
        let world = World::new();
        let made = create(&world, json!({ "title": "One", "description": "Text\n/label ~bug ~\"two words\"\n/close" }));
        assert_eq!(
            (&made["description"], &made["state"], &made["labels"]),
            (&json!("Text"), &json!("closed"), &json!(["bug", "two words"]))
        );
        let notes = project("/issues/1/notes");
        let (status, answer) = world.call("POST", &notes, json!({ "body": "/reopen\n/unlabel ~bug" }));
        assert_eq!((status, &answer["summary"]), (202, &json!(["Reopened this issue.", "Removed bug label."])));
        let (status, note) = world.call("POST", &notes, json!({ "body": "Now\n/close" }));
        assert_eq!(
            (status, &note["body"], &note["noteable_type"], &note["noteable_iid"]),
            (201, &json!("Now"), &json!("Issue"), &json!(1))
        );
        let issue = &world.sim.issues(P)[0];
        assert_eq!((issue.state.as_str(), issue.labels.clone(), issue.notes.len()), ("closed", vec!["two words".to_owned()], 1));
        let (_, kept) = world.call("PUT", &project("/issues/1"), json!({ "description": "<!--\n/reopen\n-->\n```\n/reopen\n```" }));
        assert_eq!(kept["description"], "<!--\n/reopen\n-->\n```\n/reopen\n```");
    }

    #[test]
    fn a_note_is_its_authors() {
        let world = World::new();
        create(&world, json!({ "title": "One" }));
        let (_, note) = world.call("POST", &project("/issues/1/notes"), json!({ "body": "one" }));
        let path = project(&format!("/issues/1/notes/{}", note["id"]));
        assert_eq!(world.call("PUT", &path, json!({ "body": "two" })).1["body"], "two");
        let dana = world.as_user("developer");
        assert_eq!(dana.call("PUT", &path, json!({ "body": "three" })).0, 403);
        assert_eq!(dana.call("DELETE", &path, Value::Null).0, 403);
        assert_eq!(world.get(&project("/issues/1"))["user_notes_count"], 1);
        assert_eq!(world.call("DELETE", &path, Value::Null).0, 204);
        assert_eq!(world.get(&project("/issues/1/notes")), json!([]));
    }

    #[test]
    fn lists_are_filtered_and_a_search_does_not_see_comments() {
        let world = World::new();
        create(&world, json!({ "title": "Lint fails", "description": "<!-- marker-7 -->\nplain text", "labels": "ci" }));
        world.sim.advance_by(60_000);
        create(&world.as_user("developer"), json!({ "title": "Unit fails", "labels": ["ci", "bug"] }));
        let after = world.get(&project("/issues/2"))["created_at"].as_str().unwrap().to_owned();
        world.call("PUT", &project("/issues/1"), json!({ "state_event": "close" }));
        let table = [
            ("", vec![2, 1]),
            ("?sort=asc", vec![1, 2]),
            ("?order_by=updated_at", vec![2, 1]),
            ("?state=opened", vec![2]),
            ("?state=closed", vec![1]),
            ("?labels=ci", vec![2, 1]),
            ("?labels=ci,bug", vec![2]),
            ("?labels=None", vec![]),
            ("?iids[]=1", vec![1]),
            ("?scope=created_by_me", vec![1]),
            ("?author_username=developer", vec![2]),
            ("?search=fails", vec![2, 1]),
            ("?search=plain", vec![1]),
            ("?search=plain&in=title", vec![]),
            ("?search=marker-7", vec![]),
            ("?per_page=1&page=2", vec![1]),
        ];
        for (query, found) in table {
            assert_eq!(iids(&world, query), found, "{query}");
        }
        assert_eq!(iids(&world, &format!("?created_after={after}")), [2]);
        let odd = world.call("GET", &project("/issues?state=odd"), Value::Null);
        assert_eq!(odd, (400, json!({ "error": "state does not have a valid value" })));
    }

    #[test]
    fn a_guest_writes_but_sets_no_labels_and_does_not_see_confidential_ones() {
        let world = World::new();
        world.sim.add_user("guest", "Gus Guest");
        world.sim.set_member(P, "guest", Some(Role::Guest));
        let guest = world.as_user("guest");
        let made = create(&guest, json!({ "title": "Help", "labels": "bug" }));
        assert_eq!(made["labels"], json!([]));
        assert_eq!(guest.call("PUT", &project("/issues/1"), json!({ "title": "Help me", "labels": "bug" })).1["labels"], json!([]));
        create(&world, json!({ "title": "Secret", "confidential": true }));
        assert_eq!(guest.call("GET", &project("/issues/2"), Value::Null), (404, json!({ "message": "404 Not found" })));
        assert_eq!((iids(&guest, ""), iids(&world, "")), (vec![1], vec![2, 1]));
        create(&world, json!({ "title": "Open" }));
        assert_eq!(guest.call("PUT", &project("/issues/3"), json!({ "title": "Mine" })), (403, json!({ "message": "403 Forbidden" })));
        world.sim.add_user("stranger", "Stranger");
        assert_eq!(world.as_user("stranger").call("POST", &project("/issues"), json!({ "title": "x" })).0, 404);
        world.sim.add_token("collie-bot", "read-only", &["read_api"], None);
        let reader = World { sim: world.sim.clone(), token: "read-only".into() };
        assert_eq!(reader.call("POST", &project("/issues"), json!({ "title": "x" })).0, 403);
        assert_eq!(world.token, DEMO_BOT_TOKEN);
    }
}
