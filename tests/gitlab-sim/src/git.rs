//! Git objects: real ids of blobs, trees and commits, and the three-way merge by path.
//!
//! Ids are the sha1 of the object's canonical bytes, so a client that computes a blob id itself
//! gets the same answer. What is not modelled: packs, submodule contents, merges within one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use sha1::{Digest, Sha1};

/// How git stores a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Executable,
    Symlink,
    Submodule,
}

impl Mode {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "100644" => Some(Self::File),
            "100755" => Some(Self::Executable),
            "120000" => Some(Self::Symlink),
            "160000" => Some(Self::Submodule),
            _ => None,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Submodule => "160000",
        }
    }
}

/// One path of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: Mode,
    pub(crate) id: String,
}

/// All paths of a commit, flat.
pub(crate) type Tree = BTreeMap<String, Entry>;

/// Who made a commit, and when.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) at_ms: u64,
}

/// A commit with its whole tree.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) tree: Arc<Tree>,
    pub(crate) parents: Vec<String>,
    pub(crate) message: String,
    pub(crate) author: Signature,
    pub(crate) committer: Signature,
    pub(crate) author_user: Option<String>,
    /// Position in the order of creation; descendants always have a higher one.
    pub(crate) seq: u64,
}

impl Commit {
    pub(crate) fn title(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    pub(crate) fn short_id(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }
}

/// The id of an object of the given kind.
pub(crate) fn object_id(kind: &str, content: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("{kind} {}\0", content.len()));
    hasher.update(content);
    hex::encode(hasher.finalize())
}

/// The id of a blob with this content.
pub(crate) fn blob_id(content: &[u8]) -> String {
    object_id("blob", content)
}

/// The id of the tree below `prefix` (empty, or ending in `/`).
pub(crate) fn tree_id(tree: &Tree, prefix: &str) -> String {
    let mut rows = children(tree, prefix);
    rows.sort_by_key(Child::sort_key);
    let mut bytes = Vec::new();
    for row in &rows {
        bytes.extend_from_slice(format!("{} {}\0", row.git_mode(), row.name).as_bytes());
        bytes.extend_from_slice(&hex::decode(&row.id).unwrap_or_default());
    }
    object_id("tree", &bytes)
}

/// A direct child of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) id: String,
    /// `None` for a directory.
    pub(crate) mode: Option<Mode>,
}

impl Child {
    fn sort_key(&self) -> String {
        if self.mode.is_none() { format!("{}/", self.name) } else { self.name.clone() }
    }

    fn git_mode(&self) -> &'static str {
        self.mode.map_or("40000", Mode::text)
    }
}

/// The direct children of the directory `prefix`, by name.
pub(crate) fn children(tree: &Tree, prefix: &str) -> Vec<Child> {
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, entry) in tree.range(prefix.to_owned()..) {
        let Some(rest) = path.strip_prefix(prefix) else { break };
        match rest.split_once('/') {
            None => rows.push(Child { name: rest.to_owned(), id: entry.id.clone(), mode: Some(entry.mode) }),
            Some((name, _)) if seen.insert(name.to_owned()) => {
                let id = tree_id(tree, &format!("{prefix}{name}/"));
                rows.push(Child { name: name.to_owned(), id, mode: None });
            }
            Some(_) => {}
        }
    }
    rows
}

/// The id of a commit object.
pub(crate) fn commit_id(tree: &Tree, parents: &[String], author: &Signature, committer: &Signature, message: &str) -> String {
    let mut text = format!("tree {}\n", tree_id(tree, ""));
    for parent in parents {
        let _ = writeln!(text, "parent {parent}");
    }
    let _ = writeln!(text, "author {}", signature_line(author));
    let _ = writeln!(text, "committer {}", signature_line(committer));
    let _ = write!(text, "\n{message}");
    object_id("commit", text.as_bytes())
}

fn signature_line(signature: &Signature) -> String {
    format!("{} <{}> {} +0000", signature.name, signature.email, signature.at_ms / 1000)
}

