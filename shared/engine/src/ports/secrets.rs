//! Where secrets are kept.

use async_trait::async_trait;
use collie_core::error::Failure;
use secrecy::SecretString;

/// Secrets by name.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret of a name, as it is now.
    async fn secret(&self, name: &str) -> Result<SecretString, Failure>;
}
