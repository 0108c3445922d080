#![doc = include_str!("../README.md")]

pub mod batch;
mod disposition;
mod environment;
mod forgeless;
mod invocation;
mod live;
mod logs;
mod metrics;
mod start;

pub use disposition::Disposition;
pub use environment::{ConfigFile, Environment, EnvironmentError, TrackingPlaces};
pub use forgeless::Forgeless;
pub use invocation::Invocation;
pub use live::Live;
pub use start::{Shell, StartError};
