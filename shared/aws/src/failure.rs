//! What the SDK's errors mean, by the error's code and the answer's status; non-retryable where nothing is known (`Bug`).
//!
//! Every call of this crate may be repeated: a wake-up sent twice rings twice, an object is written once. So a call without
//! an answer is transient, never indeterminate.

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use collie_core::error::{Class, Failure};

const THROTTLED: [&str; 8] = [
    "RequestThrottled",
    "RequestLimitExceeded",
    "SlowDown",
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "OverLimit",
    "ConditionalRequestConflict",
];

/// A failed call to `service`, as use cases see it.
pub(crate) fn of<E: ProvideErrorMetadata>(service: &'static str, code: &'static str, error: &SdkError<E, HttpResponse>) -> Failure {
    let named = error.code().unwrap_or("no code");
    let status = status(error);
    match error {
        SdkError::ServiceError(_) if THROTTLED.contains(&named) => transient(true, code, format!("{service} is busy: {named}")),
        SdkError::ServiceError(_) if status.is_some_and(|s| s >= 500) => transient(false, code, format!("{service} failed: {named}")),
        SdkError::TimeoutError(_) => transient(false, code, format!("{service} did not answer in time")),
        SdkError::DispatchFailure(_) => transient(false, code, format!("{service} was not reached, or its answer was lost")),
        SdkError::ResponseError(_) => transient(false, code, format!("the answer of {service} could not be read")),
        _ => Failure::bug(format!("{service} refused a request: {named}: {}", error.message().unwrap_or("no message"))),
    }
}

/// Whether one entry of a batch was refused for now, by its code: throttled, or a failure of the service.
pub(crate) fn is_passing(code: &str) -> bool {
    THROTTLED.contains(&code) || ["InternalFailure", "InternalException", "ServiceUnavailable"].contains(&code)
}

/// The status of the answer, where there was one.
pub(crate) fn status<E>(error: &SdkError<E, HttpResponse>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

fn transient(answered: bool, code: &'static str, message: String) -> Failure {
    Failure::new(Class::Transient { answered }, code, message)
}
