//! Requests below one route prefix with one credential: URLs, decoding, paging.

use crate::call::Call;
use crate::connection::Host;
use crate::error::{self, codes};
use crate::gitlab::GitLab;
use crate::http::Reply;
use crate::limits::PAGE_ROWS;
use crate::pages;
use collie_core::error::{Class, Failure};
use collie_engine::credential::Credential;
use reqwest::Url;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;

/// A host, a credential and a route prefix.
pub(crate) struct Scope<'a> {
    pub(crate) gitlab: &'a GitLab,
    pub(crate) name: &'a str,
    pub(crate) host: &'a Host,
    pub(crate) credential: &'a Credential,
    prefix: Vec<String>,
}

/// What was read of a list.
pub(crate) struct Listing<T> {
    /// The rows before its end.
    pub(crate) rows: Vec<T>,
    /// The row that it was read to, if that came.
    pub(crate) end: Option<T>,
    /// Whether there is more that was not read.
    pub(crate) is_cut: bool,
}

impl<T> Listing<T> {
    fn take(&mut self, page: Vec<T>, is_end: impl Fn(&T) -> bool) {
        for row in page {
            if is_end(&row) {
                self.end = Some(row);
                return;
            }
            self.rows.push(row);
        }
    }
}

impl<'a> Scope<'a> {
    pub(crate) fn new(gitlab: &'a GitLab, name: &'a str, host: &'a Host, credential: &'a Credential) -> Self {
        Self { gitlab, name, host, credential, prefix: Vec::new() }
    }

    /// The same with more route in front.
    pub(crate) fn within(mut self, segments: &[&str]) -> Self {
        self.prefix.extend(segments.iter().map(|&segment| segment.to_owned()));
        self
    }

    /// The URL of a route: every segment is encoded whole, a slash in it included.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<Url, Failure> {
        let segments = self.prefix.iter().map(String::as_str).chain(segments.iter().copied());
        let segments: Vec<_> = ["api", "v4"].into_iter().chain(segments).collect();
        if let Some(segment) = segments.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(Failure::rejected(codes::FORGE_REFUSED, format!("{segment:?} cannot be part of a route")));
        }
        let mut url = self.host.base_url.clone();
        let Ok(mut path) = url.path_segments_mut() else {
            return Err(Failure::bug("the base URL has no path"));
        };
        path.pop_if_empty().extend(segments);
        drop(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Reads one thing.
    pub(crate) async fn read<T: DeserializeOwned>(&self, call: Call, url: Url) -> Result<T, Failure> {
        self.send(call, url, None).await?.decode(call)
    }

    /// Reads all pages of a list; one that is too long or comes back to where it was is an error, never cut short.
    pub(crate) async fn rows<T: DeserializeOwned>(&self, call: Call, url: Url) -> Result<Vec<T>, Failure> {
        let limit = self.gitlab.limits.max_pages;
        let listing = self.rows_to(call, url, limit, |_| false).await?;
        if listing.is_cut {
            return Err(Failure::rejected(codes::TOO_MANY_PAGES, format!("{call}: more than {limit} pages")));
        }
        Ok(listing.rows)
    }

    /// Reads the rows of a list up to one, on at most so many pages.
    pub(crate) async fn rows_to<T: DeserializeOwned>(
        &self,
        call: Call,
        mut url: Url,
        most_pages: usize,
        is_end: impl Fn(&T) -> bool,
    ) -> Result<Listing<T>, Failure> {
        url.query_pairs_mut().append_pair("per_page", PAGE_ROWS);
        let mut listing = Listing { rows: Vec::new(), end: None, is_cut: false };
        let mut seen = HashSet::new();
        for _ in 0..most_pages {
            let reply = self.send(call, url.clone(), None).await?;
            listing.take(reply.decode(call)?, &is_end);
            let next = pages::next(&reply.headers).filter(|_| listing.end.is_none());
            let Some(cursor) = next else { return Ok(listing) };
            pages::turn(&mut url, &cursor);
            if !seen.insert(cursor) {
                return Err(Failure::rejected(codes::TOO_MANY_PAGES, format!("{call}: the pages go in a circle")));
            }
        }
        Ok(Listing { is_cut: true, ..listing })
    }

    /// Writes and reads back what was written.
    pub(crate) async fn write<T: DeserializeOwned>(&self, call: Call, url: Url, body: &impl Serialize) -> Result<T, Failure> {
        self.submit(call, url, body).await?.decode(call)
    }

    /// Writes, whatever the answer holds.
    pub(crate) async fn submit(&self, call: Call, url: Url, body: &impl Serialize) -> Result<Reply, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::bug(format!("{call}: {error}")))?;
        self.send(call, url, Some(body)).await
    }

    /// One request; everything but a success is a failure.
    pub(crate) async fn send(&self, call: Call, url: Url, body: Option<Vec<u8>>) -> Result<Reply, Failure> {
        let reply = self.exchange(call, url, body).await?;
        if reply.status.is_success() { Ok(reply) } else { Err(self.failure(call, &reply)) }
    }

    /// What an answer that is no success means.
    pub(crate) fn failure(&self, call: Call, reply: &Reply) -> Failure {
        let body = error::ErrorBody::read(&reply.text(), reply.sent_with.expose_secret());
        error::classify(call, reply.status.as_u16(), &body, &reply.headers, self.gitlab.clock.now())
    }
}

/// Turns "it is not there" into none.
pub(crate) fn optional<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.class == Class::Gone => Ok(None),
        Err(failure) => Err(failure),
    }
}
