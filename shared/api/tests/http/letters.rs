//! Dead letters: admins look, send them again, and put an end to them.

use crate::support::World;
use collie_core::letter::Origin;
use serde_json::{Value, json};

async fn kept() -> World {
    let world = World::new();
    for (id, origin, about) in [("m1", Origin::Wakes, Some("0198-item")), ("m2", Origin::Hooks, None)] {
        world.letters.keep(id, origin, about.map(str::to_owned), &format!("body of {id}")).await.unwrap();
    }
    world
}

fn letter(state: &str, redrives: u64, decided: Option<&str>) -> Value {
    json!({"id": "m1", "origin": "wakes", "about": "0198-item", "state": state, "kept_at": "2026-01-31T18:04:04.000Z", "redrives": redrives,
        "decided_by": decided, "decided_at": decided.map(|_| "2026-01-31T18:04:04.000Z")})
}

#[tokio::test]
async fn a_letter_is_listed_sent_again_and_abandoned() {
    let world = kept().await;
    assert_eq!(world.get("root", "/v1/dead-letters/m1").await.json(), letter("waiting", 0, None));
    let page = world.get("root", "/v1/dead-letters?limit=1").await.json();
    assert_eq!(page["items"], json!([letter("waiting", 0, None)]));
    let rest = world.get("root", &format!("/v1/dead-letters?cursor={}", page["next_cursor"].as_str().unwrap())).await.json();
    assert_eq!((rest["items"][0]["id"].clone(), rest["next_cursor"].clone()), (json!("m2"), Value::Null));
    for redrives in [1, 2] {
        let answer = world.post("root", "/v1/dead-letters/m1/redrive", &json!({})).await;
        assert_eq!((answer.status, answer.json()), (200, letter("redriven", redrives, Some("local|root"))));
    }
    assert_eq!(*world.resent.lock().unwrap(), vec![(Origin::Wakes, "body of m1".to_owned()); 2]);
    let gone = world.post("root", "/v1/dead-letters/m1/abandon", &json!({})).await;
    assert_eq!(gone.json(), letter("abandoned", 2, Some("local|root")));
    assert_eq!(world.post("root", "/v1/dead-letters/m1/redrive", &json!({})).await.refusal(), (409, "letter_abandoned".into()));
    let waiting = world.get("root", "/v1/dead-letters?state=waiting").await.json();
    assert_eq!(waiting["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_decision_is_in_the_audit_trail_and_a_body_that_expired_is_told_of() {
    let world = kept().await;
    world.post("root", "/v1/dead-letters/m2/redrive", &json!({})).await;
    let audits = world.drawer.objects.lock().unwrap().keys().filter(|key| key.contains("/letter-")).count();
    assert_eq!(audits, 3, "two were kept, one was sent again");
    world.drawer.objects.lock().unwrap().retain(|key, _| !key.starts_with("deliveries/dead/"));
    assert_eq!(world.post("root", "/v1/dead-letters/m2/redrive", &json!({})).await.refusal(), (409, "letter_expired".into()));
}

#[tokio::test]
async fn letters_are_for_admins() {
    let world = kept().await;
    for caller in ["alice", "ci", "watcher"] {
        assert_eq!(world.get(caller, "/v1/dead-letters").await.refusal(), (403, "forbidden".into()));
        assert_eq!(world.post(caller, "/v1/dead-letters/m1/abandon", &json!({})).await.refusal(), (403, "forbidden".into()));
    }
    assert_eq!(world.get("root", "/v1/dead-letters/m9").await.refusal(), (404, "unknown_letter".into()));
    assert_eq!(world.get("root", "/v1/dead-letters?state=lost").await.refusal(), (400, "invalid_query".into()));
}
