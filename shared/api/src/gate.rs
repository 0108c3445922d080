//! Who may come in: callers with a token, hooks with their connection's secret. Runs before a body is read.

use crate::code::Code;
use crate::problem::Problem;
use crate::state::{ApiState, HookConnection};
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use collie_auth::AuthError;
use collie_core::files::sha256_hex;
use secrecy::ExposeSecret;
use subtle::ConstantTimeEq;

const HOOK_TOKEN: &str = "x-gitlab-token";

/// Lets a request with a good token through, with its caller.
pub(crate) async fn callers(State(state): State<ApiState>, mut request: Request, next: Next) -> Result<Response, Problem> {
    let bearer = bearer(request.headers()).ok_or_else(|| refused(AuthError::Missing))?;
    let caller = state.auth.authenticate(bearer).await.map_err(refused)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// Lets a hook with its connection's secret through, with the connection. An unknown connection looks like a wrong secret.
pub(crate) async fn hooks(
    State(state): State<ApiState>,
    Path(webhook_id): Path<String>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let connection = state.hooks.connection(&webhook_id);
    let sent = request.headers().get(HOOK_TOKEN).map(|token| token.as_bytes()).unwrap_or_default();
    match connection.filter(|c| opens(c, sent)) {
        Some(connection) => {
            request.extensions_mut().insert(connection.clone());
            Ok(next.run(request).await)
        }
        None => Err(Problem::new(Code::Unauthenticated, "X-Gitlab-Token is not the secret of this webhook")),
    }
}

/// Compares digests, so that neither content nor length of the secret shows in the time it takes.
fn opens(connection: &HookConnection, sent: &[u8]) -> bool {
    let secret = connection.secret.expose_secret().as_bytes();
    let same = sha256_hex(secret).as_bytes().ct_eq(sha256_hex(sent).as_bytes());
    bool::from(same) && !secret.is_empty()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn refused(error: AuthError) -> Problem {
    match error {
        AuthError::Missing => Problem::new(Code::Unauthenticated, "send a token as Authorization: Bearer …"),
        AuthError::Invalid(_) | AuthError::Expired => Problem::new(Code::Unauthenticated, error.to_string()),
        AuthError::Unavailable => Problem::new(Code::Unavailable, error.to_string()),
    }
}
