//! What a run costs: calls to GitLab and DynamoDB write units, counted where they happen.
//!
//! Adapters call [`gitlab_call`] and [`write_units`]; a use case that wants to know wraps its work in [`Meter::scope`].
//! Outside a scope, counting does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

tokio::task_local! {
    static METER: Meter;
}

/// Counters of one run.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    gitlab_calls: AtomicU32,
    write_units: AtomicU32,
    outer: Option<Meter>,
}

impl Meter {
    /// A meter whose counts also go to the one in whose scope it is made.
    #[must_use]
    pub fn nested() -> Self {
        let outer = METER.try_with(Clone::clone).ok();
        Self(Arc::new(Counters { outer, ..Counters::default() }))
    }

    fn add(&self, gitlab_calls: u32, write_units: u32) {
        self.0.gitlab_calls.fetch_add(gitlab_calls, Ordering::Relaxed);
        self.0.write_units.fetch_add(write_units, Ordering::Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.add(gitlab_calls, write_units);
        }
    }

    /// Runs work with this meter counting.
    pub async fn scope<F: Future>(&self, work: F) -> F::Output {
        METER.scope(self.clone(), work).await
    }

    /// Calls to GitLab so far.
    #[must_use]
    pub fn gitlab_calls(&self) -> u32 {
        self.0.gitlab_calls.load(Ordering::Relaxed)
    }

    /// Write units so far.
    #[must_use]
    pub fn write_units(&self) -> u32 {
        self.0.write_units.load(Ordering::Relaxed)
    }
}

/// Counts one request to GitLab.
pub fn gitlab_call() {
    let _ = METER.try_with(|meter| meter.add(1, 0));
}

/// Counts DynamoDB write units.
pub fn write_units(units: u32) {
    let _ = METER.try_with(|meter| meter.add(0, units));
}
