//! Logs: one JSON object a line on stdout, where CloudWatch finds them; metrics among them.

use crate::metrics::Metrics;
use collie_engine::metric::TARGET;
use collie_system::SystemClock;
use tracing::Level;
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// What is logged where nothing else is said.
pub(crate) const USUAL: &str = "info";

/// Starts logging; a second start changes nothing. Metrics are written whatever the filter leaves out.
pub(crate) fn start(filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(USUAL));
    let format = tracing_subscriber::fmt::layer().json().flatten_event(true).with_span_list(false).with_ansi(false);
    let lines = format.with_writer(std::io::stdout).with_filter(filter_fn(|of| of.target() != TARGET)).with_filter(filter);
    let metrics = Metrics::new(SystemClock, std::io::stdout).with_filter(Targets::new().with_target(TARGET, Level::DEBUG));
    let _ = tracing_subscriber::registry().with(lines).with(metrics).try_init();
}
