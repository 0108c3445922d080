//! `wake`: finds due items and jobs that nobody looks at, and rings for them, once a minute.

mod handler;

use collie_shell::{Forgeless, Live, Shell, StartError};
use handler::Wake;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Arc::new(Live::start(|shell| Box::pin(async move { make(&shell) })).await.map_err(StartError::logged)?);
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| {
        let live = Arc::clone(&live);
        async move { live.current().await.tick().await.map_err(lambda_runtime::Error::from) }
    }))
    .await
}

fn make(shell: &Shell) -> Result<Wake, StartError> {
    Ok(Wake { engine: shell.engine(Arc::new(Forgeless))?, tracking: shell.tracking()?, queue: shell.wakes() })
}
