//! What CI says of a pipeline, as far as detection needs it: how it stands, its jobs and bridges, its test report.

use crate::id::{JobId, PipelineId, ProjectId};
use std::collections::BTreeSet;

/// How a pipeline or a job stands. Words that nobody knows count as going on: the careful reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It goes on by itself.
    Active,
    /// Made, and its turn has not come; it does not in a pipeline that waits for a person.
    Created,
    /// It waits for a person.
    Manual,
    /// It went well.
    Success,
    /// It failed.
    Failed,
    /// It was stopped.
    Canceled,
    /// It was never to run.
    Skipped,
}

impl Standing {
    /// Reads GitLab's word.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        match word {
            "created" => Self::Created,
            "manual" => Self::Manual,
            "success" => Self::Success,
            "failed" => Self::Failed,
            "canceled" => Self::Canceled,
            "skipped" => Self::Skipped,
            _ => Self::Active,
        }
    }

    /// Whether a pipeline that stands so goes on only if a person lets it.
    #[must_use]
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Active | Self::Created)
    }
}

/// A pipeline, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Its project.
    pub project: ProjectId,
    /// Its number.
    pub id: PipelineId,
    /// What made it, verbatim.
    pub source: String,
    /// How it stands.
    pub standing: Standing,
}

impl Pipeline {
    /// Whether it is a build of its ref: not the child of another pipeline, and not a merge request's.
    #[must_use]
    pub fn is_of_its_ref(&self) -> bool {
        !matches!(self.source.as_str(), "parent_pipeline" | "merge_request_event")
    }
}

/// The newest try of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiJob {
    /// The try.
    pub id: JobId,
    /// Its name, ` n/m` of a parallel part included.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// Whether its failure does not fail the pipeline.
    pub allow_failure: bool,
    /// Whether it left a test report.
    pub has_report: bool,
}

/// The newest try of a job that only starts another pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// The try.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// Whether its failure does not fail the pipeline.
    pub allow_failure: bool,
    /// The pipeline that it started.
    pub downstream: Option<Pipeline>,
}

/// The report of one name: all parallel parts of a job together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suite {
    /// The job's name without ` n/m`.
    pub name: String,
    /// Whether a part of it cannot be read, so that nothing is known of its cases.
    pub is_broken: bool,
    /// The cases that did not go well, by class and name.
    pub failing: BTreeSet<FailingCase>,
}

/// A test case that did not go well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailingCase {
    /// Its class, which may be empty.
    pub class: String,
    /// Its name, which may be empty.
    pub name: String,
    /// Its file, where the report says so.
    pub file: Option<String>,
}

/// A pipeline's test report, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestReport {
    /// Every suite.
    Read(Vec<Suite>),
    /// It is larger than what is read of one.
    TooLarge,
}
