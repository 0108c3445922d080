#![doc = include_str!("../README.md")]

mod access;
mod archive;
mod clients;
mod document;
mod failure;
mod secrets;
mod uploads;
mod wakes;

pub use access::{Access, Endpoints, Keys};
pub use archive::{Buckets, S3Archive};
pub use clients::Clients;
pub use document::{S3Document, Version};
pub use secrets::SecretStore;
pub use uploads::S3Uploads;
pub use wakes::SqsWakes;
