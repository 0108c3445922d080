//! Secrets by name: `secret:gitlab/main` is a file below the secrets directory, or an environment variable.

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// The name of a secret. A secret itself is never in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretName(String);

impl SecretName {
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix("secret:")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let good = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
        name.split('/').all(good).then(|| Self(name.to_owned()))
    }

    /// `gitlab/main` is `COLLIE_SECRET_GITLAB_MAIN`.
    fn variable(&self) -> String {
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

/// Where secrets come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets {
    /// The directory of `--secrets-dir`.
    pub(crate) directory: Option<PathBuf>,
}

impl Secrets {
    /// The secret of a name.
    pub(crate) fn resolve(&self, name: &SecretName) -> Result<SecretString, String> {
        match &self.directory {
            Some(directory) => read_secret(&directory.join(&name.0)),
            None => from_environment(&name.variable()),
        }
    }
}

/// The secret in a file, without the line end that editors leave.
pub(crate) fn read_secret(file: &Path) -> Result<SecretString, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    not_empty(text.trim_end(), &file.display().to_string())
}

#[allow(clippy::disallowed_methods, reason = "configuration is parsed here, once; the names of secrets come from it")]
fn from_environment(variable: &str) -> Result<SecretString, String> {
    let text = std::env::var(variable).map_err(|_| format!("neither --secrets-dir nor the variable {variable} is set"))?;
    not_empty(text.trim_end(), variable)
}

fn not_empty(text: &str, place: &str) -> Result<SecretString, String> {
    if text.is_empty() { Err(format!("{place} is empty")) } else { Ok(SecretString::from(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    #[test]
    fn names_stay_below_the_directory() {
        assert_eq!(SecretName::parse("secret:gitlab/main-hook").unwrap().variable(), "COLLIE_SECRET_GITLAB_MAIN_HOOK");
        for text in ["glpat-inline", "secret:", "secret:/etc/passwd", "secret:../x", "secret:a//b", "secret:a/", "secret:a b"] {
            assert_eq!(SecretName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_is_a_file_without_its_line_end() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("token"), "glpat-1\n").unwrap();
        let secrets = Secrets { directory: Some(directory.path().to_owned()) };
        let token = secrets.resolve(&SecretName::parse("secret:token").unwrap()).unwrap();
        assert_eq!(token.expose_secret(), "glpat-1");
        assert!(secrets.resolve(&SecretName::parse("secret:other").unwrap()).is_err());
    }
}
