//! Every kind of hook that GitLab sends, reduced to the fields that matter: what each is taken for.
#![allow(clippy::unwrap_used, reason = "a test")]

use collie_core::event::Delivery;
use collie_core::time::Timestamp;
use serde::Deserialize;

/// When the deliveries arrive; only a hook without a time of its own carries it.
const NOW: Timestamp = Timestamp::from_millis(1_780_000_000_000);

#[derive(Deserialize)]
struct Sample {
    name: String,
    body: serde_json::Value,
}

fn reading(sample: &Sample) -> String {
    let read = match Delivery::parse(sample.body.to_string().as_bytes(), NOW) {
        Ok(delivery) => format!("{:?}\n    {:?}", delivery.subject, delivery.event),
        Err(unusable) => unusable.to_string(),
    };
    format!("{}\n    {read}\n", sample.name)
}

#[test]
fn every_kind_of_hook_is_read_or_left_alone() {
    let samples: Vec<Sample> = serde_json::from_str(include_str!("hooks/bodies.json")).unwrap();
    assert_eq!(samples.len(), 55);
    insta::assert_snapshot!(samples.iter().map(reading).collect::<String>());
}
