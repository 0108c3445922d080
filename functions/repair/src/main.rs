//! `repair`: offers what a build opened to its queue's executor, and tells it what has closed.

mod handler;

use collie_engine::repair::WorkItems;
use collie_engine::settings::Repair;
use collie_shell::{Forgeless, Live, Shell, StartError, batch};
use handler::Repairs;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Live::start(|shell| Box::pin(async move { make(&shell) })).await.map_err(StartError::logged)?;
    batch::serve(live).await
}

fn make(shell: &Shell) -> Result<Repairs, StartError> {
    let work_items = WorkItems::new(shell.engine(Arc::new(Forgeless))?);
    Ok(Repairs { tracking: shell.tracking()?.with_executor(Repair::WorkItem, Arc::new(work_items)) })
}
