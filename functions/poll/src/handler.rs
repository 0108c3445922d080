//! From a tick of the schedule to one look at every queue that Collie detects for. The event carries nothing that counts.

use collie_core::error::Failure;
use collie_engine::tracking::detect::Detector;
use serde_json::{Value, json};

/// Looks at pipelines.
pub(crate) struct Poll {
    pub(crate) detector: Detector,
}

impl Poll {
    /// One look. What fails is looked at again at the next tick.
    pub(crate) async fn tick(&self) -> Result<Value, Failure> {
        self.detector.look_at_all().await.inspect_err(|failure| {
            tracing::error!(code = failure.code, message = failure.message, "not every queue was looked at; the next tick looks again");
        })?;
        Ok(json!({ "looked": true }))
    }
}
