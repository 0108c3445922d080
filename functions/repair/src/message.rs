//! A message of the repair queue: an offer, or an event that a rule of the bus put there.

use collie_aws::RepairMessage;
use collie_core::error::Failure;
use collie_core::issue::hook::Repair;
use collie_core::issue::id::QueueName;
use collie_core::issue::key::IssueKey;
use serde::Deserialize;

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Openings of a build are to be offered.
    Offer(QueueName, Repair),
    /// An issue has closed.
    Closed(QueueName, IssueKey),
    /// An event that repairs nothing.
    Nothing,
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

impl Asked {
    /// Reads a message.
    ///
    /// # Errors
    /// Where it is neither an offer nor one of our events.
    pub(crate) fn read(body: &str) -> Result<Self, Failure> {
        let offer = RepairMessage::parse(body).map(|message| Self::Offer(message.queue.clone(), message.offer()));
        offer.or_else(|| event(body)).ok_or_else(|| Failure::rejected("malformed_repair", "a repair is an offer, or an event of our bus"))
    }
}

fn event(body: &str) -> Option<Asked> {
    let Envelope { kind, detail: Detail { payload } } = serde_json::from_str(body).ok()?;
    match kind.as_str() {
        "issue.closed" => Some(Asked::Closed(payload.queue, IssueKey::new(payload.task_id, payload.unit_id))),
        "issue.opened" => Some(Asked::Nothing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::issue::id::{BuildId, RequestId};
    use serde_json::json;

    fn closed(kind: &str) -> String {
        let payload = json!({"queue": "app-main", "task_id": "unit tests", "unit_id": "", "closing_build_id": "b2"});
        json!({"detail-type": kind, "source": "collie", "detail": {"id": "x", "type": kind, "payload": payload}}).to_string()
    }

    #[test]
    fn offers_and_closings_are_read_and_openings_ask_for_nothing() {
        let offer = Asked::read(r#"{"queue":"app-main","build_id":"b1","request_id":7,"pass_id":3}"#);
        let expected = Repair { build_id: BuildId::new("b1"), request_id: RequestId::new(7).unwrap(), pass_id: 3 };
        assert_eq!(offer, Ok(Asked::Offer(QueueName::new("app-main"), expected)));
        let key = IssueKey::new("unit tests", "");
        assert_eq!(Asked::read(&closed("issue.closed")), Ok(Asked::Closed(QueueName::new("app-main"), key)));
        assert_eq!(Asked::read(&closed("issue.opened")), Ok(Asked::Nothing));
    }

    #[test]
    fn anything_else_is_malformed() {
        for body in ["", "not json", "{}", r#"{"queue":"q","build_id":"b"}"#, &closed("Scheduled Event")] {
            assert_eq!(Asked::read(body).map_err(|failure| failure.code), Err("malformed_repair"), "{body}");
        }
    }
}
