//! `wake`: finds due items and rings for them, once a minute.

mod handler;

use collie_shell::{Forgeless, Shell, StartError};
use handler::Wake;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let wake = Arc::new(start().map_err(StartError::logged)?);
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| {
        let wake = Arc::clone(&wake);
        async move { wake.tick().await.map_err(lambda_runtime::Error::from) }
    }))
    .await
}

fn start() -> Result<Wake, StartError> {
    let shell = Shell::start()?;
    Ok(Wake { engine: shell.engine(Arc::new(Forgeless))?, queue: shell.wakes() })
}
