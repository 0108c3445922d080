//! The wake-up queue on SQS. A message carries an item's id and no state (INV-13).

use crate::clients::Clients;
use crate::failure;
use async_trait::async_trait;
use aws_sdk_sqs::types::QueueAttributeName;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_engine::ports::Wakes;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The longest delay of a message.
const MAX_DELAY_SECONDS: i32 = 900;

/// Sends wake-ups to one standard queue.
#[derive(Debug, Clone)]
pub struct SqsWakes {
    clients: Arc<Clients>,
    queue_url: String,
}

impl SqsWakes {
    /// Wake-ups through the queue at this URL.
    #[must_use]
    pub fn new(clients: Arc<Clients>, queue_url: String) -> Self {
        Self { clients, queue_url }
    }

    /// How many wake-ups wait in the queue, as SQS last counted them.
    ///
    /// # Errors
    /// Where SQS does not say.
    pub async fn depth(&self) -> Result<usize, Failure> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.clients.sqs().get_queue_attributes().queue_url(&self.queue_url).attribute_names(name.clone());
        let answer = request.send().await.map_err(|error| failure::of("SQS", "queue_unreadable", &error))?;
        let count = answer.attributes.and_then(|attributes| attributes.get(&name)?.parse().ok());
        count.ok_or_else(|| Failure::bug("SQS does not say how many messages wait"))
    }
}

#[async_trait]
impl Wakes for SqsWakes {
    async fn send(&self, item: &ItemId, delay: Duration) -> Result<(), Failure> {
        let request = self.clients.sqs().send_message().queue_url(&self.queue_url).message_body(body(item));
        let sent = request.delay_seconds(delay_seconds(delay)).send().await;
        sent.map(|_| ()).map_err(|error| failure::of("SQS", "wake_not_sent", &error))
    }
}

fn body(item: &ItemId) -> String {
    json!({ "item_id": item }).to_string()
}

/// Whole seconds, rounded up: an item that is rung for too early would have nothing to do.
fn delay_seconds(delay: Duration) -> i32 {
    let whole = delay.as_millis().div_ceil(1_000);
    i32::try_from(whole).unwrap_or(MAX_DELAY_SECONDS).min(MAX_DELAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_items_id() {
        assert_eq!(body(&ItemId::new("0197-a")), r#"{"item_id":"0197-a"}"#);
    }

    #[test]
    fn delays_are_whole_seconds_up_to_a_quarter_of_an_hour() {
        let cases = [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (899_001, 900), (86_400_000, 900), (u64::MAX, 900)];
        for (ms, seconds) in cases {
            assert_eq!(delay_seconds(Duration::from_millis(ms)), seconds, "{ms} ms");
        }
    }
}
