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
