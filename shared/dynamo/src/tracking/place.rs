//! Where the rows of issue tracking are: a set is a partition, or the part of one whose sort keys begin alike; the rest of a sort key is
//! the row's place in its set as it is, so that the table's order is the set's.
//!
//! Only the last part of a key is unescaped, and of sort keys only it varies: no two rows have one key.

use crate::key::{Key, escape};
use collie_core::issue::id::QueueName;
use collie_core::issue::row::{RowKey, Set};

/// Where a set is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The partition.
    pub(crate) pk: String,
    /// How its sort keys begin.
    pub(crate) prefix: &'static str,
}

impl Place {
    /// Where a set of a queue is.
    pub(crate) fn of(queue: &QueueName, set: &Set) -> Self {
        let queue = escape(queue.as_str());
        let (pk, prefix) = match set {
            Set::Head => (format!("queue#{queue}"), "head"),
            Set::Checkpoint => (format!("queue#{queue}"), "checkpoint"),
            Set::Jobs => (format!("queue#{queue}"), "job#"),
            Set::Requests => (format!("requests#{queue}"), "request#"),
            Set::Uris => (format!("uris#{queue}"), "uri#"),
            Set::Build(build) => (format!("build#{queue}#{}", escape(build.as_str())), "build"),
            Set::BuildIssues(build) => (format!("build#{queue}#{}", escape(build.as_str())), "issue#"),
            Set::Issues => (format!("issues#{queue}"), "issue#"),
            Set::Open => (format!("open#{queue}"), "open#"),
            // The key as it is: escaped, 900 bytes could become more than a partition key may have.
            Set::Log(key) => (format!("log#{queue}#{}", key.encoded()), "log#"),
            Set::Summaries => (format!("summaries#{queue}"), "summary#"),
            Set::RequestIssues(request) => (format!("request#{queue}#{}", request.padded()), "issue#"),
            Set::Repairs(build) => (format!("build#{queue}#{}", escape(build.as_str())), "repair#"),
            Set::History(request) => (format!("request#{queue}#{}", request.padded()), "history#"),
        };
        Self { pk, prefix }
    }

    /// The key of the row at this place of the set.
    pub(crate) fn key(&self, at: &str) -> Key {
        Key::new(self.pk.clone(), format!("{}{at}", self.prefix))
    }
}

/// The key of a row.
pub(crate) fn key(queue: &QueueName, row: &RowKey) -> Key {
    Place::of(queue, &row.set).key(&row.at)
}
