//! `check_empty_diff`: ends an item whose target already holds everything it wants.

use super::Work;
use crate::execute::Stop;
use crate::ports::MrEdit;
use collie_core::item::Dimension;
use collie_core::mr::view::{MergeRequest, State};
use collie_core::mr::{dims, tree};
use collie_core::outcome::{Outcome, RECHECK};

impl Work<'_, '_> {
    pub(super) async fn check_empty_diff(&mut self) -> Result<Outcome, Stop> {
        if self.facts.is_emptied(self.item()) || self.target_holds_all().await? {
            let mr = match self.facts.mr.as_ref().map(|mr| mr.iid) {
                Some(iid) => self.forge().merge_request(&self.at, iid).await?,
                None => None,
            };
            return match mr.as_ref().filter(|mr| mr.state != State::Opened).and_then(|mr| self.ended(mr)) {
                Some(ended) => Ok(ended),
                None => Box::pin(self.end_empty(mr)).await,
            };
        }
        let later = Dimension::deferred(self.now().after(RECHECK), "regular check for an empty diff");
        Ok(Outcome::progress("the diff is not empty").with(dims::empty_check(), later))
    }

    async fn target_holds_all(&mut self) -> Result<bool, Stop> {
        let Some(target) = self.forge().branch(&self.at, &self.item().target).await? else { return Ok(false) };
        let (_, content) = self.content().await?;
        let listing = self.listing(&target.sha, tree::directories(&content.actions)).await?;
        Ok(tree::plan(&content.actions, &listing).is_ok_and(|plan| plan.pending.is_empty()))
    }

    /// Ends the item without a change. What Collie made is put away: its merge request is closed with one note, else its
    /// branch is deleted, if its head is still Collie's.
    pub(super) async fn end_empty(&mut self, mr: Option<MergeRequest>) -> Result<Outcome, Stop> {
        let resumed = self.facts.is_emptied(self.item());
        if !resumed && (mr.is_some() || !self.facts.builds.is_empty()) {
            let item = self.item().clone();
            self.facts.set_emptied(&item);
            self.run.record_intent(self.facts.document()).await?;
        }
        match mr {
            Some(mr) => self.close_empty(&mr, resumed).await?,
            None => self.delete_own_branch().await?,
        }
        Ok(self.no_change())
    }

    async fn close_empty(&mut self, mr: &MergeRequest, resumed: bool) -> Result<(), Stop> {
        let marker = format!("<!-- collie:no_change:{} -->", self.item().id);
        let text = "Collie closes this merge request: the target branch already holds everything it would change.";
        self.note_once(mr.iid, &marker, text, resumed).await?;
        if mr.state == State::Opened {
            self.run.before_write().await?;
            let edit = MrEdit { close: Some(true), ..MrEdit::default() };
            self.forge().edit_merge_request(&self.at, mr.iid, &edit).await?;
        }
        Ok(())
    }

    async fn delete_own_branch(&mut self) -> Result<(), Stop> {
        if self.facts.builds.is_empty() {
            return Ok(());
        }
        let branch = self.forge().branch(&self.at, self.source_branch()).await?;
        if branch.is_some_and(|branch| self.facts.has_made(&branch.sha)) {
            self.run.before_write().await?;
            self.forge().delete_branch(&self.at, self.source_branch()).await?;
        }
        Ok(())
    }
}
