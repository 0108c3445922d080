//! One reader for the six JSON error shapes, plain text and HTML.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde_json::{Map, Value};

/// How many characters of the other side's text a failure carries.
const MAX_CHARS: usize = 300;

/// Who wrote the body of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// GitLab itself (`message`).
    Application,
    /// The check of parameters and routes (`error`).
    Parameters,
    /// The check of the token (`error` with `error_description`).
    Token,
    /// Plain text, from the rate limiter or a proxy.
    Plain,
    /// A page, surely from a proxy.
    Html,
    /// Nobody.
    Empty,
}

/// The body of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// Who wrote it.
    pub(crate) origin: Origin,
    /// What it says: cut, without control characters, never HTML.
    pub(crate) text: String,
}

/// What stands in the place of a credential.
const HIDDEN: &str = "[redacted]";

impl ErrorBody {
    /// Reads any body, and hides the credential should the other side send it back.
    pub(crate) fn read(body: &str, credential: &str) -> Self {
        let body = body.trim();
        let (origin, text) = match serde_json::from_str(body) {
            Ok(Value::Object(object)) => read_object(&object),
            Ok(_) => (Origin::Plain, "JSON of an unknown shape".to_owned()),
            Err(_) if body.is_empty() => (Origin::Empty, "nothing".to_owned()),
            Err(_) if body.starts_with('<') => (Origin::Html, "an HTML page".to_owned()),
            Err(_) => (Origin::Plain, body.to_owned()),
        };
        Self { origin, text: cut(&without(&text, credential)) }
    }

    /// Whether the API itself wrote it.
    pub(crate) fn is_from_api(&self) -> bool {
        matches!(self.origin, Origin::Application | Origin::Parameters | Origin::Token)
    }
}

/// Hides a credential, plain or in base64; its characters are the same percent-encoded.
fn without(text: &str, credential: &str) -> String {
    text.replace(credential, HIDDEN).replace(&BASE64_STANDARD_NO_PAD.encode(credential), HIDDEN)
}

fn read_object(object: &Map<String, Value>) -> (Origin, String) {
    let text_of = |key: &str| object.get(key).map(flatten);
    match (text_of("message"), text_of("error"), text_of("error_description")) {
        (Some(message), _, _) => (Origin::Application, message),
        (None, Some(error), Some(description)) => (Origin::Token, format!("{error}: {description}")),
        (None, Some(error), None) => (Origin::Parameters, error),
        (None, None, _) => (Origin::Plain, "JSON of an unknown shape".to_owned()),
    }
}

/// Text as it is, lists joined, fields named before their texts; the field `error` is only a wrapper.
fn flatten(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(texts) => texts.iter().map(flatten).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => fields.iter().map(flatten_field).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

fn flatten_field((name, value): (&String, &Value)) -> String {
    let text = flatten(value);
    if name == "error" { text } else { format!("{name} {text}") }
}

/// At most [`MAX_CHARS`] characters, what would steer a terminal escaped.
pub(crate) fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_CHARS + 1).flat_map(escape).collect();
    if let Some((at, _)) = shown.char_indices().nth(MAX_CHARS) {
        let keep = shown.char_indices().nth(MAX_CHARS - 1).map_or(at, |(last, _)| last);
        shown.truncate(keep);
        shown.push('…');
    }
    shown
}

fn escape(c: char) -> impl Iterator<Item = char> {
    let steers = c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let (escaped, plain) = if steers { (Some(c.escape_default()), None) } else { (None, Some(c)) };
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_shape_gives_its_text() {
        let table = [
            (r#"{"message":"404 Project Not Found"}"#, Origin::Application, "404 Project Not Found"),
            (r#"{"message":{"base":["Reference not found"]}}"#, Origin::Application, "base Reference not found"),
            (r#"{"message":{"a":["x","y"],"b":["z"]}}"#, Origin::Application, "a x, y; b z"),
            (r#"{"message":["Another open merge request: !7"]}"#, Origin::Application, "Another open merge request: !7"),
            (r#"{"message":{"error":"Try again later."}}"#, Origin::Application, "Try again later."),
            (r#"{"message":"Invalid json","error":"Invalid json"}"#, Origin::Application, "Invalid json"),
            (r#"{"error":"url is missing"}"#, Origin::Parameters, "url is missing"),
            (
                r#"{"error":"insufficient_scope","error_description":"Too small.","scope":"api"}"#,
                Origin::Token,
                "insufficient_scope: Too small.",
            ),
            ("Retry later\n", Origin::Plain, "Retry later"),
            ("<html><script>x</script></html>", Origin::Html, "an HTML page"),
            ("\n <!DOCTYPE html>", Origin::Html, "an HTML page"),
            ("", Origin::Empty, "nothing"),
            (r#"{"message":"bad \u0067lpat-x"}"#, Origin::Application, "bad [redacted]"),
            (r#"{"message":"bad Z2xwYXQteA=="}"#, Origin::Application, "bad [redacted]=="),
            ("[1]", Origin::Plain, "JSON of an unknown shape"),
            (r#"{"detail":"x"}"#, Origin::Plain, "JSON of an unknown shape"),
            ("a\u{1b}[31mb\u{202e}c", Origin::Plain, "a\\u{1b}[31mb\\u{202e}c"),
        ];
        for (body, origin, text) in table {
            assert_eq!(ErrorBody::read(body, "glpat-x"), ErrorBody { origin, text: text.to_owned() }, "{body}");
        }
    }

    #[test]
    fn a_long_text_is_cut_to_300_characters() {
        assert_eq!(cut(&"ä".repeat(300)), "ä".repeat(300));
        assert_eq!(cut(&"ä".repeat(301)), format!("{}…", "ä".repeat(299)));
    }

    proptest! {
        #[test]
        fn no_body_gives_more_than_300_characters_or_a_control_character(body in ".*") {
            let text = ErrorBody::read(&body, "glpat-x").text;
            prop_assert!(text.chars().count() <= 300);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
