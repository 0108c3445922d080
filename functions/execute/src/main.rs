//! `execute`: leases an item, drains its events, decides, acts, commits. One run per wake-up.

mod forge;
mod handler;

use collie_shell::{Shell, batch};
use handler::Execute;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let shell = Shell::start()?;
    let gitlab = forge::connect(&shell).await?;
    let engine = shell.engine(Arc::new(gitlab))?;
    batch::serve(Execute { engine }, shell.clock).await
}
