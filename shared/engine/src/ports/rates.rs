//! What identities may still ask for.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::rate::Bucket;

/// The buckets, shared by all processes.
#[async_trait]
pub trait Rates: Send + Sync {
    /// The bucket under a key; none where nothing was drawn for long.
    async fn bucket(&self, key: &str) -> Result<Option<Bucket>, Failure>;

    /// Puts a bucket in the place of the one that was read; false where another did so meanwhile.
    async fn replace_bucket(&self, key: &str, old: Option<Bucket>, new: Bucket) -> Result<bool, Failure>;
}
