//! Sends dead letters to their queues again.

use crate::clients::Clients;
use crate::failure;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::letter::Origin;
use collie_engine::ports::Redrive;
use std::sync::Arc;

/// Where each queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUrls {
    /// Wake-ups of items.
    pub wakes: String,
    /// Deliveries of GitLab's hooks.
    pub hooks: String,
    /// Offers of repairs.
    pub repairs: String,
}

/// Standard queues that dead letters came from.
#[derive(Debug, Clone)]
pub struct SqsRedrive {
    clients: Arc<Clients>,
    urls: QueueUrls,
}

impl SqsRedrive {
    /// The queues at these URLs.
    #[must_use]
    pub const fn new(clients: Arc<Clients>, urls: QueueUrls) -> Self {
        Self { clients, urls }
    }
}

#[async_trait]
impl Redrive for SqsRedrive {
    async fn send(&self, origin: Origin, body: &str) -> Result<(), Failure> {
        let url = match origin {
            Origin::Wakes => &self.urls.wakes,
            Origin::Hooks => &self.urls.hooks,
            Origin::Repairs => &self.urls.repairs,
        };
        let sent = self.clients.sqs().send_message().queue_url(url).message_body(body).send().await;
        sent.map(|_| ()).map_err(|error| failure::of("SQS", "letter_not_sent", &error))
    }
}
