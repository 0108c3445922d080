//! A message of the repair queue: an offer, or an event that a rule of the bus put there.

use crate::messages::RepairMessage;
use collie_core::issue::hook::Repair;
use collie_core::issue::id::QueueName;
use collie_core::issue::key::IssueKey;
use serde::Deserialize;

/// What a message of the repair queue asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairAsked {
    /// Openings of a build are to be offered.
    Offer(QueueName, Repair),
    /// An issue has closed.
    Closed(QueueName, IssueKey),
    /// An opening: it comes with an offer of its own.
    Opened(QueueName, IssueKey),
}

/// An event as EventBridge hands it over.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "detail-type")]
    kind: String,
    detail: Detail,
}

#[derive(Deserialize)]
struct Detail {
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    queue: QueueName,
    task_id: String,
    unit_id: String,
}

impl RepairAsked {
    /// Reads a message; none where it is neither an offer nor one of our events.
    #[must_use]
    pub fn parse(body: &str) -> Option<Self> {
        let offer = RepairMessage::parse(body).map(|message| Self::Offer(message.queue.clone(), message.offer()));
        offer.or_else(|| event(body))
    }

    /// The queue that it is about.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        match self {
            Self::Offer(queue, _) | Self::Closed(queue, _) | Self::Opened(queue, _) => queue,
        }
    }
}

fn event(body: &str) -> Option<RepairAsked> {
    let Envelope { kind, detail: Detail { payload } } = serde_json::from_str(body).ok()?;
    let key = IssueKey::new(payload.task_id, payload.unit_id);
    match kind.as_str() {
        "issue.closed" => Some(RepairAsked::Closed(payload.queue, key)),
        "issue.opened" => Some(RepairAsked::Opened(payload.queue, key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::issue::id::{BuildId, RequestId};
    use serde_json::json;

    fn event(kind: &str) -> String {
        let payload = json!({"queue": "app-main", "task_id": "unit tests", "unit_id": "", "closing_build_id": "b2"});
        json!({"detail-type": kind, "source": "collie", "detail": {"id": "x", "type": kind, "payload": payload}}).to_string()
    }

    #[test]
    fn offers_closings_and_openings_are_read() {
        let offer = RepairAsked::parse(r#"{"queue":"app-main","build_id":"b1","request_id":7,"pass_id":3}"#);
        let expected = Repair { build_id: BuildId::new("b1"), request_id: RequestId::new(7).unwrap(), pass_id: 3 };
        let (queue, key) = (QueueName::new("app-main"), IssueKey::new("unit tests", ""));
        assert_eq!(offer, Some(RepairAsked::Offer(queue.clone(), expected)));
        assert_eq!(RepairAsked::parse(&event("issue.closed")), Some(RepairAsked::Closed(queue.clone(), key.clone())));
        assert_eq!(RepairAsked::parse(&event("issue.opened")), Some(RepairAsked::Opened(queue, key)));
    }

    #[test]
    fn anything_else_asks_for_nothing() {
        for body in ["", "not json", "{}", r#"{"queue":"q","build_id":"b"}"#, &event("Scheduled Event")] {
            assert_eq!(RepairAsked::parse(body), None, "{body}");
        }
    }
}
