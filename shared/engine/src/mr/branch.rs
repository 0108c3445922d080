//! Whose commit is on the branch: gathers the evidence that [`ownership`] judges.

use super::Work;
use crate::execute::Stop;
use collie_core::error::Failure;
use collie_core::files::ActionRecord;
use collie_core::id::Sha;
use collie_core::item::{Content, Item};
use collie_core::mr::facts::{Build, Facts};
use collie_core::mr::ownership::{self, Evidence, Ownership};
use collie_core::mr::trailer::Trailer;
use collie_core::mr::tree;
use collie_core::mr::view::Commit;

/// The build a trailer names, with the files it was made of.
struct Claim {
    build: Build,
    own_life: bool,
    actions: Vec<ActionRecord>,
}

/// A head and whose it is; for a current one also its parent.
pub(super) struct Judged {
    pub(super) ownership: Ownership,
    pub(super) parent: Option<Sha>,
}

impl Work<'_, '_> {
    /// Whose this head is. A recorded sha is the fast path; otherwise the trailer claims and the tree proves.
    pub(super) async fn judge_head(&mut self, head: &Sha) -> Result<Judged, Stop> {
        if let Some(ownership) = self.by_record(head) {
            return Ok(Judged { ownership, parent: None });
        }
        let previous = self.previous_life().await?;
        if let Some((_, facts)) = &previous
            && facts.has_made(head)
        {
            return Ok(Judged { ownership: Ownership::Stale, parent: None });
        }
        let commit = self.forge().commit(&self.at, head).await?;
        let commit = commit.ok_or_else(|| Failure::bug("the branch's head cannot be read"))?;
        let ownership = match self.claim_of(&commit, previous).await? {
            Some(claim) => self.verify(&commit, &claim).await?,
            None => Ownership::Foreign("the head carries no trailer of this item"),
        };
        Ok(Judged { ownership: self.forgiven(ownership, head), parent: commit.parents.first().cloned() })
    }

    fn by_record(&self, head: &Sha) -> Option<Ownership> {
        let build = self.facts.builds.iter().rev().find(|b| b.sha.as_ref() == Some(head))?;
        let latest = self.facts.latest().is_some_and(|b| b.number == build.number);
        let current = latest && build.is_of(self.item()) && !self.facts.rebuild;
        Some(if current { Ownership::Current(build.number) } else { Ownership::Stale })
    }

    /// A retry with `overwrite` lets Collie replace commits of others, once: the head that is there then.
    fn forgiven(&self, ownership: Ownership, head: &Sha) -> Ownership {
        let begun = self.facts.latest().is_some_and(|build| build.over.as_ref() == Some(head));
        let may = self.wanted.overwrite && (begun || self.facts.overwrote_at != self.item().retried_at);
        match ownership {
            Ownership::Foreign(_) if may => Ownership::Stale,
            other => other,
        }
    }

    async fn previous_life(&self) -> Result<Option<(Item, Facts)>, Stop> {
        let Some(id) = &self.item().previous_item_id else { return Ok(None) };
        let Some(item) = self.run.ports().items.item(id).await.map_err(Stop::Store)? else { return Ok(None) };
        let facts = Facts::of(&item)?;
        Ok(Some((item, facts)))
    }

    async fn claim_of(&mut self, commit: &Commit, previous: Option<(Item, Facts)>) -> Result<Option<Claim>, Stop> {
        let Some(trailer) = Trailer::find(&commit.message).filter(|t| t.identity == self.item().branch.digest()) else {
            return Ok(None);
        };
        let own_life = trailer.generation == self.item().generation;
        let (item, facts) = match previous {
            _ if own_life => (self.item().clone(), self.facts.clone()),
            Some((item, facts)) if item.generation == trailer.generation => (item, facts),
            _ => return Ok(None),
        };
        let Some(build) = facts.build(trailer.build).cloned() else { return Ok(None) };
        let content: Content = self.run.engine().content(&item.id, build.rev).await?;
        Ok(Some(Claim { build, own_life, actions: content.actions }))
    }

    async fn verify(&self, commit: &Commit, claim: &Claim) -> Result<Ownership, Stop> {
        let [parent] = commit.parents.as_slice() else {
            return Ok(Ownership::Foreign("the head is not a single commit"));
        };
        let directories = tree::directories(&claim.actions);
        let (changed, at_head, at_parent) = (
            self.forge().changed_paths(&self.at, parent, &commit.sha).await?,
            self.listing(&commit.sha, directories.clone()).await?,
            self.listing(parent, directories).await?,
        );
        let evidence = Evidence {
            head: commit,
            build: &claim.build,
            own_life: claim.own_life,
            actions: &claim.actions,
            parent_on_target: self.is_on_target(parent, &claim.build).await?,
            changed: &changed,
            at_head: &at_head,
            at_parent: &at_parent,
        };
        Ok(ownership::judge(self.item(), &evidence))
    }

    async fn is_on_target(&self, parent: &Sha, build: &Build) -> Result<bool, Stop> {
        if *parent == build.start_sha {
            return Ok(true);
        }
        let Some(target) = self.forge().branch(&self.at, &build.target).await? else { return Ok(false) };
        Ok(self.forge().merge_base(&self.at, &target.sha, parent).await?.as_ref() == Some(parent))
    }
}
