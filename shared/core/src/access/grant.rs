//! Grants: what a rule gives. A request is allowed where one whole grant covers it.

use super::glob::Globs;
use super::request::{Labels, Request, Work};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// To submit, and to see and move one's own items.
    Submit(SubmitGrant),
    /// To see items of these projects, whoever submitted them.
    Read {
        /// Project paths.
        projects: Globs,
    },
    /// To report builds and issues of these queues.
    CiReport {
        /// Queues.
        queues: Globs,
    },
    /// To read builds and issues of these queues.
    CiRead {
        /// Queues.
        queues: Globs,
    },
    /// To provision hooks.
    Integrations {
        /// Connections.
        connections: Globs,
        /// Project paths.
        projects: Globs,
    },
    /// To see and move pollers.
    Poll {
        /// Project paths.
        projects: Globs,
    },
    /// Everything. Policy still applies.
    Admin,
}

/// What may be submitted. A call on an item needs the grant that submitting it would need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubmitGrant {
    /// Item types, or `**`.
    pub item_types: Globs,
    /// Project paths.
    pub projects: Globs,
    /// Branches to push to.
    pub source_branches: Globs,
    /// Branches to merge into.
    pub target_branches: Globs,
    /// Labels; a submission may have no others.
    pub labels: Globs,
    /// Whether Collie may be asked to merge.
    pub auto_merge: bool,
    /// Whether what others did may be overwritten.
    pub overwrite: bool,
    /// Whether items of other callers are covered like one's own.
    pub others: bool,
}

impl SubmitGrant {
    /// One's own items everywhere, short of overwriting what others did.
    #[must_use]
    pub fn own_items() -> Self {
        let any = Globs::any;
        Self {
            item_types: any(),
            projects: any(),
            source_branches: any(),
            target_branches: any(),
            labels: any(),
            auto_merge: true,
            overwrite: false,
            others: false,
        }
    }

    fn covers(&self, work: &Work<'_>) -> bool {
        let labelled = match work.labels {
            Labels::Known(labels) => labels.iter().all(|label| self.labels.matches(label)),
            Labels::Unknown => self.labels.is_any(),
        };
        labelled
            && self.item_types.matches(work.item_type)
            && self.projects.matches(work.project)
            && self.source_branches.matches(work.source_branch)
            && self.target_branches.matches(work.target_branch)
            && (self.auto_merge || !work.auto_merge)
            && (self.overwrite || !work.overwrite)
            && (self.others || !work.of_others)
    }
}

impl Grant {
    /// Whether this grant alone covers a request.
    #[must_use]
    pub fn covers(&self, request: &Request<'_>) -> bool {
        match (self, request) {
            (Self::Admin, _) => true,
            (Self::Submit(grant), Request::Submit(work) | Request::Read(work)) => grant.covers(work),
            (Self::Read { projects }, Request::Read(work)) => projects.matches(work.project),
            (Self::CiReport { queues }, Request::CiReport(queue)) | (Self::CiRead { queues }, Request::CiRead(queue)) => {
                queues.matches(queue)
            }
            (Self::Integrations { connections, projects }, Request::Integrations { connection, project }) => {
                connections.matches(connection) && projects.matches(project)
            }
            (Self::Poll { projects }, Request::Poll(project)) => projects.matches(project),
            _ => false,
        }
    }

    /// Whether it lets work items of a project be seen, some of them at least.
    fn shows_project(&self, path: &str) -> bool {
        match self {
            Self::Admin => true,
            Self::Submit(SubmitGrant { projects, .. }) | Self::Read { projects } => projects.matches(path),
            _ => false,
        }
    }
}

/// As the configuration writes it.
impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'g> {
            #[serde(skip_serializing_if = "Option::is_none")]
            queues: Option<&'g Globs>,
            #[serde(skip_serializing_if = "Option::is_none")]
            connections: Option<&'g Globs>,
            #[serde(skip_serializing_if = "Option::is_none")]
            projects: Option<&'g Globs>,
        }
        let of_queues = |queues| Fields { queues: Some(queues), connections: None, projects: None };
        let of_projects = |connections, projects| Fields { queues: None, connections, projects: Some(projects) };
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Submit(grant) => map.serialize_entry("submit", grant)?,
            Self::Read { projects } => map.serialize_entry("read", &of_projects(None, projects))?,
            Self::CiReport { queues } => map.serialize_entry("ci_report", &of_queues(queues))?,
            Self::CiRead { queues } => map.serialize_entry("ci_read", &of_queues(queues))?,
            Self::Integrations { connections, projects } => {
                map.serialize_entry("integrations", &of_projects(Some(connections), projects))?;
            }
            Self::Poll { projects } => map.serialize_entry("poll", &of_projects(None, projects))?,
            Self::Admin => map.serialize_entry("admin", &true)?,
        }
        map.end()
    }
}

/// All grants of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// These grants.
    #[must_use]
    pub const fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    /// What a local token gives that is no admin's.
    #[must_use]
    pub fn own_items() -> Self {
        Self(vec![Grant::Submit(SubmitGrant::own_items())])
    }

    /// What an admin has.
    #[must_use]
    pub fn admin() -> Self {
        Self(vec![Grant::Admin])
    }

    /// One by one.
    #[must_use]
    pub fn as_slice(&self) -> &[Grant] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one whole grant covers a request.
    #[must_use]
    pub fn covers(&self, request: &Request<'_>) -> bool {
        self.cover_together(&[*request])
    }

    /// Whether one whole grant covers all of these requests: two sides of one call.
    #[must_use]
    pub fn cover_together(&self, requests: &[Request<'_>]) -> bool {
        self.0.iter().any(|grant| requests.iter().all(|request| grant.covers(request)))
    }

    /// Whether something may be submitted, wherever it may be.
    #[must_use]
    pub fn can_submit(&self) -> bool {
        self.0.iter().any(|grant| matches!(grant, Grant::Submit(_) | Grant::Admin))
    }

    /// Whether builds and issues may be reported to a queue.
    #[must_use]
    pub fn may_report(&self, queue: &str) -> bool {
        self.covers(&Request::CiReport(queue))
    }

    /// Whether builds and issues of a queue may be read. Reporting to it is another matter.
    #[must_use]
    pub fn may_read_queue(&self, queue: &str) -> bool {
        self.covers(&Request::CiRead(queue))
    }

    /// Whether some work items of a project may be seen.
    #[must_use]
    pub fn show_project(&self, path: &str) -> bool {
        self.0.iter().any(|grant| grant.shows_project(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_reported_to_and_read_by_grants_of_their_own() {
        let queues = || Globs::new(["app-*", "main"]);
        let report = || Grant::CiReport { queues: queues() };
        let read = || Grant::CiRead { queues: queues() };
        let of_projects = || Grant::Read { projects: Globs::any() };
        let cases = [
            (vec![report()], "app-main", (true, false)),
            (vec![report()], "main", (true, false)),
            (vec![report()], "APP-main", (false, false)),
            (vec![read()], "app-main", (false, true)),
            (vec![read()], "other", (false, false)),
            (vec![report(), read()], "app-main", (true, true)),
            (vec![of_projects(), Grant::Submit(SubmitGrant::own_items())], "app-main", (false, false)),
            (vec![Grant::Admin], "other", (true, true)),
            (vec![], "app-main", (false, false)),
        ];
        for (grants, queue, (reports, reads)) in cases {
            let grants = Grants::new(grants);
            assert_eq!((grants.may_report(queue), grants.may_read_queue(queue)), (reports, reads), "{grants:?} of {queue}");
        }
    }
}
