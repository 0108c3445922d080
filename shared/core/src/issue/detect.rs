//! What one build's pipelines say: whether they are over, how they ended, which issues they show, and of which tasks they speak.
//!
//! A task is a job's name without ` n/m`, behind the names of the bridges that led to its pipeline; a unit is a test case. In this
//! order, for each task:
//! 1. A job that failed and whose failure is allowed is no issue, and its task is not spoken of: neither what it reports nor what it
//!    lacks counts, as it does not for the pipeline.
//! 2. A suite that cannot be read gives the whole analysis up: what is not known never counts as "no issues".
//! 3. Every failing case of its suite is an issue, whether or not its job failed.
//! 4. A job that failed without a report, or whose suite has no failing case, is an issue of the whole task, which closes nothing. So
//!    is a bridge whose pipeline could not be started, or not be read.
//! 5. The task is spoken of where each of its parts went well, or failed with a report. Skipped, stopped and manual jobs, and those
//!    that are not there, are not spoken of.
//!
//! Only newest tries are looked at, and only when nothing goes on by itself any more: a try that GitLab makes by itself is waited for,
//! and issues of tries that are repeated are never reported, which could not be taken back. A pipeline that waits for a person is over:
//! what ran has ended, and whoever lets it go on does so too late.
//!
//! Does not read anything, and does not decide what of an issue opens or closes. Upholds INV-5.

use super::ci::{Bridge, CiJob, FailingCase, Pipeline, Standing, Suite, TestReport};
use super::key::IssueKey;
use super::row::Outcome;
use crate::files::sha256_hex;
use crate::id::{PipelineId, ProjectId};
use std::collections::{BTreeMap, BTreeSet};

/// Pipelines of one build that are read; one that has more is given up.
pub const MAX_PIPELINES: usize = 50;
/// Bytes of one test report that are read.
pub const MAX_REPORT_BYTES: usize = 8 << 20;
/// Characters of a unit; a longer one is cut, and told apart by its digest.
const MAX_UNIT: usize = 500;
/// Characters of a file name in an issue's detail.
const MAX_FILE: usize = 200;
/// What leads from a bridge to the tasks of its pipeline.
const STEP: &str = " > ";
/// A case that has neither a class nor a name: an empty unit would be the whole task.
const UNNAMED: &str = "(unnamed)";

/// The uri of a pipeline's request.
#[must_use]
pub fn uri(host: &str, project: ProjectId, pipeline: PipelineId) -> String {
    format!("gitlab:{host}/{project}/pipelines/{pipeline}")
}

/// The pipeline that a uri names, if it is one of this project's.
#[must_use]
pub fn pipeline_of(uri: &str, host: &str, project: ProjectId) -> Option<PipelineId> {
    let number = uri.strip_prefix(&format!("gitlab:{host}/{project}/pipelines/"))?;
    let id = PipelineId(number.parse().ok()?);
    (id.to_string() == number).then_some(id)
}

/// Where people find what a uri names: a web address as it is, and a pipeline of the project with this path. A GitLab on this machine is
/// taken to speak plain HTTP.
#[must_use]
pub fn link(uri: &str, host: &str, project: ProjectId, path: &str) -> Option<String> {
    if uri.starts_with("https://") || uri.starts_with("http://") {
        return Some(uri.to_owned());
    }
    let pipeline = pipeline_of(uri, host, project)?;
    let is_local = host.starts_with("127.0.0.1") || host.starts_with("localhost");
    let scheme = if is_local { "http" } else { "https" };
    Some(format!("{scheme}://{host}/{path}/-/pipelines/{pipeline}"))
}

/// The pipeline of a build, or one that a bridge of it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What the tasks in it begin with; empty for the build's own pipeline.
    pub prefix: String,
    /// How it stands.
    pub standing: Standing,
    /// Its jobs and bridges; none where nobody here may read them.
    pub parts: Option<Parts>,
}

/// What a pipeline consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The newest try of each job.
    pub jobs: Vec<CiJob>,
    /// The newest try of each bridge.
    pub bridges: Vec<Bridge>,
}

