//! Events as Lambda hands them over.

use crate::Answer;
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

/// A message of a FIFO queue; its id and its receipt are `fifo`.
pub fn fifo_message(group: &str, body: &str) -> Value {
    let mut message = message("fifo", body);
    message["attributes"] = json!({ "MessageGroupId": group });
    message
}

/// The answer that these messages failed.
pub fn failed(messages: &[&str]) -> Answer {
    let failures: Vec<_> = messages.iter().map(|id| json!({"itemIdentifier": id})).collect();
    Answer::Response(json!({ "batchItemFailures": failures }))
}

/// The event of a queue.
pub fn queue_event(messages: Vec<Value>) -> Value {
    json!({ "Records": messages })
}

/// Fails where a value is not what a schema of `events/schemas` says. Knows the words that those schemas use, and fails at any other.
pub fn assert_matches(schema: &Value, value: &Value) {
    for (word, says) in schema.as_object().unwrap() {
        match word.as_str() {
            "$schema" | "$id" | "title" | "description" => {}
            "type" => assert_eq!(kind(value), says.as_str().unwrap(), "{value}"),
            "const" => assert_eq!(value, says),
            "pattern" => assert!(says == "^[^/]+/[0-9a-f]{64}$" && is_id(value.as_str().unwrap()), "{value}"),
            "minimum" => assert!(value.as_u64() >= says.as_u64(), "{value}"),
            "required" => {
                says.as_array().unwrap().iter().for_each(|name| assert!(!value[name.as_str().unwrap()].is_null(), "{name} in {value}"))
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().unwrap();
                value.as_object().unwrap().keys().for_each(|name| assert!(says == true || known.contains_key(name), "{name} is unknown"));
            }
            "properties" => {
                let there = says.as_object().unwrap().iter().filter(|(name, _)| value.get(name).is_some());
                there.for_each(|(name, schema)| assert_matches(schema, &value[name]));
            }
            other => panic!("{other} is not understood"),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(number) if number.is_u64() => "integer",
        _ => "something else",
    }
}

fn is_id(text: &str) -> bool {
    let parts = text.split_once('/').unwrap_or_default();
    !parts.0.is_empty() && parts.1.len() == 64 && parts.1.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
