//! Unified diffs of one file and of two trees, as compare and diff endpoints show them.
//!
//! One hunk per file around everything that changed; no minimal edit script.

use serde_json::{Value, json};

use crate::git::{Entry, Tree, changed_paths};
use crate::repo::Repo;

/// A diff text and how many lines it adds and removes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FileDiff {
    pub(crate) text: String,
    pub(crate) additions: usize,
    pub(crate) deletions: usize,
}

const CONTEXT: usize = 3;

/// The diff between two texts.
pub(crate) fn file_diff(old: &str, new: &str) -> FileDiff {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let same_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same_head;
    let same_tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (removed, added) = (&old[same_head..old.len() - same_tail], &new[same_head..new.len() - same_tail]);
    if removed.is_empty() && added.is_empty() {
        return FileDiff::default();
    }
    let before = &old[same_head.saturating_sub(CONTEXT)..same_head];
    let after = &old[old.len() - same_tail..(old.len() - same_tail + CONTEXT).min(old.len())];
    let start = same_head - before.len();
    let around = before.len() + after.len();
    let mut text = format!("@@ -{} +{} @@\n", range(start, around + removed.len()), range(start, around + added.len()));
    for (mark, lines) in [(' ', before), ('-', removed), ('+', added), (' ', after)] {
        push_lines(&mut text, mark, lines);
    }
    FileDiff { text, additions: added.len(), deletions: removed.len() }
}

fn range(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    }
}

fn push_lines(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// All diffs between two trees.
pub(crate) fn tree_diffs(repo: &Repo, from: &Tree, to: &Tree) -> Vec<Value> {
    let changed = changed_paths(from, to);
    let renames = renames(from, to, &changed);
    let gone = |path: &String| renames.iter().any(|(old, _)| old == path);
    let rows = changed.iter().filter(|path| !gone(path));
    rows.map(|path| {
        let old = renames.iter().find(|(_, new)| new == path).map_or(path, |(old, _)| old);
        diff_row(repo, (old, from.get(old)), (path, to.get(path)))
    })
    .collect()
}

/// Exact renames: a path that went and one that came with the same content.
fn renames(from: &Tree, to: &Tree, changed: &[String]) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for new in changed.iter().filter(|path| !from.contains_key(*path)) {
        let free = |old: &&String| !to.contains_key(*old) && !pairs.iter().any(|(taken, _)| taken == *old);
        let same = |old: &&String| from.get(*old).map(|entry| &entry.id) == to.get(new).map(|entry| &entry.id);
        if let Some(old) = changed.iter().filter(|path| from.contains_key(*path)).filter(free).find(same) {
            pairs.push((old.clone(), new.clone()));
        }
    }
    pairs
}

fn diff_row(repo: &Repo, (old_path, old): (&str, Option<&Entry>), (new_path, new): (&str, Option<&Entry>)) -> Value {
    let mode = |entry: Option<&Entry>| entry.map_or("0", |entry| entry.mode.text());
    json!({
        "diff": entry_diff(repo, old, new).text, "collapsed": false, "too_large": false,
        "new_path": new_path, "old_path": old_path, "a_mode": mode(old), "b_mode": mode(new),
        "new_file": old.is_none(), "renamed_file": old_path != new_path, "deleted_file": new.is_none(), "generated_file": false,
    })
}

fn entry_diff(repo: &Repo, old: Option<&Entry>, new: Option<&Entry>) -> FileDiff {
    let text = |entry: Option<&Entry>| {
        let bytes = entry.and_then(|entry| repo.blob(&entry.id));
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    file_diff(&text(old), &text(new))
}

/// Lines added and removed between two trees.
pub(crate) fn line_stats(repo: &Repo, from: &Tree, to: &Tree) -> (usize, usize) {
    let diffs = changed_paths(from, to).into_iter().map(|path| entry_diff(repo, from.get(&path), to.get(&path)));
    diffs.fold((0, 0), |(added, removed), diff| (added + diff.additions, removed + diff.deletions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hunk_as_git_writes_it() {
        let table = [
            ("# Demo\n", "# Demo\nMore text\n", "@@ -1 +1,2 @@\n # Demo\n+More text\n"),
            ("", "pub fn login() {}\n", "@@ -0,0 +1 @@\n+pub fn login() {}\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            ("a", "b", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"),
            ("1\n2\n3\n4\n5\n", "1\n2\n3\n4\nX\n", "@@ -2,4 +2,4 @@\n 2\n 3\n 4\n-5\n+X\n"),
        ];
        for (old, new, expected) in table {
            assert_eq!(file_diff(old, new).text, expected);
        }
        assert_eq!(file_diff("x", "x"), FileDiff::default());
    }
}
