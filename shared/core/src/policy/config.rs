//! What an operator can set, and what is reported when it cannot work.

use super::branch::BranchRules;
use super::patterns;
use serde::{Deserialize, Deserializer, Serialize};

/// Whether a class of content may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// It passes.
    Allow,
    /// It is a violation.
    Refuse,
}

/// A number of bytes; in configuration a number, or text such as `20MB` (units are powers of 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Reads `512`, `64KB`, `20 MB` or `1GB`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let scale = match unit.trim().to_ascii_uppercase().as_str() {
            "" | "B" => 1,
            "KB" | "KIB" => 1 << 10,
            "MB" | "MIB" => 1 << 20,
            "GB" | "GIB" => 1 << 30,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(scale).map(Self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Ok(Self(bytes)),
            Written::Text(text) => Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a size is a number, or text such as 20MB")),
        }
    }
}

/// Text that no file or message of a project may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forbidden {
    /// What a violation calls it.
    pub name: String,
    /// A regular expression (linear time, no look-around).
    pub pattern: String,
}

/// Files in which what some rules take for secrets is known to be none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretsAllow {
    /// The files, as path patterns.
    pub paths: Vec<String>,
    /// The rules, by the names that findings show.
    pub rules: Vec<String>,
}

/// The policy section of one project's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Paths to protect besides the defaults.
    pub protect: Vec<String>,
    /// Paths to take out of the defaults; never opens what `protect` names.
    pub allow: Vec<String>,
    /// How many file actions one submission may hold.
    pub max_actions: usize,
    /// How many bytes the files of one submission may hold together.
    pub max_bytes: ByteSize,
    /// How many bytes one file may hold; unset: only `max_bytes` counts.
    pub max_file_bytes: Option<ByteSize>,
    /// Whether binary files pass.
    pub binary: Rule,
    /// Whether what looks like a secret passes.
    pub secrets: Rule,
    /// What is known to be no secret.
    pub secrets_allow: Vec<SecretsAllow>,
    /// Whether reordering and invisible characters in files pass.
    pub hidden_characters: Rule,
    /// The project's own forbidden text.
    pub forbidden_text: Vec<Forbidden>,
    /// Branches that are never a source, as far as configuration knows them.
    pub branches: BranchRules,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            protect: vec![],
            allow: vec![],
            max_actions: 1000,
            max_bytes: ByteSize(20 << 20),
            max_file_bytes: None,
            binary: Rule::Allow,
            secrets: Rule::Refuse,
            secrets_allow: vec![],
            hidden_characters: Rule::Refuse,
            forbidden_text: vec![],
            branches: BranchRules::default(),
        }
    }
}

/// Why a policy cannot be built. All problems of a configuration are reported together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A path pattern that could never match.
    #[error(transparent)]
    Pattern(#[from] patterns::Error),
    /// A rule for secrets that there is none of.
    #[error("secrets_allow: there is no rule {0:?} for secrets")]
    SecretRule(String),
    /// A forbidden text that is no regular expression, or too large a one.
    #[error("forbidden_text {name:?}: {problem}")]
    Forbidden {
        /// The entry's name.
        name: String,
        /// What the regular expression engine says.
        problem: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_text_with_a_unit() {
        let cases = [
            ("20MB", Some(20 << 20)),
            ("64 kb", Some(65536)),
            ("7", Some(7)),
            ("1GiB", Some(1 << 30)),
            ("", None),
            ("MB", None),
            ("-1", None),
            ("1.5MB", None),
            ("99999999999999999999", None),
            ("18446744073709551615KB", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(ByteSize::parse(text), bytes.map(ByteSize), "{text}");
        }
    }

    #[test]
    fn the_documented_section_is_read_and_unknown_keys_are_refused() {
        let section = r#"{"protect": ["deploy/**"], "allow": [], "max_actions": 1000, "max_bytes": "20MB",
            "binary": "allow", "secrets": "refuse"}"#;
        let config: Config = serde_json::from_str(section).unwrap();
        assert_eq!(config, Config { protect: vec!["deploy/**".into()], ..Config::default() });
        assert!(serde_json::from_str::<Config>(r#"{"protected": []}"#).is_err());
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&written).unwrap(), config);
    }
}
