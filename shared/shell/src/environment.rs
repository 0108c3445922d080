//! The environment: read once, typed, every problem reported together. Nothing else reads it.

use crate::logs;
use collie_aws::{Access, Buckets, Endpoints, Keys};
use secrecy::SecretString;
use std::path::PathBuf;
use std::time::Duration;

/// Where secrets lie in Secrets Manager, unless said otherwise.
const SECRETS_PREFIX: &str = "collie/";

/// Seconds between looks at the configuration, unless said otherwise.
const LOOK_SECONDS: u64 = 60;

/// Days for which what builds reported, and the history of requests, are kept after tracking has ended, unless said otherwise.
const REPORTS_KEPT_DAYS: u64 = 180;

/// The days that a queue may let a job wait at most.
const TRACKING_DAYS: u64 = 7;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// What a function is told by its environment.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where AWS is, and as whom it is called.
    pub access: Access,
    /// `COLLIE_TABLE`: the table.
    pub table: String,
    /// `COLLIE_WAKE_QUEUE_URL`: the wake-up queue.
    pub wake_queue_url: String,
    /// `COLLIE_HOOK_QUEUE_URL`: the queue of GitLab's deliveries.
    pub hook_queue_url: String,
    /// Where issue tracking says what it has to say.
    pub tracking: TrackingPlaces,
    /// `COLLIE_REPORTS_KEPT_DAYS`: how long what builds reported, and the history of requests, are kept, from when they were written.
    pub reports_kept: Duration,
    /// `COLLIE_CONTENT_BUCKET`, `COLLIE_AUDIT_BUCKET`.
    pub buckets: Buckets,
    /// `COLLIE_CONFIG_FILE`: the configuration.
    pub config_file: ConfigFile,
    /// `COLLIE_CONFIG_LOOK_SECONDS`: how often a configuration on S3 is looked at again.
    pub config_look_every: Duration,
    /// `COLLIE_SECRETS_PREFIX`: what stands before a secret's name in Secrets Manager.
    pub secrets_prefix: String,
    /// `COLLIE_ISSUER_DIR`: the directory of the local issuer's key, where its tokens count.
    pub issuer_dir: Option<PathBuf>,
    /// `COLLIE_TAKES_HOOKS`: whether the API's function is also the door for hooks.
    pub takes_hooks: bool,
    /// `COLLIE_LOG`: what is logged.
    pub log: String,
}

/// The queues and the bus of issue tracking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackingPlaces {
    /// `COLLIE_JOBS_QUEUE_URL`: the FIFO queue of jobs.
    pub jobs_queue_url: String,
    /// `COLLIE_JOBS_DLQ_URL`: the FIFO queue of its dead letters.
    pub jobs_dlq_url: String,
    /// `COLLIE_REPAIR_QUEUE_URL`: the queue of repairs.
    pub repair_queue_url: String,
    /// `COLLIE_EVENT_BUS`: the bus for openings and closings.
    pub event_bus: String,
}

/// Where the configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFile {
    /// In the package or a layer: read at the start.
    File(PathBuf),
    /// On S3, as `s3://bucket/key`: looked at again while the function runs.
    S3 {
        /// The bucket.
        bucket: String,
        /// The key.
        key: String,
    },
}

/// Every problem with the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct EnvironmentError(pub Vec<String>);

impl Environment {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// Every variable that is missing or cannot be read.
    #[allow(clippy::disallowed_methods, reason = "the one place of a function that reads its environment")]
    pub fn read() -> Result<Self, EnvironmentError> {
        Self::parse(|name| std::env::var(name).ok())
    }

