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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{BlockedReason, LastError, ResultKind};
    use crate::sample::{self, NOW, blocked};

    #[test]
    fn the_note_of_a_built_item_says_exactly_this() {
        let want = "<!-- collie:dashboard:0198-item -->
**Collie** keeps this merge request (item `0198-item`, life 1).

| | |
|---|---|
| State | being driven to its merge |
| Build | 1 on `b27018d3` |

Push nothing to this branch: Collie never overwrites commits of others, it stops.
";
        assert_eq!(render(&sample::built(), &sample::facts()), want);
        let unbuilt = want.replace("| Build | 1 on `b27018d3` |\n", "");
        assert_eq!(render(&sample::item(), &Facts::default()), unbuilt);
        assert!(want.starts_with(&marker(&sample::built())));
    }

    #[test]
    fn the_state_is_named_by_phase_and_its_reason() {
        let failed = LastError { code: "branch_protected".into(), message: "secret words".into(), at: NOW };
        let end = |phase, result| Item { phase, result, ..sample::built() };
        let block = |reason| Item { blocked: Some(blocked(reason)), ..sample::built() };
        let cases = [
            (block(BlockedReason::ForeignCommits), "blocked: `foreign_commits`"),
            (block(BlockedReason::MergeTrainRequired), "blocked: `merge_train_required`"),
            (end(Phase::Completed, Some(ResultKind::Merged)), "completed: `merged`"),
            (end(Phase::Completed, Some(ResultKind::NoChange)), "completed: `no_change`"),
            (end(Phase::Completed, None), "completed"),
            (end(Phase::Cancelled, Some(ResultKind::Closed)), "cancelled"),
            (end(Phase::Failed, None), "failed: `unknown`"),
            (Item { last_error: Some(failed), ..end(Phase::Failed, None) }, "failed: `branch_protected`"),
        ];
        for (item, want) in cases {
            assert!(render(&item, &sample::facts()).contains(&format!("| State | {want} |\n")), "{want}");
        }
    }

    #[test]
    fn nothing_that_a_caller_or_gitlab_wrote_appears() {
        let words = || "/approve @all <script>".to_owned();
        let mut facts = sample::facts();
        if let Some(mr) = &mut facts.mr {
            (mr.url, mr.described, mr.metadata) = (words(), words(), words());
        }
        facts.builds[0].target = words();
        let item = Item {
            project: words(),
            caller_identity: words(),
            target: words(),
            last_error: Some(LastError { code: "internal".into(), message: words(), at: NOW }),
            blocked: Some(crate::item::Blocked { detail: words(), ..blocked(BlockedReason::Conflict) }),
            ..sample::built()
        };
        for phase in [Phase::Active, Phase::Failed, Phase::Completed, Phase::Cancelled] {
            let text = render(&Item { phase, ..item.clone() }, &facts);
            assert!(!text.contains("approve") && !text.contains('@') && !text.contains("script"), "{text}");
        }
    }

    #[test]
    fn the_digest_changes_with_the_text_and_only_with_it() {
        let text = render(&sample::built(), &sample::facts());
        let later = render(&Item { updated_at: crate::sample::in_seconds(60), ..sample::built() }, &sample::facts());
        let blocked = render(&Item { blocked: Some(blocked(BlockedReason::Auth)), ..sample::built() }, &sample::facts());
        assert_eq!((digest(&text).len(), digest(&text)), (16, digest(&later)));
        assert_ne!(digest(&text), digest(&blocked));
    }
}
