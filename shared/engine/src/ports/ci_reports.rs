//! What CI says of pipelines, for those who detect issues in it. Each method is one request, or one listing that is bounded.

use super::ProjectRef;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::PipelineId;
use collie_core::issue::ci::{Bridge, CiJob, Pipeline, TestReport};

/// The pipelines of a ref that are newer than a known one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewerPipelines {
    /// Oldest first.
    pub pipelines: Vec<Pipeline>,
    /// Whether there are more between these and the known one, which are not listed: they are too many.
    pub is_cut: bool,
}

/// CI's view of pipelines. Reads that find nothing answer none.
#[async_trait]
pub trait CiReports: Send + Sync {
    /// The newest pipeline of a ref that is a build of it.
    async fn newest_pipeline(&self, project: &ProjectRef, git_ref: &str) -> Result<Option<Pipeline>, Failure>;

    /// The builds of a ref whose number is greater, from the newest on; those that are too far back are left out.
    async fn pipelines_after(&self, project: &ProjectRef, git_ref: &str, known: PipelineId) -> Result<NewerPipelines, Failure>;

    /// One pipeline.
    async fn pipeline(&self, project: &ProjectRef, id: PipelineId) -> Result<Option<Pipeline>, Failure>;

    /// The newest try of each of its jobs, bridges left out.
    async fn pipeline_jobs(&self, project: &ProjectRef, id: PipelineId) -> Result<Vec<CiJob>, Failure>;

    /// The newest try of each of its bridges.
    async fn bridges(&self, project: &ProjectRef, id: PipelineId) -> Result<Vec<Bridge>, Failure>;

    /// Its test report, if that has at most so many bytes.
    async fn test_report(&self, project: &ProjectRef, id: PipelineId, max_bytes: usize) -> Result<TestReport, Failure>;
}
