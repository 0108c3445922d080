//! Answers, and the six shapes in which GitLab words an error.

use bytes::Bytes;
use serde_json::{Value, json};

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Header names and values, in order.
    pub headers: Vec<(String, String)>,
    /// Body bytes.
    pub body: Bytes,
}

/// What a handler gives: the answer, or the refusal that ended it early.
pub(crate) type Answer = Result<Reply, Reply>;

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::typed(status, "application/json", body.to_string().into())
    }

    pub(crate) fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self::typed(status, "text/plain", body.into())
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn typed(status: u16, content_type: &str, body: Bytes) -> Self {
        Self { status, headers: vec![("Content-Type".into(), content_type.into())], body }
    }

    pub(crate) fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The body as JSON; null if it is none.
    pub fn json_body(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The first header of that name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// `{"message": "<text>"}`
pub(crate) fn message(status: u16, text: impl Into<String>) -> Reply {
    Reply::json(status, &json!({ "message": text.into() }))
}

/// `{"message": ["<text>"]}`, as merge requests answer.
pub(crate) fn messages(status: u16, text: impl Into<String>) -> Reply {
    Reply::json(status, &json!({ "message": [text.into()] }))
}

/// `{"message": {"<field>": ["<text>"]}}`, as model validation answers.
pub(crate) fn field_message(status: u16, field: &str, text: &str) -> Reply {
    Reply::json(status, &json!({ "message": { field: [text] } }))
}

/// `{"error": "<text>"}`, as parameter validation answers.
pub(crate) fn error(status: u16, text: impl Into<String>) -> Reply {
    Reply::json(status, &json!({ "error": text.into() }))
}

/// 400 with a reason.
pub(crate) fn bad_request(reason: &str) -> Reply {
    message(400, format!("400 Bad request - {reason}"))
}

/// 400 for a required parameter.
pub(crate) fn missing(name: &str) -> Reply {
    error(400, format!("{name} is missing"))
}

/// 401 without further words.
pub(crate) fn unauthorized() -> Reply {
    message(401, "401 Unauthorized")
}

/// 403, with a reason or without.
pub(crate) fn forbidden(reason: Option<&str>) -> Reply {
    match reason {
        Some(reason) => message(403, format!("403 Forbidden - {reason}")),
        None => message(403, "403 Forbidden"),
    }
}

/// 404 that names what is missing.
pub(crate) fn not_found(subject: &str) -> Reply {
    message(404, format!("404 {subject} Not Found"))
}

/// 404 of a missing database row (lower-case f).
pub(crate) fn no_record() -> Reply {
    message(404, "404 Not found")
}

/// 405 without further words.
pub(crate) fn not_allowed() -> Reply {
    message(405, "405 Method Not Allowed")
}
