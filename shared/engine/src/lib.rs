#![doc = include_str!("../README.md")]

pub mod access;
pub mod blobs;
pub mod cost;
pub mod credential;
pub mod execute;
pub mod explain;
pub mod ingest;
mod item_type;
pub mod letters;
pub mod lifecycle;
pub mod limiter;
pub mod metric;
pub mod mr;
pub mod ports;
pub mod read;
pub mod refusals;
pub mod repair;
pub mod settings;
mod spec;
pub mod submit;
mod throttle;
pub mod tracking;
pub mod wake;

pub use item_type::{ItemType, Registry};

use collie_core::error::{Class, Failure};
use collie_core::id::ItemId;
use collie_core::item::Item;
use collie_core::queue::Change;
use ports::{Archive, ChangeError, Clock, Forge, Ids, Items, Wakes};
use settings::Settings;
use std::sync::Arc;
use std::time::Duration;

/// Times the same change is sent where the store does not say what became of it.
const STORE_TRIES: u32 = 4;

/// The world, as the use cases need it.
#[derive(Clone)]
pub struct Ports {
    /// The item store.
    pub items: Arc<dyn Items>,
    /// GitLab.
    pub forge: Arc<dyn Forge>,
    /// Objects written once.
    pub archive: Arc<dyn Archive>,
    /// The wake-up queue.
    pub wakes: Arc<dyn Wakes>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Fresh identifiers.
    pub ids: Arc<dyn Ids>,
}

/// The use cases over one set of ports and settings. Cheap to clone; holds no state that matters.
#[derive(Clone)]
pub struct Engine {
    pub(crate) ports: Ports,
    pub(crate) settings: Arc<Settings>,
    pub(crate) types: Registry,
    pub(crate) throttle: throttle::Throttle,
    pub(crate) refusals: refusals::Recent,
}

impl Engine {
    /// An engine with the item types that this crate knows.
    #[must_use]
    pub fn new(ports: Ports, settings: Arc<Settings>) -> Self {
        let types = Registry::new().with(collie_core::mr::ITEM_TYPE, Arc::new(mr::MrType));
        Self { ports, settings, types, throttle: throttle::Throttle::default(), refusals: refusals::Recent::default() }
    }

    /// The engine with one more item type.
    #[must_use]
    pub fn with_type(mut self, name: &'static str, item_type: Arc<dyn ItemType>) -> Self {
        self.types = self.types.with(name, item_type);
        self
    }

    /// The type of an item.
    pub(crate) fn type_of(&self, item: &Item) -> Result<&dyn ItemType, Failure> {
        let unknown = || Failure::bug(format!("no item type {:?} is registered", item.item_type));
        self.types.get(&item.item_type).ok_or_else(unknown)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends a change until the store says what became of it. The same change again is safe: the row shows its token.
    pub(crate) async fn change(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.ports.items.change(id, change).await {
                Err(ChangeError::Failed(f)) if tries < STORE_TRIES && may_be_sent_again(&f) => {
                    metric::resent(change.name());
                    tracing::warn!(item = %id, change = change.name(), code = f.code, "the store did not answer; sending the change again");
                }
                done => {
                    if matches!(done, Err(ChangeError::Refused(_))) {
                        metric::conflict(change.name());
                    }
                    return done;
                }
            }
        }
    }

    /// Rings for an item. A doorbell that cannot be rung costs time only: the schedule finds the item.
    pub(crate) async fn ring(&self, id: &ItemId, delay: Duration) {
        if let Err(failure) = self.ports.wakes.send(id, delay).await {
            tracing::warn!(item = %id, code = failure.code, "wake-up not sent; the schedule will find the item");
        }
    }
}

fn may_be_sent_again(failure: &Failure) -> bool {
    matches!(failure.class, Class::Indeterminate | Class::Transient { .. })
}
