//! Query parameters of lists: filters, limits and cursors.

use crate::code::Code;
use crate::fields::Errors;
use crate::problem::{FieldError, Problem};
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use collie_core::id::ItemId;
use collie_engine::tracking::read::Paging;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const DEFAULT_LIMIT: usize = 50;
const LIMITS: RangeInclusive<usize> = 1..=200;
/// A longer text is no id and no cursor.
const MAX_ID: usize = 128;

/// The longest place among keys is an encoded task and unit, or less.
const MAX_PLACE: usize = 1024;

/// A query as the extractor gives it.
pub(crate) type Sent = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// The parameters of one list, and what is wrong with them.
#[derive(Debug)]
pub(crate) struct Parameters {
    values: BTreeMap<String, String>,
    errors: Errors,
}

impl Parameters {
    /// Reads a query that may have these parameters, each at most once.
    pub(crate) fn read(sent: Sent, known: &[&str]) -> Result<Self, Problem> {
        let Query(pairs) = sent.map_err(|_| Problem::new(Code::InvalidQuery, "the query is not made of name=value pairs"))?;
        let mut read = Self { values: BTreeMap::new(), errors: Errors::default() };
        for (name, value) in pairs {
            if !known.contains(&name.as_str()) {
                let (shown, hint) = (name.chars().take(80).collect::<String>(), format!("known here: {}", known.join(", ")));
                read.errors.push(FieldError::new(shown, "unknown_parameter", "is not known", hint));
            } else if read.values.insert(name.clone(), value).is_some() {
                read.errors.push(FieldError::new(name, "repeated_parameter", "is there more than once", "send it once"));
            }
        }
        Ok(read)
    }

    /// The text of a parameter.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(name)
    }

    /// The parameter as what `read` makes of it; where that is nothing, it is noted with the hint.
    pub(crate) fn take_as<T>(&mut self, name: &str, hint: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.take(name)?;
        let known = read(&value);
        if known.is_none() {
            self.errors.push(FieldError::new(name, "invalid_value", "cannot be used", hint));
        }
        known
    }

    /// The same of one that has to be there.
    pub(crate) fn required_as<T>(&mut self, name: &str, hint: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        if !self.values.contains_key(name) {
            self.errors.push(FieldError::new(name, "missing_parameter", "is missing", hint));
        }
        self.take_as(name, hint, read)
    }

    /// How many rows a page of keys has, and behind which it begins.
    pub(crate) fn paging(&mut self) -> Paging {
        let limit = self.limit();
        Paging { after: self.take_as("cursor", "take next_cursor of the page before", open_place), limit }
    }

    /// How many rows a page has.
    pub(crate) fn limit(&mut self) -> usize {
        let read = |text: &str| text.parse().ok().filter(|n| LIMITS.contains(n));
        self.take_as("limit", "a number from 1 to 200", read).unwrap_or(DEFAULT_LIMIT)
    }

    /// Where the page begins.
    pub(crate) fn cursor(&mut self) -> Option<String> {
        self.take_as("cursor", "take next_cursor of the page before", open_cursor)
    }

    /// Refuses where anything was wrong.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        self.errors.problem(Code::InvalidQuery)
    }
}

/// A cursor that callers need not understand.
pub(crate) fn cursor(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(text)
}

/// A place among keys that hold what callers chose.
fn open_place(cursor: &str) -> Option<String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    String::from_utf8(bytes).ok().filter(|place| (1..=MAX_PLACE).contains(&place.len()))
}

fn open_cursor(cursor: &str) -> Option<String> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    String::from_utf8(bytes).ok().filter(|text| is_plain(text))
}

/// The id in a path; none where no item can have it.
pub(crate) fn item_id(text: &str) -> Option<ItemId> {
    let is_id = text.len() <= MAX_ID && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_id.then(|| ItemId::new(text))
}

fn is_plain(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_anything_else_is_not() {
        assert_eq!(open_cursor(&cursor("0196-ab")).as_deref(), Some("0196-ab"));
        for bad in ["", "%", "====", &cursor("a b"), &cursor("ä"), &cursor(&"x".repeat(129)), "_w"] {
            assert_eq!(open_cursor(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_id_has_no_characters_that_keys_could_stumble_over() {
        assert_eq!(item_id("0196-ab"), Some(ItemId::new("0196-ab")));
        for bad in ["a#b", "a/b", "a b", &"x".repeat(129)] {
            assert_eq!(item_id(bad), None, "{bad}");
        }
    }
}
