//! The API as callers meet it: requests to the router over the store in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod access;
mod access_log;
mod blobs;
mod door;
mod failures;
mod grants;
mod letters;
mod moving;
mod pace;
mod pages;
mod queues;
mod reading;
mod refusals;
mod secrecy;
mod submitting;
mod support;
