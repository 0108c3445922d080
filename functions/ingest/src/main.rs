//! `ingest`: takes GitLab's deliveries to the items they concern.

mod delivery;
mod handler;
mod hosts;

use collie_shell::{Forgeless, Shell, batch};
use handler::Ingest;
use hosts::Hosts;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let shell = Shell::start()?;
    let engine = shell.engine(Arc::new(Forgeless))?;
    let ingest = Ingest { engine, hosts: Hosts::of(&shell.configuration), clock: Arc::clone(&shell.clock) };
    batch::serve(ingest, shell.clock).await
}
