//! `POST /personal_access_tokens/self/rotate`: the old token dies at once, no overlap.
//!
//! Not modelled: reuse detection over the family of a revoked token.

use serde_json::json;

use crate::access::Token;
use crate::call::Call;
use crate::clock::{iso, parse_time};
use crate::git::object_id;
use crate::reply::{Answer, Reply, unauthorized};
use crate::state::State;

const WEEK_MS: u64 = 7 * 24 * 3_600_000;

/// `POST …/self/rotate`
pub(crate) fn rotate_self(state: &mut State, call: &Call) -> Answer {
    let old = call.request.token().ok_or_else(unauthorized)?;
    let expiry = call.params.text("expires_at").and_then(|day| parse_time(&format!("{day}T00:00:00Z")));
    let expires_at_ms = expiry.unwrap_or(state.now_ms + WEEK_MS);
    let id = state.ids.next("token");
    let token = state.tokens.get_mut(&old).ok_or_else(unauthorized)?;
    token.revoked = true;
    let new = Token { expires_at_ms: Some(expires_at_ms), revoked: false, ..token.clone() };
    let text = format!("glpat-{}", &object_id("token", format!("{old}{id}").as_bytes())[..20]);
    let body = json!({
        "id": id, "name": "rotated", "revoked": false, "created_at": iso(state.now_ms), "scopes": new.scopes, "user_id": new.user,
        "last_used_at": null, "active": true, "expires_at": iso(expires_at_ms)[..10], "token": text,
    });
    state.tokens.insert(text, new);
    Ok(Reply::json(200, &body))
}
