#![doc = include_str!("../README.md")]

pub mod batch;
mod disposition;
mod environment;
mod forgeless;
mod invocation;
mod logs;
mod metrics;
mod start;

pub use disposition::Disposition;
pub use environment::{Environment, EnvironmentError};
pub use forgeless::Forgeless;
pub use invocation::Invocation;
pub use start::{Shell, StartError};
