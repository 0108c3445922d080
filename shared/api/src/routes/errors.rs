//! The pages of codes: where `type` of a problem document leads.

use crate::code::Code;
use crate::pages;
use crate::problem::Problem;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

const HEADERS: [(axum::http::HeaderName, &str); 2] =
    [(CONTENT_TYPE, "text/markdown; charset=utf-8"), (CACHE_CONTROL, "public, max-age=3600")];

/// What a code means, and what to do about it. Links of pages lead to `<code>.md`, which is the same page.
#[utoipa::path(get, path = "/errors/{code}", tag = "service", params(("code" = String, Path, description = "of a problem, an error, a work item")),
    responses((status = 200, description = "the code's page", body = String, content_type = "text/markdown"),
        (status = 404, description = "route_not_found")))]
pub(crate) async fn page(Path(code): Path<String>) -> Result<Response, Problem> {
    let page = pages::page(code.strip_suffix(".md").unwrap_or(&code));
    let page = page.ok_or_else(|| Problem::new(Code::RouteNotFound, "there is no page for this code"))?;
    Ok((HEADERS, page).into_response())
}
