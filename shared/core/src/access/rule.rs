//! Rules: each maps an identity of elsewhere to grants. Every rule that fits adds its grants; none takes any away.

use super::claims::ClaimRule;
use super::glob::Globs;
use super::grant::{Grant, Grants};
use serde_json::{Map, Value};

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name; for operators, never shown to callers.
    pub name: String,
    /// Whom it is about.
    pub who: Who,
    /// What they get.
    pub grants: Vec<Grant>,
}

/// Whom a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Holders of an issuer's tokens that meet all of these conditions.
    Token {
        /// Whose key signed.
        issuer: Issuer,
        /// What the token has to say.
        claims: Vec<ClaimRule>,
    },
    /// Users of a cluster in one of these groups.
    Groups {
        /// The cluster's name.
        cluster: String,
        /// The groups.
        groups: Globs,
    },
}

/// Who signs tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Issuer {
    /// An OpenID provider, by the exact text of its `iss`.
    Url(String),
    /// A configured cluster, whose issuer is what it says.
    Cluster(String),
}

/// What a caller was found to be.
#[derive(Debug, Clone, Copy)]
pub enum Credential<'a> {
    /// A token with good claims.
    Token {
        /// Whose key signed it.
        issuer: &'a Issuer,
        /// What it says.
        claims: &'a Map<String, Value>,
    },
    /// A user that a cluster knows.
    User {
        /// The cluster's name.
        cluster: &'a str,
        /// The user's groups.
        groups: &'a [String],
    },
}

/// What the rules say of a credential.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ruling {
    /// All grants of all rules that fit.
    pub grants: Grants,
    /// The names of these rules.
    pub rules: Vec<String>,
    /// Where no rule fits: the claims that the closest one misses, by name.
    pub failed_claims: Vec<String>,
}

/// Applies the rules to a credential. Groups that a cluster gives to everyone (`system:…`) never count.
#[must_use]
pub fn judge(rules: &[Rule], credential: &Credential<'_>) -> Ruling {
    let (mut grants, mut fitting) = (Vec::new(), Vec::new());
    let mut closest: Option<Vec<String>> = None;
    for rule in rules {
        match rule.who.missed_by(credential) {
            Some(missed) if missed.is_empty() => {
                grants.extend(rule.grants.iter().cloned());
                fitting.push(rule.name.clone());
            }
            Some(missed) => closest = Some(closer(closest, missed)),
            None => {}
        }
    }
    let failed_claims = if grants.is_empty() { closest.unwrap_or_default() } else { Vec::new() };
    Ruling { grants: Grants::new(grants), rules: fitting, failed_claims }
}

/// Of two rules the one that fewer claims miss; one for another audience is never closer, and says no more than that.
fn closer(before: Option<Vec<String>>, missed: Vec<String>) -> Vec<String> {
    let audience = || "aud".to_owned();
    let missed = if missed.contains(&audience()) { vec![audience()] } else { missed };
    let distance = |missed: &[String]| (missed.contains(&audience()), missed.len());
    match before {
        Some(before) if distance(&before) <= distance(&missed) => before,
        _ => missed,
    }
}

impl Who {
    /// The claims by which a credential misses the rule, empty where it fits; none where the rule is not about its like.
    fn missed_by(&self, credential: &Credential<'_>) -> Option<Vec<String>> {
        match (self, credential) {
            (Self::Token { issuer, claims: rules }, Credential::Token { issuer: signer, claims }) if issuer == *signer => {
                Some(rules.iter().filter(|rule| !rule.is_met(claims)).map(|rule| rule.name.clone()).collect())
            }
            (Self::Groups { cluster, groups: wanted }, Credential::User { cluster: own, groups }) if cluster == own => {
                let fits = groups.iter().any(|group| !group.starts_with("system:") && wanted.matches(group));
                fits.then(Vec::new)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
