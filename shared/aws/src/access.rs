//! Where AWS is and as whom it is called: given, never looked for.

use secrecy::SecretString;

/// Region, keys and endpoints of all clients.
#[derive(Debug, Clone)]
pub struct Access {
    /// The region.
    pub region: String,
    /// The keys that the function's role gave its environment.
    pub keys: Keys,
    /// Addresses other than the region's own.
    pub endpoints: Endpoints,
}

/// Keys that sign requests.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The access key's id.
    pub id: String,
    /// The secret key.
    pub secret: SecretString,
    /// The session's token; roles have one.
    pub session: Option<SecretString>,
}

/// Addresses of services that are not where the region has them; for stubs, emulators and VPC endpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// DynamoDB.
    pub dynamodb: Option<String>,
    /// SQS.
    pub sqs: Option<String>,
    /// S3; such an address is called with the bucket in the path.
    pub s3: Option<String>,
    /// EventBridge.
    pub eventbridge: Option<String>,
    /// Secrets Manager.
    pub secrets_manager: Option<String>,
}
