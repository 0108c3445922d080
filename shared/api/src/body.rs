//! Bodies of requests: their limits, and JSON out of them.

use crate::code::Code;
use crate::problem::Problem;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use serde_json::{Map, Value};

/// The longest body of an API call.
pub(crate) const MAX_BODY: usize = 6 << 20;
/// The longest body of a hook.
pub(crate) const MAX_HOOK: usize = 3 << 20;

/// A body as the extractor gives it.
pub(crate) type Body = Result<Bytes, BytesRejection>;

/// The bytes of a body that is not longer than its route allows.
pub(crate) fn bytes(body: Body, limit: usize) -> Result<Bytes, Problem> {
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(Code::TooLarge, format!("the body is longer than {limit} bytes")),
        _ => Problem::new(Code::UnreadableBody, "the body ended early or could not be read"),
    })
}

/// The JSON of a body.
pub(crate) fn json(body: Body) -> Result<Value, Problem> {
    let bytes = bytes(body, MAX_BODY)?;
    serde_json::from_slice(&bytes).map_err(|e| Problem::new(Code::InvalidJson, e.to_string()))
}

/// The JSON of a body that may be left out.
pub(crate) fn optional_json(body: Body) -> Result<Value, Problem> {
    match bytes(body, MAX_BODY)? {
        empty if empty.is_empty() => Ok(Value::Object(Map::new())),
        bytes => json(Ok(bytes)),
    }
}
