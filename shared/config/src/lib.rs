#![doc = include_str!("../README.md")]

mod access;
mod queues;
mod schema;
mod secret;
mod section;
mod settings;
mod warnings;

pub use access::{AccessConfig, ClusterConfig};
pub use schema::schema;
pub use secret::SecretName;
pub use settings::host_of;

use collie_core::ci::RetryRules;
use collie_core::mr::ticket::PipelineRule;
use collie_core::mr::train::MergeMode;
use collie_core::policy::{Config as PolicyConfig, Policy};
use collie_core::rate::Limit;
use collie_engine::settings::Queue;
use section::{Problems, Section};
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// The connection that `--simulator` and `--gitlab-url` describe.
pub const MAIN: &str = "main";

const ITEM_TYPES: [&str; 2] = [collie_core::mr::ITEM_TYPE, collie_core::repair::ITEM_TYPE];
const SERVICE: &str = "collie";
const CONCURRENCY: usize = 10;
const MAX_ATTEMPTS: u32 = 5;
const REQUESTS_PER_MINUTE: u32 = 1_200;

/// What the file says.
#[derive(Debug)]
pub struct Configuration {
    /// The name on labels and in note markers.
    pub service: String,
    /// GitLab instances by slug.
    pub connections: BTreeMap<String, ConnectionConfig>,
    /// Projects, in the file's order.
    pub projects: Vec<ProjectConfig>,
    /// Item types that are worked on.
    pub handled_types: Vec<String>,
    /// Tracked lines of builds, by name.
    pub queues: Vec<Queue>,
    /// Consecutive failures after which an item fails.
    pub max_attempts: u32,
    /// Changes that one identity may ask for in a minute.
    pub rate: Limit,
    /// Who may call, beside holders of local tokens.
    pub access: AccessConfig,
}

/// A GitLab instance.
#[derive(Debug)]
pub struct ConnectionConfig {
    /// Its root; none where a flag says it.
    pub url: Option<Url>,
    /// The token for its projects; none where a flag says it.
    pub token: Option<SecretName>,
    /// What its hooks carry.
    pub hook_secret: Option<SecretName>,
    /// How many requests may be under way at once.
    pub concurrency: usize,
}

/// A project.
#[derive(Debug)]
pub struct ProjectConfig {
    /// Its path, as callers write it.
    pub path: String,
    /// Its numeric id; none where GitLab is to be asked.
    pub id: Option<u64>,
    /// The slug of its connection.
    pub connection: String,
    /// A token of its own.
    pub token: Option<SecretName>,
    /// Which pipelines a merge needs.
    pub pipelines: PipelineRule,
    /// How merges are made.
    pub merge: MergeMode,
    /// What may pass.
    pub policy: Policy,
    /// Which failed CI jobs are retried, and when.
    pub ci_retry: RetryRules,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            service: SERVICE.to_owned(),
            connections: BTreeMap::new(),
            projects: Vec::new(),
            handled_types: ITEM_TYPES.map(str::to_owned).into(),
            queues: Vec::new(),
            max_attempts: MAX_ATTEMPTS,
            rate: Limit { per_minute: REQUESTS_PER_MINUTE },
            access: AccessConfig::default(),
        }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self { url: None, token: None, hook_secret: None, concurrency: CONCURRENCY }
    }
}

impl ProjectConfig {
    /// A project of which only the path is known.
    pub fn plain(path: &str) -> Self {
        let (id, token, pipelines) = (None, None, PipelineRule::Required);
        let (policy, ci_retry) = (Policy::default(), RetryRules::default());
        Self { path: path.to_owned(), id, connection: MAIN.to_owned(), token, pipelines, merge: MergeMode::Direct, policy, ci_retry }
    }
}

impl Configuration {
    /// Reads the file's text.
    ///
    /// # Errors
    /// Every problem, each with its place.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let value: Value = serde_norway::from_str(text).map_err(|error| vec![error.to_string()])?;
        let mut problems = Problems::default();
        let configuration = read(value, &mut problems);
        problems.conclude(Some(configuration))
    }
}

const LATER: [&str; 1] = ["audit"];
const LATER_IN_PROJECTS: [&str; 1] = ["poll"];

fn read(value: Value, problems: &mut Problems) -> Configuration {
    let mut root = Section::of("", value, problems);
    let service = root.optional("service", problems).unwrap_or_else(|| SERVICE.to_owned());
    if !is_slug(&service) {
        problems.note("service", "a name is made of lower-case letters, digits and '-'");
    }
    let handled_types = handled_types(&mut root, problems);
    let connections = connections(root.raw("connections"), problems);
    let projects = projects(root.raw("projects"), problems);
    let queues = queues::read(root.raw("queues"), &projects, problems);
    queues::check_repairs(&queues, &handled_types, problems);
    let (max_attempts, rate) = limits(root.raw("limits"), problems);
    let access = access::read(&mut root, problems);
    root.finish(&LATER, problems);
    check_connections(&projects, &connections, problems);
    Configuration { service, connections, projects, handled_types, queues, max_attempts, rate, access }
}

