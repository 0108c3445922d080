//! A repository: its objects, its branches, and the questions asked of its history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::git::{self, Commit, Entry, Mode, Signature, Tree};

/// One path to write (`Some`) or to delete (`None`).
pub(crate) type Write = (String, Option<(Mode, Bytes)>);

/// What a new commit says beside its tree.
#[derive(Clone, Debug)]
pub(crate) struct CommitDraft {
    pub(crate) message: String,
    pub(crate) author: Signature,
    pub(crate) committer: Signature,
    pub(crate) author_user: Option<String>,
}

/// Objects and refs of one project.
#[derive(Debug, Default)]
pub(crate) struct Repo {
    pub(crate) branches: BTreeMap<String, String>,
    commits: BTreeMap<String, Commit>,
    blobs: BTreeMap<String, Bytes>,
    next_seq: u64,
}

impl Repo {
    pub(crate) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    pub(crate) fn head(&self, branch: &str) -> Option<&Commit> {
        self.commits.get(self.branches.get(branch)?)
    }

    pub(crate) fn commit(&self, id: &str) -> Option<&Commit> {
        self.commits.get(id)
    }

    /// Resolves a branch name, a full id or an unambiguous prefix of one (7 or more digits).
    pub(crate) fn resolve(&self, reference: &str) -> Option<&Commit> {
        let name = reference.strip_prefix("refs/heads/").unwrap_or(reference);
        if reference == "HEAD" {
            return None;
        }
        self.head(name).or_else(|| self.commits.get(reference)).or_else(|| self.by_prefix(reference))
    }

    fn by_prefix(&self, prefix: &str) -> Option<&Commit> {
        if prefix.len() < 7 || prefix.len() >= 40 {
            return None;
        }
        let mut found = self.commits.values().filter(|commit| commit.id.starts_with(prefix));
        found.next().filter(|_| found.next().is_none())
    }

    pub(crate) fn put_blob(&mut self, content: Bytes) -> String {
        let id = git::blob_id(&content);
        self.blobs.insert(id.clone(), content);
        id
    }

    pub(crate) fn blob(&self, id: &str) -> Option<&Bytes> {
        self.blobs.get(id)
    }

    pub(crate) fn put_commit(&mut self, tree: Tree, parents: Vec<String>, draft: CommitDraft) -> String {
        let id = git::commit_id(&tree, &parents, &draft.author, &draft.committer, &draft.message);
        if self.commits.contains_key(&id) {
            return id;
        }
        self.next_seq += 1;
        let commit = Commit {
            id: id.clone(),
            tree: Arc::new(tree),
            parents,
            message: draft.message,
            author: draft.author,
            committer: draft.committer,
            author_user: draft.author_user,
            seq: self.next_seq,
        };
        self.commits.insert(id.clone(), commit);
        id
    }

    /// The tree of `start` with the writes done.
    pub(crate) fn apply(&mut self, start: &Tree, writes: &[Write]) -> Tree {
        let mut tree = start.clone();
        for (path, write) in writes {
            match write {
                Some((mode, content)) => {
                    let id = self.put_blob(content.clone());
                    tree.insert(path.clone(), Entry { mode: *mode, id });
                }
                None => drop(tree.remove(path)),
            }
        }
        tree
    }

    /// Every commit reachable from `id`, itself included.
    pub(crate) fn ancestors(&self, id: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![id.to_owned()];
        while let Some(id) = todo.pop() {
            if let Some(commit) = self.commits.get(&id)
                && seen.insert(id)
            {
                todo.extend(commit.parents.iter().cloned());
            }
        }
        seen
    }

    pub(crate) fn is_ancestor(&self, ancestor: &str, of: &str) -> bool {
        self.ancestors(of).contains(ancestor)
    }

    /// The newest common ancestor: since descendants come later, it is a best one.
    pub(crate) fn merge_base(&self, left: &str, right: &str) -> Option<&Commit> {
        let lefts = self.ancestors(left);
        let rights = self.ancestors(right);
        lefts.intersection(&rights).filter_map(|id| self.commits.get(id)).max_by_key(|commit| commit.seq)
    }

    /// History of `id`, newest first.
    pub(crate) fn history(&self, id: &str) -> Vec<&Commit> {
        let mut rows: Vec<&Commit> = self.ancestors(id).iter().filter_map(|id| self.commits.get(id)).collect();
        rows.sort_by_key(|commit| std::cmp::Reverse(commit.seq));
        rows
    }

    /// History of `id` by first parents, newest first.
    pub(crate) fn first_parent_history(&self, id: &str) -> Vec<&Commit> {
        let mut rows = Vec::new();
        let mut next = self.commits.get(id);
        while let Some(commit) = next {
            rows.push(commit);
            next = commit.parents.first().and_then(|id| self.commits.get(id));
        }
        rows
    }

    /// Commits in `to` that are not in `from`, newest first.
    pub(crate) fn commits_between(&self, from: &str, to: &str) -> Vec<&Commit> {
        let known = self.ancestors(from);
        self.history(to).into_iter().filter(|commit| !known.contains(&commit.id)).collect()
    }

    /// The last commit that touched `path` (a file or directory) as seen from `head`.
    pub(crate) fn last_commit_for<'a>(&'a self, head: &'a Commit, path: &str) -> &'a Commit {
        let mut current = head;
        loop {
            let same =
                current.parents.iter().filter_map(|id| self.commits.get(id)).find(|parent| same_at(&parent.tree, &current.tree, path));
            match same {
                Some(parent) => current = parent,
                None => return current,
            }
        }
    }

    /// The tree of the commit's first parent, empty for a root.
    pub(crate) fn parent_tree(&self, commit: &Commit) -> Arc<Tree> {
        let parent = commit.parents.first().and_then(|id| self.commits.get(id));
        parent.map(|parent| Arc::clone(&parent.tree)).unwrap_or_default()
    }

    pub(crate) fn file(&self, reference: &str, path: &str) -> Option<&Bytes> {
        self.blob(&self.resolve(reference)?.tree.get(path)?.id)
    }

    /// Merges `theirs` into `ours`; `Err` lists the paths in conflict.
    pub(crate) fn merge(&self, ours: &str, theirs: &str) -> Result<Tree, Vec<String>> {
        let empty = Arc::new(Tree::new());
        let tree = |id: &str| self.commits.get(id).map_or_else(|| Arc::clone(&empty), |c| Arc::clone(&c.tree));
        let base = self.merge_base(ours, theirs).map_or_else(|| Arc::clone(&empty), |c| Arc::clone(&c.tree));
        git::merge_trees(&base, &tree(ours), &tree(theirs))
    }
}

fn same_at(left: &Tree, right: &Tree, path: &str) -> bool {
    let prefix = format!("{path}/");
    let below = |tree: &Tree| -> Vec<(String, Entry)> {
        tree.range(prefix.clone()..)
            .take_while(|(name, _)| name.starts_with(&prefix))
            .map(|(name, entry)| (name.clone(), entry.clone()))
            .collect()
    };
    left.get(path) == right.get(path) && below(left) == below(right)
}