    /// Reads variables from anywhere.
    ///
    /// # Errors
    /// Every variable that is missing or cannot be read.
    pub fn parse(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let mut variables = Variables { lookup, problems: Vec::new() };
        let environment = Self {
            access: access(&mut variables),
            table: variables.required("COLLIE_TABLE"),
            wake_queue_url: variables.required("COLLIE_WAKE_QUEUE_URL"),
            hook_queue_url: variables.required("COLLIE_HOOK_QUEUE_URL"),
            tracking: tracking(&mut variables),
            reports_kept: reports_kept(&mut variables),
            buckets: Buckets { content: variables.required("COLLIE_CONTENT_BUCKET"), audit: variables.required("COLLIE_AUDIT_BUCKET") },
            config_file: config_file(&mut variables),
            config_look_every: Duration::from_secs(variables.number("COLLIE_CONFIG_LOOK_SECONDS", LOOK_SECONDS)),
            secrets_prefix: variables.optional("COLLIE_SECRETS_PREFIX").unwrap_or_else(|| SECRETS_PREFIX.to_owned()),
            issuer_dir: variables.optional("COLLIE_ISSUER_DIR").map(PathBuf::from),
            takes_hooks: variables.flag("COLLIE_TAKES_HOOKS"),
            log: variables.optional("COLLIE_LOG").unwrap_or_else(|| logs::USUAL.to_owned()),
        };
        if variables.problems.is_empty() { Ok(environment) } else { Err(EnvironmentError(variables.problems)) }
    }
}

fn access<L: Fn(&str) -> Option<String>>(variables: &mut Variables<L>) -> Access {
    let keys = Keys {
        id: variables.required("AWS_ACCESS_KEY_ID"),
        secret: SecretString::from(variables.required("AWS_SECRET_ACCESS_KEY")),
        session: variables.optional("AWS_SESSION_TOKEN").map(SecretString::from),
    };
    let endpoints = Endpoints {
        dynamodb: variables.endpoint("DYNAMODB"),
        sqs: variables.endpoint("SQS"),
        s3: variables.endpoint("S3"),
        eventbridge: variables.endpoint("EVENTBRIDGE"),
        secrets_manager: variables.endpoint("SECRETS_MANAGER"),
    };
    Access { region: variables.required("AWS_REGION"), keys, endpoints }
}

fn tracking<L: Fn(&str) -> Option<String>>(variables: &mut Variables<L>) -> TrackingPlaces {
    TrackingPlaces {
        jobs_queue_url: variables.required("COLLIE_JOBS_QUEUE_URL"),
        jobs_dlq_url: variables.required("COLLIE_JOBS_DLQ_URL"),
        repair_queue_url: variables.required("COLLIE_REPAIR_QUEUE_URL"),
        event_bus: variables.required("COLLIE_EVENT_BUS"),
    }
}

fn reports_kept<L: Fn(&str) -> Option<String>>(variables: &mut Variables<L>) -> Duration {
    let days = variables.number("COLLIE_REPORTS_KEPT_DAYS", REPORTS_KEPT_DAYS);
    Duration::from_secs(days.saturating_add(TRACKING_DAYS).saturating_mul(DAY_SECONDS))
}

fn config_file<L: Fn(&str) -> Option<String>>(variables: &mut Variables<L>) -> ConfigFile {
    let written = variables.required("COLLIE_CONFIG_FILE");
    let Some(object) = written.strip_prefix("s3://") else { return ConfigFile::File(written.into()) };
    let (bucket, key) = object.split_once('/').unwrap_or((object, ""));
    if bucket.is_empty() || key.is_empty() {
        variables.problems.push("COLLIE_CONFIG_FILE is neither a path nor s3://bucket/key".to_owned());
    }
    ConfigFile::S3 { bucket: bucket.to_owned(), key: key.to_owned() }
}

/// Variables being read, and what is wrong with them.
struct Variables<L> {
    lookup: L,
    problems: Vec<String>,
}

