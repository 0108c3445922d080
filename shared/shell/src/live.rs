//! What a function is made of, made again where its configuration changes.
//!
//! A configuration in the package never changes. One on S3 is looked at again before an event is worked on, at most once a minute in
//! each instance, by entity tag: an unchanged one costs a conditional request without a body.
//!
//! **A bad version never takes over.** A running instance keeps what it has. An instance that starts takes the newest version in the
//! bucket that can be used, so that all of them agree without anyone having to write down which one was good; the bucket has to
//! keep versions. Either way the problems are logged at the level ERROR with the code `configuration_refused`, once in an instance
//! for each version: that line is the alarm.

use crate::environment::{ConfigFile, Environment};
use crate::logs;
use crate::start::{Shell, StartError};
use collie_aws::{Clients, S3Document, Version};
use collie_config::Configuration;
use collie_core::error::Failure;
use collie_core::time::Timestamp;
use collie_engine::ports::Clock;
use collie_system::SystemClock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The code of a version that cannot be used.
const REFUSED: &str = "configuration_refused";

/// How a function is made.
type Build<T> = fn(Shell) -> Pin<Box<dyn Future<Output = Result<T, StartError>> + Send>>;

/// A function that follows its configuration.
pub struct Live<T> {
    environment: Environment,
    clients: Arc<Clients>,
    clock: Arc<dyn Clock>,
    build: Build<T>,
    state: Mutex<State<T>>,
}

struct State<T> {
    current: Arc<T>,
    /// The entity tag of the version that was looked at last, good or bad.
    seen: Option<String>,
    look_at: Timestamp,
}

impl<T: Send + Sync> Live<T> {
    /// Reads the environment and the configuration, and makes the function.
    ///
    /// # Errors
    /// Every problem with the environment or the configuration; where there is no version to fall back on.
    pub async fn start(build: Build<T>) -> Result<Self, StartError> {
        let environment = Environment::read().map_err(|error| StartError::new("environment", error.0))?;
        logs::start(&environment.log);
        let clients = Arc::new(Clients::new(environment.access.clone()));
        let (configuration, seen) = first(&environment.config_file, &clients).await?;
        let shell = Shell::new(environment.clone(), configuration, Arc::clone(&clients));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let state = State { current: Arc::new(build(shell).await?), seen, look_at: clock.now().after(environment.config_look_every) };
        Ok(Self { environment, clients, clock, build, state: Mutex::new(state) })
    }

    /// The function as its configuration is now.
    pub async fn current(&self) -> Arc<T> {
        let mut state = self.state.lock().await;
        if let ConfigFile::S3 { bucket, key } = &self.environment.config_file
            && state.look_at <= self.clock.now()
        {
            state.look_at = self.clock.now().after(self.environment.config_look_every);
            let document = S3Document::new(Arc::clone(&self.clients), bucket.clone(), key.clone());
            self.look(&document, &mut state).await;
        }
        Arc::clone(&state.current)
    }

    /// Time, as the function sees it.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    async fn look(&self, document: &S3Document, state: &mut State<T>) {
        match document.read(state.seen.as_deref()).await {
            Ok(None) => {}
            Ok(Some(version)) => self.take(version, state).await,
            Err(failure) => tracing::warn!(code = failure.code, %failure, "the configuration could not be looked at; the last one stays"),
        }
    }

    async fn take(&self, version: Version, state: &mut State<T>) {
        let configuration = match usable(&version.text) {
            Ok(configuration) => configuration,
            Err(problems) => {
                refuse(&version.etag, &problems);
                state.seen = Some(version.etag);
                return;
            }
        };
        let shell = Shell::new(self.environment.clone(), configuration, Arc::clone(&self.clients));
        match (self.build)(shell).await {
            Ok(made) => {
                tracing::info!(etag = version.etag, "the configuration has changed");
                (state.current, state.seen) = (Arc::new(made), Some(version.etag));
            }
            // It may be a secret that is not there yet: the version is tried again at the next look.
            Err(error) => refuse(&version.etag, &error.problems),
        }
    }
}

/// The configuration that an instance starts with, and the entity tag that was looked at.
async fn first(file: &ConfigFile, clients: &Arc<Clients>) -> Result<(Configuration, Option<String>), StartError> {
    let failed = |problems| StartError::new("configuration", problems);
    match file {
        ConfigFile::File(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| failed(vec![format!("{}: {error}", path.display())]))?;
            Ok((Configuration::parse(&text).map_err(failed)?, None))
        }
        ConfigFile::S3 { bucket, key } => {
            let document = S3Document::new(Arc::clone(clients), bucket.clone(), key.clone());
            newest_usable(&document).await.map_err(failed)
        }
    }
}

async fn newest_usable(document: &S3Document) -> Result<(Configuration, Option<String>), Vec<String>> {
    let told = |failure: Failure| vec![failure.to_string()];
    let newest = document.read(None).await.map_err(told)?.ok_or_else(|| vec!["S3 gave no configuration".to_owned()])?;
    let problems = match usable(&newest.text) {
        Ok(configuration) => return Ok((configuration, Some(newest.etag))),
        Err(problems) => problems,
    };
    refuse(&newest.etag, &problems);
    for id in document.versions().await.map_err(told)? {
        let earlier = document.version(&id).await.map_err(told)?;
        if let Ok(configuration) = usable(&earlier.text) {
            tracing::warn!(version = id, etag = earlier.etag, "an earlier version of the configuration is used");
            return Ok((configuration, Some(newest.etag)));
        }
    }
    Err(problems)
}

/// A configuration that says all that functions need.
fn usable(text: &str) -> Result<Configuration, Vec<String>> {
    let configuration = Configuration::parse(text)?;
    configuration.settings().map(|_| configuration)
}

fn refuse(etag: &str, problems: &[String]) {
    tracing::error!(code = REFUSED, etag, ?problems, "the configuration cannot be used; the last good one stays");
}
