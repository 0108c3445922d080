//! What the GitLab issue of a task says. Tasks and units are others' text: they are shown as code, with every character that Markdown,
//! mentions, references or quick actions could take for theirs written as an entity, so that they are read and nothing more.

use super::Wanted;
use crate::files::sha256_hex;
use crate::id::ItemId;
use crate::issue::row::Issue;
use std::fmt::Write as _;

/// Failing units that the table shows.
pub const MAX_ROWS: usize = 100;
/// Characters of a task that the title shows.
const TITLE_CHARS: usize = 120;
/// Characters of a unit that a row of the table shows.
const UNIT_CHARS: usize = 300;

/// The hidden marker by which the issue is found again.
#[must_use]
pub fn marker(item: &ItemId) -> String {
    format!("<!-- collie:issue:{item} -->")
}

/// The title.
#[must_use]
pub fn title(wanted: &Wanted) -> String {
    let task: String = wanted.task.chars().take(TITLE_CHARS).map(|c| if is_plain(c) { c } else { '?' }).collect();
    let reference: String = wanted.reference.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
    format!("CI: {task} fails on {reference}")
}

/// The description: marker, then a table of what is open. `more` says that there are others than these.
#[must_use]
pub fn description(item: &ItemId, wanted: &Wanted, openings: &[Issue], more: bool) -> String {
    let mut text = marker(item);
    let (task, reference) = (code(&wanted.task, UNIT_CHARS), code(&wanted.reference, UNIT_CHARS));
    let _ = write!(text, "\nThe CI job {task} fails on {reference} (queue `{}`). ", wanted.queue);
    text.push_str("**Collie** keeps this issue open while something below is, and closes it when all is fixed.\n\n");
    text.push_str("| What | Failing since build | Since |\n|---|---|---|\n");
    for issue in openings.iter().take(MAX_ROWS) {
        let unit = if issue.key.is_task_wide() { "the whole job".to_owned() } else { code(issue.key.unit(), UNIT_CHARS) };
        let _ = writeln!(text, "| {unit} | {} | {} |", code(issue.first_seen.build.as_str(), UNIT_CHARS), issue.changed_at);
    }
    if more || openings.len() > MAX_ROWS {
        let _ = writeln!(text, "\nThere are more than {MAX_ROWS}; `collie issues {}` lists all.", wanted.queue);
    }
    text
}

/// A digest of what the issue says, to know whether it must be edited.
#[must_use]
pub fn digest(title: &str, description: &str) -> String {
    sha256_hex(format!("{title}\n{description}").as_bytes())[..16].to_owned()
}

/// Text as code, cut to so many characters.
fn code(text: &str, max: usize) -> String {
    let mut out = String::from("<code>");
    for c in text.chars().take(max) {
        match c {
            c if is_plain(c) => out.push(c),
            c if c.is_ascii() && !c.is_ascii_control() => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.extend(c.escape_unicode()),
        }
    }
    if text.chars().nth(max).is_some() {
        out.push('…');
    }
    out + "</code>"
}

/// Characters that mean nothing to GitLab wherever they stand within a line.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, ' ' | '.' | '-' | ',' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::id::{BuildId, QueueName, RequestId, Source};
    use crate::issue::key::IssueKey;
    use crate::issue::lifecycle::opening;
    use crate::time::Timestamp;
    use proptest::prelude::*;

    fn wanted(task: &str) -> Wanted {
        Wanted { queue: QueueName::new("app-main"), task: task.to_owned(), reference: "main".to_owned() }
    }

    fn open(task: &str, unit: &str) -> Issue {
        let source = Source { request: RequestId::new(7).unwrap(), build: BuildId::new("812") };
        opening(&IssueKey::new(task, unit), &source, Timestamp::from_millis(1_769_882_644_000))
    }

    #[test]
    fn the_issue_says_exactly_this() {
        let openings = [open("unit tests", ""), open("unit tests", "a::b|c")];
        let want = "<!-- collie:issue:0198-item -->
The CI job <code>unit tests</code> fails on <code>main</code> (queue `app-main`). \
**Collie** keeps this issue open while something below is, and closes it when all is fixed.

| What | Failing since build | Since |
|---|---|---|
| the whole job | <code>812</code> | 2026-01-31T18:04:04.000Z |
| <code>a&#58;&#58;b&#124;c</code> | <code>812</code> | 2026-01-31T18:04:04.000Z |
";
        assert_eq!(description(&ItemId::new("0198-item"), &wanted("unit tests"), &openings, false), want);
        assert_eq!(title(&wanted("unit tests")), "CI: unit tests fails on main");
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let openings: Vec<_> = (0..101).map(|n| open("t", &format!("u{n}"))).collect();
        let text = description(&ItemId::new("i"), &wanted("t"), &openings, false);
        assert_eq!(text.matches("<code>812</code>").count(), 100);
        assert!(text.ends_with("There are more than 100; `collie issues app-main` lists all.\n"), "{text}");
    }

    proptest! {
        #[test]
        fn others_text_is_read_and_nothing_more(task in any::<String>(), unit in any::<String>()) {
            let text = description(&ItemId::new("i"), &wanted(&task), &[open(&task, &unit)], false);
            let shown = text.replace("<code>", "").replace("</code>", "").replace("<!-- collie:issue:i -->", "").replace("|---|---|---|", "");
            let own = ['`', '*', '|', '\n', '#', '&', ';', '\\', '(', ')', '{', '}', ':', '…'];
            prop_assert!(shown.chars().all(|c| is_plain(c) || own.contains(&c)), "{shown:?}");
            prop_assert!(text.lines().all(|line| !line.trim_start().starts_with('/')), "{text:?}");
            prop_assert!(title(&wanted(&task)).chars().all(|c| is_plain(c) || c == '?' || c == ':'));
        }
    }
}
