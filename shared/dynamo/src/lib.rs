#![doc = include_str!("../README.md")]

mod attribute;
mod companion;
mod dynamo;
mod expression;
mod key;
pub mod local;
pub mod memory;
mod pack;
mod row;
pub mod schema;
pub mod tracking;
pub mod units;

pub use dynamo::{DynamoItems, DynamoTracking};
pub use memory::MemoryItems;
pub use tracking::MemoryTracking;