impl<L: Fn(&str) -> Option<String>> Variables<L> {
    /// An empty variable is one that is not set: templates cannot leave one out.
    fn optional(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.is_empty())
    }

    fn required(&mut self, name: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.problems.push(format!("{name} is not set"));
            String::new()
        })
    }

    fn number(&mut self, name: &str, usual: u64) -> u64 {
        let Some(written) = self.optional(name) else { return usual };
        written.parse().unwrap_or_else(|_| {
            self.problems.push(format!("{name} is no number"));
            usual
        })
    }

    fn flag(&mut self, name: &str) -> bool {
        match self.optional(name).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.problems.push(format!("{name} is neither \"true\" nor \"false\""));
                false
            }
        }
    }

    /// The service's own address, else the one of all services.
    fn endpoint(&self, service: &str) -> Option<String> {
        self.optional(&format!("AWS_ENDPOINT_URL_{service}")).or_else(|| self.optional("AWS_ENDPOINT_URL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn complete() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "AKIA"),
            ("AWS_SECRET_ACCESS_KEY", "canary-key"),
            ("AWS_SESSION_TOKEN", "canary-session"),
            ("COLLIE_TABLE", "collie"),
            ("COLLIE_WAKE_QUEUE_URL", "https://sqs/1/wakes"),
            ("COLLIE_JOBS_QUEUE_URL", "https://sqs/1/jobs.fifo"),
            ("COLLIE_JOBS_DLQ_URL", "https://sqs/1/jobs-dead.fifo"),
            ("COLLIE_REPAIR_QUEUE_URL", "https://sqs/1/repairs"),
            ("COLLIE_EVENT_BUS", "collie"),
            ("COLLIE_CONTENT_BUCKET", "content"),
            ("COLLIE_AUDIT_BUCKET", "audit"),
            ("COLLIE_CONFIG_FILE", "/opt/collie.yaml"),
        ])
    }

    fn parse(variables: &BTreeMap<&str, &str>) -> Result<Environment, EnvironmentError> {
        Environment::parse(|name| variables.get(name).map(|value| (*value).to_owned()))
    }

    #[test]
    fn what_is_not_said_has_its_usual_value() {
        let read = parse(&complete()).unwrap();
        assert_eq!((read.secrets_prefix.as_str(), read.log.as_str(), read.takes_hooks), ("collie/", "info", false));
        assert_eq!((read.issuer_dir, read.access.endpoints), (None, Endpoints::default()));
        assert_eq!(read.reports_kept, collie_dynamo::tracking::KEPT);
    }

    #[test]
    fn every_problem_is_reported() {
        let variables = BTreeMap::from([
            ("AWS_REGION", "eu-central-1"),
            ("COLLIE_TABLE", ""),
            ("COLLIE_TAKES_HOOKS", "maybe"),
            ("COLLIE_CONFIG_LOOK_SECONDS", "1m"),
        ]);
        let EnvironmentError(problems) = parse(&variables).unwrap_err();
        let expected = [
            "AWS_ACCESS_KEY_ID is not set",
            "AWS_SECRET_ACCESS_KEY is not set",
            "COLLIE_TABLE is not set",
            "COLLIE_WAKE_QUEUE_URL is not set",
            "COLLIE_JOBS_QUEUE_URL is not set",
            "COLLIE_JOBS_DLQ_URL is not set",
            "COLLIE_REPAIR_QUEUE_URL is not set",
            "COLLIE_EVENT_BUS is not set",
            "COLLIE_CONTENT_BUCKET is not set",
            "COLLIE_AUDIT_BUCKET is not set",
            "COLLIE_CONFIG_FILE is not set",
            "COLLIE_CONFIG_LOOK_SECONDS is no number",
            "COLLIE_TAKES_HOOKS is neither \"true\" nor \"false\"",
        ];
        assert_eq!(problems, expected);
    }

    #[test]
    fn a_configuration_is_a_file_or_an_object() {
        let of = |written| {
            let mut variables = complete();
            variables.insert("COLLIE_CONFIG_FILE", written);
            parse(&variables).map(|environment| environment.config_file)
        };
        assert_eq!(of("/opt/collie.yaml"), Ok(ConfigFile::File("/opt/collie.yaml".into())));
        let object = ConfigFile::S3 { bucket: "config".into(), key: "collie/prod.yaml".into() };
        assert_eq!(of("s3://config/collie/prod.yaml"), Ok(object));
        for wrong in ["s3://", "s3://config", "s3://config/", "s3:///key"] {
            assert_eq!(of(wrong).unwrap_err().0, ["COLLIE_CONFIG_FILE is neither a path nor s3://bucket/key"], "{wrong}");
        }
    }

    #[test]
    fn a_services_own_address_counts_before_the_one_of_all() {
        let mut variables = complete();
        variables.extend([("AWS_ENDPOINT_URL", "http://all"), ("AWS_ENDPOINT_URL_SQS", "http://sqs")]);
        let endpoints = parse(&variables).unwrap().access.endpoints;
        assert_eq!((endpoints.sqs.as_deref(), endpoints.s3.as_deref()), (Some("http://sqs"), Some("http://all")));
    }

    #[test]
    fn keys_are_not_shown() {
        let shown = format!("{:?}", parse(&complete()).unwrap());
        assert!(!shown.contains("canary"), "{shown}");
    }
}
