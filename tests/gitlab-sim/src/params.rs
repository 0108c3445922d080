//! Request parameters: query, form and JSON bodies in one map, as Grape merges them.

use serde_json::{Map, Value};

use crate::reply::{Reply, missing};

/// What switches a flag on; Python's client sends `True`.
const TRUE_WORDS: [&str; 14] = ["1", "on", "On", "ON", "t", "true", "True", "TRUE", "T", "y", "yes", "Yes", "YES", "Y"];

/// Parameters by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(pub(crate) Map<String, Value>);

impl Params {
    /// Merges the query text and the body; broken JSON is an `Err`.
    pub(crate) fn parse(query: &str, content_type: &str, body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut params = Self::default();
        params.add_form(query);
        if content_type.starts_with("application/x-www-form-urlencoded") {
            params.add_form(&String::from_utf8_lossy(body));
        } else if !body.is_empty() {
            params.add_json(body)?;
        }
        Ok(params)
    }

    fn add_json(&mut self, body: &[u8]) -> Result<(), serde_json::Error> {
        if let Value::Object(map) = serde_json::from_slice(body)? {
            self.0.extend(map);
        }
        Ok(())
    }

    fn add_form(&mut self, text: &str) {
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.add_pair(&decode(&key.replace('+', " ")), decode(&value.replace('+', " ")));
        }
    }

    fn add_pair(&mut self, key: &str, value: String) {
        let Some(name) = key.strip_suffix("[]") else {
            self.0.insert(key.to_owned(), Value::String(value));
            return;
        };
        let slot = self.0.entry(name.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(values) = slot {
            values.push(Value::String(value));
        }
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A text; numbers and booleans are taken as their text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// A required text that is not empty.
    pub(crate) fn required(&self, name: &str) -> Result<String, Reply> {
        self.text(name).ok_or_else(|| missing(name))
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => Some(TRUE_WORDS.contains(&text.as_str())),
            Value::Number(number) => Some(number.as_u64() == Some(1)),
            _ => None,
        }
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// A list given as an array or as comma-separated text.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        let rows = match self.value(name)? {
            Value::Array(rows) => rows.iter().filter_map(|row| row.as_str().map(str::to_owned)).collect(),
            Value::String(text) => text.split(',').map(|row| row.trim().to_owned()).collect(),
            _ => Vec::new(),
        };
        Some(rows.into_iter().filter(|row: &String| !row.is_empty()).collect())
    }
}

/// Percent-decodes a path segment or form value.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%').then(|| text.get(index + 1..index + 3)).flatten();
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                index += 3;
            }
            None => {
                out.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Percent-encodes everything but unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn forms_queries_and_json_merge() {
        let params = Params::parse("a=1&refs[]=x&refs[]=y%2Fz", "application/json", br#"{"a":"2","b":true}"#).unwrap();
        assert_eq!(params.text("a").as_deref(), Some("2"));
        assert_eq!(params.value("refs"), Some(&json!(["x", "y/z"])));
        assert!(params.is_set("b"));
        let form = Params::parse("", "application/x-www-form-urlencoded", b"title=a+b%21&labels=x,%20y").unwrap();
        assert_eq!(form.text("title").as_deref(), Some("a b!"));
        assert_eq!(form.list("labels"), Some(vec!["x".to_owned(), "y".to_owned()]));
        assert!(Params::parse("", "application/json", b"{").is_err());
    }

    #[test]
    fn a_flag_is_on_by_any_of_the_words_that_clients_send() {
        for (query, on) in [("a=true", true), ("a=True", true), ("a=yes", true), ("a=1", true), ("a=false", false), ("a=tRUE", false)] {
            assert_eq!(Params::parse(query, "", b"").unwrap().flag("a"), Some(on), "{query}");
        }
    }

    #[test]
    fn encoding_round_trips() {
        assert_eq!(encode("a/b c"), "a%2Fb%20c");
        assert_eq!(decode(&encode("a/ü%")), "a/ü%");
    }
}
