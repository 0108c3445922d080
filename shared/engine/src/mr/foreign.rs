//! Commits of others on Collie's branch: the item stops, one note says so, and nobody's work is lost.
//!
//! GitLab has no "only if the head is still this" for a forced push. Where someone pushed in that instant, the hook of our own
//! push tells what it replaced, or the project's events where that hook was lost, and the note names the commit to restore.

use super::Work;
use crate::execute::Stop;
use collie_core::id::Sha;
use collie_core::item::{BlockedReason, Dimension};
use collie_core::mr::dims;
use collie_core::mr::facts::{Lost, Noted};
use collie_core::outcome::{Block, Outcome, RECHECK};

impl Work<'_, '_> {
    /// Someone else's commit is on the branch: never overwritten, one note, and a look every half hour.
    pub(super) async fn foreign(&mut self, head: &Sha, why: &str) -> Result<Outcome, Stop> {
        if let Some(lost) = self.facts.lost.as_mut().filter(|lost| lost.sha == *head) {
            lost.restored = true;
        }
        let text = format!(
            "Collie has stopped: `{}` on this branch is not its commit. Remove it, or retry the work item with `overwrite`.",
            head.short()
        );
        self.note_about(head, &text).await?;
        let detail = format!("{} on {:?} is not Collie's: {why}", head.short(), self.source_branch());
        Ok(self.stopped(detail, "commits of others on the branch"))
    }

    /// Looks up what the last forced push replaced. The hook says so first; this stands in for a lost one, and stops nothing.
    pub(super) async fn find_replaced(&mut self) {
        let Some(head) = self.facts.next_proof() else { return };
        match self.forge().replaced_by(&self.at, self.source_branch(), &head).await {
            Ok(Some(replaced)) => self.facts.replaced(replaced, self.now()),
            Ok(None) => {}
            Err(failure) => tracing::warn!(item = %self.item().id, code = failure.code, "the project's pushes cannot be read"),
        }
    }

    /// A push of ours replaced a commit that nobody had looked at.
    pub(super) async fn overwrote(&mut self, lost: &Lost) -> Result<Outcome, Stop> {
        let (sha, branch) = (lost.sha.as_str(), self.source_branch().to_owned());
        let text = format!(
            "Collie has stopped: its push replaced `{sha}`, which came at the same moment. Nothing is lost: `git push --force` of that \
             commit restores it. To go on without it, retry the work item."
        );
        self.note_about(&lost.sha, &text).await?;
        let detail = format!("a push to {branch:?} replaced {sha}; restore it, or retry to go on without it");
        Ok(self.stopped(detail, "a commit of someone else that was replaced"))
    }

    async fn note_about(&mut self, head: &Sha, text: &str) -> Result<(), Stop> {
        let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) else { return Ok(()) };
        let known = self.facts.foreign_noted.clone().filter(|noted| noted.head == *head);
        if known.as_ref().is_some_and(|noted| noted.posted) {
            return Ok(());
        }
        self.facts.foreign_noted = Some(Noted { head: head.clone(), posted: false });
        if known.is_none() {
            self.run.record_intent(self.facts.document()).await?;
        }
        let marker = format!("<!-- collie:foreign:{} -->", head.as_str());
        let posted = self.note_once(iid, &marker, text, known.is_some()).await?;
        self.facts.foreign_noted = Some(Noted { head: head.clone(), posted });
        Ok(())
    }

    fn stopped(&self, detail: String, why: &str) -> Outcome {
        Outcome::progress(detail.clone())
            .with(dims::reconcile(), Dimension::deferred(self.now().after(RECHECK), why))
            .blocking(Block::Set(BlockedReason::ForeignCommits, detail))
    }
}
