//! What everybody reads of a queue. Reads repair nothing and tell nobody.

use super::Tracking;
use super::calls::Error;
use collie_core::error::Failure;
use collie_core::issue::call::Coverage;
use collie_core::issue::detect;
use collie_core::issue::id::{BuildId, QueueName, RequestId, Source};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{
    Build, BuildIssue, Checkpoint, Event, Finding, HistoryEntry, Issue, Job, LogEntry, OpenMark, Request, RequestIssue, Row, RowKey, Set,
    Status,
};
use collie_core::issue::table::Range;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// Rows looked at for one page of a filtered list before it ends early, with a cursor.
const MAX_LOOKS: usize = 1_000;
/// Rows read side by side.
const AT_ONCE: usize = 10;

/// A page, and where the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// In order.
    pub items: Vec<T>,
    /// The place to pass as `after` for the next page.
    pub next: Option<String>,
}

/// What a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paging {
    /// Only what is behind this place.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// Where a queue's tracking stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The checkpoint; none before the first build.
    pub checkpoint: Option<Checkpoint>,
    /// The oldest job; none where everything is tracked.
    pub oldest: Option<Job>,
}

impl Tracking {
    /// Issues whose task begins so, by key: the open ones, the closed ones, or all.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn issues(
        &self,
        queue: &QueueName,
        status: Option<Status>,
        task_prefix: &str,
        paging: Paging,
    ) -> Result<Listed<Issue>, Failure> {
        let prefix = IssueKey::encoded_prefix(task_prefix);
        match status {
            Some(Status::Open) => self.open_issues(queue, prefix, paging).await,
            _ => self.listed(queue, Set::Issues, prefix, paging, |issue: &Issue| status.is_none_or(|status| status == issue.status)).await,
        }
    }

    /// The marks say where to look; what is, the rows say.
    async fn open_issues(&self, queue: &QueueName, prefix: String, paging: Paging) -> Result<Listed<Issue>, Failure> {
        let marks = self.listed(queue, Set::Open, prefix, paging, |_: &OpenMark| true).await?;
        let issues = self.rows_at(queue, marks.items.iter().map(|mark| RowKey::issue(&mark.key))).await?;
        let open = issues.into_iter().filter(|issue: &Issue| issue.status == Status::Open).collect();
        Ok(Listed { items: open, next: marks.next })
    }

    /// Open issues of one task, by unit.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn openings_of(&self, queue: &QueueName, task: &str, paging: Paging) -> Result<Listed<Issue>, Failure> {
        self.open_issues(queue, IssueKey::encoded_task(task), paging).await
    }

    /// One issue.
    ///
    /// # Errors
    /// [`Error::NoIssue`], or the store's.
    pub async fn issue(&self, queue: &QueueName, key: &IssueKey) -> Result<Issue, Error> {
        self.row(queue, &RowKey::issue(key)).await?.ok_or(Error::NoIssue)
    }

    /// The openings and closings of an issue, oldest request first.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn issue_history(&self, queue: &QueueName, key: &IssueKey, paging: Paging) -> Result<Listed<LogEntry>, Failure> {
        self.listed(queue, Set::Log(key.clone()), String::new(), paging, |entry: &LogEntry| entry.event != Event::Reported).await
    }

    /// One entry of an issue's log.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn log_entry(&self, queue: &QueueName, key: &IssueKey, build: &BuildId, event: Event) -> Result<Option<LogEntry>, Failure> {
        let Some(found) = self.row::<Build>(queue, &RowKey::build(build)).await? else { return Ok(None) };
        self.row(queue, &RowKey::log(key, &found.source(), event)).await
    }

    /// What a request meant for each issue, and how far that is known.
    ///
    /// # Errors
    /// [`Error::NoRequest`], or the store's.
    pub async fn request_issues(
        &self,
        queue: &QueueName,
        request: RequestId,
        result: Option<Finding>,
        paging: Paging,
    ) -> Result<(Listed<RequestIssue>, Coverage), Error> {
        let history = self.request_history(queue, request).await?;
        let set = Set::RequestIssues(request);
        let wanted = |issue: &RequestIssue| result.is_none_or(|result| result == issue.result);
        let issues = self.listed(queue, set, String::new(), paging, wanted).await?;
        Ok((issues, Coverage::of(history.iter().map(|entry| &entry.milestone))))
    }

    /// What happened to a request, in order of time; at most a handful of entries.
    ///
    /// # Errors
    /// [`Error::NoRequest`], or the store's.
    pub async fn request_history(&self, queue: &QueueName, request: RequestId) -> Result<Vec<HistoryEntry>, Error> {
        self.tracked_request(queue, request).await?;
        let paging = Paging { after: None, limit: MAX_LOOKS };
        let mut entries = self.listed(queue, Set::History(request), String::new(), paging, |_: &HistoryEntry| true).await?.items;
        entries.sort_by_key(|entry| (entry.at, entry.milestone.id()));
        Ok(entries)
    }

    /// One request.
    ///
    /// # Errors
    /// [`Error::NoRequest`], or the store's.
    pub async fn tracked_request(&self, queue: &QueueName, request: RequestId) -> Result<Request, Error> {
        self.row(queue, &RowKey::request(request)).await?.ok_or(Error::NoRequest)
    }

    /// Where people find these requests, as far as their uris tell.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn links(&self, queue: &QueueName, requests: BTreeSet<RequestId>) -> Result<BTreeMap<RequestId, String>, Failure> {
        let project = self.queue(queue.as_str()).and_then(|queue| self.settings.project(&queue.project));
        let Some(project) = project else { return Ok(BTreeMap::new()) };
        let found = self.rows_at(queue, requests.into_iter().map(RowKey::request)).await?;
        let link = |request: Request| Some((request.id, detect::link(&request.uri, &project.at.host, project.at.id, &project.path)?));
        Ok(found.into_iter().filter_map(link).collect())
    }

    /// Where a queue's tracking stands.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn standing(&self, queue: &QueueName) -> Result<Standing, Failure> {
        let checkpoint = self.row(queue, &RowKey::checkpoint()).await?;
        Ok(Standing { checkpoint, oldest: self.oldest_job(queue).await? })
    }

    /// Issues of a build that are open since it, as a repair may want them.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn openings(&self, queue: &QueueName, source: &Source, paging: Paging) -> Result<Listed<Issue>, Failure> {
        let set = Set::BuildIssues(source.build.clone());
        let reported = self.listed(queue, set, String::new(), paging, |_: &BuildIssue| true).await?;
        let issues = self.rows_at(queue, reported.items.iter().map(|issue| RowKey::issue(&issue.key))).await?;
        let is_pending = |issue: &Issue| issue.status == Status::Open && issue.first_seen == *source;
        Ok(Listed { items: issues.into_iter().filter(is_pending).collect(), next: reported.next })
    }

    /// The rows that are there, in the order of their keys, some read side by side.
    async fn rows_at<T: TryFrom<Row>>(&self, queue: &QueueName, keys: impl Iterator<Item = RowKey>) -> Result<Vec<T>, Failure> {
        let reads = keys.map(|key| async move { self.row(queue, &key).await });
        let found: Vec<Option<T>> = stream::iter(reads.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Rows of a set that are wanted. A page ends early where many rows in a row are not.
    async fn listed<T: TryFrom<Row>>(
        &self,
        queue: &QueueName,
        set: Set,
        prefix: String,
        paging: Paging,
        wanted: impl Fn(&T) -> bool,
    ) -> Result<Listed<T>, Failure> {
        let (mut items, mut looks) = (Vec::new(), 0);
        let mut range = Range { set, prefix, after: paging.after, limit: paging.limit };
        loop {
            range.limit = paging.limit - items.len();
            let page = self.ports.rows.range(queue, &range).await?;
            looks += page.rows.len().max(1);
            range.after = page.rows.last().map(|(at, _)| at.clone()).or(range.after);
            items.extend(page.rows.into_iter().filter_map(|(_, row)| T::try_from(row).ok()).filter(&wanted));
            if !page.more {
                return Ok(Listed { items, next: None });
            }
            if items.len() >= paging.limit || looks >= MAX_LOOKS {
                return Ok(Listed { items, next: range.after });
            }
        }
    }
}
