//! Secrets in Secrets Manager, by the names that the configuration gives them.

use crate::clients::Clients;
use crate::failure;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_engine::ports::Secrets;
use secrecy::SecretString;
use std::sync::Arc;

/// The secrets below one prefix.
#[derive(Debug, Clone)]
pub struct SecretStore {
    clients: Arc<Clients>,
    prefix: String,
}

impl SecretStore {
    /// Secrets whose names start with this prefix, such as `collie/`.
    #[must_use]
    pub fn new(clients: Arc<Clients>, prefix: String) -> Self {
        Self { clients, prefix }
    }
}

#[async_trait]
impl Secrets for SecretStore {
    /// The secret of a name, without the line end that editors leave. One that holds no text is a failure.
    async fn secret(&self, name: &str) -> Result<SecretString, Failure> {
        let id = format!("{}{name}", self.prefix);
        let request = self.clients.secrets_manager().get_secret_value().secret_id(&id);
        let answer = request.send().await.map_err(|error| failure::of("Secrets Manager", "secret_unreadable", &error))?;
        let text = answer.secret_string.unwrap_or_default();
        let text = text.trim_end();
        if text.is_empty() {
            return Err(Failure::rejected("secret_empty", format!("the secret {id} holds no text")));
        }
        Ok(SecretString::from(text))
    }
}
