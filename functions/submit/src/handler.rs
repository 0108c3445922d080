//! From an event of the HTTP API (payload format 2.0) to one request of the router, and its answer back.

use crate::body;
use axum::Router;
use axum::response::Response;
use collie_api::{ApiState, Code, Problem};
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Request};
use lambda_runtime::{Error, LambdaEvent};
use serde_json::Value;
use std::convert::Infallible;
use tower::{Service as _, ServiceExt as _, service_fn};

/// The API behind events.
#[derive(Clone)]
pub(crate) struct Api {
    router: Router,
}

impl Api {
    /// The API over its state.
    pub(crate) fn new(state: ApiState) -> Self {
        Self { router: collie_api::router(state) }
    }

    /// Answers one event. A body that cannot be decoded never reaches the router.
    pub(crate) async fn answer(&self, event: LambdaEvent<Value>) -> Result<Value, Error> {
        let LambdaEvent { mut payload, context } = event;
        let broken = body::take_broken(&mut payload);
        let request: LambdaRequest = serde_json::from_value(payload)?;
        let request_id = context.request_id.clone();
        let event = LambdaEvent::new(request, context);
        let answer = if broken {
            Adapter::from(service_fn(move |_: Request| refuse(request_id.clone()))).ready().await?.call(event).await?
        } else {
            Adapter::from(self.router.clone()).ready().await?.call(event).await?
        };
        Ok(serde_json::to_value(answer)?)
    }
}

async fn refuse(request_id: String) -> Result<Response, Infallible> {
    Ok(Problem::new(Code::UnreadableBody, "the body is not base64, although the gateway says so").answer(&request_id))
}