impl Run {
    /// The build's own pipeline.
    #[must_use]
    pub fn root(pipeline: &Pipeline, parts: Parts) -> Self {
        Self { prefix: String::new(), standing: pipeline.standing, parts: Some(parts) }
    }

    /// Whether there is a test report to read.
    #[must_use]
    pub fn has_report(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.jobs.iter().any(|job| job.has_report))
    }

    /// The pipelines that its bridges started, each with the prefix of its tasks.
    pub fn children(&self) -> impl Iterator<Item = (String, &Pipeline)> {
        let bridges = self.parts.iter().flat_map(|parts| &parts.bridges);
        bridges.filter_map(|bridge| Some((self.task(&bridge.name) + STEP, bridge.downstream.as_ref()?)))
    }

    /// Whether nothing in it goes on by itself. Later jobs of a pipeline that waits for a person were made, and wait with it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let waits = |standing: Standing| standing.is_over() || (standing == Standing::Created && self.standing == Standing::Manual);
        let parts = self.parts.iter();
        let mut standings =
            parts.flat_map(|parts| parts.jobs.iter().map(|job| job.standing).chain(parts.bridges.iter().map(|b| b.standing)));
        self.standing.is_over() && standings.all(waits)
    }

    fn task(&self, job: &str) -> String {
        format!("{}{}", self.prefix, whole_name(job))
    }
}

/// How a build ended whose pipelines are over. One that waits for a person has failed where a job of it has.
#[must_use]
pub fn outcome(root: &Run) -> Outcome {
    let failed = |standing: Standing, allowed: bool| standing == Standing::Failed && !allowed;
    let parts = root.parts.iter();
    let any = parts.clone().flat_map(|parts| &parts.jobs).any(|job| failed(job.standing, job.allow_failure))
        || parts.flat_map(|parts| &parts.bridges).any(|bridge| failed(bridge.standing, bridge.allow_failure));
    match root.standing {
        Standing::Canceled | Standing::Skipped => Outcome::Cancelled,
        Standing::Failed => Outcome::Failed,
        Standing::Manual if any => Outcome::Failed,
        _ => Outcome::Succeeded,
    }
}

/// Issues of a build, and what they speak for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// The issues, each with what is said of it.
    pub issues: BTreeMap<IssueKey, Option<String>>,
    /// The tasks whose other issues are gone.
    pub covered: BTreeSet<String>,
}

/// Why nobody knows all issues of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Its pipeline was deleted.
    Gone,
    /// It has more pipelines than are read.
    TooManyPipelines,
    /// A test report is larger than what is read.
    ReportTooLarge,
    /// A test report cannot be read.
    ReportBroken,
}

impl Unknown {
    /// The word of logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::TooManyPipelines => "too_many_pipelines",
            Self::ReportTooLarge => "report_too_large",
            Self::ReportBroken => "report_broken",
        }
    }
}

/// The issues of pipelines that are over, each with its report; none for one without.
///
/// # Errors
/// Where not all of them are known.
pub fn findings(runs: &[(Run, Option<TestReport>)]) -> Result<Findings, Unknown> {
    let mut findings = Findings::default();
    for (run, report) in runs {
        let suites = match report {
            None => &[][..],
            Some(TestReport::Read(suites)) => suites,
            Some(TestReport::TooLarge) => return Err(Unknown::ReportTooLarge),
        };
        for (name, jobs) in tasks(run) {
            let suite = suites.iter().find(|suite| suite.name == name);
            findings.add_task(run.task(name), &jobs, suite)?;
        }
        run.parts.iter().flat_map(|parts| &parts.bridges).for_each(|bridge| findings.add_bridge(run, bridge));
    }
    findings.unread(runs);
    Ok(findings)
}

/// The parts of each task.
fn tasks(run: &Run) -> BTreeMap<&str, Vec<&CiJob>> {
    let mut tasks: BTreeMap<&str, Vec<&CiJob>> = BTreeMap::new();
    for job in run.parts.iter().flat_map(|parts| &parts.jobs) {
        tasks.entry(whole_name(&job.name)).or_default().push(job);
    }
    tasks
}

