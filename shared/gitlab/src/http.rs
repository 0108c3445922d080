//! One request and its answer: credential, concurrency, time and size bounds. Nothing here knows what an answer means.

use crate::call::Call;
use crate::connection::private_token;
use crate::error::{lost, oversized, unreadable};
use crate::limits::MAX_ERROR_BYTES;
use crate::scope::Scope;
use bytes::Bytes;
use collie_core::error::Failure;
use collie_engine::{cost, metric};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RANGE};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// An answer, whatever its status.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The token of the request, which must not show where the other side sends it back.
    pub(crate) sent_with: SecretString,
    body: Vec<u8>,
}

impl Reply {
    /// Reads the answer to a call that succeeded.
    pub(crate) fn decode<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| unreadable(call, self.status.as_u16(), &error))
    }

    /// The body.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// The body as text.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

/// A request, and the token that it carries.
type Sendable = (RequestBuilder, SecretString);

impl Scope<'_> {
    /// Sends one request and reads its answer. Where the token is refused and is another one by now, it is sent once more: nothing
    /// was done the first time.
    pub(crate) async fn exchange(&self, call: Call, url: Url, body: Option<Vec<u8>>) -> Result<Reply, Failure> {
        self.exchange_within(call, url, body, self.gitlab.limits.max_answer_bytes).await
    }

    /// The same with a bound of its own for what a success may hold.
    pub(crate) async fn exchange_within(&self, call: Call, url: Url, body: Option<Vec<u8>>, bound: usize) -> Result<Reply, Failure> {
        let body = body.map(Bytes::from);
        let request = self.request(self.credential.get(), call, url.clone(), body.clone())?;
        let reply = self.exchange_once(call, request, bound).await?;
        match self.token_instead(&reply).await {
            Some(token) => self.exchange_once(call, self.request(token, call, url, body)?, bound).await,
            None => Ok(reply),
        }
    }

    async fn exchange_once(&self, call: Call, (request, token): Sendable, bound: usize) -> Result<Reply, Failure> {
        let _permit = self.permit().await?;
        let response = self.ask(call, request).await?;
        self.receive(call, response, token, bound).await
    }

    /// The token to send a refused request with again, if it has changed.
    async fn token_instead(&self, reply: &Reply) -> Option<SecretString> {
        if reply.status == StatusCode::UNAUTHORIZED { self.credential.instead_of(&reply.sent_with).await } else { None }
    }

    /// The same for an answer of any length, of which only the end is asked for and kept. Says whether something was left out.
    pub(crate) async fn exchange_tail(&self, call: Call, url: Url, most: usize) -> Result<(Reply, bool), Failure> {
        let tail = self.tail_with(self.credential.get(), call, url.clone(), most).await?;
        match self.token_instead(&tail.0).await {
            Some(token) => self.tail_with(token, call, url, most).await,
            None => Ok(tail),
        }
    }

    async fn tail_with(&self, token: SecretString, call: Call, url: Url, most: usize) -> Result<(Reply, bool), Failure> {
        let (request, token) = self.request(token, call, url, None)?;
        let request = request.header(RANGE, format!("bytes=-{most}"));
        let _permit = self.permit().await?;
        let mut response = self.ask(call, request).await?;
        if !response.status().is_success() {
            return Ok((self.receive(call, response, token, most).await?, false));
        }
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let (body, is_over) = end_of_body(call, response, most).await?;
        Ok((Reply { status, headers, sent_with: token, body }, is_over))
    }

    async fn permit(&self) -> Result<SemaphorePermit<'_>, Failure> {
        self.host.permits.acquire().await.map_err(|_| Failure::bug("the semaphore of a host is closed"))
    }

    async fn ask(&self, call: Call, request: RequestBuilder) -> Result<Response, Failure> {
        cost::gitlab_call();
        let answer = request.send().await;
        metric::gitlab_call(&call.to_string(), answer.as_ref().ok().map(|response| response.status().as_u16()));
        let response = answer.map_err(|error| lost(call, &error))?;
        tracing::debug!(host = self.name, %call, status = response.status().as_u16(), "GitLab answered");
        Ok(response)
    }

    fn request(&self, sent_with: SecretString, call: Call, url: Url, body: Option<Bytes>) -> Result<Sendable, Failure> {
        let token = private_token(&sent_with).ok_or_else(|| Failure::bug("a token fits no header"))?;
        let request = self.gitlab.client.request(call.method(), url).timeout(self.timeout(call));
        let request = request.header("private-token", token).header(ACCEPT, "application/json");
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body),
            None => request,
        };
        Ok((request, sent_with))
    }

    fn timeout(&self, call: Call) -> Duration {
        let limits = &self.gitlab.limits;
        if matches!(call, Call::CreateCommit | Call::Trace | Call::TestReport) { limits.commit_timeout } else { limits.read_timeout }
    }

    async fn receive(&self, call: Call, mut response: Response, sent_with: SecretString, bound: usize) -> Result<Reply, Failure> {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let body = if status.is_success() { whole_body(call, response, bound).await? } else { start_of_body(response).await };
        Ok(Reply { status, headers, sent_with, body })
    }
}

async fn whole_body(call: Call, mut response: Response, bound: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(call, &error))? {
        if body.len() + chunk.len() > bound {
            return Err(oversized(call, bound));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The last bytes of a body, in at most twice as much memory and one chunk.
async fn end_of_body(call: Call, mut response: Response, most: usize) -> Result<(Vec<u8>, bool), Failure> {
    let (mut body, mut is_over) = (Vec::new(), false);
    let mut keep = |body: &mut Vec<u8>| {
        let surplus = body.len().saturating_sub(most);
        is_over |= surplus > 0;
        body.drain(..surplus);
    };
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(call, &error))? {
        body.extend_from_slice(&chunk);
        if body.len() >= most.saturating_mul(2) {
            keep(&mut body);
        }
    }
    keep(&mut body);
    Ok((body, is_over))
}

/// As much of an error's body as can be had: the status already says what it means.
async fn start_of_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= MAX_ERROR_BYTES {
            break;
        }
    }
    body.truncate(MAX_ERROR_BYTES);
    body
}
