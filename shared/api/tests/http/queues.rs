//! CI issues: what reporters write, what everybody reads, and who may.

use crate::support::World;
use serde_json::{Value, json};

const QUEUE: &str = "/v1/queues/app-main";

/// Admits a uri with its build.
async fn started(world: &World, uri: &str, build: &str) -> String {
    let admitted = world.post("ci", &format!("{QUEUE}/requests"), &json!({"uri": uri})).await;
    let id = admitted.json()["request_id"].as_str().unwrap().to_owned();
    let built = world.put("ci", &format!("{QUEUE}/requests/{id}/build"), &json!({"build_id": build})).await;
    assert_eq!((built.status, built.json()), (200, json!({"request_id": id, "build_id": build})));
    id
}

/// A whole build, tracked to its end.
async fn built(world: &World, uri: &str, build: &str, issues: Value) -> String {
    let id = started(world, uri, build).await;
    let count = issues.as_array().unwrap().len();
    let reported = world.post("ci", &format!("{QUEUE}/issues"), &json!({"build_id": build, "issues": issues})).await;
    assert_eq!((reported.status, reported.json()), (200, json!({"accepted": count})));
    let ended = world.post("ci", &format!("{QUEUE}/analysis"), &json!({"build_id": build, "state": "completed"})).await;
    assert_eq!((ended.status, ended.json()), (200, json!({"build_id": build, "state": "completed"})));
    let outcome = world.post("ci", &format!("{QUEUE}/requests/{id}/outcome"), &json!({"outcome": "failed"})).await;
    assert_eq!((outcome.status, outcome.json()), (200, json!({"request_id": id, "outcome": "failed"})));
    let queue = world.tracking.queue("app-main").unwrap().clone();
    world.tracking.work(&queue, None, crate::support::NOW.after(std::time::Duration::from_secs(9))).await.unwrap();
    id
}

fn issue(task: &str, unit: &str) -> Value {
    json!({"task_id": task, "unit_id": unit})
}

#[tokio::test]
async fn a_uri_is_admitted_once() {
    let world = World::new();
    let admit = async |uri: &str| {
        let answer = world.post("ci", &format!("{QUEUE}/requests"), &json!({"uri": uri})).await;
        (answer.status, answer.json())
    };
    assert_eq!(admit("commit 1").await, (201, json!({"request_id": "1"})));
    assert_eq!(admit("commit 1").await, (200, json!({"request_id": "1"})));
    assert_eq!(admit("commit 2").await, (201, json!({"request_id": "2"})));
}

