//! How fast one identity may ask for changes. Reads are the gateway's to limit.

use crate::code::Code;
use crate::problem::Problem;
use crate::refusal;
use crate::state::ApiState;
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use collie_engine::access::Caller;

/// Lets a request through that only reads, or that its caller has a token for.
pub(crate) async fn changes(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if request.method() == Method::GET {
        return Ok(next.run(request).await);
    }
    match state.limiter.admit(&caller.identity).await {
        Ok(None) => Ok(next.run(request).await),
        Ok(Some(wait)) => {
            let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
            let detail = format!("this identity asks for too many changes; send the same request again in {seconds} s");
            Err(Problem::new(Code::RateLimited, detail).retrying_after(seconds))
        }
        Err(failure) => Err(refusal::of_failure(&failure)),
    }
}