impl Findings {
    fn add_task(&mut self, task: String, jobs: &[&CiJob], suite: Option<&Suite>) -> Result<(), Unknown> {
        let failed = || jobs.iter().filter(|job| job.standing == Standing::Failed);
        if failed().count() > 0 && failed().all(|job| job.allow_failure) {
            return Ok(());
        }
        if suite.is_some_and(|suite| suite.is_broken) {
            return Err(Unknown::ReportBroken);
        }
        let cases = suite.map(|suite| &suite.failing).filter(|cases| !cases.is_empty());
        for case in cases.into_iter().flatten() {
            self.issues.insert(IssueKey::new(&task, unit(case)), detail(case));
        }
        let is_explained = |job: &&CiJob| job.has_report && cases.is_some();
        if let Some(job) = failed().filter(|job| !job.allow_failure).find(|job| !is_explained(job)) {
            self.issues.insert(IssueKey::new(&task, ""), Some(format!("job {} failed", job.id)));
        }
        let speaks =
            |job: &&CiJob| job.standing == Standing::Success || (job.standing == Standing::Failed && job.has_report && suite.is_some());
        if jobs.iter().all(speaks) {
            self.covered.insert(task);
        }
        Ok(())
    }

    /// A bridge speaks of nothing but itself: of its pipeline, the jobs there speak.
    fn add_bridge(&mut self, run: &Run, bridge: &Bridge) {
        let task = run.task(&bridge.name);
        match bridge.standing {
            Standing::Success => drop(self.covered.insert(task)),
            Standing::Failed if bridge.downstream.is_none() && !bridge.allow_failure => {
                self.issues.insert(IssueKey::new(task, ""), Some(format!("job {} started no pipeline", bridge.id)));
            }
            _ => {}
        }
    }

    /// A bridge that failed with a pipeline that nobody here may read.
    fn unread(&mut self, runs: &[(Run, Option<TestReport>)]) {
        for (run, _) in runs.iter().filter(|(run, _)| run.parts.is_none() && run.standing == Standing::Failed) {
            let task = run.prefix.strip_suffix(STEP).unwrap_or(&run.prefix);
            let owner =
                runs.iter().flat_map(|(run, _)| run.parts.iter().flat_map(move |parts| parts.bridges.iter().map(move |b| (run, b))));
            let is_failed = |run: &Run, bridge: &Bridge| run.task(&bridge.name) == task && bridge.standing == Standing::Failed;
            if owner.into_iter().any(|(run, bridge)| is_failed(run, bridge) && !bridge.allow_failure) {
                let what = Some("its pipeline failed and cannot be read here".to_owned());
                self.issues.insert(IssueKey::new(task, ""), what);
            }
        }
    }
}

/// A job's name without the number of its parallel part. Jobs of a matrix, whose names end in brackets, are tasks of their own.
#[must_use]
pub fn whole_name(job: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = job.rsplit_once(' ').and_then(|(name, part)| Some((name, part.split_once('/')?)));
    match part {
        Some((name, (n, m))) if !name.is_empty() && is_number(n) && is_number(m) => name,
        _ => job,
    }
}

/// `class::name`, or either alone.
fn unit(case: &FailingCase) -> String {
    let unit = match (case.class.as_str(), case.name.as_str()) {
        ("", "") => UNNAMED.to_owned(),
        ("", name) => name.to_owned(),
        (class, "") => class.to_owned(),
        (class, name) => format!("{class}::{name}"),
    };
    if unit.chars().count() <= MAX_UNIT {
        return unit;
    }
    let digest = sha256_hex(unit.as_bytes());
    let kept: String = unit.chars().take(MAX_UNIT - 17).collect();
    format!("{kept}~{}", &digest[..16])
}

fn detail(case: &FailingCase) -> Option<String> {
    case.file.as_ref().map(|file| file.chars().take(MAX_FILE).collect())
}

#[cfg(test)]
mod tests;
