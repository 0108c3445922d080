//! What issue tracking needs: its rows, a way to ring for a queue and to give a job to recovery, and those who are told.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::issue::delivery::Reason;
use collie_core::issue::hook::Notice;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::{Row, RowKey};
use collie_core::issue::table::{Edit, Page, Range};

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All of it happened.
    Yes,
    /// A belief did not hold, and nothing happened. Also the answer where a write that had happened was sent again: whoever reads the rows
    /// sees which.
    Refused,
}

/// The rows of issue tracking, every queue apart. A write means what [`collie_core::issue::table::Table::write`] does, for every queue
/// and at once; at most 100 edits, no two about one row.
///
/// Every read is strongly consistent.
#[async_trait]
pub trait TrackingRows: Send + Sync {
    /// Reads a row.
    async fn read(&self, queue: &QueueName, key: &RowKey) -> Result<Option<Row>, Failure>;

    /// Reads rows of a set. A page may hold fewer rows than asked for, or none, and still have more behind it.
    async fn range(&self, queue: &QueueName, range: &Range) -> Result<Page, Failure>;

    /// Writes all edits, or none.
    async fn write(&self, queue: &QueueName, edits: &[Edit]) -> Result<Written, Failure>;
}

/// The line of jobs, one for each queue, in order. Messages are doorbells: they say that there may be something to do (INV-13).
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Rings for a queue because of this job. The same `occasion` again within minutes may be one message.
    async fn ring(&self, queue: &QueueName, job: RequestId, occasion: &str) -> Result<(), Failure>;

    /// The queue may have become ready before its hold is over. Where a line can bring a held message back, it does; others need not.
    fn hurry(&self, _queue: &QueueName) {}

    /// Gives a job to recovery. The same attempt again within minutes may be one message.
    async fn dead_letter(&self, queue: &QueueName, job: RequestId, attempt: u32, reason: Reason) -> Result<(), Failure>;
}

/// Those who are told, at least once.
#[async_trait]
pub trait Notices: Send + Sync {
    /// Tells openings and closings to subscribers, and that there may be something to repair to those who repair.
    async fn publish(&self, queue: &QueueName, notice: &Notice) -> Result<(), Failure>;
}
