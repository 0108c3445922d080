#![doc = include_str!("../README.md")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this crate is a test harness: whatever it does not expect is a failed test"
)]

pub mod effects;
pub mod failing;
pub mod invariants;
pub mod mutant;
pub mod people;
pub mod ports;
pub mod random;
pub mod schedule;
pub mod story;
pub mod tracked;
pub mod world;

pub use effects::{Effects, Fault};
pub use story::{Crashed, survives_crash_at_every_effect};
pub use world::World;
