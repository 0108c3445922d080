//! Every number this adapter bounds its calls with.

use std::time::Duration;

/// How long one request may take, connecting and reading the answer included.
pub const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// How long making a commit, or reading a job's log or a pipeline's test report, may take.
pub const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long connecting may take; a write that fails within it was surely not sent.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an unused connection is kept; short, since a frozen function wakes up with dead ones.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// How many pages of one listing are read.
pub const MAX_PAGES: usize = 500;

/// How many rows a page has; GitLab cuts larger wishes to this silently.
pub const PAGE_ROWS: &str = "100";

/// How many pages of a ref's pipelines are read to find the one that is known.
pub const MAX_PIPELINE_PAGES: usize = 5;

/// How large one answer may be.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;

/// How much of an error's body is read.
pub const MAX_ERROR_BYTES: usize = 64 << 10;

/// The bounds of one adapter; the default is what the constants of this crate say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For every request but commits.
    pub read_timeout: Duration,
    /// For commits, logs and test reports.
    pub commit_timeout: Duration,
    /// Pages of one listing.
    pub max_pages: usize,
    /// Bytes of one answer.
    pub max_answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { read_timeout: READ_TIMEOUT, commit_timeout: COMMIT_TIMEOUT, max_pages: MAX_PAGES, max_answer_bytes: MAX_ANSWER_BYTES }
    }
}
