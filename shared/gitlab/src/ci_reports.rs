//! Pipelines as detection needs them: those of a ref, their jobs, bridges and test reports.

use crate::call::Call;
use crate::error::codes;
use crate::gitlab::GitLab;
use crate::limits::MAX_PIPELINE_PAGES;
use crate::scope::optional;
use crate::wire;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::PipelineId;
use collie_core::issue::ci::{Bridge, CiJob, Pipeline, TestReport};
use collie_engine::ports::{CiReports, NewerPipelines, ProjectRef};

/// Newest first: a pipeline that is made meanwhile moves rows to later pages, so that they are met twice and never missed.
const NEWEST_FIRST: [(&str, &str); 2] = [("order_by", "id"), ("sort", "desc")];

#[async_trait]
impl CiReports for GitLab {
    async fn newest_pipeline(&self, project: &ProjectRef, git_ref: &str) -> Result<Option<Pipeline>, Failure> {
        let rows = self.pipeline_pages(project, git_ref, 1, |_| false).await?.pipelines;
        Ok(rows.into_iter().next_back())
    }

    async fn pipelines_after(&self, project: &ProjectRef, git_ref: &str, known: PipelineId) -> Result<NewerPipelines, Failure> {
        self.pipeline_pages(project, git_ref, MAX_PIPELINE_PAGES, |id| id <= known).await
    }

    async fn pipeline(&self, project: &ProjectRef, id: PipelineId) -> Result<Option<Pipeline>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["pipelines", &id.to_string()], &[])?;
        let found = optional(scope.read::<wire::PipelineRow>(Call::Pipeline, url).await)?;
        Ok(found.map(Into::into))
    }

    async fn pipeline_jobs(&self, project: &ProjectRef, id: PipelineId) -> Result<Vec<CiJob>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["pipelines", &id.to_string(), "jobs"], &[])?;
        let rows: Vec<wire::CiJob> = scope.rows(Call::Jobs, url).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    async fn bridges(&self, project: &ProjectRef, id: PipelineId) -> Result<Vec<Bridge>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["pipelines", &id.to_string(), "bridges"], &[])?;
        let rows: Vec<wire::Bridge> = scope.rows(Call::Bridges, url).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    async fn test_report(&self, project: &ProjectRef, id: PipelineId, max_bytes: usize) -> Result<TestReport, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["pipelines", &id.to_string(), "test_report"], &[])?;
        match scope.exchange_within(Call::TestReport, url, None, max_bytes).await {
            Ok(reply) if reply.status.is_success() => Ok(reply.decode::<wire::TestReport>(Call::TestReport)?.into()),
            Ok(reply) => Err(scope.failure(Call::TestReport, &reply)),
            Err(failure) if failure.code == codes::ANSWER_TOO_LARGE => Ok(TestReport::TooLarge),
            Err(failure) => Err(failure),
        }
    }
}

impl GitLab {
    /// The builds of a ref, back to the first that is known, oldest first.
    async fn pipeline_pages(
        &self,
        project: &ProjectRef,
        git_ref: &str,
        most: usize,
        is_known: impl Fn(PipelineId) -> bool + Send,
    ) -> Result<NewerPipelines, Failure> {
        let scope = self.project(project)?;
        let query: Vec<_> = [("ref", git_ref)].into_iter().chain(NEWEST_FIRST).collect();
        let url = scope.url(&["pipelines"], &query)?;
        let listing = scope.rows_to(Call::Pipelines, url, most, |row: &wire::PipelineRow| is_known(row.id)).await?;
        let mut pipelines: Vec<Pipeline> = listing.rows.into_iter().map(Pipeline::from).filter(Pipeline::is_of_its_ref).collect();
        pipelines.sort_by_key(|pipeline| pipeline.id);
        pipelines.dedup_by_key(|pipeline| pipeline.id);
        Ok(NewerPipelines { pipelines, is_cut: listing.is_cut })
    }
}
