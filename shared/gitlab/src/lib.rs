#![doc = include_str!("../README.md")]

mod call;
mod ci_reports;
mod connection;
mod error;
mod forge;
mod gitlab;
mod http;
mod issues;
mod limits;
mod merge_requests;
mod merge_trains;
mod notes;
mod pages;
mod pipelines;
mod repository;
mod resolve;
mod scope;
mod wire;

pub use connection::{ConfigError, Connection, Problem};
pub use error::codes;
pub use gitlab::GitLab;
pub use limits::{
    COMMIT_TIMEOUT, CONNECT_TIMEOUT, IDLE_TIMEOUT, Limits, MAX_ANSWER_BYTES, MAX_ERROR_BYTES, MAX_PAGES, MAX_PIPELINE_PAGES, PAGE_ROWS,
    READ_TIMEOUT,
};
pub use resolve::{CurrentUser, ResolvedProject};
