//! Problem documents (RFC 9457): what every refused request is answered with.
//!
//! Upholds INV-12: texts are written here or by the policy, and never repeat a token, a secret or the content of a file. What
//! only operators should know is in [`Problem::cause`], which is logged and not sent.

use crate::code::Code;
use crate::view::ProblemDocument;
use axum::Json;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use collie_core::policy::Violation;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// A refused request. It becomes a whole document when the request's id is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub code: Code,
    /// What is wrong with this request, for people.
    pub detail: String,
    /// Each thing that is wrong, where there are several or they have a place.
    pub errors: Vec<FieldError>,
    /// What operators should know; logged, never sent.
    pub cause: Option<String>,
    /// Seconds after which the same request may be sent again, where that is another time than the code's.
    retry_after: Option<u32>,
    /// Whether it stands for something that the caller may not know of.
    hides: bool,
}

/// One thing that is wrong, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// JSON Pointer into the body, or the name of a query parameter.
    pub path: String,
    /// Stable snake_case code.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl FieldError {
    pub(crate) fn new(path: impl Into<String>, code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { path: path.into(), code, message: message.into(), hint: hint.into() }
    }
}

impl From<Violation> for FieldError {
    fn from(v: Violation) -> Self {
        Self { path: v.path, code: v.code, message: v.message, hint: v.hint }
    }
}

impl Problem {
    /// The media type of a document.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem with this detail.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new(), cause: None, retry_after: None, hides: false }
    }

    /// The same for callers that may come back after so many seconds.
    pub(crate) fn retrying_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The same for something that is there, and that the caller may not know of.
    pub(crate) fn hiding(self) -> Self {
        Self { hides: true, ..self.caused_by("it is there, and this caller may not see it") }
    }

    /// Whether the caller, and not only the request, is refused.
    pub(crate) fn refuses_the_caller(&self) -> bool {
        self.hides || matches!(self.code, Code::Unauthenticated | Code::Forbidden | Code::NoRule)
    }

    /// The same with each thing that is wrong.
    #[must_use]
    pub fn with_errors(self, errors: Vec<FieldError>) -> Self {
        Self { errors, ..self }
    }

    /// The same with what operators should know.
    #[must_use]
    pub fn caused_by(self, cause: impl fmt::Display) -> Self {
        Self { cause: Some(cause.to_string()), ..self }
    }

    /// The document.
    fn document(&self, request_id: &str) -> ProblemDocument {
        ProblemDocument {
            kind: format!("/errors/{}", self.code.as_str()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: self.detail.clone(),
            code: self.code.as_str(),
            errors: self.errors.clone(),
            request_id: request_id.to_owned(),
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after.or(self.code.retry_after()) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        headers
    }

    /// The whole answer to the request with this id.
    #[must_use]
    pub fn answer(&self, request_id: &str) -> Response {
        (self.code.status(), self.headers(), Json(self.document(request_id))).into_response()
    }
}

/// Carries the problem to the layer that knows the request's id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl std::error::Error for Problem {}
