//! `submit`: the HTTP API.

mod auth;
mod body;
mod door;
mod handler;

use collie_api::ApiState;
use collie_shell::{Forgeless, Shell};
use collie_system::RandomIds;
use handler::Api;
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), lambda_runtime::Error> {
    let shell = Shell::start()?;
    let state = ApiState {
        engine: shell.engine(Arc::new(Forgeless))?,
        auth: auth::authenticator(&shell)?,
        hooks: door::open(&shell).await?,
        request_ids: Arc::new(RandomIds),
    };
    let api = Api::new(state);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| {
        let api = api.clone();
        async move { api.answer(event).await }
    }))
    .await
}
