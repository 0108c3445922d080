//! The line of jobs on SQS: one FIFO queue whose message groups are the tracked queues, and another one for dead letters. Messages are
//! doorbells (INV-13); what is said again within five minutes is one message.
//!
//! A FIFO message has no delay of its own: one that is to come again later is hidden for that time and reported as failed. SQS counts
//! such a receipt like any other, so the queues must not redrive by themselves; failures are counted in the table.

use crate::clients::Clients;
use crate::failure;
use crate::messages::{DeadLetter, JobMessage, Message};
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::issue::delivery::Reason;
use collie_core::issue::id::{QueueName, RequestId};
use collie_engine::ports::Jobs;
use std::sync::Arc;
use std::time::Duration;

/// The longest time that a message may be hidden.
const MAX_HOLD_SECONDS: u64 = 12 * 60 * 60;

/// Sends jobs and dead letters.
#[derive(Debug, Clone)]
pub struct SqsJobs {
    clients: Arc<Clients>,
    queue_url: String,
    dead_letter_url: String,
}

impl SqsJobs {
    /// Jobs through the FIFO queue at this URL, dead letters through the other.
    #[must_use]
    pub fn new(clients: Arc<Clients>, queue_url: String, dead_letter_url: String) -> Self {
        Self { clients, queue_url, dead_letter_url }
    }

    async fn send(&self, url: &str, queue: &QueueName, said: &str, message: &impl Message) -> Result<(), Failure> {
        let request = self.clients.sqs().send_message().queue_url(url).message_body(message.body()?);
        let sent = request.message_group_id(queue.as_str()).message_deduplication_id(deduplication_id(queue, said)).send().await;
        sent.map(|_| ()).map_err(|error| failure::of("SQS", "job_not_sent", &error))
    }
}

#[async_trait]
impl Jobs for SqsJobs {
    async fn ring(&self, queue: &QueueName, job: RequestId, occasion: &str) -> Result<(), Failure> {
        let body = JobMessage { queue: queue.clone(), request: job };
        self.send(&self.queue_url, queue, &format!("{job} {occasion}"), &body).await
    }

    async fn dead_letter(&self, queue: &QueueName, job: RequestId, attempt: u32, reason: Reason) -> Result<(), Failure> {
        let body = DeadLetter { queue: queue.clone(), request: job, attempt, reason: reason.as_str().to_owned() };
        self.send(&self.dead_letter_url, queue, &format!("{job} {attempt}"), &body).await
    }
}

/// SQS knows ids by the queue, not by the group, and takes neither blanks nor more than 128 characters.
fn deduplication_id(queue: &QueueName, said: &str) -> String {
    sha256_hex(format!("{queue} {said}").as_bytes())
}

/// Hides messages that were received.
#[derive(Debug, Clone)]
pub struct SqsHolds {
    clients: Arc<Clients>,
    queue_url: String,
}

impl SqsHolds {
    /// Holds messages of the queue at this URL.
    #[must_use]
    pub fn new(clients: Arc<Clients>, queue_url: String) -> Self {
        Self { clients, queue_url }
    }

    /// Hides a message for this time, rounded up to whole seconds, from now on. It still has to be reported as failed: one that is
    /// reported as done is deleted.
    ///
    /// # Errors
    /// Where SQS does not do so; the message then comes again when the queue's own time is over.
    pub async fn hold(&self, receipt_handle: &str, time: Duration) -> Result<(), Failure> {
        let request = self.clients.sqs().change_message_visibility().queue_url(&self.queue_url).receipt_handle(receipt_handle);
        let held = request.visibility_timeout(hold_seconds(time)).send().await;
        held.map(|_| ()).map_err(|error| failure::of("SQS", "message_not_held", &error))
    }
}

fn hold_seconds(time: Duration) -> i32 {
    let whole = u64::try_from(time.as_millis().div_ceil(1_000)).unwrap_or(MAX_HOLD_SECONDS).min(MAX_HOLD_SECONDS);
    i32::try_from(whole).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_hidden_for_whole_seconds_up_to_half_a_day() {
        for (ms, seconds) in [(0, 0), (1, 1), (30_000, 30), (30_001, 31), (u64::MAX, 43_200)] {
            assert_eq!(hold_seconds(Duration::from_millis(ms)), seconds, "{ms} ms");
        }
    }

    #[test]
    fn what_is_said_once_has_one_id_and_no_other_has_it() {
        let id = |queue: &str, said: &str| deduplication_id(&QueueName::new(queue), said);
        assert_eq!(id("app-main", "7 admitted"), id("app-main", "7 admitted"));
        let others =
            [id("app", "main 7 admitted"), id("app-main", "7 stale 1"), id("app-main", "71 admitted"), id("app-main", "7 admitted")];
        assert_eq!(others.iter().filter(|other| **other == id("app-main", "7 admitted")).count(), 1);
        assert!(others.iter().all(|id| id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    }
}
