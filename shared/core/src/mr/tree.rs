//! Wanted files against a tree: what is still to be done, what cannot be done, and whether a head holds what was wanted.
//!
//! Works on tree listings alone: a blob id is computed locally, so no file is ever read. Bytes already equal, a file already
//! gone and a mode already set count as done. Symbolic links and submodules are never written through.

use super::view::{EntryKind, TreeEntry};
use crate::error::Failure;
use crate::files::{ActionRecord, Expect, Verb};
use std::collections::{BTreeMap, BTreeSet};

/// Directories as listed at one commit; a missing directory is none.
pub type Listing = BTreeMap<String, Option<Vec<TreeEntry>>>;

/// The directory a path is in; the root is empty.
#[must_use]
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The directories that must be listed to judge these actions.
#[must_use]
pub fn directories(actions: &[ActionRecord]) -> BTreeSet<String> {
    actions.iter().flat_map(ActionRecord::paths).map(|path| parent(path).to_owned()).collect()
}

/// What is still to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The actions still to be done, by index; empty where the tree already holds everything.
    pub pending: Vec<usize>,
}

/// Plans the actions on a tree.
///
/// # Errors
/// The first action that cannot be done, named by file and verb.
pub fn plan(actions: &[ActionRecord], tree: &Listing) -> Result<Plan, Failure> {
    let mut pending = Vec::new();
    for (index, action) in actions.iter().enumerate() {
        check_expectation(action, tree)?;
        if is_pending(action, tree)? {
            pending.push(index);
        }
    }
    Ok(Plan { pending })
}

fn is_pending(action: &ActionRecord, tree: &Listing) -> Result<bool, Failure> {
    let here = writable(action, &action.file_path, tree)?;
    match (action.action, here) {
        (Verb::Create | Verb::Update, Some(entry)) if is_content(action, entry) && mode_is_set(action, entry) => Ok(false),
        (Verb::Create, None) | (Verb::Update, Some(_)) => Ok(true),
        (Verb::Create, Some(_)) => Err(impossible(action, "a file with this name already exists")),
        (Verb::Update | Verb::Chmod, None) => Err(impossible(action, "there is no such file")),
        (Verb::Delete, here) => Ok(here.is_some()),
        (Verb::Chmod, Some(entry)) => Ok(!mode_is_set(action, entry)),
        (Verb::Move, here) => move_is_pending(action, here, tree),
    }
}

fn move_is_pending(action: &ActionRecord, here: Option<&TreeEntry>, tree: &Listing) -> Result<bool, Failure> {
    let source = action.previous_path.as_deref().unwrap_or_default();
    match (writable(action, source, tree)?, here) {
        (Some(_), None) => Ok(true),
        (None, Some(entry)) if action.blob_id.is_some() && is_content(action, entry) => Ok(false),
        (None, _) => Err(impossible(action, "there is no file to move")),
        (Some(_), Some(_)) => Err(impossible(action, "a file with the new name already exists")),
    }
}

fn check_expectation(action: &ActionRecord, tree: &Listing) -> Result<(), Failure> {
    let path = action.previous_path.as_deref().unwrap_or(&action.file_path);
    match &action.expect {
        Some(Expect::Absent) if find(tree, path).is_some() => Err(unmet(action, "the file exists")),
        Some(Expect::Sha256(_)) if find(tree, path).is_none() => Err(unmet(action, "the file does not exist")),
        _ => Ok(()),
    }
}

/// The entry at a path, refused where writing there would follow a link or replace something else than a file.
fn writable<'t>(action: &ActionRecord, path: &str, tree: &'t Listing) -> Result<Option<&'t TreeEntry>, Failure> {
    let mut directory = parent(path);
    while !directory.is_empty() {
        match find(tree, directory).map(|e| e.kind) {
            None | Some(EntryKind::Directory) => directory = parent(directory),
            Some(_) => return Err(impossible(action, "a directory of its path is a file, a symbolic link or a submodule")),
        }
    }
    let entry = find(tree, path);
    match entry.map(|e| e.kind) {
        None | Some(EntryKind::File { .. }) => Ok(entry),
        Some(EntryKind::Symlink) => Err(impossible(action, "it is a symbolic link")),
        Some(EntryKind::Submodule) => Err(impossible(action, "it is a submodule")),
        Some(EntryKind::Directory) => Err(impossible(action, "a directory with this name already exists")),
    }
}

fn find<'t>(tree: &'t Listing, path: &str) -> Option<&'t TreeEntry> {
    tree.get(parent(path))?.as_ref()?.iter().find(|entry| entry.path == path)
}

/// Whether the entry holds the action's bytes; an action without bytes creates an empty file.
fn is_content(action: &ActionRecord, entry: &TreeEntry) -> bool {
    match &action.blob_id {
        Some(blob) => *blob == entry.id,
        None => action.action == Verb::Create && entry.id == crate::files::blob_id(b""),
    }
}

fn mode_is_set(action: &ActionRecord, entry: &TreeEntry) -> bool {
    action.execute_filemode.is_none_or(|wanted| entry.kind == EntryKind::File { executable: wanted })
}

fn impossible(action: &ActionRecord, why: &str) -> Failure {
    let (verb, path) = (action.action, action.file_path.escape_debug());
    Failure::rejected("file_action_impossible", format!("cannot {verb} \"{path}\": {why}. Submit actions that fit the target branch."))
}

