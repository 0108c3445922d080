//! Issues of projects.

use crate::call::Call;
use crate::error::codes;
use crate::gitlab::GitLab;
use crate::scope::optional;
use crate::wire;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_engine::ports::{IssueEdit, IssueTracker, NewIssue, ProjectRef, TrackedIssue};
use serde_json::json;

#[async_trait]
impl IssueTracker for GitLab {
    async fn issue(&self, project: &ProjectRef, iid: u64) -> Result<Option<TrackedIssue>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["issues", &iid.to_string()], &[])?;
        let found = optional(scope.read::<wire::Issue>(Call::Issue, url).await)?;
        Ok(found.map(Into::into))
    }

    /// GitLab's search does not see what HTML comments hold, so our own issues are looked at, newest first, up to the one.
    async fn own_issue(&self, project: &ProjectRef, marker: &str) -> Result<Option<TrackedIssue>, Failure> {
        let scope = self.project(project)?;
        let query = [("scope", "created_by_me"), ("state", "all"), ("order_by", "created_at"), ("sort", "desc")];
        let limit = self.limits.max_pages;
        let listing =
            scope.rows_to(Call::Issues, scope.url(&["issues"], &query)?, limit, |issue: &wire::Issue| issue.holds(marker)).await?;
        match listing.end {
            Some(issue) => Ok(Some(issue.into())),
            None if listing.is_cut => Err(Failure::rejected(codes::TOO_MANY_PAGES, format!("{}: more than {limit} pages", Call::Issues))),
            None => Ok(None),
        }
    }

    async fn open_issue(&self, project: &ProjectRef, issue: &NewIssue) -> Result<TrackedIssue, Failure> {
        let scope = self.project(project)?;
        let body = json!({ "title": issue.title, "description": issue.description, "labels": issue.labels.join(",") });
        Ok(scope.write::<wire::Issue>(Call::OpenIssue, scope.url(&["issues"], &[])?, &body).await?.into())
    }

    async fn edit_issue(&self, project: &ProjectRef, iid: u64, edit: &IssueEdit) -> Result<TrackedIssue, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["issues", &iid.to_string()], &[])?;
        let mut body = json!({ "title": edit.title, "description": edit.description });
        if let Some(close) = edit.close {
            body["state_event"] = json!(if close { "close" } else { "reopen" });
        }
        Ok(scope.write::<wire::Issue>(Call::EditIssue, url, &body).await?.into())
    }
}
