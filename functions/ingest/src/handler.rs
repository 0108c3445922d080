//! From a queue message to one call of the use case.

use crate::delivery::Envelope;
use crate::hosts::Hosts;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::event::{Delivery, Unusable};
use collie_core::files::sha256_hex;
use collie_engine::Engine;
use collie_engine::ingest::{Error, Ingested, Received};
use collie_engine::ports::Clock;
use collie_shell::Invocation;
use collie_shell::batch::{Ended, Record, Work};
use std::sync::Arc;

/// Takes deliveries in.
pub(crate) struct Ingest {
    pub(crate) engine: Engine,
    pub(crate) hosts: Hosts,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A delivery with everything that names it; without a host where no connection has its project.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job {
    host: Option<String>,
    delivery_id: String,
    body: String,
}

#[async_trait]
impl Work for Ingest {
    type Job = Job;

    fn read(&self, record: &Record) -> Result<Job, Failure> {
        Ok(job(Envelope::of(record), &self.hosts))
    }

    async fn run(&self, job: Job, _: &Invocation) -> Result<Ended, Failure> {
        let ingested = match &job.host {
            Some(host) => self.engine.ingest(Received { host, delivery_id: &job.delivery_id, body: job.body.as_bytes() }).await,
            None => self.without_host(&job.body),
        };
        let ingested = ingested.map_err(refused)?;
        tracing::info!(host = job.host, ?ingested, "delivery taken");
        Ok(Ended::Done)
    }
}

impl Ingest {
    /// Of a project that is not ours nothing is kept; what is no hook at all is still malformed.
    fn without_host(&self, body: &str) -> Result<Ingested, Error> {
        match Delivery::parse(body.as_bytes(), self.clock.now()) {
            Ok(_) => Ok(Ingested::Unresolved),
            Err(Unusable::Ignored(_)) => Ok(Ingested::Ignored),
            Err(malformed) => Err(Error::Malformed(malformed)),
        }
    }
}

fn job(envelope: Envelope, hosts: &Hosts) -> Job {
    let Envelope { body, host, delivery_id } = envelope;
    let host = host.or_else(|| hosts.of_hook(&body).map(str::to_owned));
    let delivery_id = delivery_id.unwrap_or_else(|| {
        let webhook_id = host.as_deref().map_or("", |host| hosts.webhook_id(host));
        sha256_hex(&[webhook_id.as_bytes(), body.as_bytes()].concat())
    });
    Job { host, delivery_id, body }
}

fn refused(error: Error) -> Failure {
    match error {
        Error::Malformed(why) => Failure::rejected("malformed_hook", why.to_string()),
        Error::Failed(failure) => failure,
    }
}

#[cfg(test)]
mod tests;
