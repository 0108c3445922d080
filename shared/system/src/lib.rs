#![doc = include_str!("../README.md")]

mod clock;
mod ids;

pub use clock::{SystemClock, pause};
pub use ids::RandomIds;
