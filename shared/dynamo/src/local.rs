//! A client for a store on this machine: an emulator behind plain HTTP that accepts any credentials. It does not retry:
//! what an emulator does not answer, it will not answer soon.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};

/// The client of the store at `endpoint`, such as `http://127.0.0.1:8000`.
#[must_use]
pub fn client(endpoint: impl Into<String>) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}
