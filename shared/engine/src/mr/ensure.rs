//! `ensure_mr`: branch, commit and merge request become what the item wants (DDR-10, 40, 43).
//!
//! 1. A known merge request is read first: it may be merged or closed.
//! 2. The commit: an intent is recorded, then the commit is pushed from `start_sha`. The branch itself is read only where
//!    something of ours may be on it: after a crash, for an update, or when GitLab says that it exists.
//! 3. The merge request: edited if known, else adopted or opened.
//!
//! Upholds INV-1 (only [`Inspected`](collie_core::policy::Inspected) content is pushed) and INV-9 (one merge request, one
//! commit per content and base): every write without an answer is read back before it is made again.

use super::Work;
use crate::execute::Stop;
use crate::ports::{MrEdit, NewCommit, NewMergeRequest};
use collie_core::error::{Class, Failure};
use collie_core::id::Sha;
use collie_core::item::{BlockedReason, Content, Dimension, MrLink};
use collie_core::mr::dashboard;
use collie_core::mr::dims;
use collie_core::mr::facts::{Build, MrRef, NoteRef};
use collie_core::mr::ownership::Ownership;
use collie_core::mr::trailer::Trailer;
use collie_core::mr::tree;
use collie_core::mr::view::{MergeRequest, State};
use collie_core::outcome::{Block, Outcome, RECHECK};
use collie_core::policy::neutralise_quick_actions;
use std::time::Duration;

/// How long the first look at a fresh merge request waits where no hook comes first.
const FIRST_LOOK: Duration = Duration::from_secs(60);

