//! Which failed jobs of a pipeline are retried, and when.
//!
//! 1. Only the head pipeline of an open merge request whose head is ours ([`pipeline_of`]).
//! 2. Of each name only the latest try, if it failed and its failure counts.
//! 3. Only what a rule names; the first rule that does decides.
//! 4. With n earlier tries of that name, `delays[n]` after the end of the latest; past the list it is recorded, and no more.
//! 5. A log that is not complete is looked at again soon, and as it is once the job has been over for a minute.
//!
//! A plan is worked out twice where logs are needed: first it says which, then it has them judged.

use super::config::RetryRules;
use super::matcher::JobFields;
use crate::id::{JobId, Sha};
use crate::mr::view::{Job, MergeRequest, Pipeline, State};
use crate::time::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Jobs of one pipeline that are looked at.
pub const MAX_JOBS: usize = 50;
/// Bytes of the jobs that a row records: most of the 6 KB that they share with the inbox, and enough for fifty plain ones.
pub const MAX_RECORD_BYTES: usize = 4 << 10;
/// How long after a job's end its log may still lack lines.
const SETTLES_AFTER: Duration = Duration::from_secs(60);
/// How soon a log that is not complete is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Characters of a job's name in a text.
const NAME_SHOWN: usize = 40;

/// Why nothing of a merge request's pipeline is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// It is merged, closed, or being merged.
    NotOpen,
    /// Its head is not the commit that Collie made.
    ForeignHead,
    /// It has no pipeline.
    NoPipeline,
    /// Its pipeline ran for an earlier head.
    OldPipeline,
}

impl Halt {
    /// For people.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::NotOpen => "the merge request is not open any more",
            Self::ForeignHead => "the head of the merge request is not the one that Collie made",
            Self::NoPipeline => "there is no pipeline",
            Self::OldPipeline => "the pipeline ran for an earlier head",
        }
    }
}

/// The pipeline whose jobs may be retried.
///
/// # Errors
/// Why there is none.
pub fn pipeline_of<'m>(mr: &'m MergeRequest, verified_head: Option<&Sha>) -> Result<&'m Pipeline, Halt> {
    if mr.state != State::Opened {
        return Err(Halt::NotOpen);
    }
    if mr.sha.is_none() || mr.sha.as_ref() != verified_head {
        return Err(Halt::ForeignHead);
    }
    let pipeline = mr.head_pipeline.as_ref().ok_or(Halt::NoPipeline)?;
    // What runs on a merged result runs for a commit of its own.
    let on_head = !(pipeline.git_ref.ends_with("/merge") || pipeline.git_ref.ends_with("/train"));
    if on_head && mr.sha.as_ref() != Some(&pipeline.sha) {
        return Err(Halt::OldPipeline);
    }
    Ok(pipeline)
}

/// Which rule names a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// This one.
    Rule(String),
    /// None.
    NoRule,
    /// Only its log can tell.
    NeedsTrace,
    /// Its log is not complete.
    Undecided,
    /// GitLab does not retry it.
    Refused,
}

/// What has been found out about tries, so that no log is read twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged(BTreeMap<JobId, Judgement>);

/// How a row names what is no rule; rules' names have no slash.
const NO_RULE: &str = "/none";
const REFUSED: &str = "/refused";

impl Judged {
    /// What a row remembers.
    #[must_use]
    pub fn read(detail: Option<&Value>) -> Self {
        let by_rule = detail.and_then(|detail| detail.get("judged")).and_then(Value::as_object);
        let rows = by_rule.into_iter().flatten().flat_map(|(name, ids)| {
            let ids = ids.as_array().map(Vec::as_slice).unwrap_or_default();
            ids.iter().filter_map(Value::as_u64).map(|id| (JobId(id), judgement_named(name)))
        });
        Self(rows.collect())
    }

    /// Notes what was found out.
    pub fn note(&mut self, job: JobId, judgement: Judgement) {
        self.0.insert(job, judgement);
    }

