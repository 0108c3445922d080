//! `reconcile_mr`: reads the merge request, corrects what drifted, says what is missing, merges what may be merged (DDR-46).
//!
//! One `GET` feeds all cheap checks. Upholds INV-2: the merge call takes a ticket that only the gate issues. A merge that was
//! refused or had no answer is read again before anything is concluded. What cannot be decided yet is looked at on a short
//! schedule, everything else after half an hour or at the next hook (INV-10).

use super::Work;
use crate::execute::Stop;
use crate::ports::MergeOptions;
use collie_core::error::{Class, Failure};
use collie_core::id::Sha;
use collie_core::item::{BlockedReason, Dimension};
use collie_core::mr::events::{FailedJob, failed_jobs, have_failed};
use collie_core::mr::facts::{BLOCKERS_KEPT, Blocker, PipelineRef, Rebuilds};
use collie_core::mr::gate::{self, Conditions, Gate};
use collie_core::mr::ownership::Ownership;
use collie_core::mr::ticket::{self, MergeTicket, MergedResult};
use collie_core::mr::view::{MergeRequest, State};
use collie_core::mr::wanted::OnConflict;
use collie_core::mr::{dims, tree};
use collie_core::outcome::{Block, Outcome, RECHECK};
use std::time::Duration;

/// Rebuilds on one target head before the item is blocked.
const MAX_REBUILDS: u32 = 3;
/// Reads in a row that may find GitLab checking before the schedule gets as slow as any other wait.
const MAX_RECHECKS: u32 = 12;
/// The longest wait between two such reads.
const RECHECK_CAP: Duration = Duration::from_secs(60);

