//! What is to be done on GitLab for a task: a pure comparison of what is open with what the GitLab issue says.

use super::Facts;

/// What GitLab's issue is, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It is open.
    Open,
    /// It is closed.
    Closed,
    /// It is not there.
    Missing,
}

/// The one thing that is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An issue is made.
    Create,
    /// The issue is opened again, and says what is open now.
    Reopen,
    /// The issue says what is open now.
    Edit,
    /// The issue is closed; the item is done.
    Close,
    /// Nothing; the issue says what is open.
    Keep,
    /// Nothing is open, and there is no open issue: the item is done.
    Finish,
}

/// Compares. `says` is a digest of what the issue should say.
#[must_use]
pub fn plan(facts: &Facts, found: Found, has_openings: bool, says: &str) -> Step {
    let is_current = facts.issue.as_ref().is_some_and(|issue| issue.says.as_deref() == Some(says));
    match (has_openings, found) {
        (true, Found::Missing) => Step::Create,
        (true, Found::Closed) => Step::Reopen,
        (true, Found::Open) if is_current => Step::Keep,
        (true, Found::Open) => Step::Edit,
        (false, Found::Open) => Step::Close,
        (false, Found::Closed | Found::Missing) => Step::Finish,
    }
}

#[cfg(test)]
mod tests {
    use super::super::IssueRef;
    use super::*;

    #[test]
    fn the_issue_is_open_while_something_is() {
        let facts = |says: &str| Facts { issue: Some(IssueRef { iid: 1, url: String::new(), says: Some(says.into()) }), may_exist: true };
        let cases = [
            (true, Found::Missing, "a", Step::Create),
            (true, Found::Closed, "a", Step::Reopen),
            (true, Found::Open, "a", Step::Keep),
            (true, Found::Open, "b", Step::Edit),
            (false, Found::Open, "a", Step::Close),
            (false, Found::Closed, "a", Step::Finish),
            (false, Found::Missing, "a", Step::Finish),
        ];
        for (open, found, says, step) in cases {
            assert_eq!(plan(&facts("a"), found, open, says), step, "{open} {found:?} {says}");
        }
    }
}
