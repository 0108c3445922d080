//! What configuration says, as far as use cases need it. Parsed once, at the edge.

use crate::ports::ProjectRef;
use collie_core::ci::RetryRules;
use collie_core::id::{BranchIdentity, ProjectId};
use collie_core::issue::delivery::Limits;
use collie_core::issue::id::QueueName;
use collie_core::mr::wanted::ProjectRules;
use collie_core::policy::Policy;

/// A configured project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its path, as callers write it.
    pub path: String,
    /// Where it is.
    pub at: ProjectRef,
    /// The rules of its merges.
    pub rules: ProjectRules,
    /// What may pass.
    pub policy: Policy,
    /// Which failed CI jobs are retried, and when.
    pub ci_retry: RetryRules,
}

/// A tracked line of builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: QueueName,
    /// The project's path.
    pub project: String,
    /// The branch or tag that is built.
    pub reference: String,
    /// Who finds its builds and their issues.
    pub detector: Detector,
    /// Who repairs what opened.
    pub repair: Repair,
    /// Bounds of its deliveries.
    pub limits: Limits,
}

/// Who finds builds and their issues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detector {
    /// Callers report.
    #[default]
    None,
    /// Collie reads GitLab's pipelines.
    Gitlab,
}

/// Who repairs what opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Nobody.
    #[default]
    None,
    /// A work item of type `issue` for every task.
    WorkItem,
}

/// Settings of the whole service.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Configured projects.
    pub projects: Vec<Project>,
    /// Item types this deployment handles (DDR-25); empty handles nothing.
    pub handled_types: Vec<String>,
    /// Tracked lines of builds.
    pub queues: Vec<Queue>,
    /// Consecutive failures after which an item fails (DDR-14).
    pub max_attempts: u32,
}

impl Settings {
    /// The project with this path.
    #[must_use]
    pub fn project(&self, path: &str) -> Option<&Project> {
        self.projects.iter().find(|p| p.path == path)
    }

    /// The project that an item's branch belongs to.
    #[must_use]
    pub fn project_of(&self, branch: &BranchIdentity) -> Option<&Project> {
        self.project_at(&branch.host, branch.project_id)
    }

    /// The project with this id on this host.
    #[must_use]
    pub fn project_at(&self, host: &str, id: ProjectId) -> Option<&Project> {
        self.projects.iter().find(|p| p.at.id == id && p.at.host == host)
    }

    /// Whether items of this type are handled here.
    #[must_use]
    pub fn handles(&self, item_type: &str) -> bool {
        self.handled_types.iter().any(|t| t == item_type)
    }
}
