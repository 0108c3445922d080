//! Jobs of pipelines: lists, another try, the end of a log.

use crate::call::Call;
use crate::error::codes;
use crate::gitlab::GitLab;
use crate::scope::optional;
use crate::wire;
use collie_core::error::Failure;
use collie_core::id::{JobId, PipelineId};
use collie_core::mr::view::Job;
use collie_engine::ports::{JobRetry, ProjectRef, TraceTail};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, HeaderMap};

impl GitLab {
    /// GitLab leaves out tries that were retried since.
    pub(crate) async fn list_jobs(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        self.jobs_of(project, pipeline, &[]).await
    }

    /// No field says which tries were retried: of a name, the highest id is the latest.
    pub(crate) async fn list_all_tries(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        self.jobs_of(project, pipeline, &[("include_retried", "true")]).await
    }

    async fn jobs_of(&self, project: &ProjectRef, pipeline: PipelineId, query: &[(&str, &str)]) -> Result<Vec<Job>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["pipelines", &pipeline.to_string(), "jobs"], query)?;
        let rows: Vec<wire::Job> = scope.rows(Call::Jobs, url).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// A refusal is an answer: the try was retried before, by whomever, or is of a kind that GitLab does not retry.
    pub(crate) async fn post_retry(&self, project: &ProjectRef, job: JobId) -> Result<JobRetry, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["jobs", &job.to_string(), "retry"], &[])?;
        match scope.write::<wire::Job>(Call::RetryJob, url, &serde_json::Map::new()).await {
            Ok(made) => Ok(JobRetry::Made(Job::from(made).id)),
            Err(refused) if refused.code == codes::JOB_NOT_RETRYABLE => Ok(JobRetry::NotRetryable(refused.message)),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn get_trace_tail(&self, project: &ProjectRef, job: JobId, most: usize) -> Result<Option<TraceTail>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["jobs", &job.to_string(), "trace"], &[])?;
        let (reply, is_over) = scope.exchange_tail(Call::Trace, url, most).await?;
        match reply.status {
            // An empty log has no last bytes.
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Some(TraceTail { bytes: Vec::new(), is_cut: false })),
            status if status.is_success() => {
                let is_cut = is_over || starts_late(&reply.headers);
                Ok(Some(TraceTail { bytes: reply.into_body(), is_cut }))
            }
            _ => optional(Err(scope.failure(Call::Trace, &reply))),
        }
    }
}

/// Whether a part was sent that is not the first: `bytes 100-199/200`.
fn starts_late(headers: &HeaderMap) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let first = range.and_then(|range| range.trim().strip_prefix("bytes ")?.split('-').next()?.parse::<u64>().ok());
    first.is_some_and(|first| first > 0)
}
