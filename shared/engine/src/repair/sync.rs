//! `sync_issue` and `close_issue`: the GitLab issue of a task becomes what is open.

use super::IssueType;
use crate::execute::{Run, Stop};
use crate::ports::{IssueEdit, NewIssue, ProjectRef, TrackedIssue};
use crate::tracking::read::Paging;
use collie_core::error::Failure;
use collie_core::item::{Dimension, ResultKind};
use collie_core::outcome::{Block, End, Outcome, RECHECK};
use collie_core::repair::plan::{Found, Step, plan};
use collie_core::repair::{Facts, IssueRef, Wanted, decide, text};

/// What the issue is to say.
struct Wish {
    title: String,
    description: String,
    says: String,
    has_openings: bool,
}

impl IssueType {
    pub(super) async fn sync(&self, run: &mut Run<'_>) -> Result<Outcome, Stop> {
        let wish = self.wish(run).await?;
        let (at, mut facts) = (run.project()?.at.clone(), Facts::of(run.item())?);
        let found = self.find(run, &at, &mut facts).await?;
        let outcome = match plan(&facts, found, wish.has_openings, &wish.says) {
            Step::Create => self.create(run, &at, &mut facts, &wish).await?,
            Step::Reopen => self.edit(run, &at, &mut facts, &wish, Some(false), "opened again").await?,
            Step::Edit => self.edit(run, &at, &mut facts, &wish, None, "edited").await?,
            Step::Keep => "the issue says what is open".to_owned(),
            Step::Close => self.edit(run, &at, &mut facts, &wish, Some(true), "closed").await?,
            Step::Finish => "nothing is open any more".to_owned(),
        };
        let outcome = Outcome::progress(outcome).knowing(facts.document()).blocking(Block::Clear);
        Ok(match wish.has_openings {
            true => outcome.with(decide::needs_issue(), Dimension::deferred(run.now().after(RECHECK), "regular look at what is open")),
            false => outcome.with(decide::needs_issue(), Dimension::done()).ending(End::Completed(ResultKind::Resolved)),
        })
    }

    pub(super) async fn close(&self, run: &mut Run<'_>) -> Result<Outcome, Stop> {
        let wish = self.wish(run).await?;
        let (at, mut facts) = (run.project()?.at.clone(), Facts::of(run.item())?);
        let asked = run.item().cancel_requested.as_ref().is_some_and(|cancel| cancel.close_mr);
        let summary = match self.find(run, &at, &mut facts).await? {
            Found::Open if asked => self.edit(run, &at, &mut facts, &wish, Some(true), "closed").await?,
            Found::Open => "cancelled; the issue stays open".to_owned(),
            Found::Closed | Found::Missing => "cancelled".to_owned(),
        };
        Ok(Outcome::progress(summary).knowing(facts.document()).ending(End::Cancelled(ResultKind::Cancelled)))
    }

    async fn wish(&self, run: &Run<'_>) -> Result<Wish, Failure> {
        let wanted = Wanted::of(run.item())?;
        let paging = Paging { after: None, limit: text::MAX_ROWS };
        let openings = self.tracking.openings_of(&wanted.queue, &wanted.task, paging).await?;
        let (title, more) = (text::title(&wanted), openings.next.is_some());
        let description = text::description(&run.item().id, &wanted, &openings.items, more);
        let says = text::digest(&title, &description);
        Ok(Wish { title, description, says, has_openings: more || !openings.items.is_empty() })
    }

    /// Reads the issue that is known, or looks for one that may exist.
    async fn find(&self, run: &Run<'_>, at: &ProjectRef, facts: &mut Facts) -> Result<Found, Failure> {
        let found = match &facts.issue {
            Some(known) => self.tracker.issue(at, known.iid).await?,
            None if facts.may_exist => self.tracker.own_issue(at, &text::marker(&run.item().id)).await?,
            None => None,
        };
        let says = facts.issue.take().and_then(|known| known.says);
        let Some(issue) = found else { return Ok(Found::Missing) };
        let found = if issue.is_open { Found::Open } else { Found::Closed };
        facts.issue = Some(known(issue, says));
        Ok(found)
    }

    async fn create(&self, run: &mut Run<'_>, at: &ProjectRef, facts: &mut Facts, wish: &Wish) -> Result<String, Stop> {
        facts.may_exist = true;
        run.record_intent(facts.document()).await?;
        run.before_write().await?;
        let labels = vec![format!("managed-by::{}", run.project()?.rules.service)];
        let new = NewIssue { title: wish.title.clone(), description: wish.description.clone(), labels };
        let made = match self.tracker.open_issue(at, &new).await {
            Err(failure) if failure.is_indeterminate() => {
                let marker = text::marker(&run.item().id);
                self.tracker.own_issue(at, &marker).await?.ok_or(failure)?
            }
            made => made?,
        };
        let summary = format!("opened #{}", made.iid);
        facts.issue = Some(known(made, Some(wish.says.clone())));
        Ok(summary)
    }

    async fn edit(
        &self,
        run: &Run<'_>,
        at: &ProjectRef,
        facts: &mut Facts,
        wish: &Wish,
        close: Option<bool>,
        done: &str,
    ) -> Result<String, Stop> {
        let Some(issue) = facts.issue.as_mut() else { return Err(Failure::bug("an issue that is not known is edited").into()) };
        run.before_write().await?;
        let edit = IssueEdit { title: wish.title.clone(), description: wish.description.clone(), close };
        self.tracker.edit_issue(at, issue.iid, &edit).await?;
        issue.says = Some(wish.says.clone());
        Ok(format!("{done} #{}", issue.iid))
    }
}

fn known(issue: TrackedIssue, says: Option<String>) -> IssueRef {
    IssueRef { iid: issue.iid, url: issue.url, says }
}
