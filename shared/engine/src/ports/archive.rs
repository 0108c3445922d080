//! Objects that are written once: file content, audit objects, raw deliveries.

use async_trait::async_trait;
use collie_core::error::Failure;

/// What came of a conditional put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It was not there and is now.
    Created,
    /// It was there before, and is untouched.
    Existed,
}

/// An object store with conditional puts (S3 with `If-None-Match: *`).
#[async_trait]
pub trait Archive: Send + Sync {
    /// Stores an object unless one is there.
    async fn put_new(&self, key: &str, bytes: Vec<u8>) -> Result<Stored, Failure>;

    /// Reads an object.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure>;
}