fn unmet(action: &ActionRecord, why: &str) -> Failure {
    let path = action.file_path.escape_debug();
    Failure::rejected("expectation_not_met", format!("\"{path}\" is not what the submission expects: {why}"))
}

/// Whether every wanted path at a head ended as wanted, given the tree of its parent.
#[must_use]
pub fn holds(actions: &[ActionRecord], at_head: &Listing, at_parent: &Listing) -> bool {
    actions.iter().all(|action| action_holds(action, at_head, at_parent))
}

fn action_holds(action: &ActionRecord, at_head: &Listing, at_parent: &Listing) -> bool {
    let Some(entry) = find(at_head, &action.file_path) else { return action.action == Verb::Delete };
    let is_file = matches!(entry.kind, EntryKind::File { .. });
    match action.action {
        Verb::Delete => false,
        Verb::Create | Verb::Update => is_file && is_content(action, entry) && mode_is_set(action, entry),
        Verb::Chmod => is_file && mode_is_set(action, entry) && same_bytes(at_parent, &action.file_path, entry),
        Verb::Move => {
            let source = action.previous_path.as_deref().unwrap_or_default();
            let bytes_fit = if action.blob_id.is_some() { is_content(action, entry) } else { same_bytes(at_parent, source, entry) };
            is_file && bytes_fit && find(at_head, source).is_none()
        }
    }
}

fn same_bytes(tree: &Listing, path: &str, entry: &TreeEntry) -> bool {
    find(tree, path).is_some_and(|before| before.id == entry.id)
}

/// Whether two trees hold the same at every path the actions touch: then the target's move does not concern them.
#[must_use]
pub fn is_untouched(actions: &[ActionRecord], before: &Listing, after: &Listing) -> bool {
    actions.iter().flat_map(ActionRecord::paths).all(|path| find(before, path) == find(after, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FileAction;

    fn file(path: &str, bytes: &[u8]) -> TreeEntry {
        TreeEntry { path: path.into(), id: crate::files::blob_id(bytes), kind: EntryKind::File { executable: false } }
    }

    fn action(verb: Verb, path: &str, content: Option<&str>) -> ActionRecord {
        let content = content.map(|c| c.as_bytes().to_vec());
        FileAction { verb, file_path: path.into(), previous_path: None, content, execute_filemode: None, expect: None }.record()
    }

    fn tree(entries: Vec<TreeEntry>) -> Listing {
        let mut listing: Listing = BTreeMap::from([(String::new(), Some(Vec::new()))]);
        for entry in entries {
            listing.entry(parent(&entry.path).to_owned()).or_default().get_or_insert_default().push(entry);
        }
        listing
    }

    #[test]
    fn each_verb_is_pending_done_or_impossible_by_what_the_tree_holds() {
        let at = tree(vec![file("a", b"1"), TreeEntry { kind: EntryKind::Symlink, ..file("link", b"x") }]);
        let exec = |on| ActionRecord { execute_filemode: Some(on), ..action(Verb::Chmod, "a", None) };
        let moved = |from: &str, to: &str, content| ActionRecord { previous_path: Some(from.into()), ..action(Verb::Move, to, content) };
        let cases = [
            (action(Verb::Create, "b", Some("1")), Ok(true)),
            (action(Verb::Create, "a", Some("1")), Ok(false)),
            (action(Verb::Create, "a", Some("2")), Err("a file with this name already exists")),
            (action(Verb::Update, "a", Some("2")), Ok(true)),
            (action(Verb::Update, "a", Some("1")), Ok(false)),
            (action(Verb::Update, "b", Some("2")), Err("there is no such file")),
            (action(Verb::Update, "link", Some("2")), Err("it is a symbolic link")),
            (action(Verb::Create, "link/x", Some("2")), Err("a directory of its path is a file, a symbolic link or a submodule")),
            (action(Verb::Delete, "a", None), Ok(true)),
            (action(Verb::Delete, "b", None), Ok(false)),
            (exec(true), Ok(true)),
            (exec(false), Ok(false)),
            (moved("a", "b", None), Ok(true)),
            (moved("c", "a", Some("1")), Ok(false)),
            (moved("c", "b", None), Err("there is no file to move")),
        ];
        for (action, want) in cases {
            let got = plan(std::slice::from_ref(&action), &at).map(|p| !p.pending.is_empty());
            match want {
                Ok(pending) => assert_eq!(got, Ok(pending), "{action:?}"),
                Err(why) => {
                    let message = got.unwrap_err().message;
                    assert!(message.starts_with(&format!("cannot {} \"{}\": {why}", action.action, action.file_path)), "{message}");
                }
            }
        }
    }

    #[test]
    fn a_head_holds_the_actions_only_where_every_path_ended_as_wanted() {
        let before = tree(vec![file("a", b"1"), file("old", b"m")]);
        let moved = ActionRecord { previous_path: Some("old".into()), ..action(Verb::Move, "new", None) };
        let actions = [action(Verb::Update, "a", Some("2")), moved];
        assert!(holds(&actions, &tree(vec![file("a", b"2"), file("new", b"m")]), &before));
        for wrong in [
            vec![file("a", b"3"), file("new", b"m")],
            vec![file("a", b"2"), file("new", b"n")],
            vec![file("a", b"2"), file("new", b"m"), file("old", b"m")],
            vec![file("new", b"m")],
        ] {
            assert!(!holds(&actions, &tree(wrong.clone()), &before), "{wrong:?}");
        }
    }
}
