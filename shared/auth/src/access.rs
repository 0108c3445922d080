//! From what the configuration says to what authentication needs: files read, secrets put in.

use crate::http::{Http, HttpClient};
use collie_config::{AccessConfig, ClusterConfig};
use collie_core::access::{Algorithm, Issuer, Rule, Who};
use collie_engine::credential::Credential;
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;

/// What the configuration says of who may call, with its secrets and files read.
pub struct Access {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The algorithms of issuers that have others than the usual ones.
    pub algorithms: BTreeMap<String, Vec<Algorithm>>,
    /// The clusters that are configured here.
    pub clusters: Vec<Cluster>,
    /// How issuers are asked.
    pub http: Arc<dyn Http>,
}

/// A cluster.
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Where its API is.
    pub api: Url,
    /// How it is asked: with its own authorities.
    pub http: Arc<dyn Http>,
    /// Its service account's token, for discovery and keys.
    pub token: Option<Credential>,
    /// Whether opaque tokens are its users'.
    pub opaque_tokens: bool,
}

impl Access {
    /// Reads the clusters' certificate authorities. Tokens of service accounts are given, by the cluster's name: where secrets come
    /// from is the edge's business.
    ///
    /// # Errors
    /// Every file that cannot be read or used.
    pub fn read(config: AccessConfig, mut tokens: BTreeMap<String, Credential>) -> Result<Self, Vec<String>> {
        let AccessConfig { rules, issuers, clusters, .. } = config;
        let (mut read, mut problems) = (Vec::new(), Vec::new());
        for (name, cluster) in clusters {
            match http_of(&cluster) {
                Ok(http) => {
                    let (token, ClusterConfig { api, opaque_tokens, .. }) = (tokens.remove(&name), cluster);
                    read.push(Cluster { name, api, http: Arc::new(http), token, opaque_tokens });
                }
                Err(problem) => problems.push(format!("clusters.{name}.ca_file: {problem}")),
            }
        }
        let http = Arc::new(HttpClient::of(&urls(&rules)));
        if problems.is_empty() { Ok(Self { rules, algorithms: issuers, clusters: read, http }) } else { Err(problems) }
    }
}

fn http_of(cluster: &ClusterConfig) -> Result<HttpClient, String> {
    let Some(file) = &cluster.ca_file else { return Ok(HttpClient::of([&cluster.api])) };
    let bundle = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    HttpClient::trusting(&bundle).map_err(|problem| format!("{} {problem}", file.display()))
}

fn urls(rules: &[Rule]) -> Vec<Url> {
    let issuer = |rule: &Rule| match &rule.who {
        Who::Token { issuer: Issuer::Url(url), .. } => Url::parse(url).ok(),
        _ => None,
    };
    rules.iter().filter_map(issuer).collect()
}
