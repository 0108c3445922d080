//! Issues of projects, and notes on them.

use crate::call::Call;
use crate::gitlab::GitLab;
use crate::notes::made_note;
use crate::scope::optional;
use crate::wire;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::{IssueIid, NoteId};
use collie_core::mr::view::Note;
use collie_core::time::Timestamp;
use collie_engine::ports::{IssueEdit, IssueTracker, NewIssue, ProjectIssue, ProjectRef};
use serde_json::{Map, Value, json};

#[async_trait]
impl IssueTracker for GitLab {
    async fn issue(&self, project: &ProjectRef, iid: IssueIid) -> Result<Option<ProjectIssue>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["issues", &iid.to_string()], &[])?;
        let found = optional(scope.read::<wire::Issue>(Call::Issue, url).await)?;
        Ok(found.map(Into::into))
    }

    /// Oldest first, so that an issue that is made meanwhile moves no page.
    async fn find_own_issue(&self, project: &ProjectRef, marker: &str, since: Timestamp) -> Result<Option<ProjectIssue>, Failure> {
        let scope = self.project(project)?;
        let since = since.to_string();
        let own = [("scope", "created_by_me"), ("state", "all"), ("created_after", since.as_str())];
        let query: Vec<_> = own.into_iter().chain([("order_by", "created_at"), ("sort", "asc")]).collect();
        let rows: Vec<wire::Issue> = scope.rows(Call::Issues, scope.url(&["issues"], &query)?).await?;
        Ok(rows.into_iter().map(ProjectIssue::from).find(|issue| issue.description.contains(marker)))
    }

    async fn open_issue(&self, project: &ProjectRef, issue: &NewIssue) -> Result<ProjectIssue, Failure> {
        let scope = self.project(project)?;
        let body = json!({ "title": issue.title, "description": issue.description, "labels": issue.labels.join(",") });
        Ok(scope.write::<wire::Issue>(Call::OpenIssue, scope.url(&["issues"], &[])?, &body).await?.into())
    }

    async fn edit_issue(&self, project: &ProjectRef, iid: IssueIid, edit: &IssueEdit) -> Result<ProjectIssue, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["issues", &iid.to_string()], &[])?;
        Ok(scope.write::<wire::Issue>(Call::EditIssue, url, &edit_body(edit)).await?.into())
    }

    async fn issue_notes(&self, project: &ProjectRef, iid: IssueIid) -> Result<Vec<Note>, Failure> {
        self.notes_below(project, Call::IssueNotes, &["issues", &iid.to_string(), "notes"]).await
    }

    async fn add_issue_note(&self, project: &ProjectRef, iid: IssueIid, body: &str) -> Result<NoteId, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["issues", &iid.to_string(), "notes"], &[])?;
        let reply = scope.submit(Call::AddIssueNote, url, &json!({ "body": body })).await?;
        Ok(made_note(Call::AddIssueNote, &reply)?.id)
    }
}

/// Only what changes is named.
fn edit_body(edit: &IssueEdit) -> Map<String, Value> {
    let event = edit.close.map(|close| if close { "close" } else { "reopen" });
    let labels = (!edit.add_labels.is_empty()).then(|| edit.add_labels.join(","));
    let fields = [
        ("title", edit.title.clone()),
        ("description", edit.description.clone()),
        ("add_labels", labels),
        ("state_event", event.map(str::to_owned)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?)))).collect()
}
