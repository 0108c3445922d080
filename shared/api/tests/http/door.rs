//! The door for hooks.

use crate::support::{Answer, HOOK_SECRET, Still, World};
use axum::http::Request;
use collie_core::error::{Class, Failure};
use collie_engine::credential::Credential;
use collie_engine::ports::{Items, Secrets};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn pipeline() -> Value {
    json!({"object_kind": "pipeline", "project": {"id": 4711},
        "object_attributes": {"id": 90, "ref": "bot/x", "sha": "bbbb", "status": "success", "finished_at": "2026-01-31 18:04:04 UTC"}})
}

async fn knock(world: &World, webhook: &str, secret: &str, body: &str, names: &[(&str, &str)]) -> Answer {
    let request = Request::post(format!("/v1/hooks/gitlab/{webhook}")).header("x-gitlab-token", secret);
    let request = names.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    world.send(request.body(body.to_owned().into()).unwrap()).await
}

#[tokio::test]
async fn a_delivery_is_stored_before_it_is_acknowledged_and_known_again() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let answer = knock(&world, "main", HOOK_SECRET, &pipeline().to_string(), &[]).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"outcome": "stored"})));
    assert_eq!(world.items.item(&id).await.unwrap().unwrap().inbox.len(), 1);
    assert_eq!(world.rings.lock().unwrap().len(), 2);
    let again = knock(&world, "main", HOOK_SECRET, &pipeline().to_string(), &[]).await;
    assert_eq!(again.json(), json!({"outcome": "repeated"}));
    assert_eq!(world.items.item(&id).await.unwrap().unwrap().inbox.len(), 1);
}

#[tokio::test]
async fn a_delivery_is_known_by_the_first_of_its_names() {
    let world = World::new();
    let id = world.submitted("alice", "bot/x").await;
    let body = pipeline().to_string();
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[("idempotency-key", "k1"), ("webhook-id", "w1")], "stored"),
        (&[("idempotency-key", "k1"), ("webhook-id", "w2")], "repeated"),
        (&[("webhook-id", "w1")], "stored"),
        (&[("webhook-id", "w1"), ("x-gitlab-event-uuid", "u1")], "repeated"),
        (&[("idempotency-key", "")], "stored"),
        (&[], "repeated"),
    ];
    for (names, outcome) in cases {
        assert_eq!(knock(&world, "main", HOOK_SECRET, &body, names).await.json()["outcome"], outcome, "{names:?}");
    }
    assert_eq!(world.items.item(&id).await.unwrap().unwrap().inbox.len(), 3);
}

#[tokio::test]
async fn only_the_connections_secret_opens_the_door() {
    let world = World::new();
    world.submitted("alice", "bot/x").await;
    let body = pipeline().to_string();
    let same = format!("{HOOK_SECRET}x");
    for (webhook, secret) in [("main", ""), ("main", "canary"), ("main", &same), ("other", HOOK_SECRET), ("unset", ""), ("unset", "x")] {
        assert_eq!(knock(&world, webhook, secret, &body, &[]).await.refusal(), (401, "unauthenticated".into()), "{webhook} {secret}");
    }
    let request = Request::post("/v1/hooks/gitlab/main").header("authorization", "Bearer root").body(body.into()).unwrap();
    assert_eq!(world.send(request).await.refusal(), (401, "unauthenticated".into()));
    assert_eq!(world.rings.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_of_no_use_is_acknowledged_and_what_is_malformed_is_kept() {
    let world = World::new();
    assert_eq!(knock(&world, "main", HOOK_SECRET, &pipeline().to_string(), &[]).await.json()["outcome"], "unresolved");
    assert_eq!(knock(&world, "main", HOOK_SECRET, r#"{"object_kind":"push"}"#, &[]).await.json()["outcome"], "ignored");
    world.submitted("alice", "bot/x").await;
    let mut running = pipeline();
    running["object_attributes"]["status"] = json!("running");
    assert_eq!(knock(&world, "main", HOOK_SECRET, &running.to_string(), &[]).await.json()["outcome"], "no_effect");
    for body in ["", "{", "{}", "[]"] {
        let answer = knock(&world, "main", HOOK_SECRET, body, &[]).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"outcome": "set_aside"})), "{body}");
    }
    let kept = world.drawer.objects.lock().unwrap().iter().filter(|(key, _)| key.starts_with("deliveries/malformed/")).count();
    assert_eq!(kept, 4);
}

/// WHK-05: a receiver that refuses what it does not understand gets its hook paused, and then disabled.
#[tokio::test]
async fn fifty_deliveries_that_nobody_understands_are_each_acknowledged() {
    let world = World::new();
    for n in 0..50 {
        let unknown = format!(r#"{{"object_kind":"kind_{n}"}}"#);
        assert_eq!(knock(&world, "main", HOOK_SECRET, &unknown, &[]).await.status, 200);
        assert_eq!(knock(&world, "main", HOOK_SECRET, &format!("{{{n}"), &[]).await.status, 200);
    }
    for n in 0..5 {
        assert_eq!(knock(&world, "main", &format!("wrong {n}"), "{}", &[]).await.status, 401);
    }
}

#[tokio::test]
async fn what_could_not_be_stored_is_not_acknowledged() {
    let world = World::new();
    world.submitted("alice", "bot/x").await;
    *world.drawer.failure.lock().unwrap() = Some(Failure::new(Class::Transient { answered: false }, "archive", "no answer"));
    let answer = knock(&world, "main", HOOK_SECRET, &pipeline().to_string(), &[]).await;
    assert_eq!((answer.refusal(), answer.header("retry-after")), ((503, "unavailable".into()), Some("5")));
}

#[tokio::test]
async fn a_hook_has_three_mebibytes_at_most() {
    let world = World::new();
    let body = pipeline().to_string();
    let filled = |length: usize| format!("{body}{}", " ".repeat(length - body.len()));
    assert_eq!(knock(&world, "main", HOOK_SECRET, &filled(3 << 20), &[]).await.status, 200);
    assert_eq!(knock(&world, "main", HOOK_SECRET, &filled((3 << 20) + 1), &[]).await.refusal(), (413, "too_large".into()));
}

/// A secret store that counts how often it is asked.
struct Rotated(AtomicUsize);

#[async_trait::async_trait]
impl Secrets for Rotated {
    async fn secret(&self, name: &str) -> Result<SecretString, Failure> {
        assert_eq!(name, "gitlab/main-hook");
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(SecretString::from(HOOK_SECRET))
    }
}

#[tokio::test]
async fn a_rotated_secret_opens_the_door_and_guessing_reads_it_once() {
    let store = Arc::new(Rotated(AtomicUsize::new(0)));
    let secrets: Arc<dyn Secrets> = store.clone();
    let world = World::with_hook_secret(Credential::named("gitlab/main-hook", "canary-old".into(), secrets, Arc::new(Still)));
    let body = pipeline().to_string();
    assert_eq!(knock(&world, "main", "", &body, &[]).await.status, 401);
    assert_eq!(knock(&world, "main", "canary-old", &body, &[]).await.status, 200);
    assert_eq!(store.0.load(Ordering::SeqCst), 0);
    assert_eq!(knock(&world, "main", HOOK_SECRET, &body, &[]).await.status, 200);
    for guess in ["canary-old", "guess", ""] {
        assert_eq!(knock(&world, "main", guess, &body, &[]).await.refusal(), (401, "unauthenticated".into()), "{guess}");
    }
    assert_eq!(store.0.load(Ordering::SeqCst), 1);
}
