//! `ingest`: takes GitLab's deliveries to the items they concern.

mod delivery;
mod handler;
mod hosts;

use collie_shell::{Forgeless, Shell, StartError, batch};
use handler::Ingest;
use hosts::Hosts;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let (shell, ingest) = start().map_err(StartError::logged)?;
    batch::serve(ingest, shell.clock).await
}

fn start() -> Result<(Shell, Ingest), StartError> {
    let shell = Shell::start()?;
    let engine = shell.engine(Arc::new(Forgeless))?;
    let ingest = Ingest { engine, hosts: Hosts::of(&shell.configuration), clock: Arc::clone(&shell.clock) };
    Ok((shell, ingest))
}
