//! `submit`: the HTTP API.

mod auth;
mod body;
mod door;
mod handler;

use collie_api::ApiState;
use collie_shell::{Forgeless, Live, Shell, StartError};
use collie_system::RandomIds;
use handler::Api;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let live = Arc::new(Live::start(|shell| Box::pin(make(shell))).await.map_err(StartError::logged)?);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| {
        let live = Arc::clone(&live);
        async move { live.current().await.answer(event).await }
    }))
    .await
}

async fn make(shell: Shell) -> Result<Api, StartError> {
    let access = shell.configuration.access.clone();
    let oauth_proxy = access.oauth_proxy;
    let engine = shell.engine(Arc::new(Forgeless))?;
    let (auth, hooks) = (auth::authenticator(&shell, access).await?, door::open(&shell).await?);
    let (tracking, letters) = (shell.tracking()?, shell.letters());
    let (blobs, limiter, request_ids) = (shell.blobs(), shell.limiter(), Arc::new(RandomIds));
    Ok(Api::new(ApiState { engine, tracking, letters, blobs, limiter, auth, oauth_proxy, hooks, request_ids }))
}
