//! The store in memory: a [`Table`] for each queue, under one lock, with the costs that DynamoDB would have. Nothing expires.

use super::{KEPT, bill, check};
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::issue::id::QueueName;
use collie_core::issue::row::{Row, RowKey};
use collie_core::issue::table::{Edit, Page, Range, Table};
use collie_engine::cost;
use collie_engine::ports::{TrackingRows, Written};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store in memory; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryTracking(Arc<Mutex<HashMap<QueueName, Table>>>);

impl MemoryTracking {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<QueueName, Table>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TrackingRows for MemoryTracking {
    async fn read(&self, queue: &QueueName, key: &RowKey) -> Result<Option<Row>, Failure> {
        Ok(self.queues().get(queue).and_then(|table| table.get(key)).cloned())
    }

    async fn range(&self, queue: &QueueName, range: &Range) -> Result<Page, Failure> {
        Ok(self.queues().get(queue).map(|table| table.range(range)).unwrap_or_default())
    }

    async fn write(&self, queue: &QueueName, edits: &[Edit]) -> Result<Written, Failure> {
        check(edits)?;
        let mut queues = self.queues();
        let table = queues.entry(queue.clone()).or_default();
        cost::write_units(match edits {
            [] => 0,
            [edit] => bill::of_one(queue, edit, table.get(&edit.key()), KEPT),
            edits => bill::of_all(queue, edits, KEPT),
        });
        Ok(if table.write(edits).is_ok() { Written::Yes } else { Written::Refused })
    }
}
