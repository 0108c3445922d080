//! Content by reference: announced, uploaded by other means, named by submissions.

use crate::support::{World, submission};
use collie_core::files::sha256_hex;
use serde_json::{Value, json};

const BYTES: &[u8] = b"a large file\n";

/// What `PUT` to the announced URL does.
fn uploaded(world: &World, identity: &str, bytes: &[u8]) {
    let key = format!("uploads/{}/{}", sha256_hex(identity.as_bytes()), sha256_hex(BYTES));
    world.drawer.objects.lock().unwrap().insert(key, bytes.to_vec());
}

fn naming(digest: &str) -> Value {
    let mut body = submission("bot/large");
    body["file_actions"] = json!([{"action": "create", "file_path": "large.txt", "content_ref": format!("sha256:{digest}")}]);
    body
}

#[tokio::test]
async fn an_announcement_answers_where_to_upload_and_what_to_name() {
    let world = World::new();
    let answer = world.post("alice", "/v1/blobs", &json!({"sha256": sha256_hex(BYTES), "size": BYTES.len()})).await;
    let (owner, digest) = (sha256_hex(b"local|alice"), sha256_hex(BYTES));
    let want = json!({
        "content_ref": format!("sha256:{digest}"),
        "upload": {
            "url": format!("https://uploads.example/uploads/{owner}/{digest}?size=13&until=2026-01-31T19:04:04.000Z"),
            "headers": {"if-none-match": "*"},
        },
        "expires_at": "2026-01-31T19:04:04.000Z",
    });
    assert_eq!((answer.status, answer.json()), (200, want));
}

#[tokio::test]
async fn uploaded_content_is_submitted_by_its_name_as_if_it_were_sent() {
    let world = World::new();
    uploaded(&world, "local|alice", BYTES);
    let answer = world.submit("alice", &naming(&sha256_hex(BYTES))).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let action = &answer.json()["work_item"]["detail"]["actions"][0];
    assert_eq!((action["size"].as_u64(), action["sha256"].as_str()), (Some(13), Some(sha256_hex(BYTES).as_str())));
    let mut sent = naming("");
    sent["file_actions"][0] = json!({"action": "create", "file_path": "large.txt", "content": "a large file\n"});
    assert_eq!(world.submit("alice", &sent).await.json()["outcome"], "unchanged");
}

#[tokio::test]
async fn content_of_others_and_damaged_or_missing_content_is_unknown() {
    let world = World::new();
    let refused = async || {
        let answer = world.submit("alice", &naming(&sha256_hex(BYTES))).await;
        (answer.status, answer.errors())
    };
    let unknown = (422, vec![("/file_actions/0/content_ref".to_owned(), "unknown_content_ref".to_owned())]);
    assert_eq!(refused().await, unknown);
    uploaded(&world, "local|bob", BYTES);
    assert_eq!(refused().await, unknown);
    uploaded(&world, "local|alice", b"other bytes");
    assert_eq!(refused().await, unknown);
}

#[tokio::test]
async fn uploaded_content_is_inspected_like_any_other() {
    let world = World::new();
    uploaded(&world, "local|alice", BYTES);
    let mut body = naming(&sha256_hex(BYTES));
    body["file_actions"][0]["file_path"] = json!(".gitlab-ci.yml");
    let answer = world.submit("alice", &body).await;
    assert_eq!((answer.status, answer.errors()), (422, vec![("/file_actions/0/file_path".into(), "protected_path".into())]));
}

#[tokio::test]
async fn what_is_too_long_is_refused_before_it_is_uploaded() {
    let world = World::new();
    let answer = world.post("alice", "/v1/blobs", &json!({"sha256": sha256_hex(BYTES), "size": (20 << 20) + 1})).await;
    assert_eq!(answer.refusal(), (413, "too_large".to_owned()));
}
