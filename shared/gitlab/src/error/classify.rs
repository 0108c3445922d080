//! Status × call × text → class and code. The rows, by status:
//!
//! 1. 301, 302, 303, 307, 308: `redirected`, whatever the call.
//! 2. 400: for commits by their text; a source branch that GitLab does not see yet; a commit that vanished; else refused.
//! 3. 401: the merge call says so where the user may not merge; anywhere else, and where the body speaks of the token,
//!    the credential is bad.
//! 4. 403: protected branch on a commit, an instance that takes no writes, a job that is not retried, else the credential.
//! 5. 404: of the project the credential, else gone; without a body of the API's own it is not GitLab's word.
//! 6. 405, 406, 422: a merge that cannot be made; else what the call makes of it.
//! 7. 409: another head, another merge request, or a lock.
//! 8. 408 and 5xx: no answer to a read, doubt after a write.
//! 9. 413, 429, and a bug for all the rest.

use super::body::{ErrorBody, Origin};
use super::{codes, commit};
use crate::call::Call;
use collie_core::error::{Class, Failure};
use collie_core::time::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::Duration;

/// The wait where the answer names none, and the bounds of the one it names.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
const LEAST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

type Verdict = (Class, &'static str);

const BUG: Verdict = (Class::Bug, codes::FORGE_UNCLASSIFIED);
const REFUSED: Verdict = (Class::Rejected, codes::FORGE_REFUSED);
const AUTH: Verdict = (Class::Unauthorized, codes::FORGE_AUTH);
const GONE: Verdict = (Class::Gone, codes::FORGE_GONE);
const REDIRECTED: Verdict = (Class::Rejected, codes::REDIRECTED);
const MR_REFUSED: Verdict = (Class::Rejected, codes::MR_REFUSED);
const NOT_RETRYABLE: Verdict = (Class::Conflict, codes::JOB_NOT_RETRYABLE);
const BUSY: Verdict = (Class::Transient { answered: true }, codes::FORGE_BUSY);

/// What a refused call means.
pub(crate) fn classify(call: Call, status: u16, body: &ErrorBody, headers: &HeaderMap, now: Timestamp) -> Failure {
    let (class, code) = match status {
        429 => throttled(headers, now),
        _ => verdict(call, status, body),
    };
    Failure::new(class, code, format!("{call} answered {status}: {}", body.text))
}

fn verdict(call: Call, status: u16, body: &ErrorBody) -> Verdict {
    match status {
        301 | 302 | 303 | 307 | 308 => REDIRECTED,
        400 => bad_request(call, body),
        401 => unauthorized(call, body),
        403 => forbidden(call, body),
        404 => not_found(body),
        405 => not_allowed(call, body),
        406 | 422 => unprocessable(call),
        408 | 500..=599 => unavailable(call),
        409 => conflict(call, body),
        413 => (Class::Rejected, codes::TOO_LARGE),
        _ => BUG,
    }
}

fn bad_request(call: Call, body: &ErrorBody) -> Verdict {
    match call {
        Call::CreateCommit => commit::refused(&body.text),
        Call::OpenMergeRequest if body.text == "source_branch does not exist" => {
            (Class::Transient { answered: true }, codes::BRANCH_NOT_VISIBLE)
        }
        Call::Branch if body.origin == Origin::Application => (Class::Rejected, codes::BAD_BRANCH_NAME),
        Call::MergeBase if body.text.contains("Could not find ref") => GONE,
        Call::JoinTrain => unprocessable(call),
        _ if call.is_write() => REFUSED,
        _ => BUG,
    }
}

fn unauthorized(call: Call, body: &ErrorBody) -> Verdict {
    if matches!(call, Call::Merge | Call::JoinTrain) && body.origin != Origin::Token {
        (Class::Unauthorized, codes::MAY_NOT_MERGE)
    } else {
        AUTH
    }
}

fn forbidden(call: Call, body: &ErrorBody) -> Verdict {
    let says = |text: &str| body.text.contains(text);
    if call == Call::CreateCommit && says("not allowed to push into this branch") {
        return (Class::Rejected, codes::BRANCH_PROTECTED);
    }
    if call.is_write() && (says("read-only instance") || says("maintenance mode")) {
        return (Class::Transient { answered: false }, codes::FORGE_READ_ONLY);
    }
    if call == Call::RetryJob && body.origin == Origin::Application {
        return NOT_RETRYABLE;
    }
    AUTH
}

fn not_found(body: &ErrorBody) -> Verdict {
    match body.text.as_str() {
        "404 Project Not Found" => AUTH,
        _ if body.is_from_api() => GONE,
        _ => BUG,
    }
}

fn not_allowed(call: Call, body: &ErrorBody) -> Verdict {
    match call {
        _ if body.text.contains("moved projects") => REDIRECTED,
        Call::Merge | Call::JoinTrain | Call::LeaveTrain => unprocessable(call),
        Call::DeleteBranch => AUTH,
        _ if body.text.starts_with("Offset pagination") => (Class::Rejected, codes::TOO_MANY_PAGES),
        _ => BUG,
    }
}

fn unprocessable(call: Call) -> Verdict {
    match call {
        Call::Merge | Call::JoinTrain | Call::LeaveTrain => (Class::Conflict, codes::NOT_MERGEABLE),
        Call::RetryJob => NOT_RETRYABLE,
        Call::OpenMergeRequest | Call::EditMergeRequest => MR_REFUSED,
        _ if call.is_write() => REFUSED,
        _ => BUG,
    }
}

fn conflict(call: Call, body: &ErrorBody) -> Verdict {
    match call {
        Call::CreateCommit => BUSY,
        _ if body.text.contains("Resource lock") => BUSY,
        Call::Merge | Call::JoinTrain => (Class::Conflict, codes::HEAD_MOVED),
        Call::OpenMergeRequest | Call::EditMergeRequest => (Class::Conflict, codes::MR_EXISTS),
        _ => BUG,
    }
}

fn unavailable(call: Call) -> Verdict {
    if call.is_write() {
        (Class::Indeterminate, codes::FORGE_UNANSWERED)
    } else {
        (Class::Transient { answered: false }, codes::FORGE_UNAVAILABLE)
    }
}

fn throttled(headers: &HeaderMap, now: Timestamp) -> Verdict {
    match named_wait(headers, now) {
        Some(wait) => (Class::Throttled { until: now.after(wait) }, codes::FORGE_THROTTLED),
        None => (Class::Throttled { until: now.after(DEFAULT_WAIT) }, codes::FORGE_THROTTLED_UNTIMED),
    }
}

/// `Retry-After`, else `RateLimit-Reset`; at least a second and at most an hour.
fn named_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let reset = || number("ratelimit-reset").map(|at| Timestamp::from_millis(at.saturating_mul(1000)).since(now));
    let wait = number(RETRY_AFTER.as_str()).map(Duration::from_secs).or_else(reset);
    wait.map(|wait| wait.clamp(LEAST_WAIT, LONGEST_WAIT))
}

#[cfg(test)]
mod tests;
