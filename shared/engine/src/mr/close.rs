//! `close`: carries out a cancel request. The merge request is read first: a merge that was faster wins.

use super::Work;
use crate::execute::Stop;
use crate::ports::MrEdit;
use collie_core::item::ResultKind;
use collie_core::mr::view::{MergeRequest, State};
use collie_core::outcome::{End, Outcome};

impl Work<'_, '_> {
    pub(super) async fn close(&mut self) -> Result<Outcome, Stop> {
        let close_mr = self.item().cancel_requested.as_ref().is_none_or(|request| request.close_mr);
        let Some(mr) = self.mr_to_close().await? else { return Ok(cancelled("cancelled; there is no merge request")) };
        match mr.state {
            State::Merged => Ok(self.merged(&mr)),
            State::Closed => Ok(cancelled(&format!("cancelled; !{} is closed", mr.iid))),
            State::Opened | State::Locked if !close_mr => Ok(cancelled(&format!("cancelled; !{} stays open", mr.iid))),
            State::Opened | State::Locked => self.close_it(&mr).await,
        }
    }

    /// The merge request on record, else one that a crash left without a record.
    async fn mr_to_close(&mut self) -> Result<Option<MergeRequest>, Stop> {
        if let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) {
            return Ok(self.forge().merge_request(&self.at, iid).await?);
        }
        if self.facts.builds.is_empty() {
            return Ok(None);
        }
        let mut open = self.forge().open_merge_requests(&self.at, self.source_branch()).await?;
        open.retain(|mr| mr.target_branch == self.item().target);
        Ok(open.into_iter().next())
    }

    async fn close_it(&mut self, mr: &MergeRequest) -> Result<Outcome, Stop> {
        self.run.before_write().await?;
        let edit = MrEdit { close: Some(true), ..MrEdit::default() };
        let failure = match self.forge().edit_merge_request(&self.at, mr.iid, &edit).await {
            Ok(closed) if closed.state == State::Closed => return Ok(cancelled(&format!("cancelled; !{} is closed", mr.iid))),
            Ok(other) if other.state == State::Merged => return Ok(self.merged(&other)),
            Ok(_) => return Err(super::ensure::unanswered(&not_closed(mr)).into()),
            Err(failure) => failure,
        };
        match self.forge().merge_request(&self.at, mr.iid).await? {
            Some(now) if now.state == State::Merged => Ok(self.merged(&now)),
            Some(now) if now.state == State::Closed => Ok(cancelled(&format!("cancelled; !{} is closed", mr.iid))),
            _ if failure.is_indeterminate() => Err(super::ensure::unanswered(&failure).into()),
            _ => Err(failure.into()),
        }
    }
}

fn not_closed(mr: &MergeRequest) -> collie_core::error::Failure {
    let class = collie_core::error::Class::Indeterminate;
    collie_core::error::Failure::new(class, "not_closed", format!("GitLab took the request and !{} is still open", mr.iid))
}

fn cancelled(summary: &str) -> Outcome {
    Outcome::progress(summary).ending(End::Cancelled(ResultKind::Cancelled))
}
