//! Who may call: holders of the local issuer's tokens where there is one, and nobody else yet.

use async_trait::async_trait;
use collie_auth::local::LocalIssuer;
use collie_auth::{AuthError, Authenticator};
use collie_engine::access::Caller;
use collie_shell::{Shell, StartError};
use std::sync::Arc;

/// What the environment lets in.
pub(crate) fn authenticator(shell: &Shell) -> Result<Arc<dyn Authenticator>, StartError> {
    let Some(directory) = &shell.environment.issuer_dir else { return Ok(Arc::new(Nobody)) };
    let issuer = LocalIssuer::open(directory).map_err(|error| StartError::new("issuer", vec![error.to_string()]))?;
    Ok(Arc::new(issuer.authenticator(Arc::clone(&shell.clock))))
}

/// Lets nobody in: without an issuer no token can be checked.
struct Nobody;

#[async_trait]
impl Authenticator for Nobody {
    async fn authenticate(&self, _: &str) -> Result<Caller, AuthError> {
        Err(AuthError::Unavailable)
    }
}
