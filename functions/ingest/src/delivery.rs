//! A delivery out of a queue message: wrapped by SNS, or raw with message attributes.

use collie_shell::batch::Record;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The attribute that names the host.
const HOST: &str = "host";
/// Attributes that name a delivery, the first that is there counts. `X-Gitlab-Event-UUID` is shared along a chain of events.
const IDS: [&str; 3] = ["delivery_id", "idempotency-key", "webhook-id"];

/// What a publisher handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The hook's body.
    pub(crate) body: String,
    /// The host, where the publisher names it.
    pub(crate) host: Option<String>,
    /// The delivery's id, where the publisher names it.
    pub(crate) delivery_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Notification {
    #[serde(rename = "Type")]
    kind: String,
    message: String,
    #[serde(default)]
    message_attributes: BTreeMap<String, NotifiedAttribute>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NotifiedAttribute {
    #[serde(default)]
    value: Option<String>,
}

impl Envelope {
    /// Takes a message out of its envelope. Whatever is no notification of SNS is the delivery itself.
    pub(crate) fn of(record: &Record) -> Self {
        match notification(&record.body) {
            Some(Notification { message, message_attributes, .. }) => {
                let named = |name: &str| message_attributes.get(name)?.value.clone();
                Self::named(message, named)
            }
            None => Self::named(record.body.clone(), |name| record.attributes.get(name).cloned()),
        }
    }

    fn named(body: String, attribute: impl Fn(&str) -> Option<String>) -> Self {
        let filled = |name: &str| attribute(name).filter(|value| !value.is_empty());
        Self { body, host: filled(HOST), delivery_id: IDS.iter().find_map(|name| filled(name)) }
    }
}

fn notification(body: &str) -> Option<Notification> {
    serde_json::from_str::<Notification>(body).ok().filter(|notification| notification.kind == "Notification")
}
