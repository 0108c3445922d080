//! What an issue is about: a task, and a unit within it. The order of keys is the order of their encoded text, so that a walk over
//! rows and a comparison in memory agree on what lies behind a cursor.
//!
//! The encoding keeps order and never maps two keys to one text: U+0000 to U+0022 become `"` and two hex digits, so that `!`, which ends
//! the task and the unit, sorts below everything that either may hold. What is too long for a table's key is cut and ends in `"~` and
//! its SHA-256; no escape begins like that.

use crate::files::sha256_hex;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes of an encoded task, with its end.
const MAX_TASK: usize = 300;
/// Bytes of an encoded unit, with its end.
const MAX_UNIT: usize = 600;
const END: char = '!';
const CUT: &str = "\"~";

/// A task and a unit; an empty unit stands for the whole task.
#[derive(Clone)]
pub struct IssueKey(Arc<Parts>);

struct Parts {
    task: String,
    unit: String,
    encoded: String,
}

impl IssueKey {
    /// The key of a unit.
    #[must_use]
    pub fn new(task: impl Into<String>, unit: impl Into<String>) -> Self {
        let (task, unit) = (task.into(), unit.into());
        let encoded = bounded(&task, MAX_TASK) + &bounded(&unit, MAX_UNIT);
        Self(Arc::new(Parts { task, unit, encoded }))
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.0.task
    }

    /// The unit; empty for the whole task.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.0.unit
    }

    /// Whether the whole task failed, so that nothing is known of its units.
    #[must_use]
    pub fn is_task_wide(&self) -> bool {
        self.0.unit.is_empty()
    }

    /// The text that keys of rows hold.
    #[must_use]
    pub fn encoded(&self) -> &str {
        &self.0.encoded
    }

    /// How the encoded text of every unit of this very task starts.
    #[must_use]
    pub fn encoded_task(task: &str) -> String {
        bounded(task, MAX_TASK)
    }

    /// How the encoded text of every task with this beginning starts.
    #[must_use]
    pub fn encoded_prefix(task_prefix: &str) -> String {
        escaped(task_prefix)
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match u32::from(c) {
            low @ 0..=0x22 => out.push_str(&format!("\"{low:02X}")),
            _ => out.push(c),
        }
    }
    out
}

fn bounded(text: &str, max: usize) -> String {
    let mut out = escaped(text);
    if out.len() + END.len_utf8() > max {
        let hash = sha256_hex(text.as_bytes());
        cut(&mut out, max - END.len_utf8() - CUT.len() - hash.len());
        out = out + CUT + &hash;
    }
    out.push(END);
    out
}

/// Cuts to at most `max` bytes, through no character and no escape.
fn cut(text: &mut String, max: usize) {
    let mut at = max;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.truncate(at);
    if let Some(escape) = text.rfind('"').filter(|escape| text.len() < escape + 3) {
        text.truncate(escape);
    }
}

impl PartialEq for IssueKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.encoded == other.0.encoded
    }
}

impl Eq for IssueKey {}

impl PartialOrd for IssueKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IssueKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.encoded.cmp(&other.0.encoded)
    }
}

impl Hash for IssueKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.encoded.hash(state);
    }
}

impl fmt::Debug for IssueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for IssueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_task_wide() { f.write_str(self.task()) } else { write!(f, "{} / {}", self.task(), self.unit()) }
    }
}

/// As rows hold it.
#[derive(Serialize, Deserialize)]
struct Stored {
    task: String,
    unit: String,
}

impl Serialize for IssueKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored { task: self.0.task.clone(), unit: self.0.unit.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for IssueKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(deserializer).map(|stored| Self::new(stored.task, stored.unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_encoding_is_the_documented_one() {
        assert_eq!(IssueKey::new("build 1/2", "a!b\"c\0").encoded(), "build\"201/2!a\"21b\"22c\"00!");
        assert_eq!(IssueKey::new("lint", "").encoded(), "lint!!");
    }

    #[test]
    fn the_whole_task_comes_first_and_case_counts() {
        let keys = [("a", ""), ("a", "\0"), ("a", " "), ("a", "!"), ("a", "Z"), ("a", "a"), ("a", "ä"), ("a b", ""), ("ab", "")];
        let keys = keys.map(|(task, unit)| IssueKey::new(task, unit));
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    }

    #[test]
    fn a_long_key_is_cut_between_characters_and_escapes_and_stays_its_own() {
        let long = |unit: &str| IssueKey::new("t", unit);
        for text in ["x".repeat(700), "€".repeat(300), " ".repeat(300), "a".to_owned() + &"\u{22}".repeat(400)] {
            let (one, other) = (long(&text), long(&format!("{text}2")));
            assert_ne!(one, other);
            assert!(one.encoded().len() <= 2 + MAX_UNIT && one.encoded().ends_with('!'), "{}", one.encoded());
            assert_eq!(one.unit(), text);
            let plain = long(one.encoded().strip_prefix("t!").and_then(|e| e.strip_suffix('!')).unwrap());
            assert_ne!(plain, one, "a text that spells another's cut key is escaped");
        }
        assert_eq!(IssueKey::new("y".repeat(299), "").encoded().len(), 301, "as long as a task may be");
        assert!(IssueKey::new("y".repeat(300), "").encoded().contains("\"~"));
    }

    fn any_text() -> impl Strategy<Value = String> {
        proptest::collection::vec(prop_oneof![Just('\0'), Just('!'), Just('"'), Just('#'), Just('~'), Just('A'), any::<char>()], 0..6)
            .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn keys_sort_like_task_then_unit_in_bytes(a in (any_text(), any_text()), b in (any_text(), any_text())) {
            let (x, y) = (IssueKey::new(a.0.clone(), a.1.clone()), IssueKey::new(b.0.clone(), b.1.clone()));
            prop_assert_eq!(x.cmp(&y), (a.0.as_bytes(), a.1.as_bytes()).cmp(&(b.0.as_bytes(), b.1.as_bytes())));
        }

        #[test]
        fn the_prefix_finds_exactly_the_tasks_that_begin_so(task in any_text(), prefix in any_text()) {
            let found = IssueKey::new(task.clone(), "u").encoded().starts_with(&IssueKey::encoded_prefix(&prefix));
            prop_assert_eq!(found, task.starts_with(&prefix));
        }

        #[test]
        fn rows_give_the_key_back(task in any_text(), unit in any_text()) {
            let key = IssueKey::new(task, unit);
            let read: IssueKey = serde_json::from_value(serde_json::to_value(&key).unwrap()).unwrap();
            prop_assert_eq!((read.task(), read.unit()), (key.task(), key.unit()));
        }
    }
}
