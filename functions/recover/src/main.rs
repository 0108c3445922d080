//! `recover`: gives up what no function could do: jobs of issue tracking are fenced and abandoned, everything else is kept for an
//! operator to decide about. It never does the work itself.

mod handler;

use collie_shell::{Live, Shell, StartError, batch};
use handler::Recover;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Live::start(|shell| Box::pin(async move { make(&shell) })).await.map_err(StartError::logged)?;
    batch::serve(live).await
}

fn make(shell: &Shell) -> Result<Recover, StartError> {
    Ok(Recover { tracking: shell.tracking()?, letters: shell.letters(), holds: shell.holds(&shell.environment.tracking.jobs_dlq_url) })
}
