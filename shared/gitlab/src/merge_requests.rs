//! Merge requests: read, open, edit, merge.

use crate::call::Call;
use crate::gitlab::GitLab;
use crate::scope::optional;
use crate::wire;
use collie_core::error::Failure;
use collie_core::id::MrIid;
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::view::MergeRequest;
use collie_engine::ports::{MergeOptions, MrEdit, NewMergeRequest, ProjectRef};
use serde::Serialize;

impl GitLab {
    pub(crate) async fn get_merge_request(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<MergeRequest>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string()], &[])?;
        let found = optional(scope.read::<wire::MergeRequest>(Call::MergeRequest, url).await)?;
        Ok(found.map(Into::into))
    }

    /// Those from the project itself: a fork may have a branch of the same name.
    pub(crate) async fn list_open_merge_requests(&self, project: &ProjectRef, branch: &str) -> Result<Vec<MergeRequest>, Failure> {
        let scope = self.project(project)?;
        let query = [("state", "opened"), ("source_branch", branch), ("order_by", "created_at"), ("sort", "asc")];
        let url = scope.url(&["merge_requests"], &query)?;
        let rows: Vec<wire::MergeRequest> = scope.rows(Call::OpenMergeRequests, url).await?;
        Ok(rows.into_iter().filter(|row| row.source_project_id == Some(project.id)).map(Into::into).collect())
    }

    pub(crate) async fn post_merge_request(&self, project: &ProjectRef, mr: &NewMergeRequest) -> Result<MergeRequest, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests"], &[])?;
        let opened: wire::MergeRequest = scope.write(Call::OpenMergeRequest, url, &OpenBody::of(mr)).await?;
        Ok(opened.into())
    }

    pub(crate) async fn put_merge_request(&self, project: &ProjectRef, iid: MrIid, edit: &MrEdit) -> Result<MergeRequest, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string()], &[])?;
        let edited: wire::MergeRequest = scope.write(Call::EditMergeRequest, url, &EditBody::of(edit)).await?;
        Ok(edited.into())
    }

    pub(crate) async fn put_merge(
        &self,
        project: &ProjectRef,
        iid: MrIid,
        ticket: &MergeTicket,
        options: MergeOptions,
    ) -> Result<MergeRequest, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string(), "merge"], &[])?;
        let MergeOptions { squash, remove_source_branch } = options;
        let body = MergeBody { sha: ticket.sha().as_str(), squash, should_remove_source_branch: remove_source_branch };
        let merged: wire::MergeRequest = scope.write(Call::Merge, url, &body).await?;
        Ok(merged.into())
    }

    /// GitLab may answer before the pipeline exists; the merge request shows it when it does.
    pub(crate) async fn post_merge_request_pipeline(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string(), "pipelines"], &[])?;
        scope.submit(Call::StartPipeline, url, &serde_json::json!({})).await?;
        Ok(())
    }

    pub(crate) async fn get_approvals_left(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<u64>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string(), "approvals"], &[])?;
        let approvals: wire::Approvals = scope.read(Call::Approvals, url).await?;
        Ok(approvals.approvals_left)
    }
}

#[derive(Debug, Serialize)]
struct OpenBody<'a> {
    source_branch: &'a str,
    target_branch: &'a str,
    title: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<String>,
    remove_source_branch: bool,
    squash: bool,
}

impl<'a> OpenBody<'a> {
    fn of(mr: &'a NewMergeRequest) -> Self {
        Self {
            source_branch: &mr.source_branch,
            target_branch: &mr.target_branch,
            title: &mr.title,
            description: &mr.description,
            labels: joined(&mr.labels),
            remove_source_branch: mr.remove_source_branch,
            squash: mr.squash,
        }
    }
}

#[derive(Debug, Serialize)]
struct EditBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_labels: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_event: Option<&'static str>,
}

impl<'a> EditBody<'a> {
    fn of(edit: &'a MrEdit) -> Self {
        Self {
            title: edit.title.as_deref(),
            description: edit.description.as_deref(),
            add_labels: joined(&edit.add_labels),
            target_branch: edit.target_branch.as_deref(),
            state_event: edit.close.map(|close| if close { "close" } else { "reopen" }),
        }
    }
}

/// Labels as GitLab takes them in every version; none where there are none.
fn joined(labels: &[String]) -> Option<String> {
    (!labels.is_empty()).then(|| labels.join(","))
}

#[derive(Debug, Serialize)]
struct MergeBody<'a> {
    sha: &'a str,
    squash: bool,
    should_remove_source_branch: bool,
}
