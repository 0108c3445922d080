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
    let path = action.expected_path();
    match &action.expect {
        Some(Expect::Absent) if find(tree, path).is_some() => Err(unmet(action, "the file exists")),
        Some(Expect::Sha256(_)) if find(tree, path).is_none() => Err(unmet(action, "the file does not exist")),
        _ => Ok(()),
    }
}

/// Files whose SHA-256 an action expects and which the tree has; a listing does not show it.
#[must_use]
pub fn digests_wanted<'a>(actions: &'a [ActionRecord], tree: &Listing) -> BTreeSet<&'a str> {
    let wants = |action: &&ActionRecord| matches!(action.expect, Some(Expect::Sha256(_)));
    let paths = actions.iter().filter(wants).map(ActionRecord::expected_path);
    paths.filter(|path| matches!(find(tree, path).map(|e| e.kind), Some(EntryKind::File { .. }))).collect()
}

/// Compares what actions expect with the digests that were read.
///
/// # Errors
/// The first file that is not as expected.
pub fn check_digests(actions: &[ActionRecord], digests: &BTreeMap<String, Option<String>>) -> Result<(), Failure> {
    for action in actions {
        let Some(Expect::Sha256(wanted)) = &action.expect else { continue };
        let Some(found) = digests.get(action.expected_path()) else { continue };
        if !found.as_ref().is_some_and(|found| found.eq_ignore_ascii_case(wanted)) {
            return Err(unmet(action, "the file holds something else"));
        }
    }
    Ok(())
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
        Verb::Create | Verb::Update => is_content(action, entry) && mode_holds(action, entry, at_parent),
        Verb::Chmod => is_file && mode_is_set(action, entry) && same_bytes(at_parent, &action.file_path, entry),
        Verb::Move => {
            let source = action.previous_path.as_deref().unwrap_or_default();
            let bytes_fit = if action.blob_id.is_some() { is_content(action, entry) } else { same_bytes(at_parent, source, entry) };
            mode_holds(action, entry, at_parent) && bytes_fit && find(at_head, source).is_none()
        }
    }
}

