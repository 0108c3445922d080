//! What the SDK's errors mean: by the error's code, non-retryable where nothing is known (`Bug`).

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use collie_core::error::{Class, Failure};

/// What went wrong with one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Refused for now: throttled, or someone else's transaction holds the row. Nothing happened.
    Contended,
    /// No answer, one of 500 and above, or one that cannot be read. A write may have happened.
    Unanswered(String),
    /// Anything else.
    Broken(String),
}

const CONTENDED: [&str; 8] = [
    "ThrottlingException",
    "ThrottlingError",
    "RequestLimitExceeded",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "TransactionConflict",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Whether an error code, or a transaction's cancellation code, says to try again.
pub(super) fn is_contended(code: &str) -> bool {
    CONTENDED.contains(&code)
}

impl Trouble {
    /// What an SDK error means.
    pub(super) fn of<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Self {
        let code = error.code().unwrap_or("no code");
        match error {
            SdkError::ServiceError(_) if is_contended(code) => Self::Contended,
            SdkError::ServiceError(e) if !e.raw().status().is_client_error() => Self::Unanswered(code.to_owned()),
            SdkError::TimeoutError(_) => Self::Unanswered("no answer in time".into()),
            SdkError::DispatchFailure(_) => Self::Unanswered("the request was not sent or its answer was lost".into()),
            SdkError::ResponseError(_) => Self::Unanswered("the answer could not be read".into()),
            _ => Self::Broken(format!("{code}: {}", error.message().unwrap_or("no message"))),
        }
    }

    /// As the failure of a write.
    pub(super) fn of_write(self) -> Failure {
        match self {
            Self::Unanswered(what) => Failure::new(Class::Indeterminate, "store_unanswered", what),
            other => other.of_read(),
        }
    }

    /// As the failure of a read.
    pub(super) fn of_read(self) -> Failure {
        match self {
            Self::Contended => contended(),
            Self::Unanswered(what) => Failure::new(Class::Transient { answered: false }, "store_unanswered", what),
            Self::Broken(what) => Failure::bug(format!("the store refused a request: {what}")),
        }
    }
}

/// The failure of a write that others kept from happening.
pub(super) fn contended() -> Failure {
    Failure::new(Class::Transient { answered: true }, "store_contended", "the store is busy or the row is being written by others")
}

/// The failure of a read, in one step.
pub(super) fn read<E: ProvideErrorMetadata>(error: SdkError<E, HttpResponse>) -> Failure {
    Trouble::of(&error).of_read()
}
