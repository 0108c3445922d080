//! Merging by train: join, wait, and what a drop means.
//!
//! Upholds INV-2: joining takes the gate's ticket and carries its commit. An intended join is recorded before it is made, and
//! whether it was made is read from GitLab, so a lost answer or a crash joins no second time. Who is dropped joins again once for
//! these heads of source and target; where the train left its own pipeline as the newest, which gives no ticket, a pipeline of the
//! merge request is started first.

use super::Work;
use crate::execute::Stop;
use collie_core::error::{Class, Failure};
use collie_core::item::BlockedReason;
use collie_core::mr::dims;
use collie_core::mr::ticket::{self, MergeTicket};
use collie_core::mr::train::{self, CarState, MergeMode, Ride};
use collie_core::mr::view::MergeRequest;
use collie_core::outcome::{Block, Outcome};

const REQUIRED: &str = "the project merges by a merge train, and Collie is configured to merge directly: configure `merge: train` for it, or a person adds the merge request to the train";

impl Work<'_, '_> {
    pub(super) fn by_train(&self) -> bool {
        self.rules.merge == MergeMode::Train
    }

    /// Merges the way the project does.
    pub(super) async fn merge_by_rule(&mut self, mr: &MergeRequest, ticket: &MergeTicket) -> Result<Outcome, Stop> {
        if self.by_train() {
            return self.join_train(mr, ticket).await;
        }
        let refused = self.item().blocked.as_ref().is_some_and(|b| b.reason == BlockedReason::MergeTrainRequired);
        if refused && self.forge().merges_by_train(&self.at).await? {
            return Ok(self.needs_train());
        }
        self.merge(mr, ticket).await
    }

    /// Whether GitLab refuses to merge what it calls mergeable because merges go by train.
    pub(super) async fn is_kept_for_train(&self, mr: &MergeRequest) -> Result<bool, Stop> {
        let puzzling = !self.by_train() && mr.detailed_merge_status == "mergeable";
        Ok(puzzling && self.forge().merges_by_train(&self.at).await?)
    }

    pub(super) fn needs_train(&self) -> Outcome {
        Outcome::progress(REQUIRED)
            .with(dims::reconcile(), self.in_half_an_hour())
            .blocking(Block::Set(BlockedReason::MergeTrainRequired, REQUIRED.to_owned()))
    }

    /// What there is to do for a merge request that is on a train, or was dropped from one; none where the gate decides.
    pub(super) async fn ride(&mut self, mr: &MergeRequest) -> Result<Option<Outcome>, Stop> {
        let joined = self.facts.train.as_ref().is_some_and(|ride| Some(&ride.head) == mr.sha.as_ref());
        if !self.by_train() || !(joined || ticket::is_on_train(mr)) {
            return Ok(None);
        }
        match self.forge().merge_train_car(&self.at, mr.iid).await? {
            Some(CarState::Waiting) if joined && !self.wanted.auto_merge => self.leave(mr).await,
            Some(car) => Ok(Some(self.aboard(car))),
            None if ticket::is_on_train(mr) && self.wanted.auto_merge => self.dropped(mr).await,
            None => Ok(None),
        }
    }

    /// Who put it on the train takes it off where the caller no longer wants the merge.
    async fn leave(&mut self, mr: &MergeRequest) -> Result<Option<Outcome>, Stop> {
        self.run.before_write().await?;
        match self.forge().leave_merge_train(&self.at, mr.iid).await {
            Ok(()) => {
                self.facts.train = None;
                Ok(None)
            }
            Err(failure) if failure.class == Class::Conflict => Ok(Some(self.look_soon("GitLab did not take it off the merge train"))),
            Err(failure) if failure.class == Class::Indeterminate => Err(super::ensure::unanswered(&failure).into()),
            Err(failure) => Err(failure.into()),
        }
    }

    fn aboard(&mut self, car: CarState) -> Outcome {
        self.facts.train.iter_mut().for_each(|ride| ride.joined = true);
        let now = self.now();
        self.keep_blockers(vec![train::waiting(now)]);
        match car {
            CarState::Arriving => self.look_soon("the merge train is merging it"),
            CarState::Waiting => {
                self.facts.rechecks = 0;
                Outcome::progress("it is on the merge train").with(dims::reconcile(), self.in_half_an_hour())
            }
        }
    }

    /// Its train's pipeline is the newest one: a new pipeline of its own is needed before it can join again.
    async fn dropped(&mut self, mr: &MergeRequest) -> Result<Option<Outcome>, Stop> {
        let Some(head) = &mr.sha else { return Ok(None) };
        let mut ride = Ride::for_heads(self.facts.train.as_ref(), head, &self.target_head().await?);
        ride.joined = ride.joins > 0;
        self.facts.train = Some(ride.clone());
        if !ride.may_join() {
            return Ok(Some(self.stays_off()));
        }
        if let Some(next) = ride.clone().piping(self.now()) {
            self.facts.train = Some(next);
            self.run.record_intent(self.facts.document()).await?;
            if let Err(failure) = self.post_pipeline(mr).await {
                self.facts.train = Some(ride);
                return Err(failure);
            }
        }
        Ok(None)
    }

    fn stays_off(&mut self) -> Outcome {
        let now = self.now();
        self.facts.rechecks = 0;
        self.keep_blockers(vec![train::dropped(now)]);
        Outcome::progress(format!("not ready: {}", train::DROPPED)).with(dims::reconcile(), self.in_half_an_hour())
    }

    async fn join_train(&mut self, mr: &MergeRequest, ticket: &MergeTicket) -> Result<Outcome, Stop> {
        let ride = Ride::for_heads(self.facts.train.as_ref(), ticket.sha(), &self.target_head().await?);
        let Some(ride) = ride.joining() else { return Ok(self.stays_off()) };
        self.facts.train = Some(ride);
        self.run.record_intent(self.facts.document()).await?;
        self.run.before_write().await?;
        match self.forge().join_merge_train(&self.at, mr.iid, ticket, self.wanted.squash).await {
            Ok(()) => Ok(self.aboard(CarState::Waiting)),
            Err(failure) => self.after_refused_join(mr, failure).await,
        }
    }

    /// A join without a good answer may have been made, now or before.
    async fn after_refused_join(&mut self, mr: &MergeRequest, failure: Failure) -> Result<Outcome, Stop> {
        let may_be_aboard = matches!(failure.class, Class::Conflict | Class::Indeterminate);
        if may_be_aboard && let Some(car) = self.forge().merge_train_car(&self.at, mr.iid).await? {
            return Ok(self.aboard(car));
        }
        self.after_refusal(mr, failure).await
    }
}