/// A mode that an action does not name is the one the file had before, and plain for a new file.
fn mode_holds(action: &ActionRecord, entry: &TreeEntry, at_parent: &Listing) -> bool {
    let source = action.previous_path.as_deref().unwrap_or(&action.file_path);
    let before = find(at_parent, source).or_else(|| find(at_parent, &action.file_path));
    let was = before.is_some_and(|e| e.kind == EntryKind::File { executable: true });
    entry.kind == EntryKind::File { executable: action.execute_filemode.unwrap_or(was) }
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
    use crate::sample::action;

    fn file(path: &str, bytes: &[u8]) -> TreeEntry {
        TreeEntry { path: path.into(), id: crate::files::blob_id(bytes), kind: EntryKind::File { executable: false } }
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

    fn kind(path: &str, kind: EntryKind) -> TreeEntry {
        TreeEntry { kind, ..file(path, b"x") }
    }

    fn why(action: &ActionRecord, at: &Listing) -> String {
        plan(std::slice::from_ref(action), at).unwrap_err().message
    }

    #[test]
    fn the_directories_to_list_are_those_of_both_paths_of_every_action() {
        let moved = ActionRecord { previous_path: Some("a/b/old".into()), ..action(Verb::Move, "c/new", None) };
        let actions = [moved, action(Verb::Delete, "top", None), action(Verb::Delete, "c/other", None)];
        assert_eq!(directories(&actions).into_iter().collect::<Vec<_>>(), ["", "a/b", "c"]);
        assert_eq!((parent("a/b/c"), parent("a")), ("a/b", ""));
    }

    #[test]
    fn a_plan_names_the_pending_actions_by_index_and_is_empty_where_the_tree_holds_everything() {
        let at = tree(vec![file("a", b"1"), file("b", b"1")]);
        let actions = [action(Verb::Update, "a", Some("1")), action(Verb::Update, "b", Some("2")), action(Verb::Create, "c", Some("3"))];
        assert_eq!(plan(&actions, &at), Ok(Plan { pending: vec![1, 2] }));
        let done = tree(vec![file("a", b"1"), file("b", b"2"), file("c", b"3")]);
        assert_eq!(plan(&actions, &done), Ok(Plan { pending: vec![] }));
        assert_eq!(plan(&[], &at), Ok(Plan { pending: vec![] }));
    }

    #[test]
    fn a_file_with_the_right_bytes_is_pending_only_for_a_mode_that_is_named_and_not_set() {
        let at = tree(vec![file("a", b"1")]);
        let update = |mode| ActionRecord { execute_filemode: mode, ..action(Verb::Update, "a", Some("1")) };
        for (mode, pending) in [(None, vec![]), (Some(false), vec![]), (Some(true), vec![0])] {
            assert_eq!(plan(&[update(mode)], &at), Ok(Plan { pending }), "{mode:?}");
        }
    }

    #[test]
    fn nothing_is_written_through_or_over_what_is_not_a_file() {
        let at = tree(vec![kind("link", EntryKind::Symlink), kind("sub", EntryKind::Submodule), kind("dir", EntryKind::Directory)]);
        let deep = "a directory of its path is a file, a symbolic link or a submodule";
        let cases = [
            ("link", "it is a symbolic link"),
            ("sub", "it is a submodule"),
            ("dir", "a directory with this name already exists"),
            ("link/a", deep),
            ("sub/a/b", deep),
        ];
        for (path, reason) in cases {
            for action in [action(Verb::Create, path, Some("1")), action(Verb::Update, path, Some("1")), action(Verb::Delete, path, None)] {
                let want = format!("cannot {} \"{path}\": {reason}. Submit actions that fit the target branch.", action.action);
                assert_eq!(why(&action, &at), want);
            }
        }
        let out_of = ActionRecord { previous_path: Some("link".into()), ..action(Verb::Move, "new", None) };
        assert!(why(&out_of, &at).starts_with("cannot move \"new\": it is a symbolic link"));
        assert_eq!(plan(&[action(Verb::Create, "dir/new", Some("1"))], &at), Ok(Plan { pending: vec![0] }));
    }

    #[test]
    fn an_expectation_is_checked_before_anything_else() {
        let at = tree(vec![file("a", b"1")]);
        let expecting = |path, expect| ActionRecord { expect: Some(expect), ..action(Verb::Update, path, Some("2")) };
        let sha = || Expect::Sha256("00".into());
        assert_eq!(why(&expecting("a", Expect::Absent), &at), "\"a\" is not what the submission expects: the file exists");
        assert_eq!(why(&expecting("b", sha()), &at), "\"b\" is not what the submission expects: the file does not exist");
        assert_eq!(plan(&[expecting("a", sha())], &at), Ok(Plan { pending: vec![0] }));
        let failure = plan(&[expecting("a", Expect::Absent)], &at).unwrap_err();
        assert_eq!((failure.class, failure.code), (crate::error::Class::Rejected, "expectation_not_met"));
        let moved = ActionRecord { previous_path: Some("a".into()), expect: Some(sha()), ..action(Verb::Move, "b", None) };
        assert_eq!(plan(&[moved], &at), Ok(Plan { pending: vec![0] }));
    }

    #[test]
    fn an_expected_digest_is_read_for_files_that_exist_and_compared() {
        let at = tree(vec![file("a", b"1"), file("old", b"1"), kind("link", EntryKind::Symlink)]);
        let expecting =
            |path: &str, sha: &str| ActionRecord { expect: Some(Expect::Sha256(sha.into())), ..action(Verb::Update, path, Some("2")) };
        let moved = ActionRecord { previous_path: Some("old".into()), ..expecting("new", "EE") };
        let absent = ActionRecord { expect: Some(Expect::Absent), ..action(Verb::Create, "b", Some("2")) };
        let actions =
            [expecting("a", "dd"), moved, absent, expecting("missing", "dd"), expecting("link", "dd"), action(Verb::Delete, "a", None)];
        assert_eq!(digests_wanted(&actions, &at).into_iter().collect::<Vec<_>>(), ["a", "old"]);
        let read =
            |a: &str, old: Option<&str>| BTreeMap::from([("a".to_owned(), Some(a.to_owned())), ("old".to_owned(), old.map(str::to_owned))]);
        let why = |digests| check_digests(&actions, &digests).map_err(|f| (f.code, f.message));
        let unmet =
            |path| Err(("expectation_not_met", format!("\"{path}\" is not what the submission expects: the file holds something else")));
        assert_eq!(why(read("dd", Some("ee"))), Ok(()));
        assert_eq!(why(read("cc", Some("ee"))), unmet("a"));
        assert_eq!(why(read("dd", None)), unmet("new"));
        assert_eq!(why(BTreeMap::new()), Ok(()));
    }

    #[test]
    fn a_mode_that_no_action_names_must_be_the_one_the_file_had() {
        let exec = |path: &str, bytes: &[u8]| TreeEntry { kind: EntryKind::File { executable: true }, ..file(path, bytes) };
        let moved = ActionRecord { previous_path: Some("old".into()), ..action(Verb::Move, "new", Some("2")) };
        let (update, create) = (action(Verb::Update, "a", Some("2")), action(Verb::Create, "a", Some("2")));
        let named = ActionRecord { execute_filemode: Some(true), ..update.clone() };
        let cases = [
            (&update, vec![file("a", b"1")], file("a", b"2"), true),
            (&update, vec![file("a", b"1")], exec("a", b"2"), false),
            (&update, vec![exec("a", b"1")], exec("a", b"2"), true),
            (&update, vec![exec("a", b"1")], file("a", b"2"), false),
            (&create, vec![], file("a", b"2"), true),
            (&create, vec![], exec("a", b"2"), false),
            (&create, vec![exec("a", b"2")], exec("a", b"2"), true),
            (&named, vec![file("a", b"1")], exec("a", b"2"), true),
            (&named, vec![exec("a", b"1")], file("a", b"2"), false),
            (&moved, vec![exec("old", b"1")], exec("new", b"2"), true),
            (&moved, vec![file("old", b"1")], exec("new", b"2"), false),
        ];
        for (action, before, after, want) in cases {
            let held = holds(std::slice::from_ref(action), &tree(vec![after.clone()]), &tree(before.clone()));
            assert_eq!(held, want, "{} {before:?} -> {after:?}", action.action);
        }
    }

    #[test]
    fn a_chmod_holds_only_with_its_mode_and_the_bytes_of_before_and_a_delete_only_where_nothing_is_left() {
        let exec = |bytes: &[u8]| TreeEntry { kind: EntryKind::File { executable: true }, ..file("a", bytes) };
        let chmod = ActionRecord { execute_filemode: Some(true), ..action(Verb::Chmod, "a", None) };
        let before = tree(vec![file("a", b"1")]);
        for (head, want) in [(exec(b"1"), true), (exec(b"2"), false), (file("a", b"1"), false)] {
            assert_eq!(holds(std::slice::from_ref(&chmod), &tree(vec![head]), &before), want);
        }
        let delete = [action(Verb::Delete, "a", None)];
        assert!(holds(&delete, &tree(vec![]), &before) && !holds(&delete, &before, &before));
    }

    #[test]
    fn a_moved_target_concerns_the_actions_only_where_it_changed_one_of_their_paths() {
        let moved = ActionRecord { previous_path: Some("old".into()), ..action(Verb::Move, "d/new", None) };
        let before = tree(vec![file("old", b"1"), file("other", b"1")]);
        let cases = [
            (vec![file("old", b"1"), file("other", b"2"), file("more", b"3")], true),
            (vec![file("old", b"2"), file("other", b"1")], false),
            (vec![file("other", b"1")], false),
            (vec![file("old", b"1"), file("other", b"1"), file("d/new", b"1")], false),
            (vec![kind("old", EntryKind::File { executable: true })], false),
        ];
        for (after, want) in cases {
            assert_eq!(is_untouched(std::slice::from_ref(&moved), &before, &tree(after.clone())), want, "{after:?}");
        }
    }
}
