//! The GitLab calls that a submission would lead to, for people who try one out.
//!
//! The calls of a run in which nothing goes wrong and nobody interferes. For an update it is the most that may come: where
//! only text changed, nothing is committed.

use collie_core::files::FileAction;
use collie_core::id::ProjectId;
use collie_core::mr::tree;
use collie_engine::submit::{Outcome, Submission};

/// The calls, in order.
pub(crate) fn calls(outcome: Outcome, submission: &Submission, project: ProjectId) -> Vec<String> {
    let root = format!("/projects/{project}");
    let mr = format!("{root}/merge_requests/:iid");
    let known = outcome != Outcome::Created;
    if outcome == Outcome::Unchanged {
        return Vec::new();
    }
    let mut calls = Vec::new();
    calls.extend(known.then(|| format!("GET {mr}")));
    calls.push(format!("GET {root}/repository/branches/{}", encode(&submission.target_branch)));
    calls.extend(trees(submission).map(|path| format!("GET {root}/repository/tree?path={}", encode(&path))));
    calls.extend(known.then(|| format!("GET {root}/repository/branches/{}", encode(&submission.source_branch))));
    calls.push(format!("POST {root}/repository/commits"));
    calls.push(if known { format!("PUT {mr}") } else { format!("POST {root}/merge_requests") });
    calls.push(if known { format!("PUT {mr}/notes/:id") } else { format!("POST {mr}/notes") });
    calls.push(format!("GET {mr}"));
    calls.extend(submission.wanted.auto_merge.then(|| format!("PUT {mr}/merge")));
    calls
}

fn trees(submission: &Submission) -> impl Iterator<Item = String> {
    let records: Vec<_> = submission.file_actions.iter().map(FileAction::record).collect();
    tree::directories(&records).into_iter()
}

/// A name as part of a URL.
fn encode(name: &str) -> String {
    let byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_whole() {
        assert_eq!(encode("bot/ä b.1_x-~"), "bot%2F%C3%A4%20b.1_x-~");
        assert_eq!(encode(""), "");
    }
}
