//! Events as Lambda hands them over.

use serde_json::{Value, json};

/// A sample of `events/`.
pub fn sample(name: &str) -> Value {
    let path = format!("{}/../../events/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A queue message.
pub fn message(id: &str, body: &str) -> Value {
    json!({"messageId": id, "receiptHandle": id, "body": body, "attributes": {}, "messageAttributes": {}, "eventSource": "aws:sqs"})
}

/// The event of a queue.
pub fn queue_event(messages: Vec<Value>) -> Value {
    json!({ "Records": messages })
}
