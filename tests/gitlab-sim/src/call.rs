//! One API call as a handler sees it: matched route, parameters, caller.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::access::{Identity, Role};
use crate::params::Params;
use crate::project::{Project, Visibility};
use crate::reply::{Reply, error, forbidden, message, no_record, not_found, unauthorized};
use crate::state::State;

/// A request before routing.
#[derive(Clone, Debug, Default)]
pub struct ApiRequest {
    /// Upper-case method.
    pub method: String,
    /// Path with its query, still encoded: `/api/v4/projects/1?x=y`.
    pub uri: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// Body bytes.
    pub body: Bytes,
}

impl ApiRequest {
    pub(crate) fn path(&self) -> &str {
        self.uri.split_once('?').map_or(self.uri.as_str(), |(path, _)| path)
    }

    pub(crate) fn query(&self) -> &str {
        self.uri.split_once('?').map_or("", |(_, query)| query)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The access token, by header or query.
    pub(crate) fn token(&self) -> Option<String> {
        let bearer = || self.header("authorization")?.strip_prefix("Bearer ");
        let header = self.header("private-token").or_else(bearer).map(str::to_owned);
        header.or_else(|| Params::parse(self.query(), "", b"").ok()?.text("private_token"))
    }
}

/// A routed call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) request: ApiRequest,
    pub(crate) captures: BTreeMap<&'static str, String>,
    pub(crate) params: Params,
    pub(crate) identity: Option<Identity>,
}

impl Call {
    pub(crate) fn user(&self) -> Option<u64> {
        self.identity.as_ref().map(|identity| identity.user)
    }

    pub(crate) fn user_id(&self) -> Result<u64, Reply> {
        self.user().ok_or_else(unauthorized)
    }

    pub(crate) fn capture(&self, name: &str) -> &str {
        self.captures.get(name).map_or("", String::as_str)
    }

    /// A numeric path part; what is no number is refused as Grape does.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Reply> {
        self.capture(name).parse().map_err(|_| error(400, format!("{name} is invalid")))
    }

    /// The id of the project the path names, if the caller may see it.
    pub(crate) fn project_id(&self, state: &State) -> Result<u64, Reply> {
        let text = self.capture("id");
        if let Some(id) = state.renamed.get(text) {
            return Err(self.moved(state, *id));
        }
        let found = state.projects.values().find(|project| project.path == text || project.id.to_string() == text);
        let project = found.ok_or_else(|| not_found("Project"))?;
        let visible = project.visibility == Visibility::Public || state.role(project, self.user()).is_some();
        if visible { Ok(project.id) } else { Err(not_found("Project")) }
    }

    fn moved(&self, state: &State, id: u64) -> Reply {
        if self.request.method != "GET" {
            return message(405, "Non GET methods are not allowed for moved projects");
        }
        let rest = self.request.uri.split('/').skip(5).collect::<Vec<_>>().join("/");
        let tail = if rest.is_empty() { String::new() } else { format!("/{rest}") };
        let url = format!("{}/api/v4/projects/{id}{tail}", state.base_url);
        Reply::text(301, format!("This resource has been moved permanently to {url}")).with_header("Location", url)
    }

    /// The project the path names.
    pub(crate) fn project<'a>(&self, state: &'a State) -> Result<&'a Project, Reply> {
        let id = self.project_id(state)?;
        state.project(id).ok_or_else(|| not_found("Project"))
    }

    /// The project, if the caller has at least this role in it.
    pub(crate) fn project_as<'a>(&self, state: &'a State, least: Role) -> Result<&'a Project, Reply> {
        let project = self.project(state)?;
        self.user_id()?;
        if state.has_role(project, self.user(), least) { Ok(project) } else { Err(forbidden(None)) }
    }

    /// The project and the iid of an existing merge request.
    pub(crate) fn merge_request(&self, state: &State) -> Result<(u64, u64), Reply> {
        let project = self.project(state)?;
        let iid = self.number("merge_request_iid")?;
        if project.mrs.contains_key(&iid) { Ok((project.id, iid)) } else { Err(no_record()) }
    }
}