    /// What a row is to remember of these jobs.
    fn document(&self, jobs: &[JobPlan]) -> Value {
        let mut by_rule = BTreeMap::<&str, Vec<u64>>::new();
        for job in jobs {
            let name = match self.0.get(&job.id) {
                Some(Judgement::Rule(name)) => name,
                Some(Judgement::NoRule) => NO_RULE,
                Some(Judgement::Refused) => REFUSED,
                _ => continue,
            };
            by_rule.entry(name).or_default().push(job.id.0);
        }
        json!(by_rule)
    }
}

fn judgement_named(name: &str) -> Judgement {
    match name {
        NO_RULE => Judgement::NoRule,
        REFUSED => Judgement::Refused,
        rule => Judgement::Rule(rule.to_owned()),
    }
}

/// What becomes of one failed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is retried now.
    Retry,
    /// It is retried, not before this.
    Wait {
        /// Its own end, and the rule's delay.
        until: Timestamp,
    },
    /// It was tried as often as its rule allows.
    Exhausted,
    /// No rule names it.
    NoRule,
    /// GitLab does not retry it.
    Refused,
    /// Its log is needed.
    ReadTrace,
    /// Its log is not complete.
    LookAgain {
        /// When it is looked at again.
        until: Timestamp,
    },
}

/// One failed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlan {
    /// The latest try.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its stage.
    pub stage: String,
    /// Why it failed.
    pub failure_reason: String,
    /// Earlier tries of that name.
    pub earlier: usize,
    /// The rule that names it.
    pub rule: Option<String>,
    /// What becomes of it.
    pub step: Step,
    /// Whether nothing will be added to its log.
    pub is_settled: bool,
}

/// What becomes of the failed jobs of a pipeline, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The jobs.
    pub jobs: Vec<JobPlan>,
}

/// Decides for a pipeline of which `tries` are all tries of all jobs, in any order.
#[must_use]
pub fn decide(rules: &RetryRules, tries: &[Job], judged: &Judged, now: Timestamp) -> Plan {
    let mut names = HashMap::<&str, (usize, &Job)>::new();
    for job in tries {
        let (count, latest) = names.entry(&job.name).or_insert((0, job));
        *count += 1;
        if job.id > latest.id {
            *latest = job;
        }
    }
    let mut failed: Vec<_> = names.into_values().filter(|(_, job)| job.status == "failed" && !job.allow_failure).collect();
    failed.sort_unstable_by_key(|(_, job)| job.id);
    let jobs = failed.into_iter().take(MAX_JOBS).map(|(count, job)| plan_of(rules, job, count - 1, judged, now));
    Plan { jobs: jobs.collect() }
}

fn plan_of(rules: &RetryRules, job: &Job, earlier: usize, judged: &Judged, now: Timestamp) -> JobPlan {
    let known = judged.0.get(&job.id).filter(|known| !matches!(known, Judgement::Rule(name) if rules.get(name).is_none()));
    let judgement = known.cloned().unwrap_or_else(|| rules.judge(&fields(job), None));
    // GitLab always says when a job failed; what has no end is over.
    let ended = job.finished_at.unwrap_or_default();
    let settles = ended.after(SETTLES_AFTER);
    let step = match &judgement {
        Judgement::Rule(name) => retry_step(rules, name, earlier, ended, now),
        Judgement::NoRule => Step::NoRule,
        Judgement::Refused => Step::Refused,
        Judgement::NeedsTrace => Step::ReadTrace,
        Judgement::Undecided => Step::LookAgain { until: now.after(LOOK_AGAIN).min(settles.max(now.after(Duration::from_secs(1)))) },
    };
    let rule = if let Judgement::Rule(name) = judgement { Some(name) } else { None };
    let (name, stage) = (job.name.clone(), job.stage.clone());
    let failure_reason = job.failure_reason.clone().unwrap_or_default();
    JobPlan { id: job.id, name, stage, failure_reason, earlier, rule, step, is_settled: now >= settles }
}

