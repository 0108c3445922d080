//! Why an item is not merging, and when it will be looked at next. Reads the row alone: no call to GitLab.

use crate::Engine;
use crate::access::Caller;
use crate::lifecycle::Error;
use collie_core::decision::{Decision, Finding, Next, Rule};
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::item::{Blocked, Item, LastError, Phase};
use collie_core::mr::facts::Blocker;
use collie_core::time::Timestamp;

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The phase.
    pub phase: Phase,
    /// Why it neither pushes nor merges.
    pub blocked: Option<Blocked>,
    /// The next action, where one is due.
    pub next_action: Option<&'static str>,
    /// What is deferred, and until when.
    pub waiting_on: Vec<Waiting>,
    /// Every unmet condition of the merge that GitLab let us see.
    pub merge_blockers: Vec<Blocker>,
    /// When the item will be looked at next; none for a terminal one.
    pub next_look_at: Option<Timestamp>,
    /// The last error.
    pub last_error: Option<LastError>,
}

/// One deferred dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The dimension.
    pub dimension: String,
    /// Its variant.
    pub variant: Option<String>,
    /// Until when.
    pub until: Option<Timestamp>,
    /// Why, for people.
    pub why: String,
}

impl Engine {
    /// Explains an item.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Hidden`] where the caller may not see it.
    pub async fn explain(&self, caller: &Caller, id: &ItemId) -> Result<Explanation, Error> {
        let item = self.visible_item(caller, id).await?;
        Ok(self.explanation(&item)?)
    }

    /// The explanation of a row that was read.
    ///
    /// # Errors
    /// A `Bug` where the row does not hold what its type writes.
    pub fn explanation(&self, item: &Item) -> Result<Explanation, Failure> {
        let now = self.ports.clock.now();
        let item_type = self.type_of(item)?;
        let decision = item_type.decide(item, now)?;
        Ok(Explanation {
            phase: item.phase,
            blocked: item.blocked.clone(),
            next_action: match &decision.next {
                Next::Act(action) => Some(action.0),
                _ => None,
            },
            waiting_on: waiting_on(&decision),
            merge_blockers: if item.is_active() { item_type.blockers(item)? } else { Vec::new() },
            next_look_at: if item.is_active() { item.due_at } else { None },
            last_error: item.last_error.clone(),
        })
    }
}

/// What a decision waits on, in words.
#[must_use]
pub fn waiting_on(decision: &Decision) -> Vec<Waiting> {
    let waiting = |rule: &Rule| {
        let (until, why) = match &rule.finding {
            Finding::Deferred { until, why } => (Some(*until), why.clone()),
            Finding::Blocked => (None, "the item is blocked".to_owned()),
            Finding::Chosen | Finding::NotNeeded | Finding::Gated => return None,
        };
        let (dimension, variant) = (rule.dimension.name().to_owned(), rule.dimension.variant().map(str::to_owned));
        Some(Waiting { dimension, variant, until, why })
    };
    decision.report.iter().filter_map(waiting).collect()
}