#[tokio::test]
async fn issues_are_reported_listed_closed_and_told_apart() {
    let world = World::new();
    built(&world, "commit 1", "b1", json!([issue("unit", "a"), issue("unit", "b"), issue("lint", "x")])).await;
    let second = built(&world, "commit 2", "b2", json!([issue("unit", "b")])).await;
    let open = world.get("watcher", &format!("{QUEUE}/issues?status=open")).await;
    let shown = |task: &str, unit: &str, status: &str, changing: &str, version: u64| {
        json!({"task_id": task, "unit_id": unit, "status": status, "first_seen_build_id": "b1", "first_seen_request_id": "1", "first_seen_url": null,
            "changing_build_id": format!("b{changing}"), "changing_request_id": changing, "metadata": {}, "version": version})
    };
    let without_times = |answer: Value| {
        let mut items = answer["items"].as_array().unwrap().clone();
        for item in &mut items {
            let at = item.as_object_mut().unwrap().remove("changed_at").unwrap();
            assert!(at.as_str().unwrap().starts_with("2026-01-31T18:04:04"), "{at}");
        }
        items
    };
    assert_eq!(without_times(open.json()), [shown("unit", "b", "open", "1", 2)]);
    let closed = world.get("ci", &format!("{QUEUE}/issues?status=closed&task_prefix=unit")).await;
    assert_eq!(without_times(closed.json()), [shown("unit", "a", "closed", "2", 2)]);
    let first = world.get("watcher", &format!("{QUEUE}/issues?limit=2")).await.json();
    let rest = world.get("watcher", &format!("{QUEUE}/issues?limit=2&cursor={}", first["next_cursor"].as_str().unwrap())).await.json();
    assert_eq!((first["items"].as_array().unwrap().len(), rest["items"].as_array().unwrap().len()), (2, 1));
    assert_eq!(rest["next_cursor"], Value::Null);

    let meant = world.get("watcher", &format!("{QUEUE}/requests/{second}/issues?result=closed")).await.json();
    let tasks: Vec<_> = meant["items"].as_array().unwrap().iter().map(|item| item["task_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((tasks, meant["coverage"].as_str()), (vec!["lint".to_owned(), "unit".to_owned()], Some("complete")));
    let history = world.get("watcher", &format!("{QUEUE}/issue/history?task=unit&unit=a")).await.json();
    let events: Vec<_> = history["items"].as_array().unwrap().iter().map(|e| (e["event"].clone(), e["build_id"].clone())).collect();
    assert_eq!(events, [(json!("opened"), json!("b1")), (json!("closed"), json!("b2"))]);
    let entry = world.get("watcher", &format!("{QUEUE}/issue/log?task=unit&unit=b&build=b2&event=reported")).await.json();
    let want =
        json!({"event": "reported", "build_id": "b2", "request_id": "2", "at": "2026-01-31T18:04:04.000Z", "first_seen_build_id": "b1"});
    assert_eq!(entry, want);
}

#[tokio::test]
async fn a_request_shows_what_happened_to_it_and_the_queue_where_it_stands() {
    let world = World::new();
    let first = built(&world, "commit 1", "b1", json!([issue("unit", "")])).await;
    let history = world.get("watcher", &format!("{QUEUE}/requests/{first}/history")).await.json();
    let want = json!({
        "request_id": "1", "uri": "commit 1", "url": null, "build_id": "b1", "outcome": "failed", "admitted_at": "2026-01-31T18:04:04.000Z",
        "items": [
            {"event_id": "event/build_analysis_completed/b1", "event": "build_analysis_completed", "at": "2026-01-31T18:04:04.000Z", "build_id": "b1"},
            {"event_id": "event/issues_reconciled/b1", "event": "issues_reconciled", "at": "2026-01-31T18:04:04.000Z", "build_id": "b1",
                "suppressed": "task_wide"},
        ],
        "next_cursor": null,
    });
    assert_eq!(history, want);
    world.post("ci", &format!("{QUEUE}/requests"), &json!({"uri": "commit 2"})).await;
    let tracking = world.get("watcher", &format!("{QUEUE}/tracking")).await.json();
    let want = json!({
        "checkpoint": {"phase": "finalized", "request_id": "1", "build_id": "b1", "finalize": true, "suppressed": "task_wide",
            "began_at": "2026-01-31T18:04:04.000Z"},
        "oldest_job": {"request_id": "2", "registered_at": "2026-01-31T18:04:04.000Z", "age_seconds": 0,
            "last_seen_at": "2026-01-31T18:04:04.000Z", "failures": 0, "holds": 0},
    });
    assert_eq!(tracking, want);
    let meant = world.get("watcher", &format!("{QUEUE}/requests/2/issues")).await.json();
    assert_eq!(meant, json!({"items": [], "next_cursor": null, "coverage": "in_progress"}));
}

#[tokio::test]
async fn metadata_is_changed_on_the_version_that_was_read() {
    let world = World::new();
    built(&world, "commit 1", "b1", json!([issue("unit", "a")])).await;
    let path = format!("{QUEUE}/issue/metadata?task=unit&unit=a");
    let edit = async |body: Value| world.patch("ci", &path, &body).await;
    let set = edit(json!({"version": 1, "set": {"bot/ticket": "7"}})).await;
    assert_eq!((set.status, &set.json()["metadata"], &set.json()["version"]), (200, &json!({"bot/ticket": "7"}), &json!(2)));
    assert_eq!(edit(json!({"version": 1, "remove": ["bot/ticket"]})).await.refusal(), (409, "stale_version".into()));
    let gone = edit(json!({"version": 2, "remove": ["bot/ticket"]})).await;
    assert_eq!(gone.json()["metadata"], json!({}));
    let wrong = edit(json!({"version": 3, "set": {"plain": "x"}})).await;
    assert_eq!(wrong.errors(), [("/set".to_owned(), "invalid_value".to_owned())]);
    let missing = world.patch("ci", &format!("{QUEUE}/issue/metadata?task=unit&unit=z"), &json!({"version": 1})).await;
    assert_eq!(missing.refusal(), (404, "unknown_issue".into()));
}

#[tokio::test]
async fn what_the_rows_do_not_allow_is_a_conflict_that_says_what_to_do() {
    let world = World::new();
    let first = started(&world, "commit 1", "b1").await;
    let put = async |id: &str, build: &str| world.put("ci", &format!("{QUEUE}/requests/{id}/build"), &json!({"build_id": build})).await;
    assert_eq!(put(&first, "b1").await.status, 200, "the same again");
    assert_eq!(put(&first, "b2").await.refusal(), (409, "build_mismatch".into()));
    world.post("ci", &format!("{QUEUE}/requests"), &json!({"uri": "commit 2"})).await;
    assert_eq!(put("2", "b1").await.refusal(), (409, "build_mismatch".into()));
    let outcome = async |id: &str, outcome: &str| {
        let answer = world.post("ci", &format!("{QUEUE}/requests/{id}/outcome"), &json!({"outcome": outcome})).await;
        answer.json()["outcome"].clone()
    };
    assert_eq!((outcome("2", "cancelled").await, outcome("2", "failed").await), (json!("cancelled"), json!("cancelled")));
    assert_eq!(put("2", "b2").await.refusal(), (409, "request_ended".into()));
    let end = async |state: &str| world.post("ci", &format!("{QUEUE}/analysis"), &json!({"build_id": "b1", "state": state})).await;
    assert_eq!((end("completed").await.status, end("completed").await.status), (200, 200));
    assert_eq!(end("abandoned").await.refusal(), (409, "analysis_ended".into()));
    let late = world.post("ci", &format!("{QUEUE}/issues"), &json!({"build_id": "b1", "issues": [issue("t", "u")]})).await;
    assert_eq!(late.refusal(), (409, "analysis_ended".into()));
    assert_eq!(late.json()["detail"], "the build's analysis has ended; 0 of the issues were taken before");
    let nobodys = world.post("ci", &format!("{QUEUE}/issues"), &json!({"build_id": "b9", "issues": []})).await;
    assert_eq!(nobodys.refusal(), (404, "unknown_build".into()));
    for id in ["9", "01", "x", "0", "-1"] {
        assert_eq!(put(id, "b3").await.refusal(), (404, "unknown_request".into()), "{id}");
    }
}

#[tokio::test]
async fn everything_wrong_with_a_report_is_told() {
    let world = World::new();
    let report = async |body: Value| world.post("ci", &format!("{QUEUE}/issues"), &body).await.errors();
    let told = |errors: &[(&str, &str)]| errors.iter().map(|(path, code)| ((*path).to_owned(), (*code).to_owned())).collect::<Vec<_>>();
    let wrong = json!({"build_id": "", "issues": [{"task_id": "", "unit_id": 1, "why": "x"}, {"task_id": "t"}]});
    let want = [
        ("/build_id", "invalid_value"),
        ("/issues/0/why", "unknown_field"),
        ("/issues/0/unit_id", "wrong_type"),
        ("/issues/0/task_id", "invalid_value"),
        ("/issues/1/unit_id", "missing_field"),
    ];
    assert_eq!(report(wrong).await, told(&want));
    let many: Vec<_> = (0..501).map(|n| issue("t", &n.to_string())).collect();
    assert_eq!(report(json!({"build_id": "b", "issues": many})).await, told(&[("/issues", "too_many")]));
    let long = "x".repeat(4097);
    let wrong = json!({"build_id": "b", "issues": [{"task_id": "t", "unit_id": long, "detail": long}]});
    assert_eq!(report(wrong).await, told(&[("/issues/0/unit_id", "invalid_value"), ("/issues/0/detail", "invalid_value")]));
    let analysis = world.post("ci", &format!("{QUEUE}/analysis"), &json!({"build_id": "b", "state": "done", "covered_tasks": [1]})).await;
    assert_eq!(analysis.errors(), told(&[("/state", "invalid_value"), ("/covered_tasks/0", "wrong_type")]));
    let query = world.get("ci", &format!("{QUEUE}/issue/log?build=&event=vanished&unit=a")).await;
    assert_eq!(query.errors(), told(&[("task", "missing_parameter"), ("build", "invalid_value"), ("event", "invalid_value")]));
}

#[tokio::test]
async fn queues_are_for_those_whose_grants_name_them() {
    let world = World::new();
    let list = async |caller: &str, queue: &str| world.get(caller, &format!("/v1/queues/{queue}/issues")).await.status;
    let admit =
        async |caller: &str, queue: &str| world.post(caller, &format!("/v1/queues/{queue}/requests"), &json!({"uri": "u"})).await.status;
    for caller in ["ci", "watcher", "root"] {
        assert_eq!(list(caller, "app-main").await, 200, "{caller}");
    }
    for (caller, queue) in [("ci", "other"), ("watcher", "other"), ("alice", "app-main"), ("reader", "app-main")] {
        assert_eq!((list(caller, queue).await, admit(caller, queue).await), (403, 403), "{caller} {queue}");
    }
    assert_eq!((admit("watcher", "app-main").await, admit("ci", "app-main").await, admit("root", "other").await), (403, 201, 201));
    assert_eq!(world.get("root", "/v1/queues/nowhere/issues").await.refusal(), (404, "unknown_queue".into()));
    assert_eq!(world.get("ci", "/v1/queues/app-nowhere/tracking").await.refusal(), (404, "unknown_queue".into()));
}

#[tokio::test]
async fn what_a_uri_tells_is_a_link() {
    let world = World::new();
    built(&world, "gitlab:gitlab.example.com/4711/pipelines/812", "812", json!([issue("unit", "a")])).await;
    built(&world, "https://ci.example.com/813", "813", json!([issue("unit", "a"), issue("unit", "b")])).await;
    let page = world.get("watcher", &format!("{QUEUE}/issues")).await.json();
    let links: Vec<_> = page["items"].as_array().unwrap().iter().map(|issue| issue["first_seen_url"].clone()).collect();
    assert_eq!(links, ["https://gitlab.example.com/group/app/-/pipelines/812", "https://ci.example.com/813"]);
    let request = world.get("watcher", &format!("{QUEUE}/requests/1/history")).await.json();
    assert_eq!(request["url"], "https://gitlab.example.com/group/app/-/pipelines/812");
}
