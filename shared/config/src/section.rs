//! Reads a mapping key by key and notes every problem, so that one look shows all of them.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Display;

/// Problems, each with the place it is at.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    /// Notes one.
    pub(crate) fn note(&mut self, place: &str, problem: impl Display) {
        self.0.push(format!("{place}: {problem}"));
    }

    /// The value, or every problem.
    pub(crate) fn conclude<T>(self, value: Option<T>) -> Result<T, Vec<String>> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self.0),
        }
    }
}

/// A mapping being read.
pub(crate) struct Section {
    place: String,
    entries: Map<String, Value>,
    /// The keys that were asked for.
    known: Vec<String>,
}

impl Section {
    /// The mapping at a place; an empty one where there is something else, which is noted.
    pub(crate) fn of(place: impl Into<String>, value: Value, problems: &mut Problems) -> Self {
        let place = place.into();
        let entries = match value {
            Value::Object(entries) => entries,
            Value::Null => Map::new(),
            _ => {
                problems.note(&place, "a mapping is needed here");
                Map::new()
            }
        };
        Self { place, entries, known: Vec::new() }
    }

    /// Where it is.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Where a key of it is.
    pub(crate) fn at(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    /// Takes a key as it is.
    pub(crate) fn raw(&mut self, key: &str) -> Option<Value> {
        self.known.push(key.to_owned());
        self.entries.remove(key)
    }

    /// Takes a key; a value of another type is noted.
    pub(crate) fn optional<T: DeserializeOwned>(&mut self, key: &str, problems: &mut Problems) -> Option<T> {
        let value = self.raw(key)?;
        match serde_json::from_value(value) {
            Ok(value) => Some(value),
            Err(error) => {
                problems.note(&self.at(key), error);
                None
            }
        }
    }

    /// Takes a key that has to be there.
    pub(crate) fn required<T: DeserializeOwned>(&mut self, key: &str, problems: &mut Problems) -> Option<T> {
        if !self.entries.contains_key(key) {
            problems.note(&self.at(key), "is missing");
        }
        self.optional(key, problems)
    }

    /// Every key, where keys are names.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (String, Value)> {
        self.entries.into_iter()
    }

    /// Notes what is left: keys of things to come, and keys nobody knows.
    pub(crate) fn finish(self, not_yet: &[&str], problems: &mut Problems) {
        for key in self.entries.keys() {
            let problem = if not_yet.contains(&key.as_str()) { "is not supported yet".to_owned() } else { self.unknown() };
            problems.note(&self.at(key), problem);
        }
    }

    fn unknown(&self) -> String {
        let known: Vec<_> = self.known.iter().map(|key| format!("`{key}`")).collect();
        format!("is no key of the configuration, expected one of {}", known.join(", "))
    }
}
