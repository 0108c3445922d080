//! The codes of violations. One that is made with another code fails the tests: see [`Violation`](super::Violation).

use super::path::Reject;

/// The codes that are not about the form of a path or verb.
const OTHERS: [&str; 26] = [
    "no_actions",
    "too_many_actions",
    "request_too_large",
    "duplicate_path",
    "protected_path",
    "missing_content",
    "unexpected_content",
    "missing_execute_filemode",
    "unexpected_execute_filemode",
    "invalid_expect",
    "file_too_large",
    "binary_content",
    "secret",
    "forbidden_text",
    "invalid_branch",
    "source_is_target",
    "source_is_default",
    "source_is_protected",
    "blank_text",
    "text_too_long",
    "too_many_labels",
    "label_comma",
    "draft_prefix",
    "skip_ci",
    "reserved_trailer",
    "mention_storm",
];

/// Every code that a violation can have.
pub fn codes() -> impl Iterator<Item = &'static str> {
    Reject::ALL.into_iter().map(Reject::code).chain(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_code_is_listed_once() {
        assert_eq!(codes().collect::<BTreeSet<_>>().len(), codes().count());
    }
}
