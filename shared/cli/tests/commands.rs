//! The commands as callers use them: exit codes, what is shown, what programs read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use gitlab_sim::{DEMO_BOT_TOKEN, DEMO_PROJECT_ID};
use serde_json::{Value, json};
use std::path::Path;
use support::{Forge, Server, outcome, submission, until};

async fn simulated(data_dir: &Path) -> Server {
    Server::start(data_dir, &["--simulator"]).await
}

fn write(directory: &Path, name: &str, document: &Value) -> String {
    let file = directory.join(name);
    std::fs::write(&file, document.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_ready_line_says_where_everything_is() {
    let directory = tempfile::tempdir().unwrap();
    let server = simulated(directory.path()).await;
    let ready = server.ready.as_object().unwrap();
    let keys: Vec<&str> = ready.keys().map(String::as_str).collect();
    let mut expected = ["ready", "api", "gitlab", "token_command", "project", "connection", "queue", "gitlab_token"];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!((&ready["ready"], &ready["project"], &ready["queue"]), (&json!(true), &json!("demo/app"), &json!("demo")));
    assert!(ready["token_command"].as_str().unwrap().starts_with("collie token --data-dir "));
    assert_eq!(server.terminate().await.code(), Some(0));
}

#[tokio::test]
async fn a_work_item_is_submitted_listed_explained_and_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let server = simulated(directory.path()).await;
    let token = server.token().await;
    let mut wanted = submission();
    wanted["auto_merge"] = json!(false);
    let file = write(directory.path(), "submission.json", &wanted);

    assert_eq!(server.client(&token, &["list"]).await, (0, "no work items\n".into(), String::new()));
    let (code, shown, _) = server.client(&token, &["submit", &file, "--validate"]).await;
    assert!(code == 0 && shown.starts_with("would be created\n"), "{shown}");
    let (code, shown, errors) = server.client(&token, &["submit", &file]).await;
    assert_eq!(code, 0, "{errors}");
    let id = shown.strip_prefix("created ").unwrap().trim().to_owned();
    assert_eq!(server.client(&token, &["submit", &file]).await.1, format!("unchanged {id}\n"));

    let (_, shown, _) = server.client(&token, &["list", "--phase", "active", "--project", "demo/app"]).await;
    assert_eq!(shown, format!("{id}  active  demo/app@bot/greet  Greet\n"));
    let (_, shown, _) = server.client(&token, &["get", &id]).await;
    assert!(shown.contains("branch         bot/greet → main\n") && shown.contains("  create  docs/greeting.md  7 bytes\n"), "{shown}");
    assert_eq!(server.client(&token, &["explain", &id]).await.0, 0);

    assert_eq!(server.client(&token, &["retry", &id]).await.0, 1, "an active item needs no retry");
    assert_eq!(server.client(&token, &["cancel", &id, "--reason", "not needed"]).await.0, 0);
    let (code, _, errors) = server.client(&token, &["watch", &id, "--timeout", "60s"]).await;
    assert_eq!((code, errors.as_str()), (1, format!("collie: work item {id}: cancelled: cancelled\n").as_str()));
    let (_, shown, _) = server.client(&token, &["timeline", &id]).await;
    assert!(shown.contains("close") && shown.contains("\ntotal: "), "{shown}");
}

#[tokio::test]
async fn a_refusal_shows_every_violation_and_exits_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let server = simulated(directory.path()).await;
    let token = server.token().await;
    let mut wanted = submission();
    wanted["source_branch"] = json!("main");
    wanted["file_actions"][0]["file_path"] = json!("../README.md");
    let file = write(directory.path(), "submission.json", &wanted);

    let (code, shown, errors) = server.client(&token, &["submit", &file]).await;
    assert_eq!((code, shown.as_str()), (1, ""));
    assert!(errors.starts_with("refused: ") && errors.contains("(422 "), "{errors}");
    assert!(errors.contains("  - /source_branch: ") && errors.contains("  - /file_actions/0/file_path: "), "{errors}");
    assert_eq!(errors.matches("    hint: ").count(), errors.matches("  - ").count(), "{errors}");

    let (code, shown, errors) = server.client(&token, &["submit", &file, "--json"]).await;
    let problem: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, errors.as_str(), &problem["status"]), (1, "", &json!(422)));
    assert_eq!(server.client(&token, &["get", "01a22e52-0000-7000-8000-000000000000"]).await.0, 1);
    assert_eq!(server.client("no-token", &["list"]).await.0, 1);
    std::fs::write(&file, "{").unwrap();
    assert_eq!(server.client(&token, &["submit", &file]).await.0, 1);
}

