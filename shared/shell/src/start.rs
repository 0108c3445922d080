//! What a function has once it has started: environment, configuration, clients. Nothing is asked of AWS or GitLab here.

use crate::environment::Environment;
use crate::logs;
use collie_aws::{Clients, EventBridgeNotices, QueueUrls, S3Archive, S3Uploads, SecretStore, SqsHolds, SqsJobs, SqsRedrive, SqsWakes};
use collie_config::Configuration;
use collie_core::error::Failure;
use collie_core::repair;
use collie_dynamo::{DynamoItems, DynamoTracking};
use collie_engine::blobs::Blobs;
use collie_engine::credential::Credential;
use collie_engine::letters::DeadLetters;
use collie_engine::limiter::Limiter;
use collie_engine::ports::{Clock, Forge, IssueTracker, Secrets};
use collie_engine::repair::IssueType;
use collie_engine::settings::Settings;
use collie_engine::tracking::{Tracking, TrackingPorts};
use collie_engine::{Engine, Ports};
use collie_system::{RandomIds, SystemClock};
use std::sync::Arc;

/// Why a function does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {}", problems.join("; "))]
pub struct StartError {
    /// What is wrong.
    pub what: &'static str,
    /// Every problem with it.
    pub problems: Vec<String>,
}

impl StartError {
    /// One or more problems with something.
    #[must_use]
    pub const fn new(what: &'static str, problems: Vec<String>) -> Self {
        Self { what, problems }
    }

    /// Logs it, for whoever looks at a function that does not start.
    #[must_use]
    pub fn logged(self) -> Self {
        logs::start(logs::USUAL);
        tracing::error!(what = self.what, problems = ?self.problems, "the function cannot start");
        self
    }
}

/// What every function has.
#[derive(Clone)]
pub struct Shell {
    /// What the environment says.
    pub environment: Environment,
    /// What the configuration says.
    pub configuration: Arc<Configuration>,
    /// Clients of AWS.
    pub clients: Arc<Clients>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl Shell {
    /// What a function has with this configuration. Nothing is connected yet.
    pub(crate) fn new(environment: Environment, configuration: Configuration, clients: Arc<Clients>) -> Self {
        configuration.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
        Self { environment, configuration: Arc::new(configuration), clients, clock: Arc::new(SystemClock) }
    }

    /// The use cases of items over DynamoDB, SQS, S3 and this forge, which also keeps issues.
    ///
    /// # Errors
    /// What the configuration leaves open that use cases need.
    pub fn engine<F: Forge + IssueTracker + 'static>(&self, forge: Arc<F>) -> Result<Engine, StartError> {
        let settings = self.settings()?;
        let issues = IssueType::new(self.tracking_with(Arc::clone(&settings)), Arc::clone(&forge) as Arc<dyn IssueTracker>);
        Ok(Engine::new(self.ports(forge), settings).with_type(repair::ITEM_TYPE, Arc::new(issues)))
    }

    /// The use cases of issue tracking over DynamoDB, SQS and EventBridge.
    ///
    /// # Errors
    /// What the configuration leaves open that use cases need.
    pub fn tracking(&self) -> Result<Tracking, StartError> {
        Ok(self.tracking_with(self.settings()?))
    }

    fn settings(&self) -> Result<Arc<Settings>, StartError> {
        self.configuration.settings().map(Arc::new).map_err(|problems| StartError::new("configuration", problems))
    }

    fn tracking_with(&self, settings: Arc<Settings>) -> Tracking {
        let (clients, places) = (&self.clients, &self.environment.tracking);
        let rows = DynamoTracking::new(clients.dynamodb().clone(), self.environment.table.clone()).keeping(self.environment.reports_kept);
        let jobs = SqsJobs::new(Arc::clone(clients), places.jobs_queue_url.clone(), places.jobs_dlq_url.clone());
        let notices = EventBridgeNotices::new(Arc::clone(clients), places.event_bus.clone(), places.repair_queue_url.clone());
        let clock = Arc::clone(&self.clock);
        Tracking::new(TrackingPorts { rows: Arc::new(rows), jobs: Arc::new(jobs), notices: Arc::new(notices), clock }, settings)
    }

    /// What queues gave up.
    #[must_use]
    pub fn letters(&self) -> DeadLetters {
        let Environment { wake_queue_url, hook_queue_url, tracking, .. } = &self.environment;
        let (wakes, hooks, repairs) = (wake_queue_url.clone(), hook_queue_url.clone(), tracking.repair_queue_url.clone());
        DeadLetters {
            letters: Arc::new(self.items()),
            archive: Arc::new(self.archive()),
            redrive: Arc::new(SqsRedrive::new(Arc::clone(&self.clients), QueueUrls { wakes, hooks, repairs })),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Holds messages of the queue at this URL.
    #[must_use]
    pub fn holds(&self, queue_url: &str) -> SqsHolds {
        SqsHolds::new(Arc::clone(&self.clients), queue_url.to_owned())
    }

    fn ports(&self, forge: Arc<dyn Forge>) -> Ports {
        Ports {
            items: Arc::new(self.items()),
            forge,
            archive: Arc::new(self.archive()),
            wakes: Arc::new(self.wakes()),
            clock: Arc::clone(&self.clock),
            ids: Arc::new(RandomIds),
        }
    }

    fn items(&self) -> DynamoItems {
        DynamoItems::new(self.clients.dynamodb().clone(), self.environment.table.clone())
    }

    /// How many changes one identity may ask for.
    #[must_use]
    pub fn limiter(&self) -> Limiter {
        Limiter::new(Arc::new(self.items()), Arc::clone(&self.clock), self.configuration.rate)
    }

    fn archive(&self) -> S3Archive {
        S3Archive::new(Arc::clone(&self.clients), self.environment.buckets.clone())
    }

    /// Content by reference, in the bucket of content.
    #[must_use]
    pub fn blobs(&self) -> Blobs {
        let uploads = S3Uploads::new(Arc::clone(&self.clients), self.environment.buckets.clone());
        Blobs::new(Arc::new(uploads), Arc::new(self.archive()), Arc::clone(&self.clock))
    }

    /// The wake-up queue.
    #[must_use]
    pub fn wakes(&self) -> SqsWakes {
        SqsWakes::new(Arc::clone(&self.clients), self.environment.wake_queue_url.clone())
    }

    /// The secret of a name, which is read anew where its other side no longer takes it.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn credential(&self, name: &str) -> Result<Credential, Failure> {
        let store: Arc<dyn Secrets> = Arc::new(SecretStore::new(Arc::clone(&self.clients), self.environment.secrets_prefix.clone()));
        let secret = store.secret(name).await?;
        Ok(Credential::named(name, secret, store, Arc::clone(&self.clock)))
    }
}
