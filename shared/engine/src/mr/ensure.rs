//! `ensure_mr`: branch, commit and merge request become what the item wants (DDR-10, 40, 43).
//!
//! 1. A known merge request is read first: it may be merged or closed.
//! 2. The commit: an intent is recorded, then the commit is pushed from `start_sha`. The branch itself is read only where
//!    something of ours may be on it: after a crash, for an update, or when GitLab says that it exists.
//! 3. The merge request: edited if known, else adopted or opened.
//! 4. Its note, in the same breath: one write of the row less than as an action of its own.
//!
//! Upholds INV-1 (only [`Inspected`](collie_core::policy::Inspected) content is pushed) and INV-9 (one merge request, one
//! commit per content and base): every write without an answer is read back before it is made again.

use super::Work;
use crate::execute::Stop;
use crate::ports::{MrEdit, NewCommit, NewMergeRequest};
use collie_core::error::{Class, Failure};
use collie_core::id::Sha;
use collie_core::item::{Content, Dimension, MrLink};
use collie_core::mr::dashboard;
use collie_core::mr::dims;
use collie_core::mr::facts::{Build, MrRef, NoteRef};
use collie_core::mr::ownership::Ownership;
use collie_core::mr::trailer::Trailer;
use collie_core::mr::tree::{self, Listing, Plan};
use collie_core::mr::view::{MergeRequest, State};
use collie_core::outcome::{Block, Effort, Outcome};
use collie_core::policy::neutralise_quick_actions;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the first look at a fresh merge request waits where no hook comes first.
const FIRST_LOOK: Duration = Duration::from_secs(60);

/// Waits, in seconds, for GitLab's cached list of branches to show the one that was just pushed. They use no attempts up.
const UNSEEN_WAITS: [u64; 6] = [1, 2, 4, 8, 16, 30];

/// What is on the branch before a push.
enum Ground {
    /// Nothing of ours can be there, or nothing is: push without force.
    Free,
    /// This head, which was just verified as ours: push over it.
    Ours(Sha),
    /// What the item wants is there already.
    Built,
}

/// What became of the commit.
enum Built {
    /// It is on the branch; whether this very action pushed it onto a fresh branch.
    Ready { fresh: bool },
    /// The target already holds everything.
    Empty,
    /// The item is blocked.
    Stopped(Box<Outcome>),
}

impl Work<'_, '_> {
    pub(super) async fn ensure_mr(&mut self) -> Result<Outcome, Stop> {
        let known = self.known_mr().await?;
        if let Some(ended) = known.as_ref().filter(|mr| mr.state != State::Opened).and_then(|mr| self.ended(mr)) {
            return Ok(ended);
        }
        let fresh = match Box::pin(self.build()).await? {
            Built::Ready { fresh } => fresh,
            Built::Empty => return Box::pin(self.end_empty(known)).await,
            Built::Stopped(outcome) => return Ok(*outcome),
        };
        let mr = match known {
            Some(mr) => self.edit_to_fit(mr).await?,
            None => match Box::pin(self.open_or_adopt(fresh)).await? {
                Ok(mr) => mr,
                Err(outcome) => return Ok(*outcome),
            },
        };
        self.link(&mr).await?;
        self.ensured(&mr).await
    }

