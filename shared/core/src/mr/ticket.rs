//! The proof that a merge call may be made (INV-2).
//!
//! A [`MergeTicket`] can only be made from one reading of the merge request in which the successful pipeline belongs to
//! the head, or for a project whose configuration says that it has no pipelines. Nothing here judges drafts, approvals
//! or conflicts: that is [`super::gate`].

use super::view::{MergeRequest, Pipeline};
use crate::id::{PipelineId, Sha};
use serde::{Deserialize, Serialize};

/// Whether a project's merges need a pipeline (`projects.*.pipelines`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PipelineRule {
    /// A successful pipeline of the head.
    #[default]
    Required,
    /// None; the project has no CI.
    None,
}

/// Permission to merge exactly one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeTicket {
    sha: Sha,
    pipeline: Option<PipelineId>,
}

/// Why there is no ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTicket {
    /// The head that GitLab shows is not the one Collie verified.
    HeadNotVerified,
    /// No pipeline exists for the merge request yet.
    NoPipeline,
    /// The pipeline is for another commit than the head.
    OtherCommit(Pipeline),
    /// The pipeline's ref is of a kind that does not count here.
    OtherRef(Pipeline),
    /// The pipeline has not succeeded.
    NotSuccessful(Pipeline),
}

impl MergeTicket {
    /// Makes a ticket for the head `verified` of `mr`, where its pipeline allows it.
    ///
    /// # Errors
    /// [`NoTicket`] says which condition failed.
    pub fn issue(mr: &MergeRequest, verified: Option<&Sha>, rule: PipelineRule) -> Result<Self, NoTicket> {
        let sha = mr.sha.clone().filter(|sha| Some(sha) == verified).ok_or(NoTicket::HeadNotVerified)?;
        if rule == PipelineRule::None {
            return Ok(Self { sha, pipeline: None });
        }
        let pipeline = mr.head_pipeline.clone().ok_or(NoTicket::NoPipeline)?;
        if !belongs_to(&pipeline, mr) {
            return Err(NoTicket::OtherRef(pipeline));
        }
        if pipeline.sha != sha {
            return Err(NoTicket::OtherCommit(pipeline));
        }
        if pipeline.status != "success" {
            return Err(NoTicket::NotSuccessful(pipeline));
        }
        Ok(Self { sha, pipeline: Some(pipeline.id) })
    }

    /// The only commit this ticket merges.
    #[must_use]
    pub const fn sha(&self) -> &Sha {
        &self.sha
    }

    /// The pipeline that succeeded for it.
    #[must_use]
    pub const fn pipeline(&self) -> Option<PipelineId> {
        self.pipeline
    }
}

/// Branch pipelines run for the source branch, detached ones for the merge request's head ref.
fn belongs_to(pipeline: &Pipeline, mr: &MergeRequest) -> bool {
    pipeline.git_ref == mr.source_branch || pipeline.git_ref == format!("refs/merge-requests/{}/head", mr.iid)
}
