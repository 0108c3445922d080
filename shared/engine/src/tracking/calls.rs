//! What callers write. Each call reads, decides ([`collie_core::issue::call`]) and writes on what was read; where others were faster it
//! does so again, a few times.

use super::Tracking;
use crate::ports::Written;
use collie_core::error::{Class, Failure};
use collie_core::issue::call::{self, MAX_CHUNK, Refusal};
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Analysis, Build, Issue, Outcome, QueueHead, Request, RowKey, UriClaim};
use collie_core::issue::table::Edit;
use std::collections::{BTreeMap, BTreeSet};

const ROUNDS: u32 = 5;

/// Why a call did nothing, or not all.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// There is no such request.
    #[error("the queue has no such request")]
    NoRequest,
    /// There is no such build.
    #[error("no request of the queue has this build")]
    NoBuild,
    /// There is no such issue.
    #[error("the queue has no such issue")]
    NoIssue,
    /// The rows do not allow it.
    #[error("{0}")]
    Refused(Refusal),
    /// The analysis ended while issues were being reported; this many had been taken.
    #[error("the build's analysis has ended; {0} of the issues were taken before")]
    EndedAfter(usize),
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// An admitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Its number.
    pub id: RequestId,
    /// Whether it is new; a uri is admitted once.
    pub is_new: bool,
}

/// Issues of one report.
pub type Reported = BTreeMap<IssueKey, Option<String>>;

impl Tracking {
    /// Admits a uri, in the order of these calls.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn admit(&self, queue: &QueueName, uri: &str) -> Result<Admitted, Error> {
        for _ in 0..ROUNDS {
            let head = self.head(queue).await?;
            if let Some(admitted) = self.admit_behind(queue, uri, head.as_ref()).await? {
                return Ok(admitted);
            }
        }
        Err(contended())
    }

    /// Admits a uri right behind what its caller has seen; none where something else was admitted since.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn admit_behind(&self, queue: &QueueName, uri: &str, seen: Option<&QueueHead>) -> Result<Option<Admitted>, Error> {
        if let Some(claim) = self.row::<UriClaim>(queue, &RowKey::uri(uri)).await? {
            return Ok(Some(Admitted { id: claim.request, is_new: false }));
        }
        let (id, edits) = call::admit(seen, uri, self.ports.clock.now())?;
        if !self.wrote(queue, &edits).await? {
            return Ok(None);
        }
        self.ring(queue, id).await;
        Ok(Some(Admitted { id, is_new: true }))
    }

    /// What was admitted last.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn head(&self, queue: &QueueName) -> Result<Option<QueueHead>, Failure> {
        self.row(queue, &RowKey::head()).await
    }

    /// Gives a request its build.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn associate(&self, queue: &QueueName, request: RequestId, build: &BuildId) -> Result<Request, Error> {
        for _ in 0..ROUNDS {
            let found = self.request(queue, request).await?;
            let build_row = self.row::<Build>(queue, &RowKey::build(build)).await?;
            let edits = call::associate(&found, build_row.as_ref(), build)?;
            if self.wrote(queue, &edits).await? {
                self.ports.jobs.hurry(queue);
                return self.request(queue, request).await;
            }
        }
        Err(contended())
    }

    /// Ends a request and its build. The first outcome counts.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn conclude(&self, queue: &QueueName, request: RequestId, outcome: Outcome) -> Result<Request, Error> {
        for _ in 0..ROUNDS {
            let found = self.request(queue, request).await?;
            let edits = call::conclude(&found, outcome, self.ports.clock.now());
            if edits.is_empty() {
                return Ok(found);
            }
            if self.wrote(queue, &edits).await? {
                self.ports.jobs.hurry(queue);
                return self.request(queue, request).await;
            }
        }
        Err(contended())
    }

    /// Takes issues of a build, and says how many. Those that are known stay as they are.
    ///
    /// # Errors
    /// [`Error`] says why not; [`Error::EndedAfter`] how many were taken before.
    pub async fn report(&self, queue: &QueueName, build: &BuildId, issues: &Reported) -> Result<usize, Error> {
        self.open_build(queue, build, 0).await?;
        let (mut taken, mut rest) = (0, issues.iter().peekable());
        while rest.peek().is_some() {
            let chunk: Reported = rest.by_ref().take(MAX_CHUNK).map(|(key, detail)| (key.clone(), detail.clone())).collect();
            self.report_chunk(queue, build, &chunk, taken).await?;
            taken += chunk.len();
        }
        Ok(taken)
    }

    async fn report_chunk(&self, queue: &QueueName, build: &BuildId, chunk: &Reported, taken: usize) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            if self.wrote(queue, &call::report(build, chunk, self.ports.clock.now())).await? {
                return Ok(());
            }
            self.open_build(queue, build, taken).await?;
        }
        Err(contended())
    }

    /// The build, if its issues may still be reported.
    async fn open_build(&self, queue: &QueueName, build: &BuildId, taken: usize) -> Result<Build, Error> {
        let found = self.build(queue, build).await?;
        if found.analysis == Analysis::Open { Ok(found) } else { Err(Error::EndedAfter(taken)) }
    }

    /// Ends the analysis of a build: its issues are then frozen.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn end_analysis(
        &self,
        queue: &QueueName,
        build: &BuildId,
        ended: Analysis,
        covered: Option<BTreeSet<String>>,
    ) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let found = self.build(queue, build).await?;
            let edits = call::end_analysis(&found, ended, covered.clone(), self.ports.clock.now())?;
            if self.wrote(queue, &edits).await? {
                self.ports.jobs.hurry(queue);
                return Ok(());
            }
        }
        Err(contended())
    }

    /// Changes what hooks keep with an issue, if it still has the version that they saw. Tells nobody.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn edit_metadata(
        &self,
        queue: &QueueName,
        key: &IssueKey,
        version: u64,
        set: &BTreeMap<String, String>,
        remove: &[String],
    ) -> Result<Issue, Error> {
        let issue = self.row::<Issue>(queue, &RowKey::issue(key)).await?.ok_or(Error::NoIssue)?;
        let (next, edits) = call::edit_metadata(&issue, version, set, remove)?;
        if self.wrote(queue, &edits).await? { Ok(next) } else { Err(Refusal::OtherVersion.into()) }
    }

    async fn request(&self, queue: &QueueName, id: RequestId) -> Result<Request, Error> {
        self.row(queue, &RowKey::request(id)).await?.ok_or(Error::NoRequest)
    }

    async fn build(&self, queue: &QueueName, id: &BuildId) -> Result<Build, Error> {
        self.row(queue, &RowKey::build(id)).await?.ok_or(Error::NoBuild)
    }

    async fn wrote(&self, queue: &QueueName, edits: &[Edit]) -> Result<bool, Failure> {
        Ok(edits.is_empty() || self.ports.rows.write(queue, edits).await? == Written::Yes)
    }

    /// A doorbell that cannot be rung costs time only: the schedule finds the job.
    async fn ring(&self, queue: &QueueName, job: RequestId) {
        if let Err(failure) = self.ports.jobs.ring(queue, job, "admitted").await {
            tracing::warn!(%queue, request = %job, code = failure.code, "the job is not rung for; the schedule will find it");
        }
    }
}

fn contended() -> Error {
    let message = "others keep writing to this queue; send the same request again";
    Failure::new(Class::Transient { answered: true }, "store_contended", message).into()
}
