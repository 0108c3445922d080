//! What is asked once, at start: which project a path means, and who the credential belongs to.

use crate::call::Call;
use crate::gitlab::GitLab;
use crate::http::Reply;
use crate::scope::Scope;
use collie_core::error::Failure;
use collie_core::id::{ProjectId, UserId};
use reqwest::header::LOCATION;
use reqwest::{StatusCode, Url};
use serde::Deserialize;

/// A project as its path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedProject {
    /// The numeric id, which survives renames.
    pub id: ProjectId,
    /// The path as it is now, `group/project`.
    pub path: String,
    /// The default branch; an empty repository has none.
    pub default_branch: Option<String>,
    /// For people.
    pub web_url: String,
}

/// The user whom a host's token belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CurrentUser {
    /// The user.
    pub id: UserId,
    /// The login name.
    pub username: String,
}

#[derive(Debug, Deserialize)]
struct ProjectRow {
    id: ProjectId,
    path_with_namespace: String,
    default_branch: Option<String>,
    #[serde(default)]
    web_url: String,
}

impl GitLab {
    /// `GET /projects/:path`; a project that was renamed is followed by its id, on the same host, once.
    ///
    /// # Errors
    /// As the table in the crate's documentation says.
    pub async fn resolve_project(&self, host: &str, path: &str) -> Result<ResolvedProject, Failure> {
        let scope = self.instance(host)?;
        let reply = scope.exchange(Call::Project, scope.url(&["projects", path], &[])?, None).await?;
        let row: ProjectRow = match renamed_to(&scope, &reply)? {
            Some(id) => scope.read(Call::Project, scope.url(&["projects", &id], &[])?).await?,
            None if reply.status.is_success() => reply.decode(Call::Project)?,
            None => return Err(scope.failure(Call::Project, &reply)),
        };
        Ok(ResolvedProject { id: row.id, path: row.path_with_namespace, default_branch: row.default_branch, web_url: row.web_url })
    }

    /// `GET /user` with the host's own token.
    ///
    /// # Errors
    /// As the table in the crate's documentation says.
    pub async fn current_user(&self, host: &str) -> Result<CurrentUser, Failure> {
        let scope = self.instance(host)?;
        let url = scope.url(&["user"], &[])?;
        scope.read(Call::CurrentUser, url).await
    }
}

/// The id of a renamed project, where the answer is a redirect to the same route of the same host.
fn renamed_to(scope: &Scope<'_>, reply: &Reply) -> Result<Option<String>, Failure> {
    if reply.status != StatusCode::MOVED_PERMANENTLY {
        return Ok(None);
    }
    let Some(location) = reply.headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    let Some(target) = scope.host.base_url.join(location).ok() else {
        return Ok(None);
    };
    let id = target.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default().to_owned();
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let same = same_place(&target, &scope.url(&["projects", &id], &[])?);
    Ok(same.then_some(id))
}

fn same_place(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin() && a.path() == b.path()
}
