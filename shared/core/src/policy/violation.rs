//! One refused rule, in the words the API shows.
//!
//! Upholds INV-12: a violation never holds file content or a secret. Names a caller chose (paths, branches) are shown
//! escaped and cut, so that they cannot forge log lines or reorder what a reader sees.

use serde::Serialize;
use std::fmt;

/// How many characters of a caller's text a message shows.
const SHOWN_CHARS: usize = 80;

/// One rule that a submission breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer into the submission, such as `/file_actions/3/file_path`.
    pub path: String,
    /// Stable snake_case code; each has a page.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Violation {
    pub(super) fn new(path: impl Into<String>, code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        debug_assert!(super::codes().any(|known| known == code), "{code} is not listed");
        Self { path: path.into(), code, message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.path, self.message, self.code)
    }
}

/// A caller's text for a message: escaped, and cut to 80 characters.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The JSON Pointer of one field of one file action.
pub(super) fn action_pointer(index: usize, field: &str) -> String {
    format!("/file_actions/{index}/{field}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_escaped_and_cut() {
        assert_eq!(quote("a\nb\u{202E}c\u{200B}"), r#""a\nb\u{202e}c\u{200b}""#);
        assert_eq!(quote(&"é".repeat(81)), format!("\"{}\"…", "é".repeat(80)));
        assert_eq!(quote(&"é".repeat(80)), format!("\"{}\"", "é".repeat(80)));
    }
}
