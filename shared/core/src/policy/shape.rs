//! The rules about file actions themselves: their number, fields, paths and collisions.
//!
//! Per path the first failure counts; all paths and fields are looked at. Two actions on one path are refused, both
//! paths of a move included, because GitLab applies actions in order and a reviewer should not have to. Paths collide
//! by key: two files that one file system cannot hold apart do not belong in one change. Deliberately left out: whether
//! a file exists, and a file in place of a folder of the same change, which GitLab answers itself.

use super::config::Config;
use super::content::{self, Scanner};
use super::path::{Key, Reject, check_form, check_previous};
use super::protected::PathRules;
use super::violation::{Violation, action_pointer, quote};
use crate::files::{Expect, FileAction, Verb};
use std::collections::HashMap;

/// What the rules about file actions need.
pub(super) struct ActionRules<'a> {
    pub(super) config: &'a Config,
    pub(super) paths: &'a PathRules,
    pub(super) scanner: &'a Scanner,
}

/// The keys used so far, with the pointer of the path that used each first.
type Taken = HashMap<Key, (usize, String)>;

impl ActionRules<'_> {
    /// Every violation of one submission's actions, in their order.
    pub(super) fn inspect(&self, actions: &[FileAction], out: &mut Vec<Violation>) {
        self.totals(actions, out);
        let mut taken = Taken::new();
        for (index, action) in actions.iter().enumerate() {
            self.paths_of(index, action, &mut taken, out);
            out.extend(fields_of(index, action));
            if let Some(bytes) = &action.content {
                let pointer = action_pointer(index, "content");
                let file = content::File { bytes, path: &action.file_path, pointer: &pointer };
                content::inspect(file, self.config, self.scanner, out);
            }
        }
    }

    fn totals(&self, actions: &[FileAction], out: &mut Vec<Violation>) {
        let (count, limit) = (actions.len(), self.config.max_actions);
        if count == 0 {
            out.push(Violation::new("/file_actions", "no_actions", "no file actions", "send at least one"));
        }
        if count > limit {
            let message = format!("{count} file actions, more than {limit}");
            out.push(Violation::new("/file_actions", "too_many_actions", message, "split the change"));
        }
        let bytes = actions.iter().filter_map(|a| a.content.as_ref()).map(|c| c.len() as u64).sum::<u64>();
        let limit = self.config.max_bytes.0;
        if bytes > limit {
            let message = format!("{bytes} bytes of content, more than {limit}");
            out.push(Violation::new("/file_actions", "request_too_large", message, "split the change"));
        }
    }

    fn paths_of(&self, index: usize, action: &FileAction, taken: &mut Taken, out: &mut Vec<Violation>) {
        let previous = action.previous_path.as_deref();
        out.extend(self.path(index, "file_path", &action.file_path, taken));
        match (check_previous(action.verb, &action.file_path, previous), previous) {
            (Err(reason), _) => {
                let shown = previous.unwrap_or(&action.file_path);
                out.push(rejected(action_pointer(index, "previous_path"), shown, reason));
            }
            (Ok(()), Some(path)) => out.extend(self.path(index, "previous_path", path, taken)),
            (Ok(()), None) => {}
        }
    }

    /// Form, then patterns, then collisions: the first that fails.
    fn path(&self, index: usize, field: &str, path: &str, taken: &mut Taken) -> Option<Violation> {
        let pointer = action_pointer(index, field);
        if let Err(reason) = check_form(path) {
            return Some(rejected(pointer, path, reason));
        }
        let key = Key::of(path);
        let blocked = self.paths.blocking(&key).map(|pattern| protected(&pointer, path, pattern));
        let collision = collide(index, key, &pointer, path, taken);
        blocked.or(collision)
    }
}

/// A move that only changes how its own name is spelled does not collide with itself.
fn collide(index: usize, key: Key, pointer: &str, path: &str, taken: &mut Taken) -> Option<Violation> {
    let (by, first) = taken.entry(key).or_insert_with(|| (index, pointer.to_owned()));
    (*by != index).then(|| {
        let message = format!("{} is the same file as {first}", quote(path));
        Violation::new(pointer, "duplicate_path", message, "send one action for each file")
    })
}

fn rejected(pointer: String, path: &str, reason: Reject) -> Violation {
    let message = format!("{} {}", quote(path), reason.problem());
    Violation::new(pointer, reason.code(), message, reason.hint())
}

fn protected(pointer: &str, path: &str, pattern: &str) -> Violation {
    let message = format!("{} is protected by {}", quote(path), quote(pattern));
    Violation::new(pointer, "protected_path", message, "leave this file to the project's maintainers")
}

/// Which fields a verb needs and which it cannot have: refused rather than ignored.
fn fields_of(index: usize, action: &FileAction) -> impl Iterator<Item = Violation> {
    let verb = action.verb;
    let (has_content, has_mode) = (action.content.is_some(), action.execute_filemode.is_some());
    let takes_content = matches!(verb, Verb::Create | Verb::Update | Verb::Move);
    let takes_mode = matches!(verb, Verb::Create | Verb::Chmod);
    let checks = [
        (verb == Verb::Update && !has_content, "content", "missing_content", "needs content", "send the whole file"),
        (!takes_content && has_content, "content", "unexpected_content", "takes no content", "leave content out"),
        (verb == Verb::Chmod && !has_mode, "execute_filemode", "missing_execute_filemode", "needs execute_filemode", "send true or false"),
        (
            !takes_mode && has_mode,
            "execute_filemode",
            "unexpected_execute_filemode",
            "takes no execute_filemode",
            "leave it out, or use chmod",
        ),
    ];
    let wrong = checks.into_iter().filter(|check| check.0);
    let fields =
        wrong.map(move |(_, field, code, says, hint)| Violation::new(action_pointer(index, field), code, format!("{verb} {says}"), hint));
    fields.chain(bad_expect(index, action))
}

fn bad_expect(index: usize, action: &FileAction) -> Option<Violation> {
    let Some(Expect::Sha256(hash)) = &action.expect else { return None };
    let hex = hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (!hex || hash.len() != 64).then(|| {
        let message = "the expected hash is not 64 lower-case hex digits";
        Violation::new(action_pointer(index, "expect"), "invalid_expect", message, "send sha256:<hex> or absent")
    })
}
