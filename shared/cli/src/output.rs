//! All that is printed. A reader that went away ends nothing: what follows is dropped.

use serde_json::Value;
use std::io::Write as _;

/// Prints a line of results.
pub(crate) fn line(text: impl AsRef<str>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush());
}

/// Prints a document.
pub(crate) fn document(value: &Value) {
    line(serde_json::to_string_pretty(value).unwrap_or_default());
}

/// Prints a line about what went wrong.
pub(crate) fn error(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
}
