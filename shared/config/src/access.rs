//! Who may call: `rules`, `clusters`, `issuers` and `oauth_proxy`. What could let in more than was meant is refused: a rule without an
//! audience, a branch's name without its protection, a glob on a subject, a group that everyone is in.

mod grants;
mod rules;

use crate::SecretName;
use crate::is_slug;
use crate::section::{Problems, Section};
use crate::settings::host_of;
use collie_core::access::{Algorithm, Issuer, Rule, Who};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use url::{Host, Url};

/// Identities of the local issuer begin with this.
const LOCAL: &str = "local";

/// What the file says of who may call.
#[derive(Debug, Clone, Default)]
pub struct AccessConfig {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The algorithms of issuers that have others than the usual ones.
    pub issuers: BTreeMap<String, Vec<Algorithm>>,
    /// Clusters by name.
    pub clusters: BTreeMap<String, ClusterConfig>,
    /// Whether an OAuth proxy protects `GET /v1/me` (DDR-27).
    pub oauth_proxy: bool,
}

/// A cluster.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// Where its API is.
    pub api: Url,
    /// Its certificate authorities; the machine's where there is no file.
    pub ca_file: Option<PathBuf>,
    /// Its service account's token, for discovery and keys.
    pub token: Option<SecretName>,
    /// Whether opaque tokens are its users'.
    pub opaque_tokens: bool,
}

/// Takes its keys out of the file.
pub(crate) fn read(root: &mut Section, problems: &mut Problems) -> AccessConfig {
    let clusters = clusters(root.raw("clusters"), problems);
    let names: BTreeSet<_> = clusters.keys().cloned().collect();
    let config = AccessConfig {
        rules: rules::read(root.raw("rules"), &names, problems),
        issuers: issuers(root.raw("issuers"), problems),
        clusters: clusters.into_iter().filter_map(|(name, cluster)| Some((name, cluster?))).collect(),
        oauth_proxy: root.optional("oauth_proxy", problems).unwrap_or_default(),
    };
    check_opaque(&config, problems);
    check_groups(&config, problems);
    check_issuers(&config, problems);
    check_realms(&config, problems);
    config
}

/// Clusters by name; one that cannot be used still has its name, so that rules about it are not reported too.
fn clusters(value: Option<Value>, problems: &mut Problems) -> BTreeMap<String, Option<ClusterConfig>> {
    let section = Section::of("clusters", value.unwrap_or_default(), problems);
    section.into_entries().map(|(name, value)| cluster(name, value, problems)).collect()
}

fn cluster(name: String, value: Value, problems: &mut Problems) -> (String, Option<ClusterConfig>) {
    let place = format!("clusters.{name}");
    if !is_slug(&name) || name == LOCAL {
        problems.note(&place, "a name is made of lower-case letters, digits and '-', and is not \"local\"");
    }
    let mut section = Section::of(place, value, problems);
    let api = api(&mut section, problems);
    let ca_file = section.optional("ca_file", problems);
    let token = section.optional("token", problems);
    let opaque_tokens = section.optional("opaque_tokens", problems).unwrap_or_default();
    section.finish(&[], problems);
    (name, api.map(|api| ClusterConfig { api, ca_file, token, opaque_tokens }))
}

fn api(section: &mut Section, problems: &mut Problems) -> Option<Url> {
    let text: String = section.required("api", problems)?;
    match Url::parse(&text) {
        Ok(url) if is_safe(&url) => return Some(url),
        Ok(_) => problems.note(&section.at("api"), "must be https; http is for this machine alone"),
        Err(error) => problems.note(&section.at("api"), error),
    }
    None
}

fn issuers(value: Option<Value>, problems: &mut Problems) -> BTreeMap<String, Vec<Algorithm>> {
    let section = Section::of("issuers", value.unwrap_or_default(), problems);
    section.into_entries().map(|(issuer, value)| issuer_entry(issuer, value, problems)).collect()
}

fn issuer_entry(issuer: String, value: Value, problems: &mut Problems) -> (String, Vec<Algorithm>) {
    let mut section = Section::of(format!("issuers.{issuer}"), value, problems);
    let place = section.at("algorithms");
    let names: Vec<String> = section.required("algorithms", problems).unwrap_or_default();
    let mut algorithms = Vec::new();
    for name in &names {
        match Algorithm::parse(name) {
            Some(algorithm) => algorithms.push(algorithm),
            None => problems.note(&place, format!("{name:?} is not one of {}", Algorithm::ALL.map(Algorithm::as_str).join(", "))),
        }
    }
    section.finish(&[], problems);
    (issuer, algorithms)
}

/// An opaque token is only ever shown to one cluster.
fn check_opaque(config: &AccessConfig, problems: &mut Problems) {
    let takers: Vec<_> = config.clusters.iter().filter(|(_, cluster)| cluster.opaque_tokens).map(|(name, _)| name.as_str()).collect();
    if takers.len() > 1 {
        problems.note("clusters", format!("opaque_tokens is for one cluster, not for {}", takers.join(" and ")));
    }
    if config.oauth_proxy && takers.is_empty() {
        problems.note("oauth_proxy", "needs a cluster with opaque_tokens: its tokens are that cluster's");
    }
}

/// Groups are those of users behind opaque tokens; of a cluster that takes none, no group is ever known.
fn check_groups(config: &AccessConfig, problems: &mut Problems) {
    for rule in &config.rules {
        let Who::Groups { cluster, .. } = &rule.who else { continue };
        if config.clusters.get(cluster).is_some_and(|cluster| !cluster.opaque_tokens) {
            problems.note(&format!("rules: {}", rule.name), format!("{cluster} has no opaque_tokens, so that its groups are never known"));
        }
    }
}

/// A misspelt issuer would be one that is allowed more than was meant.
fn check_issuers(config: &AccessConfig, problems: &mut Problems) {
    let named: BTreeSet<_> = urls(config).collect();
    for issuer in config.issuers.keys().filter(|issuer| !named.contains(issuer.as_str())) {
        problems.note(&format!("issuers.{issuer}"), "no rule names this issuer");
    }
}

/// Identities begin with the host of an issuer or the name of a cluster: two sources of identities have to differ there.
fn check_realms(config: &AccessConfig, problems: &mut Problems) {
    let mut seen: BTreeMap<String, &str> = config.clusters.keys().map(|name| (name.clone(), name.as_str())).collect();
    seen.insert(LOCAL.to_owned(), LOCAL);
    for issuer in urls(config).collect::<BTreeSet<_>>() {
        let host = Url::parse(issuer).ok().as_ref().and_then(host_of).unwrap_or_default();
        if let Some(other) = seen.insert(host, issuer) {
            problems.note("rules", format!("identities of {issuer} could not be told from those of {other}"));
        }
    }
}

fn urls(config: &AccessConfig) -> impl Iterator<Item = &str> {
    config.rules.iter().filter_map(|rule| match &rule.who {
        Who::Token { issuer: Issuer::Url(url), .. } => Some(url.as_str()),
        _ => None,
    })
}

/// Whether a URL may be asked: over TLS, or on this machine.
fn is_safe(url: &Url) -> bool {
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => url.has_host(),
        scheme => scheme == "http" && here,
    }
}

#[cfg(test)]
mod tests;
