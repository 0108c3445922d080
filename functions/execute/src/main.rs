//! `execute`: leases an item, drains its events, decides, acts, commits. One run per wake-up.

mod forge;
mod handler;

use collie_shell::{Shell, StartError, batch};
use handler::Execute;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (shell, execute) = start().await.map_err(StartError::logged)?;
    batch::serve(execute, shell.clock).await
}

async fn start() -> Result<(Shell, Execute), StartError> {
    let shell = Shell::start()?;
    let gitlab = forge::connect(&shell).await?;
    let engine = shell.engine(Arc::new(gitlab))?;
    Ok((shell, Execute { engine }))
}
