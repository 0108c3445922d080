//! Notes on merge requests.

use crate::call::Call;
use crate::error::codes;
use crate::gitlab::GitLab;
use crate::wire;
use collie_core::error::Failure;
use collie_core::id::{MrIid, NoteId};
use collie_core::mr::view::Note;
use collie_engine::ports::ProjectRef;
use reqwest::StatusCode;
use serde_json::json;

impl GitLab {
    /// Oldest first, so that a note made meanwhile moves no page; older versions do not know the filter.
    pub(crate) async fn list_notes(&self, project: &ProjectRef, iid: MrIid) -> Result<Vec<Note>, Failure> {
        let scope = self.project(project)?;
        let query = [("activity_filter", "only_comments"), ("order_by", "created_at"), ("sort", "asc")];
        let url = scope.url(&["merge_requests", &iid.to_string(), "notes"], &query)?;
        let rows: Vec<wire::Note> = scope.rows(Call::Notes, url).await?;
        Ok(rows.into_iter().filter(|note| !note.system).map(Into::into).collect())
    }

    /// 202 means that GitLab took every line for a quick action and made no note.
    pub(crate) async fn post_note(&self, project: &ProjectRef, iid: MrIid, body: &str) -> Result<Note, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string(), "notes"], &[])?;
        let reply = scope.submit(Call::AddNote, url, &json!({ "body": body })).await?;
        if reply.status == StatusCode::ACCEPTED {
            return Err(Failure::rejected(codes::NOTE_NOT_MADE, "the note held nothing but quick actions"));
        }
        Ok(reply.decode::<wire::Note>(Call::AddNote)?.into())
    }

    pub(crate) async fn put_note(&self, project: &ProjectRef, iid: MrIid, note: NoteId, body: &str) -> Result<(), Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string(), "notes", &note.to_string()], &[])?;
        scope.submit(Call::EditNote, url, &json!({ "body": body })).await?;
        Ok(())
    }
}