fn retry_step(rules: &RetryRules, name: &str, earlier: usize, ended: Timestamp, now: Timestamp) -> Step {
    let delay = rules.get(name).and_then(|rule| rule.delays().get(earlier));
    match delay.map(|&delay| ended.after(delay)) {
        None => Step::Exhausted,
        Some(until) if until > now => Step::Wait { until },
        Some(_) => Step::Retry,
    }
}

/// What rules see of a job.
#[must_use]
pub fn fields(job: &Job) -> JobFields<'_> {
    let failure_reason = job.failure_reason.as_deref().unwrap_or_default();
    JobFields { job_name: &job.name, stage: &job.stage, failure_reason, status: &job.status }
}

impl Plan {
    /// The jobs whose log is needed.
    pub fn unread(&self) -> impl Iterator<Item = &JobPlan> {
        self.jobs.iter().filter(|job| job.step == Step::ReadTrace)
    }

    /// The jobs to retry now.
    pub fn due(&self) -> impl Iterator<Item = &JobPlan> {
        self.jobs.iter().filter(|job| job.step == Step::Retry)
    }

    /// Notes that GitLab does not retry a job, and says so.
    pub fn refuse(&mut self, id: JobId, judged: &mut Judged, why: &str) -> String {
        judged.note(id, Judgement::Refused);
        let mut said = String::new();
        for job in self.jobs.iter_mut().filter(|job| job.id == id) {
            job.step = Step::Refused;
            said = format!("{}: {why}", job.text());
        }
        said
    }

    /// When the next of them is to be looked at, and why; none where nothing more will be done.
    #[must_use]
    pub fn next_look(&self, now: Timestamp) -> Option<(Timestamp, String)> {
        let looks = self.jobs.iter().filter_map(|job| job.next_look(now).map(|at| (at, job)));
        looks.min_by_key(|(at, job)| (*at, job.id)).map(|(at, job)| (at, job.text()))
    }

    /// What the row records: why, the jobs as far as they fit, and what was found out.
    #[must_use]
    pub fn record(&self, why: &str, judged: &Judged) -> Value {
        let mut room = MAX_RECORD_BYTES;
        let rows = self.jobs.iter().map(JobPlan::row).take_while(|row| {
            let size = row.to_string().len() + 1;
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        let rows: Vec<_> = rows.collect();
        json!({ "why": why, "jobs": rows, "judged": judged.document(&self.jobs) })
    }
}

impl JobPlan {
    fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        match self.step {
            Step::Wait { until } | Step::LookAgain { until } => Some(until),
            Step::ReadTrace | Step::Retry => Some(now.after(Duration::from_secs(1))),
            Step::Exhausted | Step::NoRule | Step::Refused => None,
        }
    }

    /// Its name, short and harmless.
    #[must_use]
    pub fn shown_name(&self) -> String {
        self.name.chars().take(NAME_SHOWN).collect::<String>().escape_debug().to_string()
    }

    /// What becomes of it, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let (name, rule) = (self.shown_name(), self.rule.as_deref().unwrap_or_default());
        match self.step {
            Step::Retry => format!("{name} is retried by rule {rule}"),
            Step::Wait { .. } => format!("retry delay of {name} by rule {rule}, after try {}", self.earlier + 1),
            Step::Exhausted => format!("{name} was tried {} times, no more by rule {rule}", self.earlier + 1),
            Step::NoRule => format!("no rule retries {name}"),
            Step::Refused => format!("GitLab does not retry {name}"),
            Step::ReadTrace => format!("the log of {name} is to be read"),
            Step::LookAgain { .. } => format!("the log of {name} is not complete yet"),
        }
    }

    /// As a row records it; what is read back of it is a failed job.
    fn row(&self) -> Value {
        let cut = |text: &str| text.chars().take(2 * NAME_SHOWN).collect::<String>();
        json!({ "id": self.id, "name": cut(&self.name), "stage": cut(&self.stage), "failure_reason": cut(&self.failure_reason),
            "retry": self.text() })
    }
}

#[cfg(test)]
mod tests;
