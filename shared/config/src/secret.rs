//! Secrets by name, such as `secret:gitlab/main`. Where they are is the edge's business: files, variables or Secrets Manager.

use serde::{Deserialize, Deserializer};

/// The name of a secret. A secret itself is never in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName(String);

impl SecretName {
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix("secret:")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let good = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
        name.split('/').all(good).then(|| Self(name.to_owned()))
    }

    /// The name without `secret:`; safe as a relative path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The environment variable of that name: `gitlab/main` is `COLLIE_SECRET_GITLAB_MAIN`.
    #[must_use]
    pub fn variable(&self) -> String {
        let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        format!("COLLIE_SECRET_{}", self.0.chars().map(upper).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for SecretName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = "a secret is written as secret:<name>, such as secret:gitlab/main, never inline";
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_directory() {
        assert_eq!(SecretName::parse("secret:gitlab/main-hook").unwrap().variable(), "COLLIE_SECRET_GITLAB_MAIN_HOOK");
        for text in ["glpat-inline", "secret:", "secret:/etc/passwd", "secret:../x", "secret:a//b", "secret:a/", "secret:a b"] {
            assert_eq!(SecretName::parse(text), None, "{text}");
        }
    }
}
