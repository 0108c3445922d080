//! The client of the HTTP API.

pub(crate) mod commands;
pub(crate) mod letters;
pub(crate) mod progress;
pub(crate) mod render;
pub(crate) mod tracking;

use crate::error::Error;
use reqwest::{Method, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A caller of one API.
pub(crate) struct Client {
    http: reqwest::Client,
    root: String,
    token: SecretString,
}

impl Client {
    /// A client of the API at `endpoint`.
    pub(crate) fn new(endpoint: &str, token: SecretString) -> Result<Self, Error> {
        let url = Url::parse(endpoint).map_err(|error| Error::Usage(format!("--endpoint {endpoint:?}: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::Usage(format!("--endpoint {endpoint:?}: an http or https URL is needed")));
        }
        let builder = reqwest::Client::builder().timeout(TIMEOUT).connect_timeout(CONNECT_TIMEOUT);
        let http = builder.redirect(reqwest::redirect::Policy::none()).build();
        let http = http.map_err(|error| Error::Failed(format!("the HTTP client cannot be built: {error}")))?;
        Ok(Self { http, root: url.as_str().trim_end_matches('/').to_owned(), token })
    }

    /// Reads a document.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Error> {
        self.send(self.request(Method::GET, path).query(query)).await
    }

    /// Sends a document.
    pub(crate) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Value, Error> {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(body)).await
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}/v1/{path}", self.root)).bearer_auth(self.token.expose_secret())
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, Error> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let (status, body) = (response.status(), self.body(response).await?);
        match serde_json::from_slice(&body) {
            Ok(document) if status.is_success() => Ok(document),
            Ok(problem @ Value::Object(_)) => Err(Error::Refused(problem)),
            _ if status.is_success() => Err(Error::Failed("the server's answer is no JSON; is this Collie?".to_owned())),
            _ => Err(Error::Refused(bare_problem(status))),
        }
    }

    async fn body(&self, response: Response) -> Result<Vec<u8>, Error> {
        let body = response.bytes().await;
        body.map(|bytes| bytes.to_vec()).map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Error {
        let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        let cause = causes.by_ref().last().map_or_else(|| error.to_string(), ToString::to_string);
        Error::Unreachable(format!("{} is not reachable: {cause}", self.root))
    }
}

/// A problem document for an answer that has none, such as a proxy's.
fn bare_problem(status: StatusCode) -> Value {
    json!({ "status": status.as_u16(), "title": status.canonical_reason().unwrap_or("refused"), "code": "http_error" })
}