/// Whether the tree has `path` as a directory.
pub(crate) fn is_directory(tree: &Tree, path: &str) -> bool {
    let prefix = format!("{path}/");
    tree.range(prefix.clone()..).next().is_some_and(|(first, _)| first.starts_with(&prefix))
}

/// Merges two trees against their base, path by path; `Err` lists the paths in conflict.
pub(crate) fn merge_trees(base: &Tree, ours: &Tree, theirs: &Tree) -> Result<Tree, Vec<String>> {
    let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut merged = Tree::new();
    let mut conflicts = Vec::new();
    for path in paths {
        match merge_entry(base.get(path), ours.get(path), theirs.get(path)) {
            Ok(Some(entry)) => drop(merged.insert(path.clone(), entry.clone())),
            Ok(None) => {}
            Err(()) => conflicts.push(path.clone()),
        }
    }
    conflicts.extend(merged.keys().filter(|path| is_directory(&merged, path)).cloned());
    if conflicts.is_empty() { Ok(merged) } else { Err(conflicts) }
}

fn merge_entry<'a>(base: Option<&Entry>, ours: Option<&'a Entry>, theirs: Option<&'a Entry>) -> Result<Option<&'a Entry>, ()> {
    if ours == theirs || theirs == base {
        Ok(ours)
    } else if ours == base {
        Ok(theirs)
    } else {
        Err(())
    }
}

/// The paths that differ between two trees, in order.
pub(crate) fn changed_paths(from: &Tree, to: &Tree) -> Vec<String> {
    let paths: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    paths.into_iter().filter(|path| from.get(*path) != to.get(*path)).cloned().collect()
}

/// Whether git accepts `name` as a branch name.
pub(crate) fn is_branch_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    !(name.is_empty()
        || name.starts_with('-')
        || name.ends_with('.')
        || name.contains("..")
        || name.contains("@{")
        || name == "@"
        || name.contains(forbidden)
        || name.split('/').any(bad_part))
}

/// Whether `text` is a full object id.
pub(crate) fn is_full_id(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        files.iter().map(|(path, text)| ((*path).to_owned(), Entry { mode: Mode::File, id: blob_id(text.as_bytes()) })).collect()
    }

    #[test]
    fn ids_are_those_git_computes() {
        assert_eq!(blob_id(b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(blob_id(b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(tree_id(&Tree::new(), ""), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(tree_id(&tree(&[("a.txt", "hello\n")]), ""), "2e81171448eb9f2ee3821e3d447aa6b2fe3ddba1");
    }

    #[test]
    fn merge_takes_the_changed_side_and_reports_both_changed() {
        let base = tree(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let ours = tree(&[("a", "2"), ("b", "1"), ("c", "1")]);
        let theirs = tree(&[("a", "1"), ("b", "1"), ("d", "1")]);
        assert_eq!(merge_trees(&base, &ours, &theirs), Ok(tree(&[("a", "2"), ("b", "1"), ("d", "1")])));
        let clash = tree(&[("a", "3"), ("b", "1"), ("c", "1")]);
        assert_eq!(merge_trees(&base, &ours, &clash), Err(vec!["a".to_owned()]));
    }

    #[test]
    fn a_file_where_the_other_side_made_a_directory_is_a_conflict() {
        let ours = tree(&[("x", "1")]);
        let theirs = tree(&[("x/y", "1")]);
        assert_eq!(merge_trees(&Tree::new(), &ours, &theirs), Err(vec!["x".to_owned()]));
    }

    #[test]
    fn branch_names() {
        for good in ["main", "feature/a", "a.b", "bot/task-17"] {
            assert!(is_branch_name(good), "{good}");
        }
        for bad in ["", "a b", "a..b", "-a", "a/", "/a", "a.lock", "a~1", "x@{1}", ".a"] {
            assert!(!is_branch_name(bad), "{bad}");
        }
    }
}
