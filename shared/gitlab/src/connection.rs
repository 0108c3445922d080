//! How a host is reached, checked once at start; every problem is reported, not only the first.

use collie_core::id::ProjectId;
use collie_engine::credential::Credential;
use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use std::collections::{HashMap, HashSet};
use std::fmt;
use tokio::sync::Semaphore;

/// One GitLab instance and the credentials for it.
#[derive(Debug)]
pub struct Connection {
    /// The name by which projects refer to it (`ProjectRef::host`), with its port where it has one.
    pub host: String,
    /// The root of the instance, without `/api/v4`.
    pub base_url: Url,
    /// The token for every project that has none of its own.
    pub token: Credential,
    /// Tokens of single projects.
    pub project_tokens: HashMap<ProjectId, Credential>,
    /// How many requests may be under way at once.
    pub concurrency: usize,
}

/// What is wrong with the connections.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", Self::lines(problems))]
pub struct ConfigError {
    /// Every problem, in the order of the connections.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    fn lines(problems: &[Problem]) -> String {
        problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// One problem with one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Two connections have this host.
    DuplicateHost(String),
    /// The base URL of this host is not plain `http(s)://host[:port][/path]`.
    BaseUrl(String),
    /// A token of this host is empty or holds characters that no header can carry.
    Token(String),
    /// This host may have no requests under way.
    Concurrency(String),
    /// The HTTP client could not be built.
    Client(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateHost(host) => write!(f, "{host}: configured twice"),
            Self::BaseUrl(host) => {
                write!(f, "{host}: the base URL must be http(s)://host[:port][/path] without credentials, query or fragment")
            }
            Self::Token(host) => write!(f, "{host}: a token is empty or holds characters that no header can carry"),
            Self::Concurrency(host) => write!(f, "{host}: concurrency must be at least 1"),
            Self::Client(reason) => write!(f, "the HTTP client cannot be built: {reason}"),
        }
    }
}

impl Connection {
    fn problems(&self) -> Vec<Problem> {
        let checks = [
            (is_plain(&self.base_url), Problem::BaseUrl as fn(String) -> Problem),
            (self.tokens().all(|token| private_token(&token.get()).is_some()), Problem::Token),
            ((1..=Semaphore::MAX_PERMITS).contains(&self.concurrency), Problem::Concurrency),
        ];
        checks.into_iter().filter(|(good, _)| !good).map(|(_, problem)| problem(self.host.clone())).collect()
    }

    fn tokens(&self) -> impl Iterator<Item = &Credential> {
        std::iter::once(&self.token).chain(self.project_tokens.values())
    }
}

/// Checks all connections together.
pub(crate) fn check(connections: &[Connection]) -> Vec<Problem> {
    let mut seen = HashSet::new();
    let mut problems = Vec::new();
    for connection in connections {
        if !seen.insert(connection.host.as_str()) {
            problems.push(Problem::DuplicateHost(connection.host.clone()));
        }
        problems.extend(connection.problems());
    }
    problems
}

fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// The header's value, marked so that nothing prints it.
pub(crate) fn private_token(token: &SecretString) -> Option<HeaderValue> {
    let text = token.expose_secret();
    let mut value = HeaderValue::from_str(text).ok().filter(|_| !text.trim().is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

/// A checked connection at work.
pub(crate) struct Host {
    pub(crate) base_url: Url,
    pub(crate) permits: Semaphore,
    token: Credential,
    project_tokens: HashMap<ProjectId, Credential>,
}

impl Host {
    pub(crate) fn new(connection: Connection) -> (String, Self) {
        let Connection { host, base_url, token, project_tokens, concurrency } = connection;
        (host, Self { base_url, permits: Semaphore::new(concurrency), token, project_tokens })
    }

    /// The project's own token, else the host's.
    pub(crate) fn token_of(&self, project: ProjectId) -> &Credential {
        self.project_tokens.get(&project).unwrap_or(&self.token)
    }

    /// The token for what belongs to no project.
    pub(crate) const fn token(&self) -> &Credential {
        &self.token
    }
}
