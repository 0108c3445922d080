//! `poll`: reads GitLab's pipelines for tracked queues, once a minute.

mod handler;

use collie_engine::tracking::detect::Detector;
use collie_shell::{Live, Shell, StartError};
use handler::Poll;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Arc::new(Live::start(|shell| Box::pin(make(shell))).await.map_err(StartError::logged)?);
    lambda_runtime::run(service_fn(move |_: LambdaEvent<Value>| {
        let live = Arc::clone(&live);
        async move { live.current().await.tick().await.map_err(lambda_runtime::Error::from) }
    }))
    .await
}

async fn make(shell: Shell) -> Result<Poll, StartError> {
    let gitlab = collie_forge::connect(&shell).await?;
    Ok(Poll { detector: Detector::new(shell.tracking()?, Arc::new(gitlab)) })
}
