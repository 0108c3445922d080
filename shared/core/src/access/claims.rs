//! Conditions on the claims of a token. Values compare as texts: numbers and booleans are turned into text first. Text keeps its
//! case, because a branch `MAIN` is not the protected `main` (JWT-08); booleans alone ignore it.

use super::glob::Glob;
use serde_json::{Map, Value};

/// One condition: the claim has one of these values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRule {
    /// The claim's name.
    pub name: String,
    /// Its values, of which one has to be there.
    pub any_of: Vec<Expected>,
}

/// A value that a rule expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    glob: Glob,
    is_boolean: bool,
}

/// A value that a token has.
struct Actual<'v> {
    text: std::borrow::Cow<'v, str>,
    is_boolean: bool,
}

impl Expected {
    /// The expected value as the configuration has it; none where it is neither text, whole number nor boolean.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        let Actual { text, is_boolean } = Actual::read(value)?;
        Some(Self { glob: Glob::new(&text), is_boolean })
    }

    /// Whether it stands for more than itself.
    #[must_use]
    pub fn is_wild(&self) -> bool {
        self.glob.is_wild()
    }

    fn meets(&self, actual: &Actual<'_>) -> bool {
        if self.is_boolean || actual.is_boolean {
            return self.glob.as_str().eq_ignore_ascii_case(&actual.text);
        }
        self.glob.matches(&actual.text)
    }
}

impl<'v> Actual<'v> {
    /// Numbers that are not whole are left out: two of them can look the same when they are not.
    fn read(value: &'v Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self { text: text.into(), is_boolean: false }),
            Value::Bool(is) => Some(Self { text: is.to_string().into(), is_boolean: true }),
            Value::Number(number) if !number.is_f64() => Some(Self { text: number.to_string().into(), is_boolean: false }),
            _ => None,
        }
    }
}

impl ClaimRule {
    /// Whether the token meets the condition. A claim that is missing, null or an object never does; of a list any element may.
    #[must_use]
    pub fn is_met(&self, claims: &Map<String, Value>) -> bool {
        let meets = |value| Actual::read(value).is_some_and(|actual| self.any_of.iter().any(|expected| expected.meets(&actual)));
        match claims.get(&self.name) {
            Some(Value::Array(elements)) => elements.iter().any(meets),
            Some(value) => meets(value),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meets(expected: &Value, claim: &Value) -> bool {
        let rule = ClaimRule { name: "c".into(), any_of: vec![Expected::read(expected).unwrap()] };
        rule.is_met(json!({"c": claim, "other": "x"}).as_object().unwrap())
    }

    #[test]
    fn values_compare_as_texts_and_keep_their_case() {
        let cases = [
            (json!("main"), json!("main"), true),
            (json!("main"), json!("MAIN"), false),
            (json!("main"), json!("main "), false),
            (json!(4242), json!("4242"), true),
            (json!("4242"), json!(4242), true),
            (json!(4242), json!(4243), false),
            (json!("9007199254740993"), json!(9_007_199_254_740_993_u64), true),
            (json!("9007199254740992"), json!(9_007_199_254_740_993_u64), false),
            (json!("1.5"), json!(1.5), false),
            (json!(true), json!("true"), true),
            (json!(true), json!("True"), true),
            (json!("TRUE"), json!(true), true),
            (json!("true"), json!("TRUE"), false),
            (json!(true), json!("false"), false),
            (json!(true), json!(1), false),
            (json!("infra/*"), json!("infra/deps-bot"), true),
            (json!("infra/*"), json!("infra/sub/deps-bot"), false),
            (json!("infra/**"), json!("infra/sub/deps-bot"), true),
            (json!("*"), json!(true), false),
        ];
        for (expected, claim, met) in cases {
            assert_eq!(meets(&expected, &claim), met, "{expected} on {claim}");
        }
    }

    #[test]
    fn of_a_list_any_element_may_meet_it_and_nothing_else_does() {
        assert!(meets(&json!("b"), &json!(["a", "b"])));
        for claim in [json!([]), json!(["a"]), json!([["b"]]), json!(null), json!([null]), json!({"b": "b"})] {
            assert!(!meets(&json!("b"), &claim), "{claim}");
        }
        let missing = ClaimRule { name: "absent".into(), any_of: vec![Expected::read(&json!("**")).unwrap()] };
        assert!(!missing.is_met(json!({"c": "x"}).as_object().unwrap()));
    }

    #[test]
    fn what_is_no_plain_value_is_never_expected() {
        for value in [json!(null), json!([]), json!({}), json!(0.5)] {
            assert_eq!(Expected::read(&value), None, "{value}");
        }
    }
}
