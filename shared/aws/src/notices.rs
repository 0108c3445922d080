//! Those who are told: subscribers of an event bus, and the repair queue. At least once; what is told again has the same id.

use crate::clients::Clients;
use crate::failure;
use crate::messages::{Message as _, RepairMessage};
use async_trait::async_trait;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, PutEventsResultEntry};
use collie_core::error::{Class, Failure};
use collie_core::issue::hook::{HookEvent, Notice, Repair};
use collie_core::issue::id::QueueName;
use collie_engine::ports::Notices;
use std::sync::Arc;

/// How often an event that the bus refuses for now is put before its writer hears of it.
const TRIES: usize = 3;

/// Puts openings and closings on a bus of EventBridge, and offers of repairs into a queue.
#[derive(Debug, Clone)]
pub struct EventBridgeNotices {
    clients: Arc<Clients>,
    bus: String,
    repair_queue_url: String,
}

impl EventBridgeNotices {
    /// Notices through this bus and the standard queue at this URL.
    #[must_use]
    pub fn new(clients: Arc<Clients>, bus: String, repair_queue_url: String) -> Self {
        Self { clients, bus, repair_queue_url }
    }

    /// An answer of 200 says nothing yet: each entry has its own.
    async fn put(&self, event: &HookEvent) -> Result<(), Failure> {
        let detail = serde_json::to_string(event).map_err(|error| Failure::bug(format!("an event is no JSON: {error}")))?;
        let entry = PutEventsRequestEntry::builder().event_bus_name(&self.bus).source(event.source).detail_type(event.kind).detail(detail);
        let entry = entry.build();
        let mut refused = String::new();
        for _ in 0..TRIES {
            let answer = self.clients.eventbridge().put_events().entries(entry.clone()).send().await;
            let answer = answer.map_err(|error| failure::of("EventBridge", "event_not_put", &error))?;
            match refusal(answer.failed_entry_count(), answer.entries()) {
                None => return Ok(()),
                Some(code) if failure::is_passing(&code) => refused = code,
                Some(code) => return Err(Failure::bug(format!("EventBridge refused an event: {code}"))),
            }
        }
        Err(Failure::new(Class::Transient { answered: true }, "event_not_put", format!("EventBridge is busy: {refused}")))
    }

    async fn offer(&self, queue: &QueueName, repair: &Repair) -> Result<(), Failure> {
        let body = RepairMessage::of(queue, repair).body()?;
        let request = self.clients.sqs().send_message().queue_url(&self.repair_queue_url).message_body(body);
        request.send().await.map(|_| ()).map_err(|error| failure::of("SQS", "repair_not_sent", &error))
    }
}

/// Why the one entry was not taken.
fn refusal(failed: i32, entries: &[PutEventsResultEntry]) -> Option<String> {
    let code = entries.iter().find_map(|entry| entry.error_code.clone());
    (failed > 0 || code.is_some()).then(|| code.unwrap_or_else(|| "InternalFailure".to_owned()))
}

#[async_trait]
impl Notices for EventBridgeNotices {
    async fn publish(&self, queue: &QueueName, notice: &Notice) -> Result<(), Failure> {
        match notice {
            Notice::Hook(hook) => self.put(&hook.event_of(queue)).await,
            Notice::Repair(repair) => self.offer(queue, repair).await,
        }
    }
}
