//! From the file to what use cases need, where nothing is left to flags or to be asked: on AWS.

use crate::{Configuration, ConnectionConfig, ProjectConfig};
use collie_core::id::ProjectId;
use collie_core::mr::wanted::ProjectRules;
use collie_engine::ports::ProjectRef;
use collie_engine::settings::{Project, Settings};
use url::Url;

impl Configuration {
    /// The settings of use cases.
    ///
    /// # Errors
    /// Every project without an id, and every connection without a URL.
    pub fn settings(&self) -> Result<Settings, Vec<String>> {
        let (mut projects, mut problems) = (Vec::new(), Vec::new());
        for config in &self.projects {
            match self.project(config) {
                Ok(project) => projects.push(project),
                Err(problem) => problems.push(format!("projects: {}: {problem}", config.path)),
            }
        }
        let settings =
            Settings { projects, handled_types: self.handled_types.clone(), queues: self.queues.clone(), max_attempts: self.max_attempts };
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    fn project(&self, config: &ProjectConfig) -> Result<Project, String> {
        let connection = self.connections.get(&config.connection);
        let host = connection.and_then(ConnectionConfig::host).ok_or_else(|| format!("no URL of {:?} is configured", config.connection))?;
        let id = ProjectId(config.id.ok_or("id is missing; `collie config check --resolve` finds it")?);
        let rules = ProjectRules { pipelines: config.pipelines, merge: config.merge, service: self.service.clone() };
        let (policy, ci_retry) = (config.policy.clone(), config.ci_retry.clone());
        Ok(Project { path: config.path.clone(), at: ProjectRef { host, id }, rules, policy, ci_retry })
    }
}

impl ConnectionConfig {
    /// The host that rows and hooks speak of.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        host_of(self.url.as_ref()?)
    }
}

/// The host of a URL, with its port where it is not the scheme's.
#[must_use]
pub fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_hold_each_project_with_its_host_and_id() {
        let text = "connections: {main: {url: 'https://gitlab.example.com:8443'}}\nprojects: [{path: group/app, id: 7}]";
        let settings = Configuration::parse(text).unwrap().settings().unwrap();
        let at = ProjectRef { host: "gitlab.example.com:8443".into(), id: ProjectId(7) };
        assert_eq!(settings.project("group/app").map(|project| &project.at), Some(&at));
    }

    #[test]
    fn what_is_missing_is_said_of_every_project() {
        let text = "connections: {main: {url: 'https://gitlab.example.com'}}\nprojects: [{path: group/a}, {path: group/b}]";
        let problems = Configuration::parse(text).unwrap().settings().unwrap_err();
        assert!(problems.len() == 2 && problems[1].starts_with("projects: group/b: id is missing"), "{problems:?}");
    }

    #[test]
    fn a_host_keeps_its_port_where_it_is_not_the_usual_one() {
        for (url, host) in [
            ("https://gitlab.example.com", "gitlab.example.com"),
            ("https://gitlab.example.com:443/", "gitlab.example.com"),
            ("http://127.0.0.1:8929", "127.0.0.1:8929"),
        ] {
            assert_eq!(host_of(&Url::parse(url).unwrap()).as_deref(), Some(host));
        }
    }
}
