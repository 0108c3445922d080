//! The port by which issuers and clusters are asked, and its adapter.
//!
//! The adapter follows no redirect off the host that was asked, reads no more than it is told to, and waits no longer than
//! [`TIMEOUT`]. It never shows a token, neither in an error nor in a log (INV-12).

use async_trait::async_trait;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Client};
use secrecy::{ExposeSecret, SecretString};
use std::sync::OnceLock;
use std::time::Duration;
use url::Url;

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How many redirects on the same host are followed.
const MAX_HOPS: usize = 3;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Nobody answered in time.
    #[error("it does not answer")]
    Unreachable,
    /// The body is longer than it may be.
    #[error("its answer is too long")]
    TooLong,
    /// There is no client: the machine's trust store cannot be read.
    #[error("there is no TLS client")]
    NoClient,
}

/// Asks issuers and clusters.
#[async_trait]
pub trait Http: Send + Sync {
    /// Gets a URL, with a bearer token where one is given.
    ///
    /// # Errors
    /// Why there is no answer. An answer of any status is none.
    async fn get(&self, url: &Url, bearer: Option<&SecretString>, max_bytes: usize) -> Result<Reply, HttpError>;
}

/// Whom a client believes.
#[derive(Debug, Clone)]
enum Trust {
    /// Nobody: for plain HTTP on this machine, without the time that loading a trust store takes.
    Nobody,
    /// The machine's trust store.
    Machine,
    /// These authorities and no others.
    Only(Vec<Certificate>),
}

/// The adapter. Its client is made when it is first needed.
#[derive(Debug)]
pub struct HttpClient {
    trust: Trust,
    client: OnceLock<Option<Client>>,
}

impl HttpClient {
    /// A client for URLs; the trust store is read only where one of them needs it.
    pub fn of<'u>(urls: impl IntoIterator<Item = &'u Url>) -> Self {
        let is_secure = urls.into_iter().any(|url| url.scheme() == "https");
        Self::new(if is_secure { Trust::Machine } else { Trust::Nobody })
    }

    /// A client that believes the authorities of a PEM bundle, and no others.
    ///
    /// # Errors
    /// Where the bundle holds no certificate.
    pub fn trusting(bundle: &[u8]) -> Result<Self, &'static str> {
        let certificates = Certificate::from_pem_bundle(bundle).map_err(|_| "is no bundle of PEM certificates")?;
        if certificates.is_empty() { Err("holds no certificate") } else { Ok(Self::new(Trust::Only(certificates))) }
    }

    const fn new(trust: Trust) -> Self {
        Self { trust, client: OnceLock::new() }
    }

    fn client(&self) -> Option<&Client> {
        self.client.get_or_init(|| build(&self.trust).inspect_err(|error| tracing::error!(%error, "no TLS client")).ok()).as_ref()
    }
}

#[async_trait]
impl Http for HttpClient {
    async fn get(&self, url: &Url, bearer: Option<&SecretString>, max_bytes: usize) -> Result<Reply, HttpError> {
        let request = self.client().ok_or(HttpError::NoClient)?.get(url.clone()).header("accept", "application/json");
        let request = match bearer {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        };
        let mut response = request.send().await.map_err(|_| HttpError::Unreachable)?;
        let (status, mut body) = (response.status().as_u16(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(|_| HttpError::Unreachable)? {
            if body.len() + chunk.len() > max_bytes {
                return Err(HttpError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { status, body })
    }
}

fn build(trust: &Trust) -> reqwest::Result<Client> {
    // A provider that someone installed before does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = match trust {
        Trust::Nobody => Client::builder().tls_certs_only([]),
        Trust::Machine => Client::builder(),
        Trust::Only(certificates) => Client::builder().tls_certs_only(certificates.clone()),
    };
    builder
        .user_agent(concat!("collie/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(follow))
        .no_proxy()
        .referer(false)
        .timeout(TIMEOUT)
        .build()
}

/// Follows a redirect to the same origin; of any other the redirect itself is the answer.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let first = attempt.previous().first();
    let stays = first.is_some_and(|first| first.origin() == attempt.url().origin()) && attempt.previous().len() <= MAX_HOPS;
    if stays { attempt.follow() } else { attempt.stop() }
}
