//! Who may come in: callers with a token, hooks with their connection's secret. Runs before a body is read.

use crate::about::About;
use crate::code::Code;
use crate::problem::Problem;
use crate::state::{ApiState, HookConnection};
use axum::Extension;
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use collie_auth::AuthError;
use collie_core::files::sha256_hex;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

const HOOK_TOKEN: &str = "x-gitlab-token";

/// The header by which an OAuth proxy brings the token of whoever logged in.
const FORWARDED_TOKEN: &str = "x-forwarded-access-token";
/// The one route that such a proxy protects.
const BEHIND_PROXY: &str = "/v1/me";

/// Lets a request with a good token through, with its caller.
pub(crate) async fn callers(
    State(state): State<ApiState>,
    Extension(about): Extension<About>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let token = match token(&state, &request) {
        Some(token) => token,
        None => return Err(refused(AuthError::Missing, &about)),
    };
    let caller = state.auth.authenticate(&token).await.map_err(|error| refused(error, &about))?;
    about.caller(&caller);
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// The token of a request: where an OAuth proxy is before the route, the one that it brings, else the bearer's.
fn token(state: &ApiState, request: &Request) -> Option<String> {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if state.oauth_proxy && route == Some(BEHIND_PROXY) { forwarded(request.headers()) } else { bearer(request.headers()) }
}

/// The token that an OAuth proxy brought.
pub(crate) fn forwarded(headers: &HeaderMap) -> Option<String> {
    headers.get(FORWARDED_TOKEN)?.to_str().ok().map(str::to_owned)
}

/// Lets a hook with its connection's secret through, with the connection. An unknown connection looks like a wrong secret.
pub(crate) async fn hooks(
    State(state): State<ApiState>,
    Extension(about): Extension<About>,
    Path(webhook_id): Path<String>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let refused = || Problem::new(Code::Unauthenticated, "X-Gitlab-Token is not the secret of this webhook");
    let connection = state.hooks.connection(&webhook_id).ok_or_else(refused)?;
    let sent = request.headers().get(HOOK_TOKEN).map(|token| token.as_bytes().to_vec()).unwrap_or_default();
    if !is_opened(connection, &sent).await {
        return Err(refused());
    }
    about.identity(format!("hook|{}", connection.slug));
    request.extensions_mut().insert(connection.clone());
    Ok(next.run(request).await)
}

/// Whether what a hook brought is its connection's secret, or has become it.
async fn is_opened(connection: &HookConnection, sent: &[u8]) -> bool {
    let secret = connection.secret.get();
    let has_become = async || connection.secret.instead_of(&secret).await.is_some_and(|secret| opens(&secret, sent));
    !sent.is_empty() && (opens(&secret, sent) || has_become().await)
}

/// Compares digests, so that neither content nor length of the secret shows in the time it takes.
fn opens(secret: &SecretString, sent: &[u8]) -> bool {
    let secret = secret.expose_secret().as_bytes();
    let same = sha256_hex(secret).as_bytes().ct_eq(sha256_hex(sent).as_bytes());
    bool::from(same) && !secret.is_empty()
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

fn refused(error: AuthError, about: &About) -> Problem {
    let problem = match &error {
        AuthError::Missing => Problem::new(Code::Unauthenticated, "send a token as Authorization: Bearer …"),
        AuthError::Invalid(_) | AuthError::Expired => Problem::new(Code::Unauthenticated, error.to_string()),
        AuthError::Unavailable => Problem::new(Code::Unavailable, error.to_string()),
        AuthError::NoRule { failed_claims, .. } if failed_claims.is_empty() => Problem::new(Code::NoRule, error.to_string()),
        AuthError::NoRule { failed_claims, .. } => {
            Problem::new(Code::NoRule, format!("{error}; claims that do not fit: {}", failed_claims.join(", ")))
        }
    };
    if let AuthError::NoRule { identity, .. } = error {
        about.identity(identity);
    }
    problem
}
