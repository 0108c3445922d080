//! The door for hooks, where the API's function is it: each connection's secret, from Secrets Manager.

use collie_api::{HookConnection, HookDoor};
use collie_config::ConnectionConfig;
use collie_shell::{Shell, StartError};

/// Closed, unless the environment says otherwise.
pub(crate) async fn open(shell: &Shell) -> Result<HookDoor, StartError> {
    let mut door = HookDoor::default();
    if !shell.environment.takes_hooks {
        return Ok(door);
    }
    for (slug, connection) in &shell.configuration.connections {
        let known = hook_connection(shell, slug, connection).await;
        let known = known.map_err(|problem| StartError::new("hooks", vec![format!("connections.{slug}: {problem}")]))?;
        door.connections.extend(known);
    }
    Ok(door)
}

/// A connection without a secret for hooks has none.
async fn hook_connection(shell: &Shell, slug: &str, config: &ConnectionConfig) -> Result<Option<HookConnection>, String> {
    let Some(name) = &config.hook_secret else { return Ok(None) };
    let host = config.host().ok_or("url is missing")?;
    let secret = shell.credential(name.as_str()).await.map_err(|failure| failure.to_string())?;
    Ok(Some(HookConnection { slug: slug.to_owned(), host, secret }))
}
