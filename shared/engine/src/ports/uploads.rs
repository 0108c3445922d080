//! Where callers put content that is too large for one request.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::time::Timestamp;

/// The content that a caller announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced<'a> {
    /// The object it is to become.
    pub key: &'a str,
    /// Its SHA-256, 64 lower-case hex digits.
    pub sha256: &'a str,
    /// Its length in bytes.
    pub size: u64,
}

/// A request that puts exactly the announced content where nothing is yet. Whoever holds it may send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedUpload {
    /// Where to send a `PUT`.
    pub url: String,
    /// The headers to send with it.
    pub headers: Vec<(String, String)>,
}

/// Signs uploads (S3's presigned `PutObject`). Nothing is written by it.
#[async_trait]
pub trait Uploads: Send + Sync {
    /// Signs one upload that may be made until then.
    async fn sign(&self, content: Announced<'_>, now: Timestamp, until: Timestamp) -> Result<SignedUpload, Failure>;
}
