#![doc = include_str!("../README.md")]

mod access;
mod archive;
mod clients;
mod document;
mod failure;
mod jobs;
mod messages;
mod notices;
mod redrive;
mod repairs;
mod secrets;
mod uploads;
mod wakes;

pub use access::{Access, Endpoints, Keys};
pub use archive::{Buckets, S3Archive};
pub use clients::Clients;
pub use document::{S3Document, Version};
pub use jobs::{SqsHolds, SqsJobs};
pub use messages::{DeadLetter, JobMessage, RepairMessage};
pub use notices::EventBridgeNotices;
pub use redrive::{QueueUrls, SqsRedrive};
pub use repairs::RepairAsked;
pub use secrets::SecretStore;
pub use uploads::S3Uploads;
pub use wakes::SqsWakes;
