//! The proof that a merge call may be made (INV-2).
//!
//! A [`MergeTicket`] can only be made from one reading of an open merge request in which the successful pipeline belongs
//! to the head, or for a project whose configuration says that it has no pipelines. Nothing here judges drafts, approvals
//! or conflicts: that is [`super::gate`].

use super::view::{MergeRequest, Pipeline, State};
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

/// What a pipeline of the merged result ran on, as read beside the merge request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedResult {
    /// The commit it ran for.
    pub sha: Sha,
    /// That commit's parents.
    pub parents: Vec<Sha>,
    /// The target branch's head now.
    pub target_head: Sha,
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
    /// The merge request is not open: closed, merged, or being merged at this moment.
    NotOpen,
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
    /// The pipeline ran for the head merged into a target that has moved since.
    OldTarget(Pipeline),
}

/// The successful pipeline of the merged result of this merge request, whose commit must be read for a ticket.
#[must_use]
pub fn result_pipeline(mr: &MergeRequest) -> Option<&Pipeline> {
    let counts = |p: &&Pipeline| p.git_ref == format!("refs/merge-requests/{}/merge", mr.iid) && p.status == "success";
    mr.head_pipeline.as_ref().filter(counts)
}

/// Whether the newest pipeline of the merge request is that of a merge train, which it is on or was dropped from.
#[must_use]
pub fn is_on_train(mr: &MergeRequest) -> bool {
    mr.head_pipeline.as_ref().is_some_and(|p| p.git_ref == format!("refs/merge-requests/{}/train", mr.iid))
}

