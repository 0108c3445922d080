//! From configuration to what use cases need: connections with their tokens, projects with their ids.

use crate::secrets::Secrets;
use crate::serve::hook::HookSecret;
use collie_api::{HookConnection, HookDoor};
use collie_config::{Configuration, ConnectionConfig, MAIN, ProjectConfig, host_of};
use collie_core::id::ProjectId;
use collie_core::mr::wanted::ProjectRules;
use collie_core::policy::Policy;
use collie_engine::credential::Credential;
use collie_engine::ports::{Clock, ProjectRef};
use collie_engine::settings::{Project, Settings};
use collie_gitlab::{Connection, GitLab};
use reqwest::Url;
use std::collections::HashMap;
use std::sync::Arc;

/// What flags say about the connection `main`.
#[derive(Debug)]
pub(crate) struct MainConnection {
    pub(crate) url: Url,
    pub(crate) token: Credential,
}

/// A GitLab instance with its secrets.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    pub(crate) slug: String,
    pub(crate) host: String,
    pub(crate) base_url: Url,
    pub(crate) token: Credential,
    pub(crate) hook_secret: Credential,
    concurrency: usize,
}

/// The forge side of the process.
pub(crate) struct Forge {
    pub(crate) gitlab: GitLab,
    pub(crate) settings: Settings,
    pub(crate) reached: Vec<Reached>,
}

impl Forge {
    /// Resolves secrets and projects. Asks GitLab only about projects whose id is not configured.
    pub(crate) async fn connect(
        mut configuration: Configuration,
        main: Option<MainConnection>,
        secrets: &Secrets,
        hook_secret: &HookSecret,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        if let Some(main) = &main {
            configuration.connections.entry(MAIN.to_owned()).or_default().url = Some(main.url.clone());
        }
        let reached = reach(&configuration, main, secrets, hook_secret).map_err(|problems| problems.join("\n"))?;
        let asking = gitlab(&reached, HashMap::new(), Arc::clone(&clock))?;
        let (mut projects, mut tokens) = (Vec::new(), HashMap::<String, HashMap<ProjectId, Credential>>::new());
        for config in configuration.projects {
            let (project, token) = project(config, &configuration.service, &reached, &asking, secrets).await?;
            if let Some(token) = token {
                tokens.entry(project.at.host.clone()).or_default().insert(project.at.id, token);
            }
            projects.push(project);
        }
        let settings = Settings {
            projects,
            handled_types: configuration.handled_types,
            queues: configuration.queues,
            max_attempts: configuration.max_attempts,
        };
        Ok(Self { gitlab: gitlab(&reached, tokens, clock)?, settings, reached })
    }

    /// The door for the hooks of all connections.
    pub(crate) fn hook_door(&self) -> HookDoor {
        let connection = |r: &Reached| HookConnection { slug: r.slug.clone(), host: r.host.clone(), secret: r.hook_secret.clone() };
        HookDoor { connections: self.reached.iter().map(connection).collect() }
    }
}

fn reach(
    configuration: &Configuration,
    main: Option<MainConnection>,
    secrets: &Secrets,
    hook_secret: &HookSecret,
) -> Result<Vec<Reached>, Vec<String>> {
    let (mut reached, mut problems) = (Vec::new(), Vec::new());
    let mut given = main.map(|main| main.token);
    for (slug, config) in &configuration.connections {
        let given = if slug == MAIN { given.take() } else { None };
        match reach_one(slug, config, given, secrets, hook_secret) {
            Ok(one) => reached.push(one),
            Err(problem) => problems.push(format!("connections.{slug}: {problem}")),
        }
    }
    if configuration.projects.iter().any(|p| p.connection == MAIN) && !configuration.connections.contains_key(MAIN) {
        problems.push("connections.main: is missing; give --simulator or --gitlab-url, or configure it".to_owned());
    }
    if problems.is_empty() { Ok(reached) } else { Err(problems) }
}

fn reach_one(
    slug: &str,
    config: &ConnectionConfig,
    given: Option<Credential>,
    secrets: &Secrets,
    hook_secret: &HookSecret,
) -> Result<Reached, String> {
    let base_url = config.url.clone().ok_or("url is missing")?;
    let token = match (given, &config.token) {
        (Some(token), _) => token,
        (None, Some(name)) => secrets.credential(name)?,
        (None, None) => return Err("token is missing".to_owned()),
    };
    let hook_secret = match &config.hook_secret {
        Some(name) => secrets.credential(name)?,
        None => hook_secret.get()?.into(),
    };
    let host = host_of(&base_url).ok_or("the URL has no host")?;
    Ok(Reached { slug: slug.to_owned(), host, base_url, token, hook_secret, concurrency: config.concurrency })
}

fn gitlab(
    reached: &[Reached],
    mut tokens: HashMap<String, HashMap<ProjectId, Credential>>,
    clock: Arc<dyn Clock>,
) -> Result<GitLab, String> {
    let connection = |r: &Reached| Connection {
        host: r.host.clone(),
        base_url: r.base_url.clone(),
        token: r.token.clone(),
        project_tokens: tokens.remove(&r.host).unwrap_or_default(),
        concurrency: r.concurrency,
    };
    let connections = reached.iter().map(connection).collect();
    GitLab::new(connections, clock).map_err(|error| error.to_string())
}

async fn project(
    config: ProjectConfig,
    service: &str,
    reached: &[Reached],
    asking: &GitLab,
    secrets: &Secrets,
) -> Result<(Project, Option<Credential>), String> {
    let connection = reached.iter().find(|r| r.slug == config.connection);
    let host = connection.ok_or_else(|| format!("{}: there is no connection {:?}", config.path, config.connection))?.host.clone();
    let (id, policy) = match config.id {
        Some(id) => (ProjectId(id), config.policy),
        None => resolve(&config.path, &host, config.policy, asking).await?,
    };
    let token = config.token.map(|name| secrets.credential(&name)).transpose()?;
    let rules = ProjectRules { pipelines: config.pipelines, merge: config.merge, service: service.to_owned() };
    Ok((Project { path: config.path, at: ProjectRef { host, id }, rules, policy, ci_retry: config.ci_retry }, token))
}

/// Asks GitLab which project a path is, and which branch is its default: nobody may submit that one.
async fn resolve(path: &str, host: &str, policy: Policy, asking: &GitLab) -> Result<(ProjectId, Policy), String> {
    let found = asking.resolve_project(host, path).await.map_err(|failure| format!("project {path} on {host}: {failure}"))?;
    let mut config = policy.config().clone();
    config.branches.default_branch = config.branches.default_branch.or(found.default_branch);
    let policy = Policy::new(config).map_err(|errors| format!("{path}: {} pattern(s) cannot work", errors.len()))?;
    Ok((found.id, policy))
}
