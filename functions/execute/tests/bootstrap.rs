//! The real binary, on wake-ups.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken expectation ends the test")]

use collie_core::id::ItemId;
use gitlab_sim::{DEMO_BOT_TOKEN, DEMO_PROJECT_ID};
use lambda_support::{Answer, Fault, World, failed, message, queue_event};
use serde_json::{Value, json};
use std::time::Duration;

const EXECUTE: &str = env!("CARGO_BIN_EXE_execute");
const TIMEOUT: Duration = Duration::from_secs(150);

fn wake_up(id: &ItemId) -> String {
    json!({ "item_id": id }).to_string()
}

fn event(bodies: &[String]) -> Value {
    queue_event(bodies.iter().enumerate().map(|(n, body)| message(&format!("m{}", n + 1), body)).collect())
}

/// The messages that an answer reports, sorted: tasks end in any order.
fn reported(answer: Answer) -> Vec<String> {
    let answer = answer.response();
    let failures = answer["batchItemFailures"].as_array().expect("a list");
    let mut ids: Vec<_> = failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_wake_ups_exactly_the_two_that_cannot_be_worked_on_are_reported() {
    let world = World::start().await;
    let mut bodies = Vec::new();
    for n in 1..=8 {
        bodies.push(wake_up(&world.submit(&format!("bot/change-{n}")).await));
    }
    let unwritable = world.submit("bot/unwritable").await;
    world.table.fail(unwritable.as_str(), Fault::Refuse);
    bodies.insert(3, "not json".to_owned());
    bodies.insert(6, wake_up(&unwritable));
    let function = world.function(EXECUTE);

    let answer = world.runtime.invoke(event(&bodies), TIMEOUT).await;

    assert_eq!(reported(answer), ["m4", "m7"]);
    let mut branches: Vec<_> = world.sim.merge_requests(DEMO_PROJECT_ID).into_iter().map(|mr| mr.source_branch).collect();
    branches.sort();
    assert_eq!(branches, (1..=8).map(|n| format!("bot/change-{n}")).collect::<Vec<_>>());
    let audits = world.aws.objects().into_iter().filter(|(key, _)| key.starts_with("/audit-bucket/")).map(|(_, object)| object);
    let forms: Vec<_> = audits.map(|object| (object.content_type, object.content_encoding)).collect();
    assert!(!forms.is_empty() && forms.iter().all(|form| *form == ("application/x-ndjson".to_owned(), "gzip".to_owned())), "{forms:?}");
    world.assert_no_secret(&function.log());
}

/// The whole way of an issue of CI: reported, tracked, offered, and opened on GitLab by the one function that may write there.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_build_met_becomes_an_issue_of_its_project() {
    let world = World::start().await;
    let request = world.build("b1", &[("unit tests", "a::b"), ("unit tests", "c")]).await;
    world.track().await;
    let items = world.repair("b1", request).await;
    assert_eq!(items.len(), 1);
    let function = world.function(EXECUTE);

    let answer = world.runtime.invoke(event(&[wake_up(&ItemId::new(items[0].clone()))]), TIMEOUT).await;

    assert_eq!(answer, failed(&[]));
    let issues = world.sim.issues(DEMO_PROJECT_ID);
    assert_eq!(issues.len(), 1, "{}", function.log());
    assert!(issues[0].title.contains("unit tests"), "{}", issues[0].title);
    world.assert_no_secret(&function.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_hangs_is_cut_off_in_time_and_the_function_lives_on() {
    let world = World::start().await;
    let (hangs, idle) = (world.submit("bot/hangs").await, ItemId::new("0197c0de-0000-7000-8000-000000000001"));
    world.table.fail(hangs.as_str(), Fault::Hold);
    let function = world.function(EXECUTE);

    let answer = world.runtime.invoke(event(&[wake_up(&idle), wake_up(&hangs)]), Duration::from_secs(4)).await;
    assert_eq!(answer, failed(&["m2"]));
    assert!(function.log().contains("out_of_time"));

    world.table.heal();
    let answer = world.runtime.invoke(event(&[wake_up(&hangs)]), TIMEOUT).await;
    assert_eq!(answer, failed(&[]));
    assert_eq!(world.sim.merge_requests(DEMO_PROJECT_ID).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_is_in_a_batch_twice_is_run_once() {
    let world = World::start().await;
    let id = world.submit("bot/twice").await;
    let _function = world.function(EXECUTE);
    let answer = world.runtime.invoke(event(&[wake_up(&id), wake_up(&id)]), TIMEOUT).await;
    assert_eq!(answer, failed(&[]));
    assert_eq!(world.item(&id).await.lease_epoch, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_an_id_fails_the_invocation() {
    let world = World::start().await;
    let id = world.submit("bot/nameless").await;
    let _function = world.function(EXECUTE);
    let event = queue_event(vec![message("m1", &wake_up(&id)), json!({"body": wake_up(&id)})]);
    let Answer::Error(error) = world.runtime.invoke(event, TIMEOUT).await else { panic!("the batch is not taken") };
    assert!(error["errorMessage"].as_str().unwrap().contains("messageId"), "{error}");
    assert_eq!(world.item(&id).await.lease_epoch, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_understood() {
    let world = World::start().await;
    let _function = world.function(EXECUTE);
    let answer = world.runtime.invoke(lambda_support::sample("execute.json"), TIMEOUT).await;
    assert_eq!(answer, failed(&[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_was_told_nothing_says_everything_it_lacks() {
    let world = World::start().await;
    let mut function = world.untold_function(EXECUTE);
    assert!(!function.ended().await.success());
    let log = function.log();
    for name in ["AWS_REGION", "AWS_ACCESS_KEY_ID", "COLLIE_TABLE", "COLLIE_WAKE_QUEUE_URL", "COLLIE_CONTENT_BUCKET", "COLLIE_CONFIG_FILE"]
    {
        assert!(log.contains(&format!("{name} is not set")), "{name} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_not_there_is_named() {
    let world = World::start().await;
    let mut function = world.function_with(EXECUTE, &[("COLLIE_SECRETS_PREFIX", "elsewhere/")]);
    assert!(!function.ended().await.success());
    assert!(function.log().contains("secret gitlab/main"), "{}", function.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_token_is_used_without_a_new_instance() {
    let world = World::start().await;
    let (before, after) = (world.submit("bot/before").await, world.submit("bot/after").await);
    let function = world.function(EXECUTE);
    assert_eq!(world.runtime.invoke(event(&[wake_up(&before)]), TIMEOUT).await, failed(&[]));

    world.sim.revoke_token(DEMO_BOT_TOKEN);
    assert!(world.sim.add_token("collie-bot", "glpat-canary-rotated", &["api"], None));
    world.aws.set_secret("collie/gitlab/main", "glpat-canary-rotated");
    assert_eq!(world.runtime.invoke(event(&[wake_up(&after)]), TIMEOUT).await, failed(&[]));

    let branches: Vec<_> = world.sim.merge_requests(DEMO_PROJECT_ID).into_iter().map(|mr| mr.source_branch).collect();
    assert_eq!(branches, ["bot/before", "bot/after"]);
    assert_eq!(world.sim.journal().iter().filter(|call| call.status == 401).count(), 1);
    assert!(function.log().contains("a secret was refused and has changed; the new one is used"), "{}", function.log());
    assert!(!function.log().contains("glpat-canary-rotated"));
    world.assert_no_secret(&function.log());
}
