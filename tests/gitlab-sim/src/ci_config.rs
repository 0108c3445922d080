//! Enough of `.gitlab-ci.yml`: stages, and jobs with stage, `allow_failure` and `when: manual`.
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
    let jobs = map.iter().filter_map(|(name, body)| job(name.as_str()?, body.as_mapping()?)).collect::<Vec<_>>();
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

fn job(name: &str, body: &Mapping) -> Option<JobConfig> {
    if name.starts_with('.') || KEYWORDS.contains(&name) {
        return None;
    }
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let manual = text("when") == Some("manual");
    let allow_failure = body.get("allow_failure").map_or(manual, |value| value.as_bool().unwrap_or(true));
    Some(JobConfig { name: name.to_owned(), stage: text("stage").unwrap_or("test").to_owned(), allow_failure, manual })
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
    fn errors() {
        assert_eq!(parse("stages: [a]\n").unwrap_err(), "jobs config should contain at least one visible job");
        assert_eq!(
            parse("x: {stage: b, script: y}\nstages: [a]").unwrap_err(),
            "x job: chosen stage b does not exist; available stages are a"
        );
        assert!(parse("a: [").is_err());
    }
}
