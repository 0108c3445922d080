//! Authentication by rules: which issuer or cluster vouches for a token, whom it names, and what the rules give them.

use crate::access::{Access, Cluster};
use crate::http::Http;
use crate::jwt::{self, Claims, Jwt};
use crate::keyring::{Down, Keyring};
use crate::keys::Verdict;
use crate::source::{Place, Source};
use crate::users::{PREFIX, Users};
use crate::{AuthError, Authenticator};
use async_trait::async_trait;
use collie_core::access::{Algorithm, Credential, Issuer, Rule, Ruling, Who, judge};
use collie_engine::access::Caller;
use collie_engine::ports::Clock;
use std::collections::BTreeSet;
use std::sync::Arc;
use url::Url;

/// Authenticates by rules.
pub struct RuleAuthenticator {
    rules: Vec<Rule>,
    signers: Vec<Signer>,
    users: Option<Users>,
    clock: Arc<dyn Clock>,
}

/// An issuer of tokens, or a cluster as one.
struct Signer {
    issuer: Issuer,
    /// What stands before `|` in identities.
    realm: String,
    algorithms: Vec<jsonwebtoken::Algorithm>,
    keyring: Keyring,
}

impl RuleAuthenticator {
    /// The authenticator. Rules of clusters that are not configured here are left out, with one line in the log (DDR-26).
    #[must_use]
    pub fn new(access: Access, clock: Arc<dyn Clock>) -> Self {
        let Access { mut rules, algorithms, clusters, http } = access;
        let known: BTreeSet<&str> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let of_here = |rule: &Rule| cluster_of(rule).is_none_or(|cluster| known.contains(cluster));
        let skipped: Vec<_> = rules.iter().filter(|rule| !of_here(rule)).map(|rule| rule.name.clone()).collect();
        if !skipped.is_empty() {
            tracing::info!(rules = ?skipped, "rules of clusters that are not configured here are skipped");
        }
        rules.retain(of_here);
        let issuers: BTreeSet<&str> = rules.iter().filter_map(issuer_of).collect();
        let provider = |issuer: &&str| Signer::provider(issuer, algorithms.get(*issuer), &http, &clock);
        let signers = issuers.iter().map(provider).chain(clusters.iter().map(|cluster| Signer::cluster(cluster, &clock))).collect();
        let opaque = clusters.into_iter().find(|cluster| cluster.opaque_tokens);
        let users = opaque.map(|cluster| Users::new(cluster.name, &cluster.api, cluster.http, Arc::clone(&clock)));
        Self { rules, signers, users, clock }
    }

    async fn of_jwt(&self, bearer: &str) -> Result<Caller, AuthError> {
        let jwt = Jwt::read(bearer)?;
        let mut refusal = None;
        for signer in self.signers.iter().filter(|signer| signer.may_have_signed(&jwt)) {
            match signer.claims(&jwt).await {
                Ok(Some(claims)) => return self.caller_of(signer, jwt.issuer(), &claims),
                Ok(None) => {}
                // What is known of the token counts more than that someone does not answer.
                Err(AuthError::Unavailable) if refusal.is_some() => {}
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or(AuthError::Invalid("its issuer is not one that is configured")))
    }

    fn caller_of(&self, signer: &Signer, issuer: &str, claims: &Claims) -> Result<Caller, AuthError> {
        let subject = jwt::subject(claims, self.clock.now())?;
        let ruling = judge(&self.rules, &Credential::Token { issuer: &signer.issuer, claims });
        let caller = granted(format!("{}|{subject}", signer.realm), ruling)?;
        Ok(Caller { issuer: Some(issuer.to_owned()), ..caller })
    }

    async fn of_opaque(&self, bearer: &str) -> Result<Caller, AuthError> {
        let users = self.users.as_ref().ok_or(AuthError::Invalid("opaque tokens are not taken here"))?;
        let user = users.user(bearer).await?;
        let ruling = judge(&self.rules, &Credential::User { cluster: &users.cluster, groups: &user.groups });
        let caller = granted(format!("{}|{}", users.cluster, user.name), ruling)?;
        Ok(Caller { groups: user.groups, ..caller })
    }
}

#[async_trait]
impl Authenticator for RuleAuthenticator {
    async fn authenticate(&self, bearer: &str) -> Result<Caller, AuthError> {
        if bearer.is_empty() {
            return Err(AuthError::Missing);
        }
        if bearer.starts_with(PREFIX) { self.of_opaque(bearer).await } else { self.of_jwt(bearer).await }
    }
}

impl Signer {
    fn provider(issuer: &str, algorithms: Option<&Vec<Algorithm>>, http: &Arc<dyn Http>, clock: &Arc<dyn Clock>) -> Self {
        let source = Source { http: Arc::clone(http), place: Place::Provider(issuer.to_owned()) };
        Self {
            issuer: Issuer::Url(issuer.to_owned()),
            realm: host_of(issuer),
            algorithms: allowed(algorithms.map_or(&Algorithm::USUAL[..], Vec::as_slice)),
            keyring: Keyring::new(issuer.to_owned(), source, Arc::clone(clock)),
        }
    }

