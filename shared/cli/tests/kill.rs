//! A server that is killed at any moment, and started again on the same data directory, ends its work items all the same:
//! one merge request, one commit, merged (INV-4, INV-9, INV-13).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use gitlab_sim::{DEMO_PROJECT_ID, JournalEntry};
use serde_json::Value;
use std::sync::Arc;
use support::{Forge, Server, until};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Stories told at once.
const AT_ONCE: usize = 4;
const HOOKED: [&str; 3] = ["--register-hook", "--take-over-after", "0s"];

/// The id of the submitted item, if the answer came.
async fn submit(forge: &Forge, server: &Server) -> Option<String> {
    let token = server.token().await;
    let (code, answer, _) = server.client(&token, &["submit", &forge.path("submission.json"), "--json"]).await;
    let answer: Option<Value> = (code == 0).then(|| serde_json::from_str(&answer).unwrap());
    answer.map(|answer| answer["work_item"]["id"].as_str().unwrap().to_owned())
}

/// Submits, kills the server after this many calls to GitLab, starts another and tells the caller's part of the story.
async fn killed_after(calls: usize) {
    let forge = Forge::start().await;
    let server = forge.serve(&HOOKED).await;
    let begun = forge.calls();
    let submitted = {
        let killed = until("the call", || forge.calls() >= begun + calls);
        let (submitted, ()) = tokio::join!(submit(&forge, &server), killed);
        submitted
    };
    server.kill().await;
    finish(&forge, submitted, &format!("killed after call {calls}")).await;
}

async fn finish(forge: &Forge, submitted: Option<String>, story: &str) {
    let server = forge.serve(&HOOKED).await;
    let id = match submitted {
        Some(id) => id,
        None => submit(forge, &server).await.unwrap_or_else(|| panic!("{story}: submitted again")),
    };
    let token = server.token().await;
    let (code, shown, errors) = server.client(&token, &["watch", &id, "--timeout", "60s"]).await;
    assert_eq!(code, 0, "{story}: {shown}{errors}");
    assert!(shown.contains("completed: merged"), "{story}: {shown}");
    is_merged_once(forge, story);
    assert_eq!(server.terminate().await.code(), Some(0), "{story}");
}

fn is_merged_once(forge: &Forge, story: &str) {
    let requests = forge.sim.merge_requests(DEMO_PROJECT_ID);
    let states: Vec<_> = requests.iter().map(|mr| (mr.source_branch.as_str(), mr.state.as_str())).collect();
    assert_eq!(states, [("bot/greet", "merged")], "{story}");
    let main = forge.sim.commits(DEMO_PROJECT_ID, "main");
    let merged = main.first().and_then(|merge| merge.parents.get(1)).unwrap_or_else(|| panic!("{story}: {main:?}"));
    let commits = forge.sim.commits(DEMO_PROJECT_ID, merged);
    let titles: Vec<_> = main.iter().chain(&commits).filter_map(|commit| commit.message.lines().next()).collect();
    assert_eq!(titles, ["Merge branch 'bot/greet' into 'main'", "Initial commit", "Greet", "Initial commit"], "{story}");
    let made = |call: &&JournalEntry| call.method == "POST" && call.template.ends_with("/repository/commits") && call.status == 201;
    assert_eq!(forge.sim.journal().iter().filter(made).count(), 1, "{story}");
}

/// How many calls the story makes when nobody kills anything.
async fn calls_of_the_story() -> usize {
    let forge = Forge::start().await;
    let server = forge.serve(&HOOKED).await;
    let begun = forge.calls();
    let id = submit(&forge, &server).await.unwrap();
    let token = server.token().await;
    let (code, shown, errors) = server.client(&token, &["watch", &id, "--timeout", "60s"]).await;
    assert_eq!(code, 0, "{shown}{errors}");
    is_merged_once(&forge, "undisturbed");
    let calls = forge.calls() - begun;
    assert_eq!(server.terminate().await.code(), Some(0));
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_after_any_call_ends_the_item_when_it_is_started_again() {
    let calls = calls_of_the_story().await;
    assert!(calls >= 8, "the story makes {calls} calls");
    let (turns, mut stories) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for call in 1..=calls {
        let turns = Arc::clone(&turns);
        stories.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            killed_after(call).await;
        });
    }
    stories.join_all().await;
}

#[tokio::test]
async fn without_hooks_an_item_is_merged_by_looking_now_and_then() {
    let forge = Forge::start().await;
    let server = forge.serve(&["--look-every", "300ms"]).await;
    let id = submit(&forge, &server).await.unwrap();
    let token = server.token().await;
    let (code, shown, errors) = server.client(&token, &["watch", &id, "--timeout", "60s"]).await;
    assert_eq!(code, 0, "{shown}{errors}");
    is_merged_once(&forge, "no hooks");
}

#[tokio::test]
async fn events_that_came_while_no_server_ran_are_made_up_for() {
    let forge = Forge::start().await;
    let server = forge.serve(&HOOKED).await;
    let id = submit(&forge, &server).await.unwrap();
    until("the merge request", || !forge.sim.merge_requests(DEMO_PROJECT_ID).is_empty()).await;
    assert_eq!(server.terminate().await.code(), Some(0));
    let mergeable = || forge.sim.merge_requests(DEMO_PROJECT_ID).iter().all(|mr| !mr.approved_by.is_empty());
    until("the approval", mergeable).await;
    finish(&forge, Some(id), "stopped and started").await;
}