/// What is on the branch before a push.
enum Ground {
    /// Nothing of ours can be there, or nothing is: push without force.
    Free,
    /// A head that was just verified as ours: push over it.
    Ours,
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
        if let Some(ended) = known.as_ref().and_then(|mr| self.ended(mr)) {
            return Ok(ended);
        }
        let fresh = match self.build().await? {
            Built::Ready { fresh } => fresh,
            Built::Empty => return self.end_empty(known).await,
            Built::Stopped(outcome) => return Ok(*outcome),
        };
        let mr = match known {
            Some(mr) => self.edit_to_fit(mr).await?,
            None => self.open_or_adopt(fresh).await?,
        };
        self.link(&mr).await?;
        Ok(self.ensured(&mr))
    }

    /// The merge request on record, reopened where a retry wants a cancelled item back.
    async fn known_mr(&mut self) -> Result<Option<MergeRequest>, Stop> {
        let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) else { return Ok(None) };
        let mr = self.forge().merge_request(&self.at, iid).await?;
        let mr = mr.ok_or_else(|| Failure::new(Class::Gone, "merge_request_gone", format!("merge request !{iid} has vanished")))?;
        let retried = self.item().retried_at;
        if mr.state != State::Closed || retried.is_none() || self.facts.reopened_at == retried {
            return Ok(Some(mr));
        }
        self.run.before_write().await?;
        let reopened = self.forge().edit_merge_request(&self.at, iid, &MrEdit { close: Some(false), ..MrEdit::default() }).await;
        self.facts.reopened_at = retried;
        match reopened {
            Ok(mr) if mr.state == State::Opened => Ok(Some(mr)),
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
        Ok(None)
    }

    async fn build(&mut self) -> Result<Built, Stop> {
        if self.facts.current(self.item()).is_some() {
            return Ok(Built::Ready { fresh: false });
        }
        let (rev, content) = self.content().await?;
        let recovered = self.facts.intent(self.item()).cloned();
        let had_built = self.facts.verified_head().is_some();
        let start_sha = match &recovered {
            Some(build) => build.start_sha.clone(),
            None => self.target_head().await?,
        };
        let listing = self.listing(&start_sha, tree::directories(&content.actions)).await?;
        let plan = tree::plan(&content.actions, &listing)?;
        if plan.pending.is_empty() {
            return Ok(Built::Empty);
        }
        let build = match recovered {
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

    async fn target_head(&self) -> Result<Sha, Stop> {
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
        let judged = self.judge_head(&branch.sha).await?;
        Ok(match judged.ownership {
            Ownership::Current(number) => {
                self.facts.made(number, branch.sha, judged.parent);
                Ok(Ground::Built)
            }
            Ownership::Stale => Ok(Ground::Ours),
            Ownership::Foreign(why) => Err(Box::new(self.foreign(&branch.sha, why).await?)),
        })
    }

    async fn push(&mut self, build: &Build, content: &Content, pending: &[usize], ground: Ground) -> Result<Built, Stop> {
        let force = match ground {
            Ground::Built => return Ok(Built::Ready { fresh: false }),
            Ground::Ours => true,
            Ground::Free => false,
        };
        match self.commit(build, content, pending, force).await? {
            Ok(sha) => {
                self.facts.made(build.number, sha, None);
                self.facts.overwrote_at = if force && self.wanted.overwrite { self.item().retried_at } else { self.facts.overwrote_at };
                Ok(Built::Ready { fresh: !force })
            }
            Err(failure) if failure.is_indeterminate() || failure.code == "branch_exists" => {
                self.push_after_doubt(build, content, pending, failure).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// The branch exists, or the push had no answer: what is there decides.
    async fn push_after_doubt(&mut self, build: &Build, content: &Content, pending: &[usize], doubt: Failure) -> Result<Built, Stop> {
        match self.ground().await? {
            Err(outcome) => Ok(Built::Stopped(outcome)),
            Ok(Ground::Built) => Ok(Built::Ready { fresh: false }),
            Ok(Ground::Ours) if !doubt.is_indeterminate() => match self.commit(build, content, pending, true).await? {
                Ok(sha) => {
                    self.facts.made(build.number, sha, None);
                    Ok(Built::Ready { fresh: false })
                }
                Err(failure) => Err(failure.into()),
            },
            Ok(_) => Err(unanswered(&doubt).into()),
        }
    }

    async fn commit(&self, build: &Build, content: &Content, pending: &[usize], force: bool) -> Result<Result<Sha, Failure>, Stop> {
        let project = self.run.project()?;
        let actions = self.run.engine().inspected(self.item(), content, project).await?;
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

    async fn open_or_adopt(&mut self, fresh: bool) -> Result<MergeRequest, Stop> {
        if !fresh && let Some(mr) = self.adoptable().await? {
            return self.edit_to_fit(mr).await;
        }
        let (_, content) = self.content().await?;
        let wanted = self.new_mr(&content);
        self.run.before_write().await?;
        match self.forge().open_merge_request(&self.at, &wanted).await {
            Ok(mr) => Ok(mr),
            Err(failure) if failure.is_indeterminate() || failure.code == "mr_exists" => match self.adoptable().await? {
                Some(mr) => self.edit_to_fit(mr).await,
                None => Err(unanswered(&failure).into()),
            },
            Err(failure) => Err(failure.into()),
        }
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

    fn ensured(&mut self, mr: &MergeRequest) -> Outcome {
        let epoch = self.item().lease_epoch;
        let text = dashboard::render(self.item(), &self.facts);
        let note = self.facts.note.get_or_insert(NoteRef { id: None, epoch: Some(epoch), says: String::new() });
        let posted = note.id.is_some() && note.says == dashboard::digest(&text);
        let dashboard = if posted { Dimension::done() } else { Dimension::needed() };
        self.facts.pipeline = None;
        self.facts.rechecks = 0;
        self.facts.blockers.clear();
        let head = self.facts.verified_head().map_or("", |sha| sha.short());
        Outcome::progress(format!("!{} holds commit {head}", mr.iid))
            .with(dims::mr(), Dimension::done())
            .with(dims::dashboard(), dashboard)
            .with(dims::reconcile(), Dimension::deferred(self.now().after(FIRST_LOOK), "the pipeline of the new head"))
            .blocking(Block::Clear)
    }

    /// Someone else's commit is on the branch: never overwritten, one note, and a look every half hour.
    pub(super) async fn foreign(&mut self, head: &Sha, why: &str) -> Result<Outcome, Stop> {
        let detail = format!("{} on {:?} is not Collie's: {why}", head.short(), self.source_branch());
        if let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid)
            && self.facts.foreign_noted.as_ref() != Some(head)
        {
            self.facts.foreign_noted = Some(head.clone());
            self.run.record_intent(self.facts.document()).await?;
            self.run.before_write().await?;
            let text = format!(
                "Collie has stopped: `{}` on this branch is not its commit. Remove it, or retry the work item with `overwrite`.",
                head.short()
            );
            self.forge().add_note(&self.at, iid, &text).await.ok();
        }
        let dashboard = if self.item().blocked.is_none() { Dimension::needed() } else { Dimension::done() };
        Ok(Outcome::progress(detail.clone())
            .with(dims::reconcile(), Dimension::deferred(self.now().after(RECHECK), "commits of others on the branch"))
            .with(dims::dashboard(), dashboard)
            .blocking(Block::Set(BlockedReason::ForeignCommits, detail)))
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
