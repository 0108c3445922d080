//! Merge trains: joining, where a car is, and whether a project has any.

use crate::call::Call;
use crate::gitlab::GitLab;
use crate::scope::optional;
use collie_core::error::Failure;
use collie_core::id::MrIid;
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::train::CarState;
use collie_engine::ports::ProjectRef;
use serde::{Deserialize, Serialize};

impl GitLab {
    /// The answer lists the whole train, which nobody needs; that the merge request is on it is read again.
    pub(crate) async fn post_train(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, squash: bool) -> Result<(), Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_trains", "merge_requests", &iid.to_string()], &[])?;
        scope.submit(Call::JoinTrain, url, &JoinBody { sha: ticket.sha().as_str(), squash }).await?;
        Ok(())
    }

    /// A merge request on a train counts as one with GitLab's auto-merge, and leaves it the same way.
    pub(crate) async fn post_cancel(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_requests", &iid.to_string(), "cancel_merge_when_pipeline_succeeds"], &[])?;
        scope.submit(Call::LeaveTrain, url, &serde_json::json!({})).await?;
        Ok(())
    }

    pub(crate) async fn get_train_car(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<CarState>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["merge_trains", "merge_requests", &iid.to_string()], &[])?;
        let car = optional(scope.read::<Car>(Call::TrainCar, url).await)?;
        Ok(car.map(|car| CarState::of_word(&car.status)))
    }

    /// A GitLab without merge trains has no such field.
    pub(crate) async fn get_merges_by_train(&self, project: &ProjectRef) -> Result<bool, Failure> {
        let scope = self.project(project)?;
        let row: Project = scope.read(Call::Project, scope.url(&[], &[])?).await?;
        Ok(row.merge_trains_enabled.unwrap_or_default())
    }
}

#[derive(Debug, Serialize)]
struct JoinBody<'a> {
    sha: &'a str,
    squash: bool,
}

#[derive(Debug, Deserialize)]
struct Car {
    status: String,
}

#[derive(Debug, Deserialize)]
struct Project {
    merge_trains_enabled: Option<bool>,
}
