//! Secrets by name: `secret:gitlab/main` is a file below the secrets directory, or an environment variable. One that is in use is
//! read again where its other side no longer takes it.

use async_trait::async_trait;
use collie_config::SecretName;
use collie_core::error::Failure;
use collie_engine::credential::Credential;
use collie_engine::ports;
use collie_system::SystemClock;
use secrecy::SecretString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
            Some(directory) => read_secret(&directory.join(name.as_str())),
            None => from_environment(&name.variable()),
        }
    }

    /// The secret of a name, to be used for as long as it is taken.
    pub(crate) fn credential(&self, name: &SecretName) -> Result<Credential, String> {
        Place::Named(self.clone(), name.clone()).credential(name.as_str())
    }
}

/// The secret in a file, to be used for as long as it is taken.
pub(crate) fn credential_in(file: &Path) -> Result<Credential, String> {
    Place::File(file.to_owned()).credential(&file.display().to_string())
}

/// Where one secret is.
enum Place {
    Named(Secrets, SecretName),
    File(PathBuf),
}

impl Place {
    fn read(&self) -> Result<SecretString, String> {
        match self {
            Self::Named(secrets, name) => secrets.resolve(name),
            Self::File(file) => read_secret(file),
        }
    }

    fn credential(self, name: &str) -> Result<Credential, String> {
        let secret = self.read()?;
        Ok(Credential::named(name, secret, Arc::new(self), Arc::new(SystemClock)))
    }
}

#[async_trait]
impl ports::Secrets for Place {
    async fn secret(&self, _name: &str) -> Result<SecretString, Failure> {
        self.read().map_err(|problem| Failure::rejected("secret_unreadable", problem))
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

    fn name(text: &str) -> SecretName {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn a_secret_is_a_file_without_its_line_end() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("token"), "glpat-1\n").unwrap();
        let secrets = Secrets { directory: Some(directory.path().to_owned()) };
        let token = secrets.resolve(&name("secret:token")).unwrap();
        assert_eq!(token.expose_secret(), "glpat-1");
        assert!(secrets.resolve(&name("secret:other")).is_err());
    }
}