/// All, where nothing is said.
fn handled_types(root: &mut Section, problems: &mut Problems) -> Vec<String> {
    let types: Option<Vec<String>> = root.optional("handled_types", problems);
    for unknown in types.iter().flatten().filter(|t| !ITEM_TYPES.contains(&t.as_str())) {
        problems.note("handled_types", format!("{unknown:?} is no item type"));
    }
    types.unwrap_or_else(|| ITEM_TYPES.map(str::to_owned).into())
}

fn limits(value: Option<Value>, problems: &mut Problems) -> (u32, Limit) {
    let mut section = Section::of("limits", value.unwrap_or_default(), problems);
    let mut at_least_one = |name: &str, usual| {
        let number = section.optional(name, problems).unwrap_or(usual);
        if number == 0 {
            problems.note(&section.at(name), "must be at least 1");
        }
        number
    };
    let most = at_least_one("max_attempts", MAX_ATTEMPTS);
    let per_minute = at_least_one("requests_per_minute", REQUESTS_PER_MINUTE);
    section.finish(&[], problems);
    (most, Limit { per_minute })
}

fn connections(value: Option<Value>, problems: &mut Problems) -> BTreeMap<String, ConnectionConfig> {
    let section = Section::of("connections", value.unwrap_or_default(), problems);
    section.into_entries().map(|(slug, value)| connection(slug, value, problems)).collect()
}

fn connection(slug: String, value: Value, problems: &mut Problems) -> (String, ConnectionConfig) {
    let place = format!("connections.{slug}");
    if !is_slug(&slug) {
        problems.note(&place, "a name is made of lower-case letters, digits and '-'");
    }
    let mut section = Section::of(place, value, problems);
    let connection = ConnectionConfig {
        url: url(&mut section, problems),
        token: section.optional("token", problems),
        hook_secret: section.optional("hook_secret", problems),
        concurrency: section.optional("concurrency", problems).unwrap_or(CONCURRENCY),
    };
    section.finish(&[], problems);
    (slug, connection)
}

fn url(section: &mut Section, problems: &mut Problems) -> Option<Url> {
    let text: String = section.optional("url", problems)?;
    Url::parse(&text).map_err(|error| problems.note(&section.at("url"), error)).ok()
}

fn projects(value: Option<Value>, problems: &mut Problems) -> Vec<ProjectConfig> {
    let rows = match value.unwrap_or_default() {
        Value::Null => Vec::new(),
        Value::Array(rows) => rows,
        _ => {
            problems.note("projects", "a list is needed here");
            Vec::new()
        }
    };
    let projects: Vec<_> = rows.into_iter().enumerate().filter_map(|(index, row)| project(index, row, problems)).collect();
    for (index, project) in projects.iter().enumerate() {
        if projects[..index].iter().any(|other| other.path == project.path) {
            problems.note("projects", format!("{:?} is configured twice", project.path));
        }
    }
    projects
}

fn project(index: usize, value: Value, problems: &mut Problems) -> Option<ProjectConfig> {
    let place = format!("projects[{index}]");
    let mut section = Section::of(place.as_str(), value, problems);
    let path: Option<String> = section.required("path", problems);
    if path.as_deref().is_some_and(|path| !is_project_path(path)) {
        problems.note(&section.at("path"), "a path is written as group/project, without '~'");
    }
    let merge = merge(&mut section, problems);
    let id = section.optional("id", problems);
    let connection = section.optional("connection", problems).unwrap_or_else(|| MAIN.to_owned());
    let token = section.optional("token", problems);
    let pipelines = section.optional("pipelines", problems).unwrap_or_default();
    let policy = policy(&mut section, problems);
    let ci_retry = ci_retry(&mut section, problems);
    section.finish(&LATER_IN_PROJECTS, problems);
    Some(ProjectConfig { path: path?, id, connection, token, pipelines, merge, policy, ci_retry })
}

fn merge(section: &mut Section, problems: &mut Problems) -> MergeMode {
    let place = section.at("merge");
    match section.optional::<String>("merge", problems).as_deref() {
        None | Some("direct") => {}
        Some("train") => return MergeMode::Train,
        Some(other) => problems.note(&place, format!("{other:?} is neither \"direct\" nor \"train\"")),
    }
    MergeMode::Direct
}

fn policy(section: &mut Section, problems: &mut Problems) -> Policy {
    let place = section.at("policy");
    let config: PolicyConfig = section.optional("policy", problems).unwrap_or_default();
    Policy::new(config).unwrap_or_else(|errors| {
        errors.iter().for_each(|error| problems.note(&place, error));
        Policy::default()
    })
}