impl Work<'_, '_> {
    pub(super) async fn reconcile_mr(&mut self) -> Result<Outcome, Stop> {
        let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) else { return self.reconcile_branch().await };
        let mr = self.forge().merge_request(&self.at, iid).await?;
        let mr = mr.ok_or_else(|| Failure::new(Class::Gone, "merge_request_gone", format!("merge request !{iid} has vanished")))?;
        if let Some(ended) = self.ended(&mr) {
            return Ok(ended);
        }
        match mr.state {
            State::Closed => return Ok(self.rebuild("its merge request is closed")),
            State::Locked => return Ok(self.look_soon("GitLab is merging it")),
            State::Opened | State::Merged => {}
        }
        if let Some(outcome) = self.check_head(&mr).await? {
            return Ok(outcome);
        }
        self.find_replaced().await;
        if let Some(lost) = self.facts.lost(self.item()).cloned() {
            return Box::pin(self.overwrote(&lost)).await;
        }
        if ticket::is_on_train(&mr) && !self.by_train() {
            return Ok(self.needs_train());
        }
        let outcome = Box::pin(self.drive(mr.clone())).await?;
        Ok(self.freed(&mr, outcome))
    }

    /// The head is Collie's: metadata, pipeline, conflict, and at last the merge.
    async fn drive(&mut self, mr: MergeRequest) -> Result<Outcome, Stop> {
        let mr = self.edit_to_fit(mr).await?;
        self.link(&mr).await?;
        self.note_pipeline(&mr);
        if let Some(outcome) = self.ride(&mr).await? {
            return Ok(outcome);
        }
        if let Some(outcome) = self.list_failed_jobs(&mr).await? {
            return Ok(outcome);
        }
        if gate::wants_rebuild(&mr) {
            return Box::pin(self.answer_conflict(&mr)).await;
        }
        Box::pin(self.judge(mr)).await
    }

    /// Blocked before there was a merge request: looks whether the cause is gone.
    async fn reconcile_branch(&mut self) -> Result<Outcome, Stop> {
        let target = self.forge().branch(&self.at, &self.item().target).await?;
        let head = self.forge().branch(&self.at, self.source_branch()).await?;
        if let Some(head) = head.filter(|_| target.is_some()) {
            let judged = Box::pin(self.judge_head(&head.sha)).await?;
            if let Ownership::Foreign(why) = judged.ownership {
                return Box::pin(self.foreign(&head.sha, why)).await;
            }
        }
        Ok(Outcome::progress("what blocked the item is gone")
            .with(dims::mr(), Dimension::needed())
            .with(dims::reconcile(), self.in_half_an_hour())
            .blocking(Block::Clear))
    }

    /// None where the head is the one on record; otherwise what its owner means for the item.
    async fn check_head(&mut self, mr: &MergeRequest) -> Result<Option<Outcome>, Stop> {
        let known = |sha| Some(sha) == self.facts.verified_head() && self.facts.current(self.item()).is_some();
        if mr.sha.as_ref().is_some_and(known) {
            return Ok(None);
        }
        let Some(branch) = self.forge().branch(&self.at, self.source_branch()).await? else {
            return Ok(Some(self.rebuild("the source branch is gone")));
        };
        let judged = Box::pin(self.judge_head(&branch.sha)).await?;
        Ok(match judged.ownership {
            Ownership::Current(number) => {
                let lags = mr.sha.as_ref() != Some(&branch.sha);
                self.facts.made(number, branch.sha, judged.parent);
                lags.then(|| self.look_soon("GitLab has not caught up with the push"))
            }
            Ownership::Stale => Some(self.rebuild("the branch holds an earlier build")),
            Ownership::Foreign(why) => Some(Box::pin(self.foreign(&branch.sha, why)).await?),
        })
    }

    fn rebuild(&mut self, why: &str) -> Outcome {
        self.facts.rebuild = true;
        Outcome::progress(format!("to be built again: {why}"))
            .with(dims::mr(), Dimension::needed())
            .with(dims::reconcile(), self.in_half_an_hour())
            .blocking(Block::Clear)
    }

    fn note_pipeline(&mut self, mr: &MergeRequest) {
        let listed = |id| self.facts.pipeline.as_ref().is_some_and(|p| p.id == id && p.listed);
        self.facts.pipeline = mr.head_pipeline.as_ref().map(|p| PipelineRef {
            id: p.id,
            status: p.status.clone(),
            sha: p.sha.clone(),
            listed: p.status == "failed" && listed(p.id),
        });
    }

    /// Lists the failed jobs of a failed head pipeline, so that lost job hooks do not matter: once, and at each look where rules
    /// may retry them, since the same pipeline fails again where anyone retried it in between. Those of a merge train are of no
    /// use any more: the train has dropped the merge request.
    async fn list_failed_jobs(&mut self, mr: &MergeRequest) -> Result<Option<Outcome>, Stop> {
        let again = !self.run.project()?.ci_retry.is_empty();
        let own = !ticket::is_on_train(mr);
        let unlisted = self.facts.pipeline.as_ref().filter(|p| own && p.status == "failed" && (again || !p.listed));
        let Some(id) = unlisted.map(|pipeline| pipeline.id) else { return Ok(None) };
        let jobs = self.forge().jobs(&self.at, id).await?;
        // Only now: what is known is kept even where the list could not be had.
        self.facts.pipeline.iter_mut().for_each(|pipeline| pipeline.listed = true);
        let failed: Vec<_> = jobs.iter().filter(|j| j.status == "failed" && !j.allow_failure).map(failed_job).collect();
        let known = failed_jobs(self.item());
        if failed.iter().all(|job| known.iter().any(|have| have.id == job.id)) {
            return Ok(None);
        }
        let blockers = self.gate(mr).await?.0.blockers().to_vec();
        self.keep_blockers(blockers);
        Ok(Some(
            Outcome::progress(format!("pipeline {id} has failed"))
                .with(dims::ci_retry(), have_failed(&failed))
                .with(dims::reconcile(), self.in_half_an_hour()),
        ))
    }

    /// The target moved in a way that GitLab cannot merge: a rebuild answers it where our files are untouched there.
    async fn answer_conflict(&mut self, mr: &MergeRequest) -> Result<Outcome, Stop> {
        let blockers = self.gate(mr).await?.0.blockers().to_vec();
        self.keep_blockers(blockers);
        let Some(target) = self.forge().branch(&self.at, &self.item().target).await? else {
            return Err(Failure::rejected("target_branch_missing", format!("branch {:?} is gone", self.item().target)).into());
        };
        let (_, content) = self.content().await?;
        let directories = tree::directories(&content.actions);
        let start = self.facts.current(self.item()).map_or_else(|| target.sha.clone(), |build| build.start_sha.clone());
        let (before, after) = (self.listing(&start, directories.clone()).await?, self.listing(&target.sha, directories).await?);
        let untouched = tree::is_untouched(&content.actions, &before, &after);
        let count = self.facts.rebuilds.as_ref().filter(|r| r.target_head == target.sha).map_or(0, |r| r.count);
        if (untouched || self.wanted.on_conflict == OnConflict::Overwrite) && count < MAX_REBUILDS {
            self.facts.rebuilds = Some(Rebuilds { target_head: target.sha, count: count + 1 });
            return Ok(self.rebuild("the target has moved"));
        }
        let detail = format!("{:?} changed the same files; submit again on top of it, or with on_conflict overwrite", self.item().target);
        Ok(Outcome::progress(detail.clone())
            .with(dims::reconcile(), self.in_half_an_hour())
            .blocking(Block::Set(BlockedReason::Conflict, detail)))
    }

    async fn judge(&mut self, mr: MergeRequest) -> Result<Outcome, Stop> {
        self.log_new_word(&mr);
        let (gate, result) = self.gate(&mr).await?;
        match gate {
            Gate::Open(ticket) => {
                Box::pin(self.inspect_again()).await?;
                Box::pin(self.merge_by_rule(&mr, &ticket)).await
            }
            Gate::Checking(blockers) => {
                self.keep_blockers(blockers);
                Ok(self.look_soon("GitLab is checking whether it can be merged"))
            }
            Gate::Shut(blockers) => {
                self.facts.rechecks = 0;
                let summary = blockers.iter().map(|b| b.code.as_str()).collect::<Vec<_>>().join(", ");
                let only_old = matches!(blockers.as_slice(), [only] if only.code == gate::OLD_TARGET);
                self.keep_blockers(blockers);
                if let Some(result) = result.filter(|_| only_old) {
                    self.start_pipeline(&mr, result.target_head).await?;
                }
                Ok(Outcome::progress(format!("not ready: {summary}")).with(dims::reconcile(), self.in_half_an_hour()))
            }
        }
    }

    /// What is to be merged was pushed under a policy that may be another by now: then it has to pass that one as well.
    async fn inspect_again(&mut self) -> Result<(), Stop> {
        let version = self.run.project()?.policy.version().to_owned();
        if self.facts.has_passed(self.item(), &version) {
            return Ok(());
        }
        let (_, content) = self.content().await?;
        let Some(start) = self.facts.current(self.item()).map(|build| build.start_sha.clone()) else { return Ok(()) };
        self.run.engine().inspected(self.item(), &content, self.run.project()?, &start).await?;
        self.facts.note_passed(self.run.item(), &version);
        Ok(())
    }

    /// A pipeline of the merged result that ran for an earlier target says nothing about the target as it is: one new pipeline per
    /// head of the target.
    async fn start_pipeline(&mut self, mr: &MergeRequest, target_head: Sha) -> Result<(), Stop> {
        if self.facts.piped.as_ref() == Some(&target_head) {
            return Ok(());
        }
        self.facts.piped = Some(target_head);
        self.run.record_intent(self.facts.document()).await?;
        let posted = self.post_pipeline(mr).await;
        if posted.is_err() {
            self.facts.piped = None;
        }
        posted
    }

    /// Starts a pipeline of the merge request; fails only where it may be started later.
    pub(super) async fn post_pipeline(&mut self, mr: &MergeRequest) -> Result<(), Stop> {
        self.run.before_write().await?;
        let Err(failure) = self.forge().start_merge_request_pipeline(&self.at, mr.iid).await else { return Ok(()) };
        match failure.class {
            Class::Throttled { .. } | Class::Transient { .. } | Class::Unauthorized => Err(failure.into()),
            _ => {
                tracing::warn!(item = %self.item().id, code = failure.code, "no pipeline of the merge request was started");
                Ok(())
            }
        }
    }

    fn log_new_word(&self, mr: &MergeRequest) {
        let word = mr.detailed_merge_status.as_str();
        if !gate::knows(word) && self.facts.blockers.iter().all(|b| b.code != word) {
            tracing::warn!(item = %self.item().id, word, "GitLab says a word that Collie does not know; it means not ready");
        }
    }

    /// What the gate says of a reading, and what a pipeline of the merged result ran on.
    async fn gate(&self, mr: &MergeRequest) -> Result<(Gate, Option<MergedResult>), Stop> {
        let approvals_left = self.approvals_behind(mr).await?;
        let result = self.merged_result(mr).await?;
        let conditions = Conditions {
            auto_merge: self.wanted.auto_merge,
            verified_head: self.facts.verified_head(),
            pipelines: self.rules.pipelines,
            approvals_left,
            merged_result: result.as_ref(),
        };
        Ok((gate::judge(mr, &conditions, self.now()), result))
    }

    async fn merged_result(&self, mr: &MergeRequest) -> Result<Option<MergedResult>, Stop> {
        let Some(pipeline) = ticket::result_pipeline(mr) else { return Ok(None) };
        let commit = self.forge().commit(&self.at, &pipeline.sha).await?;
        let target = self.forge().branch(&self.at, &self.item().target).await?;
        let of = |(commit, target): (collie_core::mr::view::Commit, collie_core::mr::view::Branch)| MergedResult {
            sha: pipeline.sha.clone(),
            parents: commit.parents,
            target_head: target.sha,
        };
        Ok(commit.zip(target).map(of))
    }

    /// GitLab names only its first failing check. Where that one hides approvals, they are asked for separately.
    async fn approvals_behind(&self, mr: &MergeRequest) -> Result<Option<u64>, Stop> {
        let hides = matches!(mr.detailed_merge_status.as_str(), "draft_status" | "discussions_not_resolved" | "conflict" | "need_rebase");
        if !hides {
            return Ok(None);
        }
        Ok(self.forge().approvals_left(&self.at, mr.iid).await?)
    }

    /// What came through all checks has no cause left to be blocked; lack of permission ends when GitLab says that our user may
    /// merge.
    fn freed(&self, mr: &MergeRequest, outcome: Outcome) -> Outcome {
        let Some(reason) = self.item().blocked.as_ref().map(|b| b.reason) else { return outcome };
        let stays = reason == BlockedReason::Auth && mr.can_merge == Some(false);
        if outcome.block != Block::Keep || stays { outcome } else { outcome.blocking(Block::Clear) }
    }

    pub(super) async fn merge(&mut self, mr: &MergeRequest, ticket: &MergeTicket) -> Result<Outcome, Stop> {
        let options = MergeOptions { squash: self.wanted.squash, remove_source_branch: self.wanted.remove_source_branch };
        self.run.before_write().await?;
        let failure = match self.forge().merge(&self.at, mr.iid, ticket, options).await {
            Ok(done) if done.state == State::Merged => {
                return Ok(self.merged(&done));
            }
            Ok(_) => Failure::new(Class::Conflict, "not_mergeable", "GitLab took the merge call and did not merge"),
            Err(failure) => failure,
        };
        self.after_refusal(mr, failure).await
    }

    /// A refused or unanswered merge says nothing by itself: the merge request does.
    pub(super) async fn after_refusal(&mut self, mr: &MergeRequest, failure: Failure) -> Result<Outcome, Stop> {
        if matches!(failure.class, Class::Throttled { .. }) {
            return Err(failure.into());
        }
        let now = self.forge().merge_request(&self.at, mr.iid).await?;
        if let Some(ended) = now.as_ref().and_then(|now| self.ended(now)) {
            return Ok(ended);
        }
        if let Some(now) = now.filter(|_| failure.code == "not_mergeable")
            && self.is_kept_for_train(&now).await?
        {
            return Ok(self.needs_train());
        }
        match failure.class {
            Class::Conflict => {
                let seen_at = self.now();
                let blocker = Blocker { code: failure.code.into(), detail: failure.message, source: "merge_request".into(), seen_at };
                self.keep_blockers(vec![blocker]);
                Ok(self.look_soon("GitLab refused the merge"))
            }
            Class::Indeterminate => Err(super::ensure::unanswered(&failure).into()),
            _ => Err(failure.into()),
        }
    }

    pub(super) fn keep_blockers(&mut self, mut blockers: Vec<Blocker>) {
        blockers.truncate(BLOCKERS_KEPT);
        for blocker in &mut blockers {
            if let Some(old) = self.facts.blockers.iter().find(|b| b.code == blocker.code && b.detail == blocker.detail) {
                blocker.seen_at = old.seen_at;
            }
        }
        self.facts.blockers = blockers;
    }

    pub(super) fn look_soon(&mut self, why: &str) -> Outcome {
        self.facts.rechecks += 1;
        let until = if self.facts.rechecks > MAX_RECHECKS {
            self.now().after(RECHECK)
        } else {
            let jitter = 0.5 + self.run.ports().ids.jitter() / 2.0;
            let wait = Duration::from_secs(1 << self.facts.rechecks.min(6)).min(RECHECK_CAP);
            self.now().after(wait.mul_f64(jitter))
        };
        Outcome::progress(why).with(dims::reconcile(), Dimension::deferred(until, why))
    }

    pub(super) fn in_half_an_hour(&self) -> Dimension {
        Dimension::deferred(self.now().after(RECHECK), "a hook, or the regular look at the merge request")
    }
}

fn failed_job(job: &collie_core::mr::view::Job) -> FailedJob {
    FailedJob {
        id: job.id.0,
        name: job.name.chars().take(80).collect(),
        stage: job.stage.chars().take(80).collect(),
        failure_reason: job.failure_reason.clone().unwrap_or_default(),
    }
}
