use super::*;
use collie_config::Configuration;
use serde_json::{Value, json};

const HOOK: &str = r#"{"object_kind":"pipeline","project":{"id":7,"web_url":"https://gitlab.example.com/group/app"}}"#;

fn hosts() -> Hosts {
    Hosts::of(&Configuration::parse("connections: {main: {url: 'https://gitlab.example.com'}}").unwrap())
}

fn envelope(body: &str, host: Option<&str>, delivery_id: Option<&str>) -> Envelope {
    Envelope { body: body.to_owned(), host: host.map(str::to_owned), delivery_id: delivery_id.map(str::to_owned) }
}

#[test]
fn what_the_publisher_says_counts_before_what_the_body_says() {
    let read = job(envelope(HOOK, Some("other.example.com"), Some("d-1")), &hosts());
    assert_eq!((read.host.as_deref(), read.delivery_id.as_str()), (Some("other.example.com"), "d-1"));
}

#[test]
fn a_publisher_that_says_nothing_leaves_the_host_to_the_project_and_the_id_to_the_body() {
    let read = job(envelope(HOOK, None, None), &hosts());
    assert_eq!(read.host.as_deref(), Some("gitlab.example.com"));
    assert_eq!(read.delivery_id, sha256_hex(format!("main{HOOK}").as_bytes()));
}

#[test]
fn a_delivery_of_no_project_of_ours_has_no_host() {
    let body = HOOK.replace("gitlab.example.com", "elsewhere.example.com");
    assert_eq!(job(envelope(&body, None, None), &hosts()).host, None);
}

/// Every sample of this function, through the batch's own reader.
fn sample(name: &str) -> Vec<Envelope> {
    let path = format!("{}/../../events/{name}", env!("CARGO_MANIFEST_DIR"));
    let event: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let records = event["Records"].as_array().unwrap();
    records.iter().map(|record| Envelope::of(&Record::parse(record.clone()).unwrap())).collect()
}

#[test]
fn the_sample_events_hold_deliveries_that_can_be_used() {
    let now = collie_core::time::Timestamp::from_millis(0);
    for name in ["ingest-sns.json", "ingest-raw.json"] {
        let kinds: Vec<_> = sample(name)
            .iter()
            .map(|envelope| {
                assert!(envelope.host.is_some() && envelope.delivery_id.is_some(), "{name}");
                Delivery::parse(envelope.body.as_bytes(), now).unwrap().event.kind()
            })
            .collect();
        assert_eq!(kinds, ["merge_request", "pipeline", "job"], "{name}");
    }
}

#[test]
fn both_ways_of_delivery_give_the_same_jobs() {
    let jobs = |name: &str| sample(name).into_iter().map(|envelope| job(envelope, &hosts())).collect::<Vec<_>>();
    assert_eq!(jobs("ingest-sns.json"), jobs("ingest-raw.json"));
}

#[test]
fn an_envelope_without_attributes_is_taken_apart_all_the_same() {
    let notification = json!({"Type": "Notification", "MessageId": "n", "Message": HOOK});
    let record = json!({"messageId": "m", "body": notification.to_string()});
    assert_eq!(Envelope::of(&Record::parse(record).unwrap()), envelope(HOOK, None, None));
}

#[test]
fn a_hook_that_only_looks_like_an_envelope_is_itself() {
    let body = json!({"Type": "Wiki", "Message": "x", "object_kind": "wiki_page"}).to_string();
    let record = json!({"messageId": "m", "body": body, "messageAttributes": {"webhook-id": {"stringValue": "w-1", "dataType": "String"}}});
    assert_eq!(Envelope::of(&Record::parse(record).unwrap()), envelope(&body, None, Some("w-1")));
}