fn ci_retry(section: &mut Section, problems: &mut Problems) -> RetryRules {
    let place = section.at("ci_retry");
    let read = section.raw("ci_retry").map(|value| RetryRules::parse(&value)).transpose();
    let rules = read.map_err(|error| error.problems.iter().for_each(|p| problems.note(&format!("{place}{}", p.at), &p.what)));
    rules.ok().flatten().unwrap_or_default()
}

/// `main` may be described by flags; every other connection has to be here.
fn check_connections(projects: &[ProjectConfig], connections: &BTreeMap<String, ConnectionConfig>, problems: &mut Problems) {
    for project in projects.iter().filter(|p| p.connection != MAIN && !connections.contains_key(&p.connection)) {
        problems.note(&format!("projects: {}", project.path), format!("there is no connection {:?}", project.connection));
    }
    for (slug, connection) in connections.iter().filter(|(slug, _)| *slug != MAIN) {
        for (key, there) in [("url", connection.url.is_some()), ("token", connection.token.is_some())] {
            if !there {
                problems.note(&format!("connections.{slug}.{key}"), "is missing");
            }
        }
    }
}

fn is_slug(text: &str) -> bool {
    !text.is_empty() && text.len() <= 40 && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Whether a text is a project's path as callers write it.
pub fn is_project_path(path: &str) -> bool {
    path.contains('/') && !path.contains('~') && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
service: collie
handled_types: [mr]
connections:
  main: {url: https://gitlab.example.com, token: secret:gitlab/main, hook_secret: secret:gitlab/main-hook, concurrency: 10}
projects:
  - path: group/app
    id: 4711
    connection: main
    token: secret:gitlab/app
    merge: direct
    pipelines: required
    policy: {protect: ["deploy/**"], allow: [], max_actions: 1000, max_bytes: 20MB, binary: allow, secrets: refuse}
    ci_retry:
      - name: runner-gone
        match: {all: [{failure_reason: [runner_system_failure, stuck_or_timeout_failure]}, {not: {job_name: "/^deploy/"}}]}
        delays: [0s, 3m, 10m]
limits: {max_attempts: 5}
"#;

    #[test]
    fn the_documented_example_is_read_as_far_as_work_items_need_it() {
        let read = Configuration::parse(EXAMPLE).unwrap();
        let project = &read.projects[0];
        assert_eq!((project.path.as_str(), project.id, project.pipelines), ("group/app", Some(4711), PipelineRule::Required));
        assert_eq!(project.policy.config().protect, ["deploy/**"]);
        assert_eq!(project.ci_retry.get("runner-gone").map(|rule| rule.delays().len()), Some(3));
        assert_eq!(read.connections["main"].url.as_ref().unwrap().as_str(), "https://gitlab.example.com/");
        assert_eq!((read.max_attempts, read.rate.per_minute), (5, 1_200));
    }

    #[test]
    fn every_problem_is_reported_and_keys_to_come_are_named_as_such() {
        let text = r#"
service: Collie
handled_types: [mr, issue, epic]
connections:
  main: {url: 12, token: glpat-inline}
  other: {url: https://other.example.com}
projects:
  - {id: 1, merge: rocket, colour: red}
  - {path: app, pipelines: sometimes, ci_retry: [{name: a, delays: [0s], match: {message: "/(?=x)/"}}], poll: {}}
  - {path: group/a, connection: third, policy: {protected: []}}
  - {path: group/a}
limits: {max_attempts: 0, requests_per_minute: 0}
audit: {}
"#;
        let problems = Configuration::parse(text).unwrap_err();
        let expected = [
            "service: a name",
            "handled_types: \"epic\" is no item type",
            "connections.main.url:",
            "connections.main.token: a secret is written as",
            "projects[0].path: is missing",
            "projects[0].merge: \"rocket\" is neither \"direct\" nor \"train\"",
            "projects[0].colour: is no key",
            "projects[1].path: a path",
            "projects[1].pipelines:",
            "projects[1].ci_retry[0].match.message: /(?=x)/ is no pattern: look-around",
            "projects[1].poll: is not supported yet",
            "projects[2].policy: unknown field",
            "projects: \"group/a\" is configured twice",
            "limits.max_attempts: must",
            "limits.requests_per_minute: must",
            "audit: is not supported yet",
            "projects: group/a: there is no connection \"third\"",
            "connections.other.token: is missing",
        ];
        for start in expected {
            assert!(problems.iter().any(|problem| problem.starts_with(start)), "{start} in {problems:#?}");
        }
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    }

    #[test]
    fn an_empty_file_says_nothing() {
        let read = Configuration::parse("").unwrap();
        assert!(read.projects.is_empty() && read.connections.is_empty());
        assert!(Configuration::parse("- a").is_err());
    }
}
