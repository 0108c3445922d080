//! Jobs of pipelines.

use crate::call::Call;
use crate::gitlab::GitLab;
use crate::wire;
use collie_core::error::Failure;
use collie_core::id::PipelineId;
use collie_core::mr::view::Job;
use collie_engine::ports::ProjectRef;

impl GitLab {
    /// GitLab leaves out tries that were retried since.
    pub(crate) async fn list_jobs(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["pipelines", &pipeline.to_string(), "jobs"], &[])?;
        let rows: Vec<wire::Job> = scope.rows(Call::Jobs, url).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}
