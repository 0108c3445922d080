//! Clients of AWS services: each made at its first use, all over one HTTP connector.

use crate::access::{Access, Endpoints, Keys};
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_types::SdkConfig;
use secrecy::ExposeSecret as _;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one try may take, its answer included.
const TRY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may take with all its tries.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// How long an unused connection is kept; short, since a frozen function wakes up with dead ones.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Tries of a call.
const TRIES: u32 = 3;

/// The clients. Nothing is connected, and no client made, before it is used.
pub struct Clients {
    config: SdkConfig,
    endpoints: Endpoints,
    dynamodb: OnceLock<aws_sdk_dynamodb::Client>,
    sqs: OnceLock<aws_sdk_sqs::Client>,
    s3: OnceLock<aws_sdk_s3::Client>,
    eventbridge: OnceLock<aws_sdk_eventbridge::Client>,
    secrets_manager: OnceLock<aws_sdk_secretsmanager::Client>,
}

impl Clients {
    /// Clients with this access.
    #[must_use]
    pub fn new(access: Access) -> Self {
        let Access { region, keys, endpoints } = access;
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_attempt_timeout(TRY_TIMEOUT);
        let connector = Builder::new().pool_idle_timeout(IDLE_TIMEOUT).tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(region))
            .credentials_provider(SharedCredentialsProvider::new(credentials(keys)))
            .http_client(connector)
            .timeout_config(timeouts.operation_timeout(CALL_TIMEOUT).build())
            .retry_config(RetryConfig::standard().with_max_attempts(TRIES))
            .build();
        Self {
            config,
            endpoints,
            dynamodb: OnceLock::new(),
            sqs: OnceLock::new(),
            s3: OnceLock::new(),
            eventbridge: OnceLock::new(),
            secrets_manager: OnceLock::new(),
        }
    }

    /// The client of DynamoDB.
    pub fn dynamodb(&self) -> &aws_sdk_dynamodb::Client {
        self.dynamodb.get_or_init(|| {
            let mut config = aws_sdk_dynamodb::config::Builder::from(&self.config);
            config.set_endpoint_url(self.endpoints.dynamodb.clone());
            aws_sdk_dynamodb::Client::from_conf(config.build())
        })
    }

    pub(crate) fn sqs(&self) -> &aws_sdk_sqs::Client {
        self.sqs.get_or_init(|| {
            let mut config = aws_sdk_sqs::config::Builder::from(&self.config);
            config.set_endpoint_url(self.endpoints.sqs.clone());
            aws_sdk_sqs::Client::from_conf(config.build())
        })
    }

    pub(crate) fn s3(&self) -> &aws_sdk_s3::Client {
        self.s3.get_or_init(|| {
            let mut config = aws_sdk_s3::config::Builder::from(&self.config).force_path_style(self.endpoints.s3.is_some());
            config.set_endpoint_url(self.endpoints.s3.clone());
            aws_sdk_s3::Client::from_conf(config.build())
        })
    }

    pub(crate) fn eventbridge(&self) -> &aws_sdk_eventbridge::Client {
        self.eventbridge.get_or_init(|| {
            let mut config = aws_sdk_eventbridge::config::Builder::from(&self.config);
            config.set_endpoint_url(self.endpoints.eventbridge.clone());
            aws_sdk_eventbridge::Client::from_conf(config.build())
        })
    }

    pub(crate) fn secrets_manager(&self) -> &aws_sdk_secretsmanager::Client {
        self.secrets_manager.get_or_init(|| {
            let mut config = aws_sdk_secretsmanager::config::Builder::from(&self.config);
            config.set_endpoint_url(self.endpoints.secrets_manager.clone());
            aws_sdk_secretsmanager::Client::from_conf(config.build())
        })
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

fn credentials(keys: Keys) -> Credentials {
    let session = keys.session.map(|session| session.expose_secret().to_owned());
    Credentials::new(keys.id, keys.secret.expose_secret(), session, None, "environment")
}
