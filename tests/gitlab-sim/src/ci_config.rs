//! Enough of `.gitlab-ci.yml`: stages, and jobs with stage, `allow_failure`, `when: manual`, `retry`, `parallel` as a number and
//! `trigger` of a child or of another project's pipeline.
//!
//! Everything else (rules, needs, includes, extends, scripts) is ignored: every visible job runs.

use serde_norway::{Mapping, Value};

/// A job as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobConfig {
    pub(crate) name: String,
    pub(crate) stage: String,
    pub(crate) allow_failure: bool,
    pub(crate) manual: bool,
    /// How often a failed try is tried again by GitLab itself.
    pub(crate) retries: u32,
    /// The pipeline that it starts, if it is a bridge.
    pub(crate) trigger: Option<Trigger>,
}

/// What a bridge starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub(crate) target: Target,
    /// `strategy: depend`: the bridge ends as its pipeline does.
    pub(crate) depends: bool,
}

/// Whose pipeline that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A child, configured by a file of the same commit.
    Child(String),
    /// Another project's, on a branch of it; on its default branch where none is named.
    Project(String, Option<String>),
}

/// A whole configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CiConfig {
    pub(crate) stages: Vec<String>,
    pub(crate) jobs: Vec<JobConfig>,
}

const KEYWORDS: [&str; 12] = [
    "stages",
    "default",
    "variables",
    "workflow",
    "include",
    "image",
    "services",
    "before_script",
    "after_script",
    "cache",
    "spec",
    "types",
];

/// Reads a configuration; `Err` is the text of `yaml_errors`.
pub(crate) fn parse(text: &str) -> Result<CiConfig, String> {
    let map: Mapping = serde_norway::from_str(text).map_err(|error| format!("(<unknown>): {error}"))?;
    let listed: Vec<String> = map.get("stages").and_then(Value::as_sequence).map(|rows| texts(rows)).unwrap_or_default();
    let stages = if listed.is_empty() { texts_of(&[".pre", "build", "test", "deploy", ".post"]) } else { listed };
    let jobs: Vec<JobConfig> = map.iter().filter_map(|(name, body)| job(name.as_str()?, body.as_mapping()?)).flatten().collect();
    if let Some(job) = jobs.iter().find(|job| !stages.contains(&job.stage)) {
        return Err(format!("{} job: chosen stage {} does not exist; available stages are {}", job.name, job.stage, stages.join(", ")));
    }
    if jobs.is_empty() {
        return Err("jobs config should contain at least one visible job".to_owned());
    }
    let used = stages.into_iter().filter(|stage| jobs.iter().any(|job| job.stage == *stage)).collect();
    Ok(CiConfig { stages: used, jobs })
}

fn texts(rows: &[Value]) -> Vec<String> {
    rows.iter().filter_map(|row| row.as_str().map(str::to_owned)).collect()
}

fn texts_of(rows: &[&str]) -> Vec<String> {
    rows.iter().map(|row| (*row).to_owned()).collect()
}

/// The job of that name, once for each of its parallel parts.
fn job(name: &str, body: &Mapping) -> Option<Vec<JobConfig>> {
    if name.starts_with('.') || KEYWORDS.contains(&name) {
        return None;
    }
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let manual = text("when") == Some("manual");
    let allow_failure = body.get("allow_failure").map_or(manual, |value| value.as_bool().unwrap_or(true));
    let stage = text("stage").unwrap_or("test").to_owned();
    let (retries, trigger) = (body.get("retry").map_or(0, retries), body.get("trigger").and_then(trigger));
    let one = |name: String| JobConfig { name, stage: stage.clone(), allow_failure, manual, retries, trigger: trigger.clone() };
    let parts = body.get("parallel").and_then(Value::as_u64);
    Some(match parts {
        None => vec![one(name.to_owned())],
        Some(parts) => (1..=parts).map(|part| one(format!("{name} {part}/{parts}"))).collect(),
    })
}

/// `retry: 2` or `retry: {max: 2}`; GitLab allows two at most.
fn retries(value: &Value) -> u32 {
    let max = value.as_u64().or_else(|| value.as_mapping()?.get("max")?.as_u64()).unwrap_or(0);
    u32::try_from(max.min(2)).unwrap_or(0)
}

/// `trigger: group/project`, `trigger: {project, branch, strategy}` or `trigger: {include, strategy}`.
fn trigger(value: &Value) -> Option<Trigger> {
    if let Some(project) = value.as_str() {
        return Some(Trigger { target: Target::Project(project.to_owned(), None), depends: false });
    }
    let map = value.as_mapping()?;
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let included = || text("include").or_else(|| local(map.get("include")?));
    let target = match text("project") {
        Some(project) => Target::Project(project, text("branch")),
        None => Target::Child(included()?.trim_start_matches('/').to_owned()),
    };
    Some(Trigger { target, depends: text("strategy").as_deref() == Some("depend") })
}

/// The file of `include: {local: file}`, in a list or alone.
fn local(include: &Value) -> Option<String> {
    let entry = include.as_sequence().and_then(|rows| rows.first()).unwrap_or(include);
    let local = entry.as_mapping().and_then(|map| map.get("local")).unwrap_or(entry);
    local.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_jobs() {
        let text = "stages: [build, test, deploy]\n.hidden: {script: x}\ncompile:\n  stage: build\n  script: [a]\nlint:\n  allow_failure: true\n  script: a\npublish: {stage: deploy, when: manual, script: a}\n";
        let config = parse(text).unwrap();
        assert_eq!(config.stages, ["build", "test", "deploy"]);
        let rows: Vec<_> = config.jobs.iter().map(|job| (job.name.as_str(), job.stage.as_str(), job.allow_failure, job.manual)).collect();
        assert_eq!(rows, [("compile", "build", false, false), ("lint", "test", true, false), ("publish", "deploy", true, true)]);
    }

    #[test]
    fn parts_retries_and_bridges() {
        let text = "unit: {script: x, parallel: 2, retry: 1}\nlint: {script: x, retry: {max: 9, when: always}}\n\
                    child: {trigger: {include: [{local: /ci/child.yml}], strategy: depend}}\nplain: {trigger: {include: child.yml}}\n\
                    other: {trigger: {project: group/b, branch: next}}\nshort: {trigger: group/b}\n";
        let jobs = parse(text).unwrap().jobs;
        let retries: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.retries)).take(3).collect();
        assert_eq!(retries, [("unit 1/2", 1), ("unit 2/2", 1), ("lint", 2)]);
        let triggers: Vec<_> = jobs.into_iter().filter_map(|job| job.trigger).map(|trigger| (trigger.target, trigger.depends)).collect();
        assert_eq!(
            triggers,
            [
                (Target::Child("ci/child.yml".to_owned()), true),
                (Target::Child("child.yml".to_owned()), false),
                (Target::Project("group/b".to_owned(), Some("next".to_owned())), false),
                (Target::Project("group/b".to_owned(), None), false),
            ]
        );
    }

    #[test]
    fn errors() {
        assert_eq!(parse("stages: [a]\n").unwrap_err(), "jobs config should contain at least one visible job");
        assert_eq!(
            parse("x: {stage: b, script: y}\nstages: [a]").unwrap_err(),
            "x job: chosen stage b does not exist; available stages are a"
        );
        assert!(parse("a: [").is_err());
    }
}
