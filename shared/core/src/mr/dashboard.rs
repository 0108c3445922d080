//! The note on the merge request that shows an item's state: one per item, edited in place when the state changes.

use super::facts::Facts;
use crate::files::sha256_hex;
use crate::item::{Item, Phase};
use std::fmt::Write as _;

/// The hidden marker by which the note is found again.
#[must_use]
pub fn marker(item: &Item) -> String {
    format!("<!-- collie:dashboard:{} -->", item.id)
}

/// The note's text. Only words of our own: nothing a caller or GitLab wrote is repeated here.
#[must_use]
pub fn render(item: &Item, facts: &Facts) -> String {
    let mut text = marker(item);
    let _ = write!(text, "\n**Collie** keeps this merge request (item `{}`, life {}).\n\n", item.id, item.generation);
    let _ = writeln!(text, "| | |\n|---|---|\n| State | {} |", state(item));
    if let Some(build) = facts.latest() {
        let _ = writeln!(text, "| Build | {} on `{}` |", build.number, build.start_sha.short());
    }
    text.push_str("\nPush nothing to this branch: Collie never overwrites commits of others, it stops.\n");
    text
}

/// A digest of what the note says, to know whether it must be edited.
#[must_use]
pub fn digest(text: &str) -> String {
    sha256_hex(text.as_bytes())[..16].to_owned()
}

fn state(item: &Item) -> String {
    match (item.phase, &item.blocked) {
        (Phase::Active, Some(blocked)) => format!("blocked: `{}`", word(&blocked.reason)),
        (Phase::Active, None) => "being driven to its merge".to_owned(),
        (Phase::Completed, _) => item.result.map_or("completed".to_owned(), |r| format!("completed: `{}`", word(&r))),
        (Phase::Failed, _) => {
            let code = item.last_error.as_ref().map_or("unknown", |e| e.code.as_str());
            format!("failed: `{code}`")
        }
        (Phase::Cancelled, _) => "cancelled".to_owned(),
    }
}

fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
