//! The ports of issue tracking, as a process has them.

use super::{Process, unheard_read, unheard_write};
use crate::schedule;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::issue::delivery::Reason;
use collie_core::issue::hook::Notice;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::row::{Row, RowKey};
use collie_core::issue::table::{Edit, Page, Range};
use collie_engine::ports::{IssueEdit, IssueTracker, Jobs, NewIssue, Notices, ProjectRef, TrackedIssue, TrackingRows, Written};

#[async_trait]
impl TrackingRows for Process<dyn TrackingRows> {
    async fn read(&self, queue: &QueueName, key: &RowKey) -> Result<Option<Row>, Failure> {
        schedule::turn().await;
        self.inner.read(queue, key).await
    }

    async fn range(&self, queue: &QueueName, range: &Range) -> Result<Page, Failure> {
        schedule::turn().await;
        self.inner.range(queue, range).await
    }

    async fn write(&self, queue: &QueueName, edits: &[Edit]) -> Result<Written, Failure> {
        let name = format!("rows.{}", edits.first().map_or("nothing", |edit| edit.key().set.name()));
        self.effect(&name, || self.inner.write(queue, edits), unheard_write).await
    }
}

#[async_trait]
impl Jobs for Process<dyn Jobs> {
    async fn ring(&self, queue: &QueueName, job: RequestId, occasion: &str) -> Result<(), Failure> {
        self.effect("jobs.ring", || self.inner.ring(queue, job, occasion), unheard_write).await
    }

    async fn dead_letter(&self, queue: &QueueName, job: RequestId, attempt: u32, reason: Reason) -> Result<(), Failure> {
        self.effect("jobs.dead_letter", || self.inner.dead_letter(queue, job, attempt, reason), unheard_write).await
    }
}

#[async_trait]
impl Notices for Process<dyn Notices> {
    async fn publish(&self, queue: &QueueName, notice: &Notice) -> Result<(), Failure> {
        self.effect("notices.publish", || self.inner.publish(queue, notice), unheard_write).await
    }
}

#[async_trait]
impl IssueTracker for Process<dyn IssueTracker> {
    async fn issue(&self, project: &ProjectRef, iid: u64) -> Result<Option<TrackedIssue>, Failure> {
        self.effect("tracker.issue", || self.inner.issue(project, iid), unheard_read).await
    }

    async fn own_issue(&self, project: &ProjectRef, marker: &str) -> Result<Option<TrackedIssue>, Failure> {
        self.effect("tracker.own_issue", || self.inner.own_issue(project, marker), unheard_read).await
    }

    async fn open_issue(&self, project: &ProjectRef, issue: &NewIssue) -> Result<TrackedIssue, Failure> {
        self.effect("tracker.open_issue", || self.inner.open_issue(project, issue), unheard_write).await
    }

    async fn edit_issue(&self, project: &ProjectRef, iid: u64, edit: &IssueEdit) -> Result<TrackedIssue, Failure> {
        self.effect("tracker.edit_issue", || self.inner.edit_issue(project, iid, edit), unheard_write).await
    }
}
