//! The hook of a project on GitLab that brings events to this process's door, and the secret it carries.

use super::forge::Reached;
use super::lock::DataDir;
use collie_core::id::ProjectId;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A hook's secret of our own making, kept in the data directory.
#[derive(Debug)]
pub(crate) struct HookSecret(PathBuf);

impl HookSecret {
    /// The secret of a data directory.
    pub(crate) fn in_directory(directory: &DataDir) -> Self {
        Self(directory.join("hook-secret"))
    }

    /// Reads it, and makes it where there is none.
    pub(crate) fn get(&self) -> Result<SecretString, String> {
        if !self.0.exists() {
            self.create().map_err(|error| format!("{}: {error}", self.0.display()))?;
        }
        crate::secrets::read_secret(&self.0)
    }

    fn create(&self) -> std::io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let unnamed = self.0.with_extension("new");
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unnamed)?;
        write!(file, "{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())?;
        file.sync_all()?;
        std::fs::rename(unnamed, &self.0)
    }
}

#[derive(Debug, Deserialize)]
struct Hook {
    id: u64,
    url: String,
}

/// Registers the hooks of one connection's projects.
pub(crate) struct Registrar {
    client: Client,
    base_url: Url,
    door: String,
    secret: SecretString,
}

impl Registrar {
    /// For a connection whose events are to come to the API at `api`.
    pub(crate) fn new(reached: &Reached, api: &str) -> Result<Self, String> {
        let mut token = HeaderValue::from_str(reached.token.get().expose_secret()).map_err(|_| "the token fits no header")?;
        token.set_sensitive(true);
        let headers = HeaderMap::from_iter([(HeaderName::from_static("private-token"), token)]);
        let builder = Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = builder.default_headers(headers).build().map_err(|error| error.to_string())?;
        let door = format!("{api}/v1/hooks/gitlab/{}", reached.slug);
        Ok(Self { client, base_url: reached.base_url.clone(), door, secret: reached.hook_secret.get() })
    }

    /// Makes the project's hook as it has to be: one for this door, with today's secret.
    pub(crate) async fn register(&self, project: ProjectId) -> Result<(), String> {
        let hooks = self.send(Method::GET, project, "?per_page=100", None).await?;
        let hooks: Vec<Hook> = hooks.json().await.map_err(|error| error.to_string())?;
        match hooks.iter().find(|hook| hook.url == self.door) {
            Some(hook) => self.send(Method::PUT, project, &format!("/{}", hook.id), Some(self.wanted())).await?,
            None => self.send(Method::POST, project, "", Some(self.wanted())).await?,
        };
        tracing::info!(%project, door = self.door, "hook registered");
        Ok(())
    }

    fn wanted(&self) -> Value {
        json!({
            "url": self.door, "name": "collie", "token": self.secret.expose_secret(), "enable_ssl_verification": true,
            "push_events": false, "merge_requests_events": true, "pipeline_events": true, "job_events": true,
        })
    }

    async fn send(&self, method: Method, project: ProjectId, rest: &str, body: Option<Value>) -> Result<Response, String> {
        let root = self.base_url.as_str().trim_end_matches('/');
        let request = self.client.request(method, format!("{root}/api/v4/projects/{project}/hooks{rest}"));
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let response = request.send().await.map_err(|error| format!("hook of project {project}: {}", error.without_url()))?;
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(format!("hook of project {project}: GitLab answered {status}")) }
    }
}
