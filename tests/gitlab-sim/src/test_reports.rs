//! JUnit reports of jobs, and what GitLab makes of a pipeline's: `…/test_report`, `…/test_report_summary`.
//!
//! A suite is called as its job without ` n/m`, so that parallel parts share one. Only newest tries count. A suite of which one
//! report cannot be read says so in `suite_error` and shows no cases and no numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::Call;
use crate::pipeline_run::latest_jobs;
use crate::pipelines::Job;
use crate::reply::{Answer, Reply, no_record};
use crate::state::State;

/// How a test case ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseStatus {
    /// It broke.
    Error,
    /// It failed.
    Failed,
    /// It went well.
    #[default]
    Success,
    /// It did not run.
    Skipped,
}

/// A test case of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JunitCase {
    /// Its name.
    pub name: String,
    /// Its class.
    pub classname: String,
    /// How it ended.
    pub status: CaseStatus,
    /// Its file.
    pub file: Option<String>,
    /// How long it ran, in seconds.
    pub execution_time: f64,
    /// What it printed.
    pub system_output: Option<String>,
}

impl JunitCase {
    /// A case that failed.
    pub fn failed(classname: &str, name: &str) -> Self {
        Self { status: CaseStatus::Failed, ..Self::success(classname, name) }
    }

    /// A case that went well.
    pub fn success(classname: &str, name: &str) -> Self {
        Self { name: name.to_owned(), classname: classname.to_owned(), ..Self::default() }
    }
}

/// The JUnit report that a job uploads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JunitReport {
    /// Its cases.
    pub cases: Vec<JunitCase>,
    /// GitLab cannot read it, for this reason.
    pub suite_error: Option<String>,
    /// Its first case prints as much as this on top.
    pub padding_bytes: usize,
}

impl JunitReport {
    /// A report with these cases.
    pub fn of(cases: impl IntoIterator<Item = JunitCase>) -> Self {
        Self { cases: cases.into_iter().collect(), ..Self::default() }
    }

    /// A report that is no XML.
    pub fn broken() -> Self {
        Self { suite_error: Some("JUnit XML parsing failed: 1:1: FATAL: Document is empty".to_owned()), ..Self::default() }
    }

    pub(crate) fn stored_bytes(&self) -> usize {
        128 * self.cases.len() + self.padding_bytes
    }

    /// The cases as they are uploaded.
    fn uploaded(&self) -> impl Iterator<Item = JunitCase> + '_ {
        let padded = move |(index, case): (usize, &JunitCase)| {
            let mut case = case.clone();
            if index == 0 && self.padding_bytes > 0 {
                case.system_output = Some(case.system_output.unwrap_or_default() + &"x".repeat(self.padding_bytes));
            }
            case
        };
        self.cases.iter().enumerate().map(padded)
    }
}

/// A suite of a pipeline's report.
#[derive(Default)]
struct Suite {
    name: String,
    jobs: Vec<u64>,
    error: Option<String>,
    /// By class, name and file: a case that is there twice is shown as it was last.
    cases: BTreeMap<(String, String, Option<String>), JunitCase>,
}

impl Suite {
    fn add(&mut self, job: &Job) {
        let Some(report) = &job.report else { return };
        self.jobs.push(job.id);
        self.error = self.error.take().or_else(|| report.suite_error.clone());
        let keyed = report.uploaded().map(|case| ((case.classname.clone(), case.name.clone(), case.file.clone()), case));
        self.cases.extend(keyed);
    }

    /// Errors first, then failures; the slowest first among each.
    fn shown(&self) -> Vec<&JunitCase> {
        let mut cases: Vec<&JunitCase> = self.cases.values().filter(|_| self.error.is_none()).collect();
        cases.sort_by(|a, b| a.status.cmp(&b.status).then(b.execution_time.total_cmp(&a.execution_time)));
        cases
    }

    fn count(&self, status: CaseStatus) -> usize {
        self.shown().iter().filter(|case| case.status == status).count()
    }

