//! `wake`: finds due items and rings for them, once a minute.

mod handler;

use collie_shell::{Forgeless, Shell};
use handler::Wake;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let shell = Shell::start()?;
    let engine = shell.engine(Arc::new(Forgeless))?;
    let wake = Arc::new(Wake { engine, queue: shell.wakes() });
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| {
        let wake = Arc::clone(&wake);
        async move { wake.tick().await.map_err(lambda_runtime::Error::from) }
    }))
    .await
}
