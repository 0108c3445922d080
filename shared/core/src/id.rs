//! Names of things: each its own type, so that a merge request's number cannot be passed for a pipeline's.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

pub(crate) use text_id;

text_id! {
    /// A work item: a UUIDv7, so that ids sort by creation.
    ItemId;
    /// A git commit id.
    Sha;
    /// The random mark of one write, by which its writer knows it again after an unanswered attempt.
    Token;
    /// A digest of a delivery id, kept to know a repeated delivery.
    Digest;
}

number_id! {
    /// GitLab's numeric project id, which survives renames.
    ProjectId;
    /// A merge request's number within its project.
    MrIid;
    /// A pipeline.
    PipelineId;
    /// One try of a CI job.
    JobId;
    /// A note on a merge request.
    NoteId;
    /// A GitLab user.
    UserId;
}

impl Sha {
    /// The first eight digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

/// The natural identity of an item: one source branch of one project on one host. Its lives are counted by generation (DDR-39).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BranchIdentity {
    /// The forge's host name, with its port where it has one.
    pub host: String,
    /// The project.
    pub project_id: ProjectId,
    /// The branch Collie pushes to.
    pub source_branch: String,
}

impl BranchIdentity {
    /// The key callers see, for one generation (`mr:{host}:{project_id}:{source_branch}:{generation}`).
    #[must_use]
    pub fn key(&self, item_type: &str, generation: u64) -> String {
        format!("{item_type}:{}:{}:{}:{generation}", self.host, self.project_id, self.source_branch)
    }

    /// A short digest of the identity, as commit trailers carry it.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = format!("{}:{}:{}", self.host, self.project_id, self.source_branch);
        crate::files::sha256_hex(text.as_bytes())[..16].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(host: &str, project: u64, branch: &str) -> BranchIdentity {
        BranchIdentity { host: host.into(), project_id: ProjectId(project), source_branch: branch.into() }
    }

    #[test]
    fn ids_are_shown_and_stored_as_the_plain_text_or_number_they_wrap() {
        assert_eq!((Sha::new("abc").to_string(), MrIid(7).to_string()), ("abc".into(), "7".into()));
        assert_eq!(serde_json::to_string(&(ItemId::new("i"), PipelineId(9))).unwrap(), r#"["i",9]"#);
    }

    #[test]
    fn a_commit_id_is_shortened_to_eight_digits_where_it_has_as_many() {
        let short = |text: &str| Sha::new(text).short().to_owned();
        assert_eq!(["7c1d5f0e2b9a", "7c1d5f0e", "7c1d", "", "żółćżółć"].map(short), ["7c1d5f0e", "7c1d5f0e", "7c1d", "", "żółć"]);
    }

    #[test]
    fn the_key_names_every_part_of_the_identity_and_its_life() {
        let key = identity("gitlab.example.com:8443", 4242, "bot/x").key("mr", 2);
        assert_eq!(key, "mr:gitlab.example.com:8443:4242:bot/x:2");
    }

    #[test]
    fn the_digest_stays_the_same_from_release_to_release_and_differs_by_every_part() {
        let all = [identity("a", 1, "x"), identity("b", 1, "x"), identity("a", 2, "x"), identity("a", 1, "y")];
        let digests: std::collections::BTreeSet<_> = all.iter().map(BranchIdentity::digest).collect();
        assert_eq!(digests.len(), 4);
        assert_eq!(all[0].digest(), "db128abe221dde9e");
    }
}
