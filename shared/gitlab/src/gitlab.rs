//! The adapter: hosts, one HTTP client, the clock and the bounds.

use crate::connection::{ConfigError, Connection, Host, Problem, check};
use crate::error::codes;
use crate::limits::{CONNECT_TIMEOUT, IDLE_TIMEOUT, Limits};
use crate::scope::Scope;
use collie_core::error::Failure;
use collie_engine::ports::{Clock, ProjectRef};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// GitLab over its REST API (v4), for any number of hosts.
pub struct GitLab {
    hosts: HashMap<String, Host>,
    pub(crate) client: reqwest::Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
}

impl GitLab {
    /// An adapter with the usual bounds. Makes no request.
    ///
    /// # Errors
    /// [`ConfigError`] lists every problem of every connection.
    pub fn new(connections: Vec<Connection>, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        Self::with_limits(connections, clock, Limits::default())
    }

    /// An adapter with bounds of one's own.
    ///
    /// # Errors
    /// [`ConfigError`] lists every problem of every connection.
    pub fn with_limits(connections: Vec<Connection>, clock: Arc<dyn Clock>, limits: Limits) -> Result<Self, ConfigError> {
        let problems = check(&connections);
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let is_secure = connections.iter().any(|connection| connection.base_url.scheme() == "https");
        let client = client(is_secure).map_err(|error| ConfigError { problems: vec![Problem::Client(error.to_string())] })?;
        let hosts = connections.into_iter().map(Host::new).collect();
        Ok(Self { hosts, client, clock, limits })
    }

    /// What is needed for requests about one project.
    pub(crate) fn project(&self, project: &ProjectRef) -> Result<Scope<'_>, Failure> {
        let (name, host) = self.host(&project.host)?;
        Ok(Scope::new(self, name, host, host.token_of(project.id)).within(&["projects", &project.id.to_string()]))
    }

    /// What is needed for requests about no project.
    pub(crate) fn instance(&self, host: &str) -> Result<Scope<'_>, Failure> {
        let (name, host) = self.host(host)?;
        Ok(Scope::new(self, name, host, host.token()))
    }

    fn host(&self, name: &str) -> Result<(&str, &Host), Failure> {
        let found = self.hosts.get_key_value(name).map(|(name, host)| (name.as_str(), host));
        found.ok_or_else(|| Failure::rejected(codes::FORGE_UNKNOWN_HOST, format!("no connection to {name} is configured")))
    }
}

impl fmt::Debug for GitLab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitLab").field("hosts", &self.hosts.keys()).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// One client for all hosts. It follows no redirect and asks no proxy, so a token only goes where configuration says. Where no
/// connection is secure, no trust store is loaded, which is most of what starting takes.
fn client(is_secure: bool) -> reqwest::Result<reqwest::Client> {
    // A provider that someone installed before does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = if is_secure { reqwest::Client::builder() } else { reqwest::Client::builder().tls_certs_only([]) };
    builder
        .user_agent(concat!("collie/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build()
}
