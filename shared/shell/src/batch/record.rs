//! One queue message, decoded on its own: a record that cannot be read takes no other with it.

use collie_core::error::Failure;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A record has no id by which its failure could be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record has no messageId; the whole batch is to be delivered again")]
pub struct Unidentified;

/// The id of a record, with the record.
pub(super) fn identify(value: Value) -> Result<(String, Value), Unidentified> {
    let id = value.get("messageId").and_then(Value::as_str).filter(|id| !id.is_empty());
    id.map(str::to_owned).map(|id| (id, value)).ok_or(Unidentified)
}

/// The message group of a record: a FIFO queue's order.
pub(super) fn group(record: &Value) -> Option<String> {
    record.pointer("/attributes/MessageGroupId").and_then(Value::as_str).map(str::to_owned)
}

/// A queue message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its id.
    pub message_id: String,
    /// By which this receipt of it can be held; empty where the platform does not say.
    pub receipt_handle: String,
    /// Its group, in a FIFO queue.
    pub group: Option<String>,
    /// Its body.
    pub body: String,
    /// Its attributes that are text, by name.
    pub attributes: BTreeMap<String, String>,
    /// The queue it came from, where the platform says.
    source: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    body: String,
    #[serde(default)]
    receipt_handle: String,
    #[serde(default)]
    message_attributes: Option<BTreeMap<String, WireAttribute>>,
    #[serde(default, rename = "eventSourceARN")]
    source: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAttribute {
    #[serde(default)]
    string_value: Option<String>,
}

/// The queue and the text of the sample message that the Lambda console offers for tests.
const SAMPLE: (&str, &str) = ("arn:aws:sqs:us-east-1:123456789012:MyQueue", "Hello from SQS!");
/// What S3 sends when a notification is configured.
const S3_TEST: &str = "s3:TestEvent";

impl Record {
    /// Reads a record of an event.
    ///
    /// # Errors
    /// Where it has no id, or is not what SQS hands over.
    pub fn parse(value: Value) -> Result<Self, Failure> {
        let (message_id, value) = identify(value).map_err(|error| Failure::rejected("malformed_record", error.to_string()))?;
        Self::decode(&message_id, value)
    }

    /// Reads a record whose id is known.
    ///
    /// # Errors
    /// Where it is not what SQS hands over.
    pub(super) fn decode(message_id: &str, value: Value) -> Result<Self, Failure> {
        let group = group(&value);
        let mut wire: Wire = serde_json::from_value(value).map_err(|error| Failure::rejected("malformed_record", error.to_string()))?;
        let named = |(name, attribute): (String, WireAttribute)| Some((name, attribute.string_value?));
        let attributes = wire.message_attributes.take().unwrap_or_default().into_iter().filter_map(named).collect();
        let Wire { body, receipt_handle, source, .. } = wire;
        Ok(Self { message_id: message_id.to_owned(), receipt_handle, group, body, attributes, source: source.unwrap_or_default() })
    }

    /// Whether this is one of the messages that AWS makes up for tests.
    pub(super) fn is_test_event(&self) -> bool {
        if (self.source.as_str(), self.body.as_str()) == SAMPLE {
            return true;
        }
        let Ok(body) = serde_json::from_str::<Value>(&self.body) else { return false };
        let says_test = |event: &Value| ["Event", "eventName"].iter().any(|key| event.get(key).and_then(Value::as_str) == Some(S3_TEST));
        says_test(&body) || body.get("Records").and_then(Value::as_array).is_some_and(|records| records.iter().any(says_test))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn record(body: &str) -> Record {
        Record::decode("m", json!({"messageId": "m", "body": body})).unwrap()
    }

    #[test]
    fn only_a_text_that_is_not_empty_is_an_id() {
        for record in [json!({}), json!({"messageId": null}), json!({"messageId": ""}), json!({"messageId": 7}), json!("m"), json!(null)] {
            assert_eq!(identify(record.clone()), Err(Unidentified), "{record}");
        }
        assert_eq!(identify(json!({"messageId": "m"})).map(|(id, _)| id), Ok("m".into()));
    }

    #[test]
    fn attributes_of_text_are_kept_and_others_left_out() {
        let attributes = json!({"host": {"stringValue": "h", "dataType": "String"}, "raw": {"binaryValue": "AA==", "dataType": "Binary"}});
        let read = Record::decode("m", json!({"messageId": "m", "body": "", "messageAttributes": attributes})).unwrap();
        assert_eq!(read.attributes, BTreeMap::from([("host".into(), "h".into())]));
    }

    #[test]
    fn a_record_without_a_body_is_malformed() {
        let failure = Record::decode("m", json!({"messageId": "m"})).unwrap_err();
        assert_eq!(failure.code, "malformed_record");
    }

    #[test]
    fn messages_made_up_for_tests_are_known() {
        let s3 = json!({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}).to_string();
        let listed = json!({"Records": [{"eventName": "s3:TestEvent"}]}).to_string();
        assert!(record(&s3).is_test_event() && record(&listed).is_test_event());
        let console = json!({"messageId": "19dd0b57", "body": SAMPLE.1, "eventSourceARN": SAMPLE.0});
        assert!(Record::decode("19dd0b57", console).unwrap().is_test_event());
        for body in ["", "not json", "{}", "[]", "Hello from SQS!", r#"{"Records":7}"#, r#"{"item_id":"s3:TestEvent"}"#] {
            assert!(!record(body).is_test_event(), "{body}");
        }
    }

    proptest! {
        #[test]
        fn reading_is_total(body in "\\PC{0,80}") {
            let _ = record(&body).is_test_event();
        }
    }
}
