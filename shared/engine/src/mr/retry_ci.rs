//! `retry_ci_jobs` without matchers: failed jobs are recorded, none is retried.

use super::Work;
use crate::execute::Stop;
use collie_core::item::{Dimension, Status};
use collie_core::mr::dims;
use collie_core::mr::events::failed_jobs;
use collie_core::outcome::Outcome;

impl Work<'_, '_> {
    pub(super) fn retry_ci_jobs(&mut self) -> Result<Outcome, Stop> {
        let jobs = failed_jobs(self.item());
        let names: Vec<_> = jobs.iter().map(|job| job.name.escape_debug().to_string()).collect();
        let detail = serde_json::json!({ "why": "no retry rule is configured", "jobs": jobs });
        let recorded = Dimension { status: Status::False, pending_until: None, detail: Some(detail) };
        Ok(Outcome::progress(format!("failed, and no rule retries: {}", names.join(", "))).with(dims::ci_retry(), recorded))
    }
}
