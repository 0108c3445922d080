//! The commands that need no server: trying rules, and looking at a configuration file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use serde_json::{Value, json};
use support::{Forge, outcome};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/policy-test.yaml");

/// What is said of a file with one project.
const FINE: &str = "the file can be used: 0 connection(s), 1 project(s)";

fn written(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file.yaml");
    std::fs::write(&file, text).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (directory, name)
}

#[tokio::test]
async fn the_documented_cases_hold() {
    let (code, shown, errors) = outcome(&["policy", "test", EXAMPLE]).await;
    assert!(code == 0 && shown.ends_with("8 cases, 0 failed\n"), "{shown}{errors}");
    assert!(shown.starts_with("ok    a lock file may be bumped\nok    issue templates"), "{shown}");
    let (code, shown, _) = outcome(&["policy", "test", EXAMPLE, "--json"]).await;
    let document: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, &document["ok"], document["cases"].as_array().unwrap().len()), (0, &json!(true), 8));
    assert_eq!(document["cases"][4]["found"][0]["code"], "source_is_protected");
}

#[tokio::test]
async fn a_case_that_does_not_hold_is_shown_with_every_finding() {
    let text = "cases:\n  - {name: CI is open, submission: {title: '', file_actions: [{action: update, file_path: .gitlab-ci.yml, \
                content: x}]}, expect: allow}\n  - {name: fine, submission: {}, expect: [secret]}\n";
    let (_directory, file) = written(text);
    let (code, shown, errors) = outcome(&["policy", "test", &file]).await;
    let expected = "FAIL  CI is open: expected allow, got blank_text + protected_path\n        \
                    /file_actions/0/file_path: \".gitlab-ci.yml\" is protected by \".gitlab-ci.yml\" (protected_path): leave this file to the \
                    project's maintainers\n        /title: the text is empty or white space (blank_text): write something\n\
                    FAIL  fine: expected secret, got allow\n2 cases, 2 failed\n";
    assert_eq!((code, shown.as_str(), errors.as_str()), (1, expected, "collie: 2 of 2 cases failed\n"));
}

#[tokio::test]
async fn cases_can_be_about_a_project_of_a_configuration_file() {
    let (directory, file) =
        written("config: collie.yaml\nproject: group/app\ncases: [{name: a, submission: {}, expect: [protected_path]}]\n");
    std::fs::write(directory.path().join("collie.yaml"), "projects: [{path: group/app, policy: {protect: ['case.*']}}]").unwrap();
    assert_eq!(outcome(&["policy", "test", &file]).await.1, "ok    a\n1 cases, 0 failed\n");
    let (code, _, errors) = outcome(&["policy", "test", &written("cases: [{name: a, submission: {}, expect: [sekret]}]").1]).await;
    assert!(code == 2, "{errors}");
}

#[tokio::test]
async fn wrong_files_of_cases_are_wrong_usage() {
    for (text, told) in [
        ("cases: [{name: a, submission: {}, expect: [sekret]}]", "case \"a\": \"sekret\" is the code of no finding"),
        ("policy: {protect: ['a//b']}\ncases: []", "pattern \"a//b\": has an empty segment"),
        ("project: group/app\ncases: []", "either `policy`, or `config` and `project`"),
        ("cases: []\nrules: []", "unknown field `rules`"),
    ] {
        let (_directory, file) = written(text);
        let (code, _, errors) = outcome(&["policy", "test", &file]).await;
        assert!(code == 2 && errors.contains(told), "{told} in {errors}");
    }
}

#[tokio::test]
async fn the_schema_is_printed() {
    let (code, shown, _) = outcome(&["config", "schema"]).await;
    let schema: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, &schema["additionalProperties"]), (0, &json!(false)));
    assert_eq!(schema["properties"]["projects"]["items"]["required"], json!(["path"]));
}

#[tokio::test]
async fn every_problem_of_a_file_is_told_with_its_place() {
    let (_directory, file) = written("projects: [{path: app}, {path: group/a, colour: red}]\n");
    let (code, shown, errors) = outcome(&["config", "check", &file]).await;
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!((code, lines.len(), errors), (1, 2, format!("collie: {file}: 2 problem(s)\n")));
    assert!(
        lines[0].starts_with("projects[0].path: a path is written as") && lines[1].starts_with("projects[1].colour: is no key"),
        "{shown}"
    );

    let (_directory, file) = written("connections: {main: {url: 'https://gitlab.example.com'}}\nprojects: [{path: group/a}]\n");
    let (code, shown, _) = outcome(&["config", "check", &file]).await;
    let expected = "the file can be used: 1 connection(s), 1 project(s)\non AWS: projects: group/a: id is missing; \
                    `collie config check --resolve` finds it\n";
    assert_eq!((code, shown.as_str()), (0, expected));
    let (_, shown, _) = outcome(&["config", "check", &file, "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["ok"], true);
}

#[tokio::test]
async fn pth_01_what_may_not_be_meant_is_a_warning_and_the_file_can_be_used() {
    let (_directory, file) = written("projects: [{path: group/a, policy: {allow: ['/CODEOWNERS']}}]\n");
    let (code, shown, errors) = outcome(&["config", "check", &file]).await;
    let warning = "projects[0].policy.allow: group/a: opens CODEOWNERS to callers while other places of CODEOWNERS stay protected, and GitLab \
                   takes the first that there is; name it under `protect`, which goes before `allow`, or open all three";
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!((code, lines[0], lines[1], errors.as_str()), (0, format!("warning: {warning}").as_str(), FINE, ""));
    let (_, shown, _) = outcome(&["config", "check", &file, "--json"]).await;
    let document: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&document["ok"], &document["warnings"]), (&json!(true), &json!([warning])));
}

#[tokio::test]
async fn ids_are_asked_of_gitlab_and_compared() {
    let forge = Forge::start().await;
    let (directory, file) = written("projects: [{path: demo/app}]\n");
    let token = directory.path().join("token");
    std::fs::write(&token, gitlab_sim::DEMO_BOT_TOKEN).unwrap();
    let ask = ["config", "check", &file, "--resolve", "--gitlab-url", &forge.url, "--gitlab-token-file", token.to_str().unwrap()];
    let id = gitlab_sim::DEMO_PROJECT_ID;
    assert_eq!(outcome(&ask).await, (0, format!("projects: demo/app: id: {id}\n"), String::new()));
    std::fs::write(&file, "projects: [{path: demo/app, id: 1}, {path: demo/none}]\n").unwrap();
    let (code, shown, _) = outcome(&ask).await;
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!((code, lines.len(), lines[0]), (1, 2, format!("projects: demo/app: id is 1, and GitLab says {id}").as_str()));
    assert!(lines[1].starts_with("projects: demo/none: "), "{shown}");
}
