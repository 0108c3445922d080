//! The codes of problem documents: each has one status, one title and one paragraph in the README.

use axum::http::StatusCode;

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The body is not JSON.
    InvalidJson,
    /// Fields are unknown, missing or of the wrong type.
    InvalidRequest,
    /// A query parameter is unknown, repeated or cannot be read.
    InvalidQuery,
    /// The body ended early or could not be read.
    UnreadableBody,
    /// There is no usable token.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// The token is good, and no rule gives its holder anything.
    NoRule,
    /// There is no such work item, or it is another caller's.
    NotFound,
    /// The queue is not configured.
    UnknownQueue,
    /// The queue has no such request.
    UnknownRequest,
    /// No request of the queue has this build.
    UnknownBuild,
    /// The queue has no such issue.
    UnknownIssue,
    /// There is no such dead letter.
    UnknownLetter,
    /// There is no such route.
    RouteNotFound,
    /// The route has no such method.
    MethodNotAllowed,
    /// The item is being cancelled.
    CancelPending,
    /// The item cannot be brought back from where it is.
    NotRetryable,
    /// The item has ended already.
    NotCancellable,
    /// A newer item has taken over the branch.
    Superseded,
    /// The request has another build, or the build another request.
    BuildMismatch,
    /// The request has ended.
    RequestEnded,
    /// The analysis of the build has ended.
    AnalysisEnded,
    /// The issue has another version than the one that was named.
    StaleVersion,
    /// The dead letter was abandoned.
    LetterAbandoned,
    /// The dead letter's body is gone.
    LetterExpired,
    /// The body is too long.
    TooLarge,
    /// The submission breaks rules.
    Policy,
    /// The project is not configured.
    UnknownProject,
    /// Items of this type are not handled here.
    UnhandledItemType,
    /// The store asks to slow down.
    Throttled,
    /// One identity asks for too many changes.
    RateLimited,
    /// A bug of ours.
    Internal,
    /// Others keep moving the item.
    Contended,
    /// Something that this needs does not answer.
    Unavailable,
}

impl Code {
    /// Every code, by status.
    pub const ALL: [Self; 34] = [
        Self::InvalidJson,
        Self::InvalidRequest,
        Self::InvalidQuery,
        Self::UnreadableBody,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NoRule,
        Self::NotFound,
        Self::UnknownQueue,
        Self::UnknownRequest,
        Self::UnknownBuild,
        Self::UnknownIssue,
        Self::UnknownLetter,
        Self::RouteNotFound,
        Self::MethodNotAllowed,
        Self::CancelPending,
        Self::NotRetryable,
        Self::NotCancellable,
        Self::Superseded,
        Self::BuildMismatch,
        Self::RequestEnded,
        Self::AnalysisEnded,
        Self::StaleVersion,
        Self::LetterAbandoned,
        Self::LetterExpired,
        Self::TooLarge,
        Self::Policy,
        Self::UnknownProject,
        Self::UnhandledItemType,
        Self::Throttled,
        Self::RateLimited,
        Self::Internal,
        Self::Contended,
        Self::Unavailable,
    ];

    /// Its word, its status and its title.
    const fn row(self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::InvalidJson => ("invalid_json", S::BAD_REQUEST, "The body is not JSON"),
            Self::InvalidRequest => ("invalid_request", S::BAD_REQUEST, "The request has the wrong shape"),
            Self::InvalidQuery => ("invalid_query", S::BAD_REQUEST, "The query cannot be read"),
            Self::UnreadableBody => ("unreadable_body", S::BAD_REQUEST, "The body could not be read"),
            Self::Unauthenticated => ("unauthenticated", S::UNAUTHORIZED, "Who calls is not known"),
            Self::Forbidden => ("forbidden", S::FORBIDDEN, "The caller may not do this"),
            Self::NoRule => ("no_rule", S::FORBIDDEN, "No rule knows the caller"),
            Self::NotFound => ("not_found", S::NOT_FOUND, "There is no such work item"),
            Self::UnknownQueue => ("unknown_queue", S::NOT_FOUND, "There is no such queue"),
            Self::UnknownRequest => ("unknown_request", S::NOT_FOUND, "There is no such request"),
            Self::UnknownBuild => ("unknown_build", S::NOT_FOUND, "There is no such build"),
            Self::UnknownIssue => ("unknown_issue", S::NOT_FOUND, "There is no such issue"),
            Self::UnknownLetter => ("unknown_letter", S::NOT_FOUND, "There is no such dead letter"),
            Self::RouteNotFound => ("route_not_found", S::NOT_FOUND, "There is no such route"),
            Self::MethodNotAllowed => ("method_not_allowed", S::METHOD_NOT_ALLOWED, "The route has no such method"),
            Self::CancelPending => ("cancel_pending", S::CONFLICT, "The work item is being cancelled"),
            Self::NotRetryable => ("not_retryable", S::CONFLICT, "The work item cannot be retried"),
            Self::NotCancellable => ("not_cancellable", S::CONFLICT, "The work item has ended"),
            Self::Superseded => ("superseded", S::CONFLICT, "A newer work item has the branch"),
            Self::BuildMismatch => ("build_mismatch", S::CONFLICT, "The request has another build"),
            Self::RequestEnded => ("request_ended", S::CONFLICT, "The request has ended"),
            Self::AnalysisEnded => ("analysis_ended", S::CONFLICT, "The build's analysis has ended"),
            Self::StaleVersion => ("stale_version", S::CONFLICT, "The issue has changed"),
            Self::LetterAbandoned => ("letter_abandoned", S::CONFLICT, "The dead letter was abandoned"),
            Self::LetterExpired => ("letter_expired", S::CONFLICT, "The dead letter's body has expired"),
            Self::TooLarge => ("too_large", S::PAYLOAD_TOO_LARGE, "The body is too long"),
            Self::Policy => ("policy", S::UNPROCESSABLE_ENTITY, "The submission breaks rules"),
            Self::UnknownProject => ("unknown_project", S::UNPROCESSABLE_ENTITY, "The project is not configured"),
            Self::UnhandledItemType => ("unhandled_item_type", S::UNPROCESSABLE_ENTITY, "Items of this type are not handled here"),
            Self::Throttled => ("throttled", S::TOO_MANY_REQUESTS, "Too many requests"),
            Self::RateLimited => ("rate_limited", S::TOO_MANY_REQUESTS, "Too many changes by one identity"),
            Self::Internal => ("internal", S::INTERNAL_SERVER_ERROR, "Collie has failed"),
            Self::Contended => ("contended", S::SERVICE_UNAVAILABLE, "Others are changing this work item"),
            Self::Unavailable => ("unavailable", S::SERVICE_UNAVAILABLE, "Collie cannot do this now"),
        }
    }

    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The status of answers with this code.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().1
    }

    /// What it means, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    /// Seconds after which the same request may be sent again, where that is of use.
    #[must_use]
    pub const fn retry_after(self) -> Option<u32> {
        match self {
            Self::Contended => Some(1),
            Self::Unavailable => Some(5),
            Self::Throttled => Some(30),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_a_word_of_its_own_and_a_row_in_the_readme() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            let row = format!("| {} | `{}` |", code.status().as_u16(), code.as_str());
            assert!(include_str!("../README.md").contains(&row), "{row}");
        }
    }
}
