//! Authentication by rules, against issuers and clusters that are real HTTP servers on this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod claims;
mod clusters;
mod discovery;
mod gitlab;
mod rotation;
mod signatures;
mod support;
