//! `reconcile-issues`: tracks the oldest job of the queue that rang, one bounded batch after the other.

mod handler;

use collie_shell::{Live, Shell, StartError, batch};
use handler::Reconcile;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Live::start(|shell| Box::pin(async move { make(&shell) })).await.map_err(StartError::logged)?;
    batch::serve(live).await
}

fn make(shell: &Shell) -> Result<Reconcile, StartError> {
    Ok(Reconcile { tracking: shell.tracking()?, holds: shell.holds(&shell.environment.tracking.jobs_queue_url) })
}
