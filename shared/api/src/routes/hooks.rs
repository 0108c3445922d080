//! The door for hooks. A delivery is stored before it is acknowledged (INV-4).

use crate::body::{self, Body, MAX_HOOK};
use crate::problem::Problem;
use crate::refusal;
use crate::state::{ApiState, HookConnection};
use crate::view::Taken;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use collie_core::files::sha256_hex;
use collie_engine::ingest::Received;

/// Headers that name a delivery, the first that is there counts. `X-Gitlab-Event-UUID` is shared along a chain of events.
const NAMES: [&str; 2] = ["idempotency-key", "webhook-id"];

/// Takes a hook of GitLab's.
#[utoipa::path(post, path = "/v1/hooks/gitlab/{webhook_id}", tag = "hooks", security(("hook" = [])),
    params(("webhook_id" = String, Path, description = "the connection's slug")),
    request_body(content = Object, description = "GitLab's hook, at most 3 MiB"),
    responses((status = 200, description = "stored, or known to be of no use", body = Taken), (status = 413, description = "too_large")))]
pub(crate) async fn take(
    State(state): State<ApiState>,
    Extension(connection): Extension<HookConnection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Taken>, Problem> {
    let bytes = body::bytes(body, MAX_HOOK)?;
    let delivery_id = delivery_id(&headers, &connection.slug, &bytes);
    let received = Received { host: &connection.host, delivery_id: &delivery_id, body: &bytes };
    let ingested = state.engine.ingest_at_door(received).await.map_err(|failure| refusal::of_failure(&failure))?;
    Ok(Json(ingested.into()))
}

/// The same for a repetition, and for nothing else.
fn delivery_id(headers: &HeaderMap, webhook_id: &str, body: &[u8]) -> String {
    let named = NAMES.iter().find_map(|name| headers.get(*name)?.to_str().ok().filter(|id| !id.is_empty()));
    named.map_or_else(|| sha256_hex(&[webhook_id.as_bytes(), body].concat()), str::to_owned)
}
