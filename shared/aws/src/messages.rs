//! What messages of issue tracking say, as they are written here and read by the functions. They name rows and carry no state (INV-13);
//! readers ignore what they do not know.

use collie_core::error::Failure;
use collie_core::issue::hook::Repair;
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A queue's job rings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobMessage {
    /// The queue.
    pub queue: QueueName,
    /// The job's request.
    pub request: RequestId,
}

/// A job is given to recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The queue.
    pub queue: QueueName,
    /// The job's request.
    pub request: RequestId,
    /// How often it had failed in a row.
    pub attempt: u32,
    /// Why no worker can end it.
    pub reason: String,
}

/// Openings of a build are offered for repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairMessage {
    /// The queue.
    pub queue: QueueName,
    /// The build.
    pub build_id: BuildId,
    /// Its request.
    pub request_id: RequestId,
    /// The pass that opened them.
    pub pass_id: u64,
}

impl RepairMessage {
    pub(crate) fn of(queue: &QueueName, repair: &Repair) -> Self {
        let Repair { build_id, request_id, pass_id } = repair.clone();
        Self { queue: queue.clone(), build_id, request_id, pass_id }
    }

    /// The offer.
    #[must_use]
    pub fn offer(self) -> Repair {
        Repair { build_id: self.build_id, request_id: self.request_id, pass_id: self.pass_id }
    }
}

/// A message in its queue.
pub(crate) trait Message: Serialize {
    /// As it is sent.
    fn body(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map_err(|error| Failure::bug(format!("a message is no JSON: {error}")))
    }
}

impl Message for JobMessage {}
impl Message for DeadLetter {}
impl Message for RepairMessage {}

impl JobMessage {
    /// Reads one; none where it is something else.
    #[must_use]
    pub fn parse(body: &str) -> Option<Self> {
        read(body, |message: &Self| message.request)
    }
}

impl DeadLetter {
    /// Reads one; none where it is something else.
    #[must_use]
    pub fn parse(body: &str) -> Option<Self> {
        read(body, |message: &Self| message.request)
    }
}

impl RepairMessage {
    /// Reads one; none where it is something else.
    #[must_use]
    pub fn parse(body: &str) -> Option<Self> {
        read(body, |message: &Self| message.request_id)
    }
}

/// A request has a number that requests can have.
fn read<T: DeserializeOwned>(body: &str, request: impl Fn(&T) -> RequestId) -> Option<T> {
    serde_json::from_str(body).ok().filter(|message| RequestId::new(request(message).number()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_they_are_documented_to_be_and_read_back() {
        let (queue, request) = (QueueName::new("app-main"), RequestId::new(7).unwrap());
        let job = JobMessage { queue: queue.clone(), request };
        assert_eq!(job.body().unwrap(), r#"{"queue":"app-main","request":7}"#);
        assert_eq!(JobMessage::parse(&job.body().unwrap()), Some(job));
        let letter = DeadLetter { queue: queue.clone(), request, attempt: 10, reason: "failures".into() };
        assert_eq!(letter.body().unwrap(), r#"{"queue":"app-main","request":7,"attempt":10,"reason":"failures"}"#);
        assert_eq!(DeadLetter::parse(&letter.body().unwrap()), Some(letter));
        let offer = Repair { build_id: BuildId::new("b1"), request_id: request, pass_id: 3 };
        let message = RepairMessage::of(&queue, &offer);
        assert_eq!(message.body().unwrap(), r#"{"queue":"app-main","build_id":"b1","request_id":7,"pass_id":3}"#);
        assert_eq!(RepairMessage::parse(&message.body().unwrap()).map(RepairMessage::offer), Some(offer));
    }

    #[test]
    fn what_names_no_request_is_something_else() {
        for body in ["", "not json", "[]", "{}", r#"{"queue":"q"}"#, r#"{"queue":"q","request":0}"#, r#"{"queue":"q","request":-1}"#] {
            assert_eq!(JobMessage::parse(body), None, "{body}");
            assert_eq!(DeadLetter::parse(body), None, "{body}");
        }
        assert_eq!(JobMessage::parse(r#"{"queue":"q","request":9223372036854775808}"#), None);
        assert_eq!(RepairMessage::parse(r#"{"queue":"q","build_id":"b","request_id":0,"pass_id":1}"#), None);
        assert!(JobMessage::parse(r#"{"queue":"q","request":1,"later":true}"#).is_some(), "a newer version's");
    }
}
