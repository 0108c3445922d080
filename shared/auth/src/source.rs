//! Where an issuer's keys come from: its discovery document, and the JWKS document that it names (DDR-11).
//!
//! Only what is configured is ever asked: a provider by its own address, a cluster by its API's. The provider's document has to name
//! the very issuer that is configured. A cluster's says what its issuer is, and its keys are fetched from the API's address whatever
//! host the document names: that host may not be reachable, and the cluster's token must not go there.

use crate::http::{Http, HttpError};
use crate::keys::KeySet;
use collie_core::time::Timestamp;
use collie_engine::credential::Credential;
use serde::Deserialize;
use std::sync::Arc;
use url::{Host, Url};

const DISCOVERY: &str = ".well-known/openid-configuration";
const MAX_DISCOVERY_BYTES: usize = 64 * 1024;
const MAX_KEYS_BYTES: usize = 256 * 1024;

/// Where keys come from.
pub(crate) struct Source {
    pub(crate) http: Arc<dyn Http>,
    pub(crate) place: Place,
}

/// What is asked.
pub(crate) enum Place {
    /// The OpenID provider with this issuer.
    Provider(String),
    /// The cluster whose API is here, with its service account's token.
    Cluster { api: Url, token: Option<Credential> },
}

/// Why there are no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("its discovery document cannot be read")]
    Document,
    #[error("its discovery document names another issuer")]
    OtherIssuer,
    #[error("its jwks_uri is neither https nor on this machine")]
    Unsafe,
    #[error("it has no key that can be used")]
    NoKeys,
}

/// The part of a discovery document that counts.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Source {
    /// Asks for the keys.
    pub(crate) async fn fetch(&self, now: Timestamp) -> Result<KeySet, FetchError> {
        let (base, token) = match &self.place {
            Place::Provider(issuer) => (Url::parse(issuer).map_err(|_| FetchError::Unsafe)?, None),
            Place::Cluster { api, token } => (api.clone(), token.as_ref()),
        };
        let discovery = self.get(&below(&base, DISCOVERY), token, MAX_DISCOVERY_BYTES).await?;
        let Discovery { issuer, jwks_uri } = serde_json::from_slice(&discovery).map_err(|_| FetchError::Document)?;
        let jwks_uri = Url::parse(&jwks_uri).map_err(|_| FetchError::Document)?;
        let keys_at = match &self.place {
            Place::Provider(configured) if issuer != *configured => return Err(FetchError::OtherIssuer),
            Place::Provider(_) if !is_safe(&jwks_uri) || (base.scheme() == "https" && jwks_uri.scheme() != "https") => {
                return Err(FetchError::Unsafe);
            }
            Place::Provider(_) => jwks_uri,
            Place::Cluster { api, .. } => on_host_of(api, &jwks_uri),
        };
        let keys = self.get(&keys_at, token, MAX_KEYS_BYTES).await?;
        KeySet::read(issuer, &keys, now).ok_or(FetchError::NoKeys)
    }

    /// Gets a document; once more where the token is refused and is another one by now.
    async fn get(&self, url: &Url, credential: Option<&Credential>, max_bytes: usize) -> Result<Vec<u8>, FetchError> {
        let token = credential.map(Credential::get);
        let mut reply = self.http.get(url, token.as_ref(), max_bytes).await?;
        if let (401, Some(credential), Some(token)) = (reply.status, credential, &token)
            && let Some(token) = credential.instead_of(token).await
        {
            reply = self.http.get(url, Some(&token), max_bytes).await?;
        }
        if reply.status == 200 { Ok(reply.body) } else { Err(FetchError::Status(reply.status)) }
    }
}

/// A path below a URL, whose own path stays: an API may be behind a gateway.
pub(crate) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

fn on_host_of(api: &Url, url: &Url) -> Url {
    let mut rewritten = below(api, url.path().trim_start_matches('/'));
    if url.path().starts_with(api.path()) {
        rewritten.set_path(url.path());
    }
    rewritten.set_query(url.query());
    rewritten
}

/// Whether a URL may be asked: over TLS, or on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_local)
}