    fn seconds(&self) -> f64 {
        self.cases.values().map(|case| case.execution_time).sum()
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name, "total_time": self.seconds(), "total_count": self.shown().len(),
            "success_count": self.count(CaseStatus::Success), "failed_count": self.count(CaseStatus::Failed),
            "skipped_count": self.count(CaseStatus::Skipped), "error_count": self.count(CaseStatus::Error), "suite_error": self.error,
        })
    }

    fn detail(&self) -> Value {
        let mut body = self.json();
        body["test_cases"] = self.shown().into_iter().map(case_json).collect();
        body
    }

    fn summary(&self) -> Value {
        let mut body = self.json();
        body["build_ids"] = json!(self.jobs);
        body
    }
}

fn case_json(case: &JunitCase) -> Value {
    json!({
        "status": case.status, "name": case.name, "classname": case.classname, "file": case.file, "execution_time": case.execution_time,
        "system_output": case.system_output, "stack_trace": null, "recent_failures": null,
    })
}

/// A job's name without the number of its parallel part.
fn suite_name(job: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = job.rsplit_once(' ').and_then(|(name, part)| Some((name, part.split_once('/')?)));
    match part {
        Some((name, (n, m))) if is_number(n) && is_number(m) => name,
        _ => job,
    }
}

fn suites(state: &State, call: &Call) -> Result<Vec<Suite>, Reply> {
    let project = call.project(state)?;
    let id = call.number("pipeline_id")?;
    project.pipelines.get(&id).ok_or_else(no_record)?;
    let mut suites: BTreeMap<&str, Suite> = BTreeMap::new();
    for job in latest_jobs(project, id).into_iter().filter(|job| job.report.is_some()) {
        let name = suite_name(&job.name);
        suites.entry(name).or_insert_with(|| Suite { name: name.to_owned(), ..Suite::default() }).add(job);
    }
    Ok(suites.into_values().collect())
}

fn total(suites: &[Suite], status: CaseStatus) -> usize {
    suites.iter().map(|suite| suite.count(status)).sum()
}

/// `GET …/pipelines/:pipeline_id/test_report`
pub(crate) fn report(state: &mut State, call: &Call) -> Answer {
    let suites = suites(state, call)?;
    let body = json!({
        "total_time": suites.iter().map(Suite::seconds).sum::<f64>(), "total_count": suites.iter().map(|suite| suite.shown().len()).sum::<usize>(),
        "success_count": total(&suites, CaseStatus::Success), "failed_count": total(&suites, CaseStatus::Failed),
        "skipped_count": total(&suites, CaseStatus::Skipped), "error_count": total(&suites, CaseStatus::Error),
        "test_suites": suites.iter().map(Suite::detail).collect::<Vec<Value>>(),
    });
    Ok(Reply::json(200, &body))
}

/// `GET …/pipelines/:pipeline_id/test_report_summary`
pub(crate) fn summary(state: &mut State, call: &Call) -> Answer {
    let suites = suites(state, call)?;
    let body = json!({
        "total": {
            "time": suites.iter().map(Suite::seconds).sum::<f64>(), "count": suites.iter().map(|suite| suite.shown().len()).sum::<usize>(),
            "success": total(&suites, CaseStatus::Success), "failed": total(&suites, CaseStatus::Failed),
            "skipped": total(&suites, CaseStatus::Skipped), "error": total(&suites, CaseStatus::Error),
            "suite_error": suites.iter().find_map(|suite| suite.error.clone()),
        },
        "test_suites": suites.iter().map(Suite::summary).collect::<Vec<Value>>(),
    });
    Ok(Reply::json(200, &body))
}

#[cfg(test)]
mod tests {
    use super::suite_name;

    #[test]
    fn parallel_parts_share_a_suite_and_others_keep_their_name() {
        let table = [
            ("unit 1/3", "unit"),
            ("unit tests 12/30", "unit tests"),
            ("unit: [a, b]", "unit: [a, b]"),
            ("1/3", "1/3"),
            ("a b/2", "a b/2"),
        ];
        for (job, suite) in table {
            assert_eq!(suite_name(job), suite);
        }
    }
}
