//! The schedule's part: a queue with a job that nobody has looked at for two minutes has lost its message, and is rung for (INV-13).

use super::Tracking;
use crate::metric;
use crate::settings::Queue;
use collie_core::error::Failure;

impl Tracking {
    /// Rings for every queue whose oldest job is stale, and says how many.
    ///
    /// # Errors
    /// The first failure, after every queue had its turn.
    pub async fn ring_stale(&self) -> Result<usize, Failure> {
        let (mut rung, mut failed) = (0, None);
        for queue in self.queues() {
            match self.ring_if_stale(queue).await {
                Ok(was_stale) => rung += usize::from(was_stale),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(rung), Err)
    }

    async fn ring_if_stale(&self, queue: &Queue) -> Result<bool, Failure> {
        let now = self.ports.clock.now();
        let Some(job) = self.oldest_job(&queue.name).await? else { return Ok(false) };
        metric::head_age(queue.name.as_str(), now.since(job.registered_at));
        if !job.is_stale(now) {
            return Ok(false);
        }
        tracing::info!(queue = %queue.name, request = %job.request, "nobody looked at the oldest job for long; ringing again");
        self.ports.jobs.ring(&queue.name, job.request, &format!("stale {}", now.as_millis())).await?;
        Ok(true)
    }
}
