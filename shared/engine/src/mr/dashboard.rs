//! `post_dashboard`: one note per item, found again by its hidden marker and our author id, edited in place.

use super::Work;
use crate::execute::Stop;
use collie_core::error::Class;
use collie_core::id::{MrIid, NoteId};
use collie_core::item::{Dimension, Item, LastError, Phase};
use collie_core::mr::facts::NoteRef;
use collie_core::mr::{dashboard, dims};
use collie_core::outcome::{End, Outcome};

impl Work<'_, '_> {
    pub(super) async fn post_dashboard(&mut self) -> Result<Outcome, Stop> {
        let done = |summary: &str| Outcome::progress(summary).with(dims::dashboard(), Dimension::done());
        let Some(iid) = self.facts.mr.as_ref().map(|mr| mr.iid) else { return Ok(done("no merge request to note on")) };
        let item = self.item().clone();
        Ok(done(self.show(iid, &item).await?))
    }

    /// Shows the item free on its note, within another action. What fails here is left to `post_dashboard`.
    pub(super) async fn show_free(&mut self, iid: MrIid) -> Result<Dimension, Stop> {
        let free = Item { blocked: None, ..self.item().clone() };
        match self.show(iid, &free).await {
            Ok(_) => Ok(Dimension::done()),
            Err(Stop::Failed(failure)) => {
                let failure = self.run.share_wait(failure).await?;
                tracing::info!(item = %free.id, code = failure.code, "the note is to be written later");
                Ok(Dimension::needed())
            }
            Err(stop) => Err(stop),
        }
    }

    async fn show(&mut self, iid: MrIid, item: &Item) -> Result<&'static str, Stop> {
        let text = dashboard::render(item, &self.facts);
        let says = dashboard::digest(&text);
        let known = self.facts.note.clone().unwrap_or_default();
        if known.id.is_some() && known.says == says {
            return Ok("the note is up to date");
        }
        let id = match known.id {
            Some(id) => self.edit(iid, id, &text).await?,
            None if known.epoch == Some(self.item().lease_epoch) => self.post(iid, &text).await?,
            None => match self.find(iid, &dashboard::marker(self.item())).await? {
                Some(id) => self.edit(iid, id, &text).await?,
                None => self.post(iid, &text).await?,
            },
        };
        self.facts.note = Some(NoteRef { id: Some(id), epoch: None, says });
        Ok("the note shows the item's state")
    }

    /// The note's last edit; the end itself does not wait for it.
    pub(super) async fn show_end(&mut self, end: &End) {
        let Some((iid, note)) = self.facts.mr.as_ref().map(|mr| mr.iid).zip(self.facts.note.clone()) else { return };
        let Some(id) = note.id else { return };
        let mut item = self.item().clone();
        item.blocked = None;
        match end {
            End::Completed(result) => (item.phase, item.result) = (Phase::Completed, Some(*result)),
            End::Cancelled(result) => (item.phase, item.result) = (Phase::Cancelled, Some(*result)),
            End::Failed(failure) => {
                item.phase = Phase::Failed;
                item.last_error = Some(LastError::of(failure, self.now()));
            }
        }
        let text = dashboard::render(&item, &self.facts);
        let says = dashboard::digest(&text);
        if note.says == says || self.run.before_write().await.is_err() {
            return;
        }
        match self.forge().edit_note(&self.at, iid, id, &text).await {
            Ok(()) => self.facts.note = Some(NoteRef { says, ..note }),
            Err(failure) => tracing::warn!(item = %item.id, code = failure.code, "the note's last edit failed"),
        }
    }

    /// A note that was deleted is posted anew.
    async fn edit(&mut self, iid: MrIid, id: NoteId, text: &str) -> Result<NoteId, Stop> {
        self.run.before_write().await?;
        match self.forge().edit_note(&self.at, iid, id, text).await {
            Ok(()) => Ok(id),
            Err(failure) if failure.class == Class::Gone => self.post(iid, text).await,
            Err(failure) => Err(failure.into()),
        }
    }

    /// From the moment a post may have happened, the note is looked for before another is made.
    async fn post(&mut self, iid: MrIid, text: &str) -> Result<NoteId, Stop> {
        self.run.before_write().await?;
        self.facts.note = Some(NoteRef::default());
        match self.forge().add_note(&self.at, iid, text).await {
            Ok(note) => Ok(note.id),
            Err(failure) if failure.is_indeterminate() => match self.find(iid, &dashboard::marker(self.item())).await? {
                Some(id) => Ok(id),
                None => Err(super::ensure::unanswered(&failure).into()),
            },
            Err(failure) => Err(failure.into()),
        }
    }

    /// Posts a note that is never edited. Where an earlier run may have posted it, it is looked for first; false where it is not
    /// known to be there now.
    pub(super) async fn note_once(&self, iid: MrIid, marker: &str, text: &str, may_be_there: bool) -> Result<bool, Stop> {
        if may_be_there && self.find(iid, marker).await?.is_some() {
            return Ok(true);
        }
        self.run.before_write().await?;
        match self.forge().add_note(&self.at, iid, &format!("{marker}\n{text}")).await {
            Ok(_) => Ok(true),
            Err(failure) if matches!(failure.class, Class::Throttled { .. } | Class::Transient { .. }) => Err(failure.into()),
            Err(failure) => {
                tracing::warn!(item = %self.item().id, code = failure.code, "a note was not posted");
                Ok(false)
            }
        }
    }

    async fn find(&self, iid: MrIid, marker: &str) -> Result<Option<NoteId>, Stop> {
        let author = self.facts.mr.as_ref().map(|mr| mr.author);
        let notes = self.forge().notes(&self.at, iid).await?;
        Ok(notes.into_iter().find(|note| Some(note.author) == author && note.body.contains(marker)).map(|note| note.id))
    }
}
