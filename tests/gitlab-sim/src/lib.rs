//! A model of GitLab behind real HTTP, for tests and demonstrations.
//!
//! [`Sim`] is a cheap handle on one simulator. Its clock is the wall's or is moved by hand
//! ([`Clock`]); everything GitLab does in the background (preparing merge requests, checking
//! mergeability, running pipelines, sending hooks) is scheduled on that clock with the delays of
//! [`Timing`], so a run is the same each time. Ids come from counters and shas from real git
//! objects; nothing is random.
//!
//! It answers `/api/v4` as GitLab 19 with its texts, statuses and oddities, is the OpenID provider
//! of its jobs, and takes `/_sim/` for control; the methods of [`Sim`] do the same in process.
//!
//! ```
//! use gitlab_sim::{ApiRequest, Clock, DEMO_BOT_TOKEN, Sim};
//!
//! let sim = Sim::demo(Clock::Manual);
//! let reply = sim.call(ApiRequest {
//!     method: "GET".into(),
//!     uri: "/api/v4/projects/demo%2Fapp".into(),
//!     headers: vec![("PRIVATE-TOKEN".into(), DEMO_BOT_TOKEN.into())],
//!     ..ApiRequest::default()
//! });
//! assert_eq!(reply.map(|reply| reply.status), Some(200));
//! ```
//!
//! Not modelled: forks, tags, hooks of issues, merges within one file, and most of `.gitlab-ci.yml`
//! beyond stages (`ci_config` says what is).

mod access;
mod approvals;
mod branches;
mod bridges;
mod call;
mod ci_config;
mod clock;
mod commits;
mod commits_api;
mod compare;
mod control;
mod deliveries;
mod diff;
mod discussions;
mod events;
mod faults;
mod files;
mod files_write;
mod git;
mod hooks;
mod http;
mod info;
mod issue_notes;
mod issues;
mod jobs;
mod journal;
mod labels;
mod lookups;
mod members;
mod merge;
mod merge_requests;
mod merge_trains;
mod mergeability;
mod mr_json;
mod mr_pipelines;
mod mr_update;
mod notes;
mod oidc;
mod pagination;
mod params;
mod payloads;
mod personas;
mod pipeline_run;
mod pipelines;
mod pipelines_api;
mod project;
mod pushes;
mod quick_actions;
mod rate_limits;
mod rebase;
mod reply;
mod repo;
mod routes;
mod seed;
mod sim;
mod state;
mod test_reports;
mod token_rotation;

pub use access::Role;
pub use call::ApiRequest;
pub use clock::{Clock, MANUAL_START_MS, Timing};
pub use deliveries::{Delivery, HookHabits};
pub use faults::{Fault, FaultAction, FaultMatch};
pub use info::{CommitInfo, IssueInfo, JobInfo, MrInfo, NoteInfo, PipelineInfo};
pub use journal::JournalEntry;
pub use oidc::IdToken;
pub use personas::Persona;
pub use pipelines::{JobOutcome, JobRule, Status};
pub use project::{AccessLevel, MergeMethod, PipelineMode, ProjectSettings, ProtectedBranch, SquashOption, Visibility};
pub use rate_limits::{LimitShape, RateLimit};
pub use reply::Reply;
pub use seed::{DEMO_ADMIN_TOKEN, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, DEMO_PROJECT_PATH, DEMO_REVIEW_MS, DEMO_REVIEWER_TOKEN, SeedError};
pub use sim::Sim;
pub use test_reports::{CaseStatus, JunitCase, JunitReport};
