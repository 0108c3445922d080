//! Content by reference: announced here, uploaded to where the answer says, and named by submissions.

use crate::body::{self, Body};
use crate::code::Code;
use crate::fields::{Errors, Object};
use crate::problem::{FieldError, Problem};
use crate::refusal;
use crate::state::ApiState;
use crate::submission::{Reading, is_sha256};
use crate::view::Offered;
use axum::extract::State;
use axum::{Extension, Json};
use collie_engine::access::Caller;
use collie_engine::blobs::MAX_BLOB;
use serde_json::Value;
use utoipa::ToSchema;

/// Content that is about to be uploaded.
#[derive(Debug, PartialEq, Eq, ToSchema)]
pub(crate) struct BlobRequest {
    /// The content's SHA-256, 64 lower-case hex digits.
    sha256: String,
    /// Its length in bytes, at most 20 MiB.
    size: u64,
}

impl BlobRequest {
    fn read(value: &Value) -> Result<Self, Problem> {
        let mut errors = Errors::default();
        let object = Object::read(value, String::new(), &["sha256", "size"], &mut errors);
        let sha256: &str = object.as_ref().and_then(|o| o.required("sha256", &mut errors)).unwrap_or_default();
        let size = object.as_ref().and_then(|o| o.required("size", &mut errors)).unwrap_or_default();
        if errors.is_empty() && !is_sha256(sha256) {
            errors.push(FieldError::new("/sha256", "invalid_value", "is no SHA-256", "send 64 lower-case hex digits"));
        }
        errors.problem(Code::InvalidRequest)?;
        if size > MAX_BLOB {
            return Err(Problem::new(Code::TooLarge, format!("the content is longer than {MAX_BLOB} bytes")));
        }
        Ok(Self { sha256: sha256.to_owned(), size })
    }
}

/// Lets a caller upload content that is too large for a request.
#[utoipa::path(post, path = "/v1/blobs", tag = "work items", security(("bearer" = [])), request_body = BlobRequest,
    responses((status = 200, description = "send the bytes by PUT to the URL, with the headers; 412 there means that they are there already",
            body = Offered),
        (status = 400, description = "invalid_json, invalid_request"), (status = 403, description = "forbidden"), (status = 413, description = "too_large")))]
pub(crate) async fn announce(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    body: Body,
) -> Result<Json<Offered>, Problem> {
    if !caller.grants.can_submit() {
        return Err(Problem::new(Code::Forbidden, "this caller may submit nothing, and content is for submissions"));
    }
    let BlobRequest { sha256, size } = BlobRequest::read(&body::json(body)?)?;
    let offer = state.blobs.announce(&caller.identity, &sha256, size).await.map_err(|failure| refusal::of_failure(&failure))?;
    Ok(Json(Offered::of(&sha256, offer)))
}

/// Puts contents in the place of their names, as far as a change of the project may hold; the policy says what is too much.
pub(crate) async fn resolve(state: &ApiState, caller: &Caller, reading: &mut Reading) -> Result<(), Problem> {
    let Some(project) = state.engine.settings().project(&reading.submission.project) else { return Ok(()) };
    let mut room = project.policy.config().max_bytes.0;
    for reference in std::mem::take(&mut reading.references) {
        let bytes = state.blobs.read(&caller.identity, &reference.sha256).await.map_err(|failure| refusal::of_failure(&failure))?;
        let Some(bytes) = bytes else {
            let hint = "announce it with POST /v1/blobs and upload it first; uploads expire after a day";
            reading.broken.push(FieldError::new(reference.pointer, "unknown_content_ref", "names no content of yours", hint));
            continue;
        };
        let length = bytes.len() as u64;
        if let Some(action) = reading.submission.file_actions.get_mut(reference.action) {
            action.content = Some(bytes);
        }
        match room.checked_sub(length) {
            Some(left) => room = left,
            None => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_a_digest_and_a_length() {
        let digest = "a".repeat(64);
        let read = BlobRequest::read(&json!({"sha256": digest, "size": MAX_BLOB})).unwrap();
        assert_eq!(read, BlobRequest { sha256: digest.clone(), size: MAX_BLOB });
        let refused = |value: Value| {
            let problem = BlobRequest::read(&value).unwrap_err();
            (problem.code, problem.errors.iter().map(|e| (e.path.clone(), e.code)).collect::<Vec<_>>())
        };
        assert_eq!(refused(json!({"sha256": digest, "size": MAX_BLOB + 1})), (Code::TooLarge, vec![]));
        for wrong in ["", "A", &"A".repeat(64), &"a".repeat(63), &format!("sha256:{digest}")] {
            assert_eq!(refused(json!({"sha256": wrong, "size": 1})), (Code::InvalidRequest, vec![("/sha256".into(), "invalid_value")]));
        }
        let wrong = refused(json!({"size": -1, "name": "a"}));
        let want = vec![("/name".into(), "unknown_field"), ("/sha256".into(), "missing_field"), ("/size".into(), "wrong_type")];
        assert_eq!(wrong, (Code::InvalidRequest, want));
    }
}
