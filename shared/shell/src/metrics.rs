//! Metrics in CloudWatch's embedded format: one JSON object a line among the logs, from which CloudWatch makes metrics by itself.

use collie_engine::metric::TARGET;
use collie_engine::ports::Clock;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::Write;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;

/// The namespace of all metrics.
const NAMESPACE: &str = "Collie";

/// Writes metrics as they are counted.
pub(crate) struct Metrics<C, W> {
    clock: C,
    writer: W,
}

impl<C, W> Metrics<C, W> {
    /// Metrics with this clock's times, one a line.
    pub(crate) const fn new(clock: C, writer: W) -> Self {
        Self { clock, writer }
    }
}

impl<S, C, W> Layer<S> for Metrics<C, W>
where
    S: Subscriber,
    C: Clock + 'static,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(mut line) = fields.line(self.clock.now().as_millis()).map(|line| line.to_string()) {
            line.push('\n');
            // Whoever cannot write logs has nobody to tell.
            let _ = self.writer.make_writer().write_all(line.as_bytes());
        }
    }
}

/// The fields of one metric.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn line(mut self, millis: u64) -> Option<Value> {
        let (name, unit, value) = (self.0.remove("metric")?, self.0.remove("unit")?, self.0.remove("value")?);
        let dimensions: Vec<_> = self.0.keys().cloned().collect();
        let metrics = json!([{"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": [{"Name": name, "Unit": unit}]}]);
        self.0.insert(name.as_str()?.to_owned(), value);
        self.0.insert("_aws".to_owned(), json!({"Timestamp": millis, "CloudWatchMetrics": metrics}));
        Some(Value::Object(self.0))
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collie_core::time::Timestamp;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt as _;

    struct Still;

    #[async_trait::async_trait]
    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_769_882_640_000)
        }

        async fn sleep(&self, _: std::time::Duration) {}
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_metric_is_one_line_that_cloudwatch_reads_and_other_events_are_none() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(Metrics::new(Still, lines.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(code = "throttled", "not a metric");
            collie_engine::metric::gitlab_call("GET …/merge_requests/:iid", Some(200));
        });
        let line = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let want = json!({
            "_aws": {
                "Timestamp": 1_769_882_640_000_u64,
                "CloudWatchMetrics": [{
                    "Namespace": "Collie",
                    "Dimensions": [["call", "status"]],
                    "Metrics": [{"Name": "GitLabCalls", "Unit": "Count"}],
                }],
            },
            "GitLabCalls": 1, "call": "GET …/merge_requests/:iid", "status": "200",
        });
        assert_eq!((line.lines().count(), serde_json::from_str::<Value>(&line).unwrap()), (1, want));
    }
}
