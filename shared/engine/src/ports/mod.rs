//! The ports of the use cases: what they need from the world, in their own words.

mod archive;
mod ci_reports;
mod clock;
mod forge;
mod issue_tracker;
mod items;
mod letters;
mod rates;
mod secrets;
mod tracking;
mod uploads;
mod wakes;

pub use archive::{Archive, Stored};
pub use ci_reports::{CiReports, NewerPipelines};
pub use clock::{Clock, Ids};
pub use forge::{Forge, JobRetry, MergeOptions, MrEdit, NewCommit, NewMergeRequest, ProjectRef, TraceTail, Tree};
pub use issue_tracker::{IssueEdit, IssueTracker, NewIssue, TrackedIssue};
pub use items::{ChangeError, Created, DueItem, Items, ListFilter, ListPage, TimelinePage};
pub use letters::{LetterPage, Letters, Redrive};
pub use rates::Rates;
pub use secrets::Secrets;
pub use tracking::{Jobs, Notices, TrackingRows, Written};
pub use uploads::{Announced, SignedUpload, Uploads};
pub use wakes::Wakes;
