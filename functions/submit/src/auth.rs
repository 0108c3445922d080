//! Who may call: those whom the configuration's rules know, and holders of the local issuer's tokens where there is one.

use collie_auth::local::LocalIssuer;
use collie_auth::{Access, Authenticator, Door, RuleAuthenticator};
use collie_config::AccessConfig;
use collie_engine::credential::Credential;
use collie_shell::{Shell, StartError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What environment and configuration let in; nobody, where neither says who.
pub(crate) async fn authenticator(shell: &Shell, access: AccessConfig) -> Result<Arc<dyn Authenticator>, StartError> {
    let open = |directory| LocalIssuer::open(directory).map_err(|error| StartError::new("issuer", vec![error.to_string()]));
    let local = shell.environment.issuer_dir.as_deref().map(open).transpose()?;
    let rules = if access.rules.is_empty() { None } else { Some(rules(shell, access).await?) };
    Ok(Arc::new(Door { local, rules, clock: Arc::clone(&shell.clock) }))
}

async fn rules(shell: &Shell, access: AccessConfig) -> Result<RuleAuthenticator, StartError> {
    let tokens = tokens(shell, &access).await?;
    let access = Access::read(access, tokens).map_err(|problems| StartError::new("configuration", problems))?;
    Ok(RuleAuthenticator::new(access, Arc::clone(&shell.clock)))
}

/// The tokens of the clusters' service accounts.
async fn tokens(shell: &Shell, access: &AccessConfig) -> Result<BTreeMap<String, Credential>, StartError> {
    let mut tokens = BTreeMap::new();
    for (name, cluster) in &access.clusters {
        let Some(secret) = &cluster.token else { continue };
        let token = shell.credential(secret.as_str()).await;
        let token = token.map_err(|failure| StartError::new("clusters", vec![format!("clusters.{name}.token: {failure}")]))?;
        tokens.insert(name.clone(), token);
    }
    Ok(tokens)
}
