//! The small answers.

use super::WorkItem;
use collie_core::access::Grants;
use collie_engine::access::Caller;
use collie_engine::blobs::Offer;
use collie_engine::ingest::Ingested;
use collie_engine::ports::SignedUpload;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What a submission did.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Submitted {
    /// `created`, `unchanged`, `updated` or `retried`.
    pub(crate) outcome: &'static str,
    /// The item as it is now.
    pub(crate) work_item: WorkItem,
}

/// What a submission would do.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Validated {
    /// True.
    pub(crate) ok: bool,
    /// `created`, `unchanged`, `updated` or `retried`.
    pub(crate) would: &'static str,
    /// The GitLab calls it would lead to.
    pub(crate) calls: Vec<String>,
}

/// Who calls, and what they may do.
#[derive(Serialize, ToSchema)]
pub(crate) struct Me {
    /// The identity.
    identity: String,
    /// Who signed the token, where someone did.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// The groups that a cluster knows the caller by, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<String>>,
    /// What it may do: one of them has to cover a request.
    #[schema(value_type = Vec<Object>)]
    grants: Grants,
    /// The token that an OAuth proxy brought; further calls send it as a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl Me {
    /// A caller, as they may see themselves.
    pub(crate) fn of(caller: Caller, token: Option<String>) -> Self {
        let Caller { identity, grants, issuer, groups, .. } = caller;
        Self { identity, issuer, groups: Some(groups).filter(|groups| !groups.is_empty()), grants, token }
    }
}

/// An upload that may now be made.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Offered {
    /// What names the content in a file action, once it is uploaded.
    content_ref: String,
    /// The request that uploads it.
    upload: UploadRequest,
    /// Until when the upload may be started, RFC 3339.
    expires_at: String,
}

/// A `PUT` that whoever holds it may send once.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct UploadRequest {
    /// Where to.
    url: String,
    /// The headers that go with it.
    headers: BTreeMap<String, String>,
}

impl Offered {
    /// The answer to an announcement of content.
    pub(crate) fn of(sha256: &str, offer: Offer) -> Self {
        let SignedUpload { url, headers } = offer.upload;
        let upload = UploadRequest { url, headers: headers.into_iter().collect() };
        Self { content_ref: format!("sha256:{sha256}"), upload, expires_at: offer.expires_at.to_string() }
    }
}

/// That the API answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct Alive {
    /// `ok`.
    pub(crate) status: &'static str,
}

/// What became of a hook.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TakenHook)]
pub(crate) struct Taken {
    /// `stored`, `overflowed`, `repeated`, `unresolved`, `no_effect`, `ignored` or `set_aside`.
    outcome: &'static str,
}

impl From<Ingested> for Taken {
    fn from(ingested: Ingested) -> Self {
        let outcome = match ingested {
            Ingested::Stored => "stored",
            Ingested::Overflowed => "overflowed",
            Ingested::Repeated => "repeated",
            Ingested::Unresolved => "unresolved",
            Ingested::NoEffect => "no_effect",
            Ingested::Ignored => "ignored",
            Ingested::SetAside => "set_aside",
        };
        Self { outcome }
    }
}

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemDocument {
    /// `/errors/` and the code.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// What the code means.
    pub(crate) title: &'static str,
    /// The status of the answer.
    pub(crate) status: u16,
    /// What is wrong with this request.
    pub(crate) detail: String,
    /// Stable snake_case code.
    pub(crate) code: &'static str,
    /// Each thing that is wrong, where there are several or they have a place.
    pub(crate) errors: Vec<crate::problem::FieldError>,
    /// The id under which the request was logged.
    pub(crate) request_id: String,
}
