//! Reads JSON objects field by field and notes everything that is wrong, where a derived reader stops at the first error.
//!
//! Upholds INV-12: a value is never repeated, only its kind; a name that the caller chose is escaped and cut.

use crate::code::Code;
use crate::problem::{FieldError, Problem};
use serde_json::{Map, Value};

/// How many errors one answer lists.
pub(crate) const MAX_ERRORS: usize = 1000;
/// How much of a field's name is shown.
const SHOWN_CHARS: usize = 80;

/// Everything that is wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    listed: Vec<FieldError>,
    total: usize,
}

impl Errors {
    /// Notes one more; beyond the limit it is only counted.
    pub(crate) fn push(&mut self, error: FieldError) {
        self.total += 1;
        if self.listed.len() < MAX_ERRORS {
            self.listed.push(error);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The problem that lists them, where there are any.
    pub(crate) fn problem(self, code: Code) -> Result<(), Problem> {
        match self.total {
            0 => Ok(()),
            1 => Err(Problem::new(code, "1 error; see errors").with_errors(self.listed)),
            n => Err(Problem::new(code, format!("{n} errors; see errors")).with_errors(self.listed)),
        }
    }
}

impl Extend<FieldError> for Errors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

/// A kind of JSON value.
pub(crate) trait Kind<'v>: Sized {
    /// What it is, for people.
    const NAME: &'static str;

    /// The value, if it is of this kind.
    fn of(value: &'v Value) -> Option<Self>;
}

impl<'v> Kind<'v> for &'v str {
    const NAME: &'static str = "text";

    fn of(value: &'v Value) -> Option<Self> {
        value.as_str()
    }
}

impl<'v> Kind<'v> for bool {
    const NAME: &'static str = "true or false";

    fn of(value: &'v Value) -> Option<Self> {
        value.as_bool()
    }
}

impl<'v> Kind<'v> for u64 {
    const NAME: &'static str = "a whole number";

    fn of(value: &'v Value) -> Option<Self> {
        value.as_u64()
    }
}

impl<'v> Kind<'v> for &'v [Value] {
    const NAME: &'static str = "a list";

    fn of(value: &'v Value) -> Option<Self> {
        value.as_array().map(Vec::as_slice)
    }
}

impl<'v> Kind<'v> for &'v Map<String, Value> {
    const NAME: &'static str = "an object";

    fn of(value: &'v Value) -> Option<Self> {
        value.as_object()
    }
}

/// The value as this kind; what it is instead is noted.
pub(crate) fn typed<'v, T: Kind<'v>>(value: &'v Value, path: &str, errors: &mut Errors) -> Option<T> {
    let read = T::of(value);
    if read.is_none() {
        let message = format!("must be {}, not {}", T::NAME, kind_of(value));
        errors.push(FieldError::new(path, "wrong_type", message, "leave it out where there is nothing to say"));
    }
    read
}

/// One object being read.
#[derive(Debug)]
pub(crate) struct Object<'v> {
    fields: &'v Map<String, Value>,
    path: String,
}

impl<'v> Object<'v> {
    /// The object at a path; unknown fields are noted. None where it is no object.
    pub(crate) fn read(value: &'v Value, path: String, known: &[&str], errors: &mut Errors) -> Option<Self> {
        let fields: &Map<_, _> = typed(value, &path, errors)?;
        let hint = || format!("known here: {}", known.join(", "));
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let path = format!("{path}/{}", token(name));
            errors.push(FieldError::new(path, "unknown_field", "is not known", hint()));
        }
        Some(Self { fields, path })
    }

    /// The pointer of one field.
    pub(crate) fn pointer(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field that may be left out.
    pub(crate) fn optional<T: Kind<'v>>(&self, name: &str, errors: &mut Errors) -> Option<T> {
        self.fields.get(name).and_then(|value| typed(value, &self.pointer(name), errors))
    }

    /// A field that must be there.
    pub(crate) fn required<T: Kind<'v>>(&self, name: &str, errors: &mut Errors) -> Option<T> {
        if !self.fields.contains_key(name) {
            errors.push(FieldError::new(self.pointer(name), "missing_field", "is missing", format!("send {}", T::NAME)));
        }
        self.optional(name, errors)
    }

    /// A field that may be left out and has few values; none of them where it has another.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], errors: &mut Errors) -> Option<T> {
        let sent: &str = self.optional(name, errors)?;
        let found = words.iter().find(|(word, _)| *word == sent).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let hint = format!("one of: {}", known.join(", "));
            errors.push(FieldError::new(self.pointer(name), "invalid_value", "is not one of the words known here", hint));
        }
        found
    }
}

/// A name as part of a JSON Pointer, escaped and cut.
fn token(name: &str) -> String {
    let shown: String = name.chars().take(SHOWN_CHARS).collect();
    shown.replace('~', "~0").replace('/', "~1")
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_that_is_wrong_is_noted_and_no_value_is_repeated() {
        let value = json!({"a": 1, "b": "x", "c/d~": "secret", "w": "secret"});
        let mut errors = Errors::default();
        let object = Object::read(&value, String::new(), &["a", "b", "m", "w"], &mut errors).unwrap();
        assert_eq!(object.optional::<&str>("a", &mut errors), None);
        assert_eq!(object.required::<&str>("b", &mut errors), Some("x"));
        assert_eq!(object.required::<bool>("m", &mut errors), None);
        assert_eq!(object.word("w", &[("one", 1), ("two", 2)], &mut errors), None);
        let problem = errors.problem(Code::InvalidRequest).unwrap_err();
        let seen: Vec<_> = problem.errors.iter().map(|e| (e.path.as_str(), e.code, e.message.as_str())).collect();
        let want = [
            ("/c~1d~0", "unknown_field", "is not known"),
            ("/a", "wrong_type", "must be text, not a number"),
            ("/m", "missing_field", "is missing"),
            ("/w", "invalid_value", "is not one of the words known here"),
        ];
        assert_eq!(seen, want);
        assert_eq!(problem.detail, "4 errors; see errors");
    }

    #[test]
    fn a_flood_of_errors_is_counted_and_not_listed() {
        let mut errors = Errors::default();
        errors.extend((0..MAX_ERRORS + 5).map(|n| FieldError::new(format!("/{n}"), "wrong_type", "m", "h")));
        let problem = errors.problem(Code::InvalidRequest).unwrap_err();
        assert_eq!((problem.errors.len(), problem.detail.as_str()), (1000, "1005 errors; see errors"));
    }
}
