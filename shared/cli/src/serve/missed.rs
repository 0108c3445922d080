//! Hooks that nobody heard: events that came while the process was down, or that GitLab is not told to send.
//!
//! Rows wait for a hook and look by themselves only every half an hour. So every waiting item is looked at again at start,
//! and every few seconds where no hooks are registered.

use super::stop::Stop;
use collie_core::error::Failure;
use collie_core::item::{BlockedReason, Item, Phase};
use collie_core::mr::dims;
use collie_engine::Engine;
use collie_engine::ports::{Clock as _, Items, ListFilter};
use collie_system::SystemClock;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const PAGE: usize = 200;
/// An item that looks by itself within this time is left to it.
const SOON: Duration = Duration::from_secs(2);

/// Looks again at what waits for hooks.
pub(crate) struct Missed {
    pub(crate) items: Arc<dyn Items>,
    pub(crate) engine: Engine,
}

impl Missed {
    /// Looks once at start, and then this often where an interval is given.
    pub(crate) async fn look(self, every: Option<Duration>, mut stop: Stop) {
        self.look_at_all(is_waiting).await;
        let Some(every) = every else { return };
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.given() => return,
                _ = ticks.tick() => self.look_at_all(is_waiting_for_a_hook).await,
            }
        }
    }

    async fn look_at_all(&self, wanted: fn(&Item) -> bool) {
        match self.pages(wanted).await {
            Ok(0) => {}
            Ok(items) => tracing::debug!(items, "waiting items are looked at again"),
            Err(failure) => tracing::warn!(code = failure.code, message = failure.message, "waiting items cannot be listed"),
        }
    }

    async fn pages(&self, wanted: fn(&Item) -> bool) -> Result<usize, Failure> {
        let projects = self.engine.settings().projects.iter().map(|project| (project.at.host.clone(), project.at.id)).collect();
        let filter = ListFilter { projects, phase: Some(Phase::Active), ..ListFilter::default() };
        let (mut looked, mut before) = (0, None);
        loop {
            let page = self.items.list(&filter, before.as_ref(), PAGE).await?;
            for item in page.items.iter().filter(|item| wanted(item)) {
                looked += usize::from(self.engine.look_again(item).await?);
            }
            before = page.next;
            if before.is_none() {
                return Ok(looked);
            }
        }
    }
}

/// Whether the item has a merge request and looks at it only later.
fn is_waiting(item: &Item) -> bool {
    let look = item.dims.get(&dims::reconcile());
    look.is_some_and(|look| look.waits_until(SystemClock.now().after(SOON)).is_some())
}

/// Whether a hook is all that it waits for; what waits out an error has its own time.
fn is_waiting_for_a_hook(item: &Item) -> bool {
    let refused = item.blocked.as_ref().is_some_and(|blocked| blocked.reason == BlockedReason::Auth);
    is_waiting(item) && item.attempts == 0 && item.outage.is_none() && !refused
}