#[tokio::test]
async fn wrong_usage_exits_with_2_and_an_absent_server_with_3() {
    let access = ["--endpoint", "http://127.0.0.1:1", "--token", "t"];
    let with_access = |args: &[&'static str]| [args, &access].concat();
    for args in [
        with_access(&["submit", "/no/such/file"]),
        with_access(&["get", "../me"]),
        with_access(&["get"]),
        vec!["list"],
        vec!["fetch"],
        vec!["serve"],
        vec!["serve", "--simulator", "--gitlab-url", "http://127.0.0.1:1", "--gitlab-token-file", "t"],
        vec!["serve", "--gitlab-url", "http://127.0.0.1:1"],
        vec!["token", "--ttl", "soon"],
        vec!["list", "--endpoint", "ftp://host", "--token", "t"],
    ] {
        let (code, shown, errors) = outcome(&args).await;
        assert_eq!((code, shown.as_str()), (2, ""), "{args:?}: {errors}");
        assert!(!errors.is_empty(), "{args:?}");
    }
    let (code, _, errors) = outcome(&with_access(&["list"])).await;
    assert_eq!(code, 3);
    assert!(errors.starts_with("collie: http://127.0.0.1:1 is not reachable: "), "{errors}");
}

#[tokio::test]
async fn a_data_directory_has_one_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = simulated(directory.path()).await;
    let data_dir = directory.path().to_str().unwrap();
    let (code, shown, errors) = outcome(&["serve", "--simulator", "--listen", "127.0.0.1:0", "--data-dir", data_dir]).await;
    assert_eq!((code, shown.as_str()), (1, ""));
    let pid = server.child.id().unwrap();
    assert!(errors.contains(&format!("process {pid} is serving it")), "{errors}");
    assert_eq!(server.terminate().await.code(), Some(0));
    assert_eq!(simulated(directory.path()).await.terminate().await.code(), Some(0));
}

/// Sends a document with an admin's token.
async fn send(server: &Server, token: &str, method: reqwest::Method, path: &str, body: Value) -> Value {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let request = reqwest::Client::new().request(method, format!("{}/v1/queues/demo/{path}", server.api())).bearer_auth(token);
    request.json(&body).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn issues_that_a_build_reported_are_listed_and_its_request_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let server = simulated(directory.path()).await;
    let (_, token, _) = outcome(&["token", "--admin", "--data-dir", directory.path().to_str().unwrap()]).await;
    let token = token.trim();
    let post = async |path: &str, body: Value| send(&server, token, reqwest::Method::POST, path, body).await;
    assert_eq!(post("requests", json!({"uri": "git:1"})).await, json!({"request_id": "1"}));
    send(&server, token, reqwest::Method::PUT, "requests/1/build", json!({"build_id": "b1"})).await;
    let issues = json!([{"task_id": "unit tests", "unit_id": "a::b"}, {"task_id": "lint", "unit_id": "x"}]);
    assert_eq!(post("issues", json!({"build_id": "b1", "issues": issues})).await, json!({"accepted": 2}));
    post("analysis", json!({"build_id": "b1", "state": "completed"})).await;
    post("requests/1/outcome", json!({"outcome": "failed"})).await;
    let shown = loop {
        let (code, shown, errors) = server.client(token, &["requests", "show", "demo", "1"]).await;
        assert_eq!(code, 0, "{errors}");
        if shown.contains("complete") {
            break shown;
        }
    };
    assert!(shown.contains("uri           git:1\nbuild         b1\noutcome       failed\n"), "{shown}");
    assert!(shown.ends_with("issues\n  new  lint / x\n  new  unit tests / a::b\n"), "{shown}");
    let (_, listed, _) = server.client(token, &["issues", "demo", "--task-prefix", "unit"]).await;
    let rows: Vec<_> = listed.lines().map(|line| line.split_once("b1").map_or(line, |(row, _)| row)).collect();
    assert_eq!(rows, ["task        unit  status  since build  changed  link", "unit tests  a::b  open    "]);
    let (_, history, _) = server.client(token, &["issues", "history", "demo", "lint", "x"]).await;
    assert!(history.ends_with("opened  by build b1 of request 1\n"), "{history}");
    assert_eq!(server.client(token, &["dlq", "list"]).await.1, "no dead letters\n");
    let (code, _, errors) = server.client(&server.token().await, &["issues", "demo"]).await;
    assert!(code == 1 && errors.contains("no grant `ci_read` or `ci_report` names it"), "{errors}");
}

