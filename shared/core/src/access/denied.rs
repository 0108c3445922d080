//! Why no grant covers some work, in words that its caller can act on.

use super::grant::Grants;
use super::request::{Labels, Request, Work};

/// What a caller lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It is another caller's, and the grants are for one's own.
    #[error("the branch belongs to another caller's work item")]
    Others,
    /// Overwriting.
    #[error("this caller may not overwrite the work of others")]
    Overwrite,
    /// Merging.
    #[error("this caller may not ask for auto_merge here")]
    AutoMerge,
    /// Some label.
    #[error("this caller may not use these labels here")]
    Labels,
    /// More than one thing, or the place itself.
    #[error("no single grant of this caller covers this work item; GET /v1/me shows the grants")]
    Work,
}

impl Grants {
    /// What is lacking to submit some work, or to move an item that is this work; none where a grant covers it.
    #[must_use]
    pub fn deny(&self, work: &Work<'_>) -> Option<Denied> {
        let covers = |work: Work<'_>| self.covers(&Request::Submit(work));
        if covers(*work) {
            return None;
        }
        let lesser = [
            (Denied::Others, Work { of_others: false, ..*work }),
            (Denied::Overwrite, Work { overwrite: false, ..*work }),
            (Denied::AutoMerge, Work { auto_merge: false, ..*work }),
            (Denied::Labels, Work { labels: Labels::Known(&[]), ..*work }),
        ];
        Some(lesser.into_iter().find(|(_, lesser)| covers(*lesser)).map_or(Denied::Work, |(denied, _)| denied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Globs, Grant, SubmitGrant};

    #[test]
    fn the_one_thing_that_is_lacking_is_named() {
        let grant =
            SubmitGrant { labels: Globs::new(["deps"]), projects: Globs::new(["apps/*"]), auto_merge: false, ..SubmitGrant::own_items() };
        let grants = Grants::new(vec![Grant::Submit(grant)]);
        let (known, other) = (["deps".to_owned()], ["deps".to_owned(), "urgent".to_owned()]);
        let labels = Labels::Known(&known);
        let work = Work {
            item_type: "mr",
            project: "apps/a",
            source_branch: "bot/x",
            target_branch: "main",
            labels,
            auto_merge: false,
            overwrite: false,
            of_others: false,
        };
        let cases = [
            (work, None),
            (Work { of_others: true, ..work }, Some(Denied::Others)),
            (Work { overwrite: true, ..work }, Some(Denied::Overwrite)),
            (Work { auto_merge: true, ..work }, Some(Denied::AutoMerge)),
            (Work { labels: Labels::Known(&other), ..work }, Some(Denied::Labels)),
            (Work { project: "libs/a", ..work }, Some(Denied::Work)),
            (Work { overwrite: true, of_others: true, ..work }, Some(Denied::Work)),
        ];
        for (work, denied) in cases {
            assert_eq!(grants.deny(&work), denied, "{work:?}");
        }
    }
}
