//! Dead letters, for admins: what queues gave up, and what is to become of it.

use crate::code::Code;
use crate::page::{self, Parameters, Sent};
use crate::problem::Problem;
use crate::refusal;
use crate::state::ApiState;
use crate::view::{LetterList, LetterView};
use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use collie_core::letter::State as LetterState;
use collie_engine::access::Caller;
use collie_engine::letters::Error;

/// Lists dead letters by id.
#[utoipa::path(get, path = "/v1/dead-letters", tag = "dead letters", security(("bearer" = [])),
    params(("state" = Option<String>, Query, description = "waiting, redriven or abandoned"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50"), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = LetterList), (status = 400, description = "invalid_query"), (status = 403, description = "forbidden")))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    query: Sent,
) -> Result<Json<LetterList>, Problem> {
    admin(&caller)?;
    let mut parameters = Parameters::read(query, &["state", "limit", "cursor"])?;
    let word = |text: &str| LetterState::ALL.into_iter().find(|state| state.as_str() == text);
    let wanted = parameters.take_as("state", "waiting, redriven or abandoned", word);
    let paging = parameters.paging();
    parameters.finish()?;
    let found = state.letters.list(wanted, paging.after.as_deref(), paging.limit).await.map_err(|failure| refusal::of_failure(&failure))?;
    let items = found.items.iter().map(LetterView::of).collect();
    Ok(Json(LetterList { items, next_cursor: found.next.as_deref().map(page::cursor) }))
}

/// Shows a dead letter.
#[utoipa::path(get, path = "/v1/dead-letters/{id}", tag = "dead letters", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = LetterView), (status = 403, description = "forbidden"), (status = 404, description = "unknown_letter")))]
pub(crate) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<LetterView>, Problem> {
    admin(&caller)?;
    state.letters.show(&id).await.map(|letter| Json(LetterView::of(&letter))).map_err(of_error)
}

/// Sends a dead letter to its queue again. What it asks for is judged by what is true then, however often it is sent.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/redrive", tag = "dead letters", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = LetterView), (status = 403, description = "forbidden"), (status = 404, description = "unknown_letter"),
        (status = 409, description = "letter_abandoned, letter_expired")))]
pub(crate) async fn redrive(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<LetterView>, Problem> {
    let by = admin(&caller)?;
    state.letters.redrive(&id, by).await.map(|letter| Json(LetterView::of(&letter))).map_err(of_error)
}

/// Puts an end to a dead letter.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/abandon", tag = "dead letters", security(("bearer" = [])), params(("id" = String, Path)),
    responses((status = 200, body = LetterView), (status = 403, description = "forbidden"), (status = 404, description = "unknown_letter")))]
pub(crate) async fn abandon(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<LetterView>, Problem> {
    let by = admin(&caller)?;
    state.letters.abandon(&id, by).await.map(|letter| Json(LetterView::of(&letter))).map_err(of_error)
}

fn admin(caller: &Caller) -> Result<&str, Problem> {
    if caller.is_admin() { Ok(&caller.identity) } else { Err(Problem::new(Code::Forbidden, "dead letters are for admins")) }
}

fn of_error(error: Error) -> Problem {
    match error {
        Error::NotFound => Problem::new(Code::UnknownLetter, "there is no such dead letter; they are kept for 90 days"),
        Error::Abandoned => Problem::new(Code::LetterAbandoned, "the dead letter was abandoned"),
        Error::Expired => Problem::new(Code::LetterExpired, "the dead letter's body has expired; what it asked for cannot be sent again"),
        Error::Contended => Problem::new(Code::Contended, "others are deciding about this dead letter"),
        Error::Failed(failure) => refusal::of_failure(&failure),
    }
}
