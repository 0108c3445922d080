//! CI issue tracking as use cases: callers admit requests and report issues ([`calls`]), workers track them ([`work`]), recovery
//! gives up what no worker can end ([`recover`]), what opened is offered for repair ([`repair`]), the schedule rings for queues whose message was lost ([`stale`]), and everybody reads
//! ([`read`]).
//!
//! What each step means is [`collie_core::issue`]; here its programs meet the store. Nothing is kept between calls: whoever comes next
//! reads the rows (INV-13).

pub mod calls;
pub mod read;
pub mod recover;
pub mod repair;
mod run;
pub mod stale;
pub mod work;

use crate::ports::{Clock, Jobs, Notices, TrackingRows};
use crate::settings::{Queue, Settings};
use collie_core::error::Failure;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::{Job, Row, RowKey, Set};
use collie_core::issue::table::Range;
use collie_core::time::Timestamp;
use std::sync::Arc;

/// The world, as tracking needs it.
#[derive(Clone)]
pub struct TrackingPorts {
    /// The rows.
    pub rows: Arc<dyn TrackingRows>,
    /// The line of jobs.
    pub jobs: Arc<dyn Jobs>,
    /// Those who are told.
    pub notices: Arc<dyn Notices>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The use cases over one set of ports and settings. Cheap to clone; holds no state that matters.
#[derive(Clone)]
pub struct Tracking {
    ports: TrackingPorts,
    settings: Arc<Settings>,
    executors: repair::Executors,
}

impl Tracking {
    /// Tracking of the configured queues.
    #[must_use]
    pub fn new(ports: TrackingPorts, settings: Arc<Settings>) -> Self {
        Self { ports, settings, executors: repair::Executors::default() }
    }

    /// The queue with this name.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.settings.queues.iter().find(|queue| queue.name.as_str() == name)
    }

    /// The configured queues.
    #[must_use]
    pub fn queues(&self) -> &[Queue] {
        &self.settings.queues
    }

    /// The time that ages are told by.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    async fn row<T: TryFrom<Row>>(&self, queue: &QueueName, key: &RowKey) -> Result<Option<T>, Failure> {
        Ok(self.ports.rows.read(queue, key).await?.and_then(|row| T::try_from(row).ok()))
    }

    async fn job(&self, queue: &QueueName, request: RequestId) -> Result<Option<Job>, Failure> {
        self.row(queue, &RowKey::job(request)).await
    }

    /// The oldest job that is registered. A page without rows may have some behind it.
    async fn oldest_job(&self, queue: &QueueName) -> Result<Option<Job>, Failure> {
        let mut range = Range::first(Set::Jobs, 1);
        loop {
            let page = self.ports.rows.range(queue, &range).await?;
            match page.rows.into_iter().next() {
                Some((_, row)) => return Ok(Job::try_from(row).ok()),
                None if page.more => range.limit += 1,
                None => return Ok(None),
            }
        }
    }
}