#[tokio::test]
async fn a_configuration_that_cannot_be_honoured_is_refused_with_all_its_problems() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("collie.yaml");
    std::fs::write(&file, "audit: {}\nprojects: [{path: demo/app, merge: rocket}]\ncolour: red\n").unwrap();
    let data_dir = directory.path().join("data");
    let (file, data_dir) = (file.to_str().unwrap(), data_dir.to_str().unwrap());
    let (code, _, errors) = outcome(&["serve", "--simulator", "--config", file, "--data-dir", data_dir]).await;
    assert_eq!(code, 2, "{errors}");
    let merge = "projects[0].merge: \"rocket\" is neither \"direct\" nor \"train\"";
    for problem in ["audit: is not supported yet", merge, "colour: is no key"] {
        assert!(errors.contains(problem), "{problem} in {errors}");
    }
}

#[tokio::test]
async fn configured_connections_and_secrets_serve_without_flags() {
    let forge = Forge::start().await;
    let config = format!(
        "connections:\n  main: {{url: {}, token: secret:gitlab/main}}\nprojects:\n  - {{path: demo/app, policy: {{protect: [\"docs/**\"]}}}}\n",
        forge.url
    );
    let directory = tempfile::tempdir().unwrap();
    let (file, secrets) = (directory.path().join("collie.yaml"), directory.path().join("secrets"));
    std::fs::write(&file, config).unwrap();
    std::fs::create_dir_all(secrets.join("gitlab")).unwrap();
    std::fs::copy(forge.path("token"), secrets.join("gitlab/main")).unwrap();
    let args = ["--config", file.to_str().unwrap(), "--secrets-dir", secrets.to_str().unwrap()];
    let server = Server::start(&directory.path().join("data"), &args).await;
    assert_eq!(server.ready["gitlab"], json!(forge.url));
    let token = server.token().await;
    let (code, _, errors) = server.client(&token, &["submit", &forge.path("submission.json")]).await;
    assert!(code == 1 && errors.contains("/file_actions/1/file_path"), "the configured policy protects docs: {errors}");
}

#[tokio::test]
async fn a_token_file_that_was_rotated_is_read_again_when_gitlab_refuses_the_old_token() {
    let forge = Forge::start().await;
    let server = forge.serve(&[]).await;
    let token = server.token().await;
    forge.sim.revoke_token(DEMO_BOT_TOKEN);
    assert!(forge.sim.add_token("collie-bot", "glpat-rotated", &["api"], None));
    std::fs::write(forge.path("token"), "glpat-rotated\n").unwrap();
    let (code, _, errors) = server.client(&token, &["submit", &forge.path("submission.json")]).await;
    assert_eq!(code, 0, "{errors}");
    until("the merge request", || !forge.sim.merge_requests(DEMO_PROJECT_ID).is_empty()).await;
    let refused = forge.sim.journal().iter().filter(|call| call.status == 401).count();
    assert_eq!(refused, 1);
}