    fn cluster(cluster: &Cluster, clock: &Arc<dyn Clock>) -> Self {
        let place = Place::Cluster { api: cluster.api.clone(), token: cluster.token.clone() };
        let source = Source { http: Arc::clone(&cluster.http), place };
        Self {
            issuer: Issuer::Cluster(cluster.name.clone()),
            realm: cluster.name.clone(),
            algorithms: allowed(&Algorithm::USUAL),
            keyring: Keyring::new(cluster.name.clone(), source, Arc::clone(clock)),
        }
    }

    /// A cluster's issuer is known only once it was asked.
    fn may_have_signed(&self, jwt: &Jwt<'_>) -> bool {
        match &self.issuer {
            Issuer::Url(issuer) => issuer == jwt.issuer(),
            Issuer::Cluster(_) => true,
        }
    }

    /// The claims of a token that this issuer signed; none where the token is not one of its.
    async fn claims(&self, jwt: &Jwt<'_>) -> Result<Option<Claims>, AuthError> {
        let known = self.keyring.keys().await.map_err(|Down| AuthError::Unavailable)?;
        if known.keys.issuer != jwt.issuer() {
            return Ok(None);
        }
        if !self.algorithms.contains(&jwt.algorithm()) {
            return Err(AuthError::Invalid("its algorithm is not one that its issuer is allowed"));
        }
        match settled(known.keys.verify(jwt)) {
            Ok(settled) => settled.map(Some),
            // The issuer may have other keys by now, or another key of that name.
            Err(reason) => match self.keyring.newer_than(&known).await {
                Err(Down) => Err(AuthError::Unavailable),
                Ok(None) => Err(AuthError::Invalid(reason)),
                Ok(Some(newer)) => settled(newer.verify(jwt)).unwrap_or_else(|reason| Err(AuthError::Invalid(reason))).map(Some),
            },
        }
    }
}

/// A verdict that other keys could not change, or the reason that they could.
fn settled(verdict: Verdict) -> Result<Result<Claims, AuthError>, &'static str> {
    match verdict {
        Verdict::Signed(claims) => Ok(claims),
        Verdict::NoKeyId => Ok(Err(AuthError::Invalid("it names no key (kid), and its issuer has several"))),
        Verdict::UnknownKey => Err("its key (kid) is not one that its issuer has"),
        Verdict::Misfit => Err("its algorithm does not fit its key"),
        Verdict::Forged => Err("its signature is not its issuer's"),
    }
}

fn granted(identity: String, ruling: Ruling) -> Result<Caller, AuthError> {
    let Ruling { grants, rules, failed_claims } = ruling;
    if grants.is_empty() {
        Err(AuthError::NoRule { identity, failed_claims })
    } else {
        Ok(Caller { rules, ..Caller::new(identity, grants) })
    }
}

fn cluster_of(rule: &Rule) -> Option<&str> {
    match &rule.who {
        Who::Groups { cluster, .. } | Who::Token { issuer: Issuer::Cluster(cluster), .. } => Some(cluster),
        Who::Token { issuer: Issuer::Url(_), .. } => None,
    }
}

fn issuer_of(rule: &Rule) -> Option<&str> {
    match &rule.who {
        Who::Token { issuer: Issuer::Url(issuer), .. } => Some(issuer),
        _ => None,
    }
}

/// The host of an issuer, with its port where it is not the usual one.
fn host_of(issuer: &str) -> String {
    let url = Url::parse(issuer).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port())));
    host.map_or_else(|| issuer.to_owned(), |(host, port)| port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

fn allowed(algorithms: &[Algorithm]) -> Vec<jsonwebtoken::Algorithm> {
    algorithms.iter().filter_map(|algorithm| algorithm.as_str().parse().ok()).collect()
}
