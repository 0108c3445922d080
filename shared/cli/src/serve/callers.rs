//! Who may call: holders of local tokens, and those whom the configuration's rules know.

use crate::secrets::Secrets;
use crate::serve::SystemClock;
use collie_auth::local::LocalIssuer;
use collie_auth::{Access, Door, RuleAuthenticator};
use collie_config::AccessConfig;
use collie_engine::credential::Credential;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The door, with every problem of what the configuration says of it.
pub(super) fn door(issuer: LocalIssuer, access: AccessConfig, secrets: &Secrets) -> Result<Door, String> {
    let rules = if access.rules.is_empty() { None } else { Some(rules(access, secrets).map_err(|problems| problems.join("\n"))?) };
    Ok(Door { local: Some(issuer), rules, clock: Arc::new(SystemClock) })
}

fn rules(access: AccessConfig, secrets: &Secrets) -> Result<RuleAuthenticator, Vec<String>> {
    let tokens = tokens(&access, secrets)?;
    Ok(RuleAuthenticator::new(Access::read(access, tokens)?, Arc::new(SystemClock)))
}

/// The tokens of the clusters' service accounts.
fn tokens(access: &AccessConfig, secrets: &Secrets) -> Result<BTreeMap<String, Credential>, Vec<String>> {
    let (mut tokens, mut problems) = (BTreeMap::new(), Vec::new());
    for (name, cluster) in &access.clusters {
        match cluster.token.as_ref().map(|secret| secrets.credential(secret)).transpose() {
            Ok(token) => tokens.extend(token.map(|token| (name.clone(), token))),
            Err(problem) => problems.push(format!("clusters.{name}.token: {problem}")),
        }
    }
    if problems.is_empty() { Ok(tokens) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_auth::{AuthError, Authenticator as _};
    use collie_config::Configuration;
    use collie_engine::ports::Clock as _;
    use secrecy::ExposeSecret as _;
    use std::time::Duration;

    const RULE: &str = "rules: [{name: a, issuer: 'https://gitlab.example.com', claims: {aud: collie}, grants: [admin: true]}]\n";

    fn issuer(directory: &tempfile::TempDir) -> LocalIssuer {
        LocalIssuer::open(directory.path()).unwrap()
    }

    #[tokio::test]
    async fn local_tokens_count_with_rules_and_without() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["", RULE] {
            let access = Configuration::parse(text).unwrap().access;
            let door = door(issuer(&directory), access, &Secrets::default()).unwrap();
            let token = issuer(&directory).token("ann", false, Duration::from_secs(60), SystemClock.now()).unwrap();
            assert_eq!(door.authenticate(token.expose_secret()).await.map(|caller| caller.identity), Ok("local|ann".to_owned()));
            assert_eq!(door.authenticate("").await, Err(AuthError::Missing));
        }
    }

    #[test]
    fn every_cluster_that_cannot_be_used_is_named() {
        let clusters = "clusters:\n  a: {api: 'https://a.example.com', ca_file: /nowhere/ca.pem}\n  b: {api: 'https://b.example.com', token: secret:k8s/b}";
        let directory = tempfile::tempdir().unwrap();
        let secrets = Secrets { directory: Some(directory.path().to_owned()) };
        let problem = |text: &str| {
            let access = Configuration::parse(text).unwrap().access;
            door(issuer(&directory), access, &secrets).err().unwrap()
        };
        let text = format!("{RULE}{clusters}");
        assert!(problem(&text).starts_with("clusters.b.token: "), "{}", problem(&text));
        std::fs::create_dir(directory.path().join("k8s")).unwrap();
        std::fs::write(directory.path().join("k8s/b"), "token").unwrap();
        assert!(problem(&text).starts_with("clusters.a.ca_file: /nowhere/ca.pem"), "{}", problem(&text));
    }
}
