//! `execute`: leases an item, drains its events, decides, acts, commits. One run per wake-up.

mod handler;

use collie_shell::{Live, Shell, StartError, batch};
use handler::Execute;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Live::start(|shell| Box::pin(make(shell))).await.map_err(StartError::logged)?;
    batch::serve(live).await
}

async fn make(shell: Shell) -> Result<Execute, StartError> {
    let gitlab = collie_forge::connect(&shell).await?;
    Ok(Execute { engine: shell.engine(Arc::new(gitlab))? })
}
