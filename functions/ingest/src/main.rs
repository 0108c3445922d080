//! `ingest`: takes GitLab's deliveries to the items they concern.

mod delivery;
mod handler;
mod hosts;

use collie_shell::{Forgeless, Live, Shell, StartError, batch};
use handler::Ingest;
use hosts::Hosts;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Live::start(|shell| Box::pin(async move { make(&shell) })).await.map_err(StartError::logged)?;
    batch::serve(live).await
}

fn make(shell: &Shell) -> Result<Ingest, StartError> {
    let engine = shell.engine(Arc::new(Forgeless))?;
    Ok(Ingest { engine, hosts: Hosts::of(&shell.configuration), clock: Arc::clone(&shell.clock) })
}
