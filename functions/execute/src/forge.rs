//! GitLab with its tokens, which only this function may read.

use collie_config::{ConnectionConfig, SecretName};
use collie_core::error::Failure;
use collie_core::id::ProjectId;
use collie_gitlab::{Connection, GitLab};
use collie_shell::{Shell, StartError};
use secrecy::SecretString;
use std::collections::HashMap;
use std::sync::Arc;

/// Resolves every token and prepares the adapter. Asks nothing of GitLab.
pub(crate) async fn connect(shell: &Shell) -> Result<GitLab, StartError> {
    let (mut connections, mut problems) = (Vec::new(), Vec::new());
    for (slug, config) in &shell.configuration.connections {
        match connection(shell, slug, config).await {
            Ok(connection) => connections.push(connection),
            Err(problem) => problems.push(format!("connections.{slug}: {problem}")),
        }
    }
    if !problems.is_empty() {
        return Err(logged(StartError::new("connections", problems)));
    }
    GitLab::new(connections, Arc::clone(&shell.clock)).map_err(|error| logged(StartError::new("connections", vec![error.to_string()])))
}

async fn connection(shell: &Shell, slug: &str, config: &ConnectionConfig) -> Result<Connection, String> {
    let base_url = config.url.clone().ok_or("url is missing")?;
    let host = config.host().ok_or("the URL has no host")?;
    let name = config.token.as_ref().ok_or("token is missing")?;
    let token = secret(shell, name).await?;
    let project_tokens = project_tokens(shell, slug).await?;
    Ok(Connection { host, base_url, token, project_tokens, concurrency: config.concurrency })
}

async fn project_tokens(shell: &Shell, slug: &str) -> Result<HashMap<ProjectId, SecretString>, String> {
    let mut tokens = HashMap::new();
    for project in shell.configuration.projects.iter().filter(|project| project.connection == slug) {
        if let (Some(id), Some(name)) = (project.id, &project.token) {
            tokens.insert(ProjectId(id), secret(shell, name).await?);
        }
    }
    Ok(tokens)
}

async fn secret(shell: &Shell, name: &SecretName) -> Result<SecretString, String> {
    let unreadable = |failure: Failure| format!("secret {}: {failure}", name.as_str());
    shell.secrets().get(name.as_str()).await.map_err(unreadable)
}

fn logged(error: StartError) -> StartError {
    tracing::error!(what = error.what, problems = ?error.problems, "the function cannot start");
    error
}