impl MergeTicket {
    /// Makes a ticket for the head `verified` of `mr`, where its pipeline allows it. A pipeline of the merged result counts only
    /// with `result`: its commit must join this very head and the target as it is now.
    ///
    /// # Errors
    /// [`NoTicket`] says which condition failed.
    pub fn issue(mr: &MergeRequest, verified: Option<&Sha>, rule: PipelineRule, result: Option<&MergedResult>) -> Result<Self, NoTicket> {
        if mr.state != State::Opened {
            return Err(NoTicket::NotOpen);
        }
        let sha = mr.sha.clone().filter(|sha| Some(sha) == verified).ok_or(NoTicket::HeadNotVerified)?;
        if rule == PipelineRule::None {
            return Ok(Self { sha, pipeline: None });
        }
        let pipeline = mr.head_pipeline.clone().ok_or(NoTicket::NoPipeline)?;
        if let Some(result) = result.filter(|r| result_pipeline(mr).is_some_and(|p| p.sha == r.sha)) {
            return match result.parents.as_slice() {
                [target, head] if *head == sha && *target == result.target_head => Ok(Self { sha, pipeline: Some(pipeline.id) }),
                [_, head] if *head == sha => Err(NoTicket::OldTarget(pipeline)),
                _ => Err(NoTicket::OtherCommit(pipeline)),
            };
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, HEAD, pipeline};

    fn issue(mr: &MergeRequest, rule: PipelineRule) -> Result<MergeTicket, NoTicket> {
        MergeTicket::issue(mr, Some(&Sha::new(HEAD)), rule, None)
    }

    fn with(pipeline: Pipeline) -> MergeRequest {
        MergeRequest { head_pipeline: Some(pipeline), ..sample::merge_request() }
    }

    #[test]
    fn a_successful_branch_or_detached_pipeline_of_the_head_gives_a_ticket_for_exactly_that_head() {
        for git_ref in ["bot/openssl", "refs/merge-requests/2/head"] {
            let ticket = issue(&with(pipeline(git_ref, HEAD, "success")), PipelineRule::Required).unwrap();
            assert_eq!((ticket.sha().as_str(), ticket.pipeline()), (HEAD, Some(PipelineId(90))), "{git_ref}");
        }
    }

    #[test]
    fn a_pipeline_of_another_ref_does_not_count_however_successful() {
        for git_ref in ["refs/merge-requests/2/merge", "refs/merge-requests/2/train", "refs/merge-requests/3/head", "main", "bot", ""] {
            let other = pipeline(git_ref, HEAD, "success");
            assert_eq!(issue(&with(other.clone()), PipelineRule::Required), Err(NoTicket::OtherRef(other)));
        }
    }

    #[test]
    fn a_pipeline_of_the_merged_result_counts_where_its_commit_joins_the_head_and_the_target_as_it_is_now() {
        let merged = pipeline("refs/merge-requests/2/merge", "joint", "success");
        let result = |sha: &str, parents: &[&str]| MergedResult {
            sha: Sha::new(sha),
            parents: parents.iter().map(|p| Sha::new(*p)).collect(),
            target_head: Sha::new("target"),
        };
        let of = |result: &MergedResult| {
            let ticket = MergeTicket::issue(&with(merged.clone()), Some(&Sha::new(HEAD)), PipelineRule::Required, Some(result));
            ticket.map(|t| (t.sha().as_str().to_owned(), t.pipeline()))
        };
        let cases = [
            (result("joint", &["target", HEAD]), Ok((HEAD.to_owned(), Some(PipelineId(90))))),
            (result("joint", &["earlier", HEAD]), Err(NoTicket::OldTarget(merged.clone()))),
            (result("joint", &[HEAD, "target"]), Err(NoTicket::OtherCommit(merged.clone()))),
            (result("joint", &["target", "0000"]), Err(NoTicket::OtherCommit(merged.clone()))),
            (result("joint", &["target", HEAD, "third"]), Err(NoTicket::OtherCommit(merged.clone()))),
            (result("joint", &[HEAD]), Err(NoTicket::OtherCommit(merged.clone()))),
            (result("another", &["target", HEAD]), Err(NoTicket::OtherRef(merged.clone()))),
        ];
        for (result, want) in cases {
            assert_eq!(of(&result), want, "{result:?}");
        }
    }

    #[test]
    fn only_a_successful_pipeline_of_its_own_merge_ref_is_worth_a_reading() {
        let is_read = |git_ref, status| result_pipeline(&with(pipeline(git_ref, "joint", status))).is_some();
        assert!(is_read("refs/merge-requests/2/merge", "success"));
        for (git_ref, status) in
            [("refs/merge-requests/2/merge", "running"), ("refs/merge-requests/3/merge", "success"), ("bot/openssl", "success")]
        {
            assert!(!is_read(git_ref, status), "{git_ref} {status}");
        }
        assert!(is_on_train(&with(pipeline("refs/merge-requests/2/train", "joint", "running"))));
        assert!(!is_on_train(&with(pipeline("refs/merge-requests/2/merge", "joint", "running"))));
    }

    #[test]
    fn only_success_counts() {
        let words = ["failed", "canceled", "canceling", "skipped", "manual", "scheduled", "running", "pending", "created", "preparing"];
        for status in words.into_iter().chain(["waiting_for_resource", "Success", "success ", "passed", ""]) {
            let other = pipeline("bot/openssl", HEAD, status);
            assert_eq!(issue(&with(other.clone()), PipelineRule::Required), Err(NoTicket::NotSuccessful(other)), "{status}");
        }
    }

    #[test]
    fn a_pipeline_of_another_commit_does_not_count() {
        for sha in ["0000000000000000000000000000000000000000", &HEAD[..8], ""] {
            let other = pipeline("bot/openssl", sha, "success");
            assert_eq!(issue(&with(other.clone()), PipelineRule::Required), Err(NoTicket::OtherCommit(other)));
        }
    }

    #[test]
    fn a_head_that_is_not_the_verified_one_gives_no_ticket_whatever_the_rule() {
        let no_head = MergeRequest { sha: None, ..sample::merge_request() };
        let other = Sha::new("0000");
        for rule in [PipelineRule::Required, PipelineRule::None] {
            assert_eq!(issue(&no_head, rule), Err(NoTicket::HeadNotVerified));
            assert_eq!(MergeTicket::issue(&sample::merge_request(), Some(&other), rule, None), Err(NoTicket::HeadNotVerified));
            assert_eq!(MergeTicket::issue(&sample::merge_request(), None, rule, None), Err(NoTicket::HeadNotVerified));
            assert_eq!(MergeTicket::issue(&no_head, None, rule, None), Err(NoTicket::HeadNotVerified));
        }
    }

    #[test]
    fn a_merge_request_that_is_not_open_gives_no_ticket_whatever_the_rule() {
        for state in [State::Closed, State::Merged, State::Locked] {
            let mr = MergeRequest { state, ..sample::merge_request() };
            for rule in [PipelineRule::Required, PipelineRule::None] {
                assert_eq!(issue(&mr, rule), Err(NoTicket::NotOpen), "{state:?}");
            }
        }
    }

    #[test]
    fn a_missing_pipeline_is_enough_only_where_the_configuration_says_that_there_are_none() {
        let none = MergeRequest { head_pipeline: None, ..sample::merge_request() };
        assert_eq!(issue(&none, PipelineRule::Required), Err(NoTicket::NoPipeline));
        let ticket = issue(&none, PipelineRule::None).unwrap();
        assert_eq!((ticket.sha().as_str(), ticket.pipeline()), (HEAD, None));
        assert_eq!(PipelineRule::default(), PipelineRule::Required);
    }
}
