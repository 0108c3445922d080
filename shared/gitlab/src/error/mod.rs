//! What GitLab's refusals, and its silence, mean for what happens next.
//!
//! Decides the [`Class`] and the code of every failed call, from status × call × text. A write whose answer is lost is
//! never reported as "did not happen" unless nothing was sent. Upholds INV-12: no message holds a credential, HTML or
//! file content. Does not decide whether or when something is tried again.

mod body;
mod classify;
pub mod codes;
mod commit;

pub(crate) use body::ErrorBody;
pub(crate) use classify::classify;

use crate::call::Call;
use body::cut;
use collie_core::error::{Class, Failure};
use std::error::Error as _;

/// No answer, or only part of one.
pub(crate) fn lost(call: Call, error: &reqwest::Error) -> Failure {
    let message = format!("{call}: {}", reason(error));
    if error.is_builder() {
        return Failure::new(Class::Bug, codes::FORGE_UNCLASSIFIED, message);
    }
    if call.is_write() && !error.is_connect() {
        return Failure::new(Class::Indeterminate, codes::FORGE_UNANSWERED, message);
    }
    Failure::new(Class::Transient { answered: false }, codes::FORGE_UNREACHABLE, message)
}

/// A success whose body is not what the API promises; a write still happened.
pub(crate) fn unreadable(call: Call, status: u16, error: &serde_json::Error) -> Failure {
    // Not the error's own text: it quotes what it found.
    let (kind, line, column) = (error.classify(), error.line(), error.column());
    let message = format!("{call} answered {status} with a body that cannot be read ({kind:?} error at {line}:{column})");
    doubt(call, Class::Bug, codes::FORGE_UNCLASSIFIED, message)
}

/// A success whose body is larger than the bound.
pub(crate) fn oversized(call: Call, bound: usize) -> Failure {
    doubt(call, Class::Rejected, codes::ANSWER_TOO_LARGE, format!("{call}: the answer has more than {bound} bytes"))
}

fn doubt(call: Call, of_read: Class, code: &'static str, message: String) -> Failure {
    if call.is_write() {
        Failure::new(Class::Indeterminate, codes::FORGE_UNANSWERED, message)
    } else {
        Failure::new(of_read, code, message)
    }
}

/// The innermost cause: the outer ones repeat the URL.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: Option<&dyn std::error::Error> = error.source();
    let mut text = None;
    while let Some(inner) = cause {
        text = Some(inner.to_string());
        cause = inner.source();
    }
    cut(&text.unwrap_or_else(|| "the connection failed".to_owned()))
}