    /// The merge request on record, reopened where a retry wants a cancelled item back, or where Collie closed it for content
    /// that is no longer wanted.
    async fn known_mr(&mut self) -> Result<Option<MergeRequest>, Stop> {
        let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) else { return Ok(None) };
        let mr = self.forge().merge_request(&self.at, iid).await?;
        let mr = mr.ok_or_else(|| Failure::new(Class::Gone, "merge_request_gone", format!("merge request !{iid} has vanished")))?;
        let retried = self.item().retried_at;
        let closed_by_us = self.facts.emptied.is_some() && !self.facts.is_emptied(self.item());
        let wanted_back = retried.is_some() && self.facts.reopened_at != retried;
        if mr.state != State::Closed || !(closed_by_us || wanted_back) {
            return Ok(Some(mr));
        }
        self.run.before_write().await?;
        let reopened = self.forge().edit_merge_request(&self.at, iid, &MrEdit { close: Some(false), ..MrEdit::default() }).await;
        self.facts.reopened_at = retried;
        match reopened {
            Ok(mr) if mr.state == State::Opened => {
                self.facts.emptied = None;
                Ok(Some(mr))
            }
            Ok(_) => self.forget_mr(),
            Err(failure) if matches!(failure.class, Class::Rejected | Class::Conflict) => self.forget_mr(),
            Err(failure) => {
                self.facts.reopened_at = None;
                Err(failure.into())
            }
        }
    }

    /// A closed merge request that cannot be reopened is left behind; a new one takes its place.
    fn forget_mr(&mut self) -> Result<Option<MergeRequest>, Stop> {
        self.facts.mr = None;
        self.facts.note = None;
        self.facts.emptied = None;
        Ok(None)
    }

    async fn build(&mut self) -> Result<Built, Stop> {
        if self.facts.current(self.item()).is_some() {
            return Ok(Built::Ready { fresh: false });
        }
        let (rev, content) = self.content().await?;
        let recovered = self.facts.intent(self.item()).cloned();
        let had_built = self.facts.verified_head().is_some();
        let (start_sha, plan) = self.plan(recovered.as_ref(), &content).await?;
        if plan.pending.is_empty() {
            return Ok(Built::Empty);
        }
        let build = match recovered.filter(|build| build.start_sha == start_sha) {
            Some(build) => build,
            None => self.intend(rev, start_sha).await?,
        };
        let unsure = had_built || build.number > 1 || self.run.item().lease_epoch > 1;
        let ground = if unsure { self.ground().await? } else { Ok(Ground::Free) };
        match ground {
            Ok(ground) => self.push(&build, &content, &plan.pending, ground).await,
            Err(outcome) => Ok(Built::Stopped(outcome)),
        }
    }

    /// What is to be done on which commit: on that of an intent, which a crash may have left half carried out, else on the target's
    /// head. An intent whose commit cannot be read any more is given up.
    async fn plan(&mut self, recovered: Option<&Build>, content: &Content) -> Result<(Sha, Plan), Stop> {
        if let Some(build) = recovered {
            match self.plan_on(&build.start_sha, content).await {
                Err(Stop::Failed(failure)) if self.has_vanished(&failure, &build.start_sha).await? => self.facts.rebuild = true,
                planned => return Ok((build.start_sha.clone(), planned?)),
            }
        }
        let start_sha = self.target_head().await?;
        let plan = self.plan_on(&start_sha, content).await?;
        Ok((start_sha, plan))
    }

    async fn plan_on(&self, start_sha: &Sha, content: &Content) -> Result<Plan, Stop> {
        let listing = self.listing(start_sha, tree::directories(&content.actions)).await?;
        self.check_expected_digests(start_sha, content, &listing).await?;
        Ok(tree::plan(&content.actions, &listing)?)
    }

    async fn has_vanished(&self, failure: &Failure, sha: &Sha) -> Result<bool, Stop> {
        Ok(matches!(failure.class, Class::Rejected | Class::Gone) && self.forge().commit(&self.at, sha).await?.is_none())
    }

    /// A listing shows git's ids; what callers expect is a SHA-256, which only GitLab can tell.
    async fn check_expected_digests(&self, at: &Sha, content: &Content, listing: &Listing) -> Result<(), Stop> {
        let mut digests = BTreeMap::new();
        for path in tree::digests_wanted(&content.actions, listing) {
            digests.insert(path.to_owned(), self.forge().file_sha256(&self.at, at, path).await?);
        }
        Ok(tree::check_digests(&content.actions, &digests)?)
    }

    pub(super) async fn target_head(&self) -> Result<Sha, Stop> {
        let target = &self.item().target;
        let branch = self.forge().branch(&self.at, target).await?;
        let missing =
            || Failure::rejected("target_branch_missing", format!("there is no branch {target:?}; submit with an existing target branch"));
        Ok(branch.ok_or_else(missing)?.sha)
    }

    async fn intend(&mut self, rev: u64, start_sha: Sha) -> Result<Build, Stop> {
        let item = self.run.item().clone();
        let build = self.facts.intend(&item, rev, start_sha).clone();
        self.run.record_intent(self.facts.document()).await?;
        Ok(build)
    }

    /// Reads the branch and says what is on it; the error is the outcome that blocks the item.
    async fn ground(&mut self) -> Result<Result<Ground, Box<Outcome>>, Stop> {
        let Some(branch) = self.forge().branch(&self.at, self.source_branch()).await? else { return Ok(Ok(Ground::Free)) };
        if branch.protected || branch.default {
            let why = format!("{:?} is a protected branch; submit with another source branch", self.source_branch());
            return Err(Failure::rejected("source_branch_protected", why).into());
        }
        let judged = Box::pin(self.judge_head(&branch.sha)).await?;
        Ok(match judged.ownership {
            Ownership::Current(number) => {
                self.facts.made(number, branch.sha, judged.parent);
                Ok(Ground::Built)
            }
            Ownership::Stale => Ok(Ground::Ours(branch.sha)),
            Ownership::Foreign(why) => Err(Box::new(Box::pin(self.foreign(&branch.sha, why)).await?)),
        })
    }

    async fn push(&mut self, build: &Build, content: &Content, pending: &[usize], ground: Ground) -> Result<Built, Stop> {
        let force = match ground {
            Ground::Built => return Ok(Built::Ready { fresh: false }),
            Ground::Ours(head) => self.push_over(build, &head).await?,
            Ground::Free => false,
        };
        match self.commit(build, content, pending, force).await? {
            Ok(sha) => {
                self.facts.made(build.number, sha, None);
                Ok(Built::Ready { fresh: !force })
            }
            Err(failure) if failure.is_indeterminate() || failure.code == "branch_exists" => {
                self.push_after_doubt(build, content, pending, failure).await
            }
            Err(failure) => Err(self.refused(failure).into()),
        }
    }

    /// Remembers the verified head that a forced push is about to replace, so that the hook of the push can be compared with it;
    /// in the row where the row does not know it as Collie's.
    async fn push_over(&mut self, build: &Build, head: &Sha) -> Result<bool, Stop> {
        let known = self.facts.has_verified(head);
        self.facts.pushes_over(build.number, head);
        if !known {
            if self.wanted.overwrite {
                self.facts.overwrote_at = self.item().retried_at;
            }
            self.run.record_intent(self.facts.document()).await?;
        }
        Ok(true)
    }

    /// A commit to start from that was just read and is not there: another replica answers, or the target was rewritten. The next
    /// try starts anew from the target's head.
    fn refused(&mut self, failure: Failure) -> Failure {
        if failure.code != "stale_start" {
            return failure;
        }
        self.facts.rebuild = true;
        Failure::new(Class::Transient { answered: true }, failure.code, failure.message)
    }

    /// The branch exists, or the push had no answer: what is there decides.
    async fn push_after_doubt(&mut self, build: &Build, content: &Content, pending: &[usize], doubt: Failure) -> Result<Built, Stop> {
        match self.ground().await? {
            Err(outcome) => Ok(Built::Stopped(outcome)),
            Ok(Ground::Built) => Ok(Built::Ready { fresh: false }),
            Ok(Ground::Ours(head)) if !doubt.is_indeterminate() => {
                let force = self.push_over(build, &head).await?;
                match self.commit(build, content, pending, force).await? {
                    Ok(sha) => {
                        self.facts.made(build.number, sha, None);
                        Ok(Built::Ready { fresh: false })
                    }
                    Err(failure) => Err(self.refused(failure).into()),
                }
            }
            Ok(_) => Err(unanswered(&doubt).into()),
        }
    }

    async fn commit(&mut self, build: &Build, content: &Content, pending: &[usize], force: bool) -> Result<Result<Sha, Failure>, Stop> {
        let project = self.run.project()?;
        let actions = self.run.engine().inspected(self.item(), content, project, &build.start_sha).await?;
        self.facts.note_passed(self.run.item(), actions.policy_version());
        let message = Trailer::of(self.item(), build.number).append_to(&content.commit_message);
        self.run.before_write().await?;
        let commit =
            NewCommit { branch: self.source_branch(), start_sha: &build.start_sha, message: &message, actions: &actions, pending, force };
        Ok(self.forge().create_commit(&self.at, commit).await)
    }

    /// Brings an open merge request's target and metadata to what the item wants.
    pub(super) async fn edit_to_fit(&mut self, mr: MergeRequest) -> Result<MergeRequest, Stop> {
        let (_, content) = self.content().await?;
        let edit = self.edit_of(&mr, &content);
        if edit.is_empty() {
            return Ok(mr);
        }
        self.run.before_write().await?;
        let edited = self.forge().edit_merge_request(&self.at, mr.iid, &edit).await?;
        Ok(MergeRequest { head_pipeline: mr.head_pipeline, can_merge: mr.can_merge, ..edited })
    }

    fn edit_of(&self, mr: &MergeRequest, content: &Content) -> MrEdit {
        let wanted = self.new_mr(content);
        let renewed = self.facts.mr.as_ref().is_none_or(|known| known.metadata != self.item().metadata_hash);
        let title = if mr.draft && !renewed { as_draft(&content.title) } else { wanted.title };
        MrEdit {
            title: (mr.title != title).then_some(title),
            description: (mr.description != wanted.description && (renewed || self.has_drifted(mr))).then_some(wanted.description),
            add_labels: wanted.labels.into_iter().filter(|label| !mr.labels.contains(label)).collect(),
            target_branch: (mr.target_branch != wanted.target_branch).then_some(wanted.target_branch),
            close: None,
        }
    }

    /// Whether the description is another than GitLab made of the last one it was given.
    fn has_drifted(&self, mr: &MergeRequest) -> bool {
        self.facts.mr.as_ref().is_some_and(|known| known.described != dashboard::digest(&mr.description))
    }

    async fn open_or_adopt(&mut self, fresh: bool) -> Result<Result<MergeRequest, Box<Outcome>>, Stop> {
        if !fresh && let Some(mr) = self.adoptable().await? {
            return Ok(Ok(self.edit_to_fit(mr).await?));
        }
        let (_, content) = self.content().await?;
        let wanted = self.new_mr(&content);
        self.run.before_write().await?;
        let opened = self.forge().open_merge_request(&self.at, &wanted).await;
        if !matches!(&opened, Err(failure) if failure.code == "branch_not_visible") {
            self.facts.unseen = 0;
        }
        match opened {
            Ok(mr) => {
                self.facts.note = Some(NoteRef { epoch: Some(self.item().lease_epoch), ..NoteRef::default() });
                Ok(Ok(mr))
            }
            Err(failure) if failure.code == "branch_not_visible" => self.branch_unseen(failure).await.map(|o| Err(Box::new(o))),
            Err(failure) if failure.is_indeterminate() || failure.code == "mr_exists" => match self.adoptable().await? {
                Some(mr) => Ok(Ok(self.edit_to_fit(mr).await?)),
                None => Err(unanswered(&failure).into()),
            },
            Err(failure) => Err(failure.into()),
        }
    }

    /// GitLab does not see the branch that was just pushed: this step alone is tried again, on a schedule of its own, and then as any
    /// other error. A branch that is really gone is pushed again.
    async fn branch_unseen(&mut self, failure: Failure) -> Result<Outcome, Stop> {
        let tries = usize::try_from(self.facts.unseen).unwrap_or(usize::MAX);
        let Some(&seconds) = UNSEEN_WAITS.get(tries) else {
            self.facts.rebuild = self.forge().branch(&self.at, self.source_branch()).await?.is_none();
            return Err(failure.into());
        };
        self.facts.unseen += 1;
        let until = self.now().after(Duration::from_secs(seconds));
        let again = Dimension::deferred(until, "GitLab does not see the new branch yet");
        let outcome = Outcome::progress("the branch is not visible yet").with(dims::mr(), again);
        Ok(Outcome { effort: Effort::Waited(failure), ..outcome })
    }

    /// An open merge request of our branch: onto our target, else any, which is then retargeted.
    async fn adoptable(&self) -> Result<Option<MergeRequest>, Stop> {
        let mut open = self.forge().open_merge_requests(&self.at, self.source_branch()).await?;
        open.sort_by_key(|mr| (mr.target_branch != self.item().target, mr.iid));
        Ok(open.into_iter().next())
    }

    fn new_mr(&self, content: &Content) -> NewMergeRequest {
        let mut labels = vec![format!("managed-by::{}", self.rules.service)];
        labels.extend(content.labels.iter().cloned());
        NewMergeRequest {
            source_branch: self.source_branch().to_owned(),
            target_branch: self.item().target.clone(),
            title: if self.wanted.draft { as_draft(&content.title) } else { content.title.clone() },
            description: neutralise_quick_actions(&content.description),
            labels,
            remove_source_branch: self.wanted.remove_source_branch,
            squash: self.wanted.squash,
        }
    }

    pub(super) async fn link(&mut self, mr: &MergeRequest) -> Result<(), Stop> {
        let item = self.item();
        let metadata = item.metadata_hash.clone();
        if self.facts.mr.as_ref().is_none_or(|known| known.iid != mr.iid) {
            let link = MrLink { item_id: item.id.clone(), generation: item.generation };
            self.run.ports().items.link_mr(&item.branch, mr.iid, &link).await.map_err(Stop::Store)?;
        }
        self.facts.mr = Some(mr_ref(mr, metadata));
        Ok(())
    }

    async fn ensured(&mut self, mr: &MergeRequest) -> Result<Outcome, Stop> {
        self.facts.pipeline = None;
        self.facts.rechecks = 0;
        self.facts.blockers.clear();
        let dashboard = self.show_free(mr.iid).await?;
        let head = self.facts.verified_head().map_or("", |sha| sha.short());
        Ok(Outcome::progress(format!("!{} holds commit {head}", mr.iid))
            .with(dims::mr(), Dimension::done())
            .with(dims::dashboard(), dashboard)
            .with(dims::reconcile(), Dimension::deferred(self.now().after(FIRST_LOOK), "the pipeline of the new head"))
            .blocking(Block::Clear))
    }
}

fn mr_ref(mr: &MergeRequest, metadata: String) -> MrRef {
    MrRef { iid: mr.iid, author: mr.author, url: mr.web_url.clone(), metadata, described: dashboard::digest(&mr.description) }
}

/// A write that had no answer and, as read back, has not happened: it is made again later, and no attempt is used up.
pub(super) fn unanswered(doubt: &Failure) -> Failure {
    Failure::new(Class::Transient { answered: false }, doubt.code, doubt.message.clone())
}

fn as_draft(title: &str) -> String {
    format!("Draft: {title}")
}
