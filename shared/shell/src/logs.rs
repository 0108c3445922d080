//! Logs: one JSON object a line on stdout, where CloudWatch finds them.

use tracing_subscriber::EnvFilter;

/// What is logged where nothing else is said.
pub(crate) const USUAL: &str = "info";

/// Starts logging; a second start changes nothing.
pub(crate) fn start(filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new(USUAL));
    let format = tracing_subscriber::fmt().json().flatten_event(true).with_span_list(false).with_ansi(false);
    let _ = format.with_env_filter(filter).with_writer(std::io::stdout).try_init();
}
