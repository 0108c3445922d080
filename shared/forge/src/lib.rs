#![doc = include_str!("../README.md")]

use collie_config::{ConnectionConfig, SecretName};
use collie_core::id::ProjectId;
use collie_engine::credential::Credential;
use collie_gitlab::{Connection, GitLab};
use collie_shell::{Shell, StartError};
use futures::future::join_all;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Resolves every token and prepares the adapter. Asks nothing of GitLab.
///
/// # Errors
/// Every token that cannot be read, or what a connection lacks.
pub async fn connect(shell: &Shell) -> Result<GitLab, StartError> {
    let tokens = tokens(shell).await?;
    let connections = shell.configuration.connections.iter().map(|(slug, config)| connection(shell, &tokens, slug, config));
    let connections: Vec<_> = connections.collect::<Result<_, _>>().map_err(|problem| StartError::new("connections", vec![problem]))?;
    GitLab::new(connections, Arc::clone(&shell.clock)).map_err(|error| StartError::new("connections", vec![error.to_string()]))
}

type Tokens = BTreeMap<String, Credential>;

/// All tokens by name, each asked for once and all at the same time.
async fn tokens(shell: &Shell) -> Result<Tokens, StartError> {
    let configuration = &shell.configuration;
    let of_connections = configuration.connections.values().filter_map(|connection| connection.token.as_ref());
    let of_projects = configuration.projects.iter().filter_map(|project| project.token.as_ref());
    let mut names: Vec<_> = of_connections.chain(of_projects).map(SecretName::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let (mut tokens, mut problems) = (Tokens::new(), Vec::new());
    for (name, answer) in names.iter().zip(join_all(names.iter().map(|name| shell.credential(name))).await) {
        match answer {
            Ok(token) => drop(tokens.insert((*name).to_owned(), token)),
            Err(failure) => problems.push(format!("secret {name}: {failure}")),
        }
    }
    if problems.is_empty() { Ok(tokens) } else { Err(StartError::new("secrets", problems)) }
}

fn connection(shell: &Shell, tokens: &Tokens, slug: &str, config: &ConnectionConfig) -> Result<Connection, String> {
    let missing = |what: &str| format!("connections.{slug}: {what} is missing");
    let base_url = config.url.clone().ok_or_else(|| missing("url"))?;
    let host = config.host().ok_or_else(|| missing("the URL's host"))?;
    let token = token(tokens, config.token.as_ref()).ok_or_else(|| missing("token"))?;
    let own_token = |project: &collie_config::ProjectConfig| Some((ProjectId(project.id?), self::token(tokens, project.token.as_ref())?));
    let projects = shell.configuration.projects.iter().filter(|project| project.connection == slug);
    let project_tokens: HashMap<_, _> = projects.filter_map(own_token).collect();
    Ok(Connection { host, base_url, token, project_tokens, concurrency: config.concurrency })
}

fn token(tokens: &Tokens, name: Option<&SecretName>) -> Option<Credential> {
    tokens.get(name?.as_str()).cloned()
}
