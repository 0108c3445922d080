//! Recovery of a dead letter of tracking: always tried again, until the job has ended one way or the other.

use super::Tracking;
use super::run::raise;
use super::work::{HOLD, Turn};
use crate::metric;
use collie_core::error::Failure;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::recovery::{Recovered, Recovery};
use std::time::Duration;

/// When a recovery that met another worker is tried again.
const RETRY: Duration = Duration::from_secs(1);

impl Tracking {
    /// Gives up a job, and every older one that is in front of it. A queue that is not configured any more is recovered like any other:
    /// its rows are there.
    ///
    /// # Errors
    /// Where the store failed; the dead letter comes again.
    pub async fn recover(&self, queue: &QueueName, job: RequestId) -> Result<Turn, Failure> {
        loop {
            let recovered = self.run(queue, Recovery::new(job)).await?;
            metric::recovery(recovered.name());
            match recovered {
                Recovered::Again => {}
                Recovered::Abandoned | Recovered::HadEnded => {
                    tracing::warn!(%queue, request = %job, outcome = recovered.name(), "a dead letter of issue tracking is dealt with");
                    return Ok(Turn::Done);
                }
                Recovered::Missing => {
                    tracing::error!(%queue, request = %job, "a dead letter names a request that is not there");
                    return Ok(Turn::Done);
                }
                Recovered::Retry => return Ok(Turn::Hold(RETRY)),
                Recovered::HistoryConflict => {
                    raise(queue, recovered.name());
                    return Ok(Turn::Hold(HOLD));
                }
            }
        }
    }
}
