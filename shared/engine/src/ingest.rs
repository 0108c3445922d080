//! Takes a hook delivery to the item it concerns: resolve, ask the pure handler, archive, append, wake (DDR-29 to 38).
//!
//! An event is a hint: what it says is applied by the lease holder, in the same write as its result. A delivery that changes
//! nothing writes nothing. Upholds INV-4: an `Ok` means stored, or known to be of no use.

use crate::Engine;
use crate::metric;
use crate::ports::{ChangeError, Stored};
use collie_core::error::Failure;
use collie_core::event::{Delivery, Unusable};
use collie_core::id::{BranchIdentity, Digest, ItemId};
use collie_core::item::{Dimension, INBOX_LIMIT, InboxEntry, Item, RECENT_LIMIT};
use collie_core::queue::{Change, Enqueue};
use std::time::Duration;

/// A delivery as a door or a queue hands it over.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The host it came from, by connection.
    pub host: &'a str,
    /// Idempotency-Key, else `webhook-id`, else any id that is the same for a repetition.
    pub delivery_id: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ingested {
    /// Stored in the item's inbox.
    Stored,
    /// The inbox was full: the item will read the truth again.
    Overflowed,
    /// Seen before; the item was woken all the same.
    Repeated,
    /// It concerns no active item.
    Unresolved,
    /// It concerns an item and changes nothing.
    NoEffect,
    /// A kind that nobody listens to.
    Ignored,
    /// It is not what GitLab sends, and was kept for people to look at.
    SetAside,
}

/// Why a delivery was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not what GitLab sends; repeating it is of no use.
    #[error(transparent)]
    Malformed(Unusable),
    /// It may be delivered again.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Engine {
    /// Ingests one delivery.
    ///
    /// # Errors
    /// [`Error::Malformed`] belongs to the dead letters; after [`Error::Failed`] the delivery is to be repeated.
    pub async fn ingest(&self, received: Received<'_>) -> Result<Ingested, Error> {
        let now = self.ports.clock.now();
        let delivery = match Delivery::parse(received.body, now) {
            Ok(delivery) => delivery,
            Err(Unusable::Ignored(_)) => return Ok(Ingested::Ignored),
            Err(malformed) => return Err(Error::Malformed(malformed)),
        };
        let Some(item) = self.resolve(received.host, &delivery).await? else { return Ok(Ingested::Unresolved) };
        let Some(item_type) = self.types.get(&item.item_type) else { return Ok(Ingested::Unresolved) };
        if !item_type.concerns(&item, &delivery.event)? {
            return Ok(Ingested::NoEffect);
        }
        let digest = digest(received.delivery_id);
        self.archive_delivery(&item.id, &digest, received.body).await?;
        let entry = InboxEntry { digest, event: delivery.event };
        let ingested = self.append(&item, entry).await?;
        self.ring(&item.id, Duration::ZERO).await;
        Ok(ingested)
    }

    /// The same for a door: what is malformed is kept and acknowledged. GitLab pauses a hook that is refused a few times in a row, and
    /// a bad delivery must not cost the good ones.
    ///
    /// # Errors
    /// The delivery is to be repeated.
    pub async fn ingest_at_door(&self, received: Received<'_>) -> Result<Ingested, Failure> {
        match self.ingest(received).await {
            Ok(ingested) => Ok(ingested),
            Err(Error::Failed(failure)) => Err(failure),
            Err(Error::Malformed(why)) => {
                metric::malformed_hook();
                tracing::warn!(host = received.host, %why, "a malformed delivery is set aside");
                let key = format!("deliveries/malformed/{}", digest(received.delivery_id));
                self.ports.archive.put_new(&key, received.body.to_vec()).await?;
                Ok(Ingested::SetAside)
            }
        }
    }

    /// The active item a delivery is about: by merge request link, else by source branch.
    async fn resolve(&self, host: &str, delivery: &Delivery) -> Result<Option<Item>, Failure> {
        let mut id = None;
        if let Some(iid) = delivery.subject.merge_request() {
            id = self.ports.items.mr_link(host, delivery.project_id, iid).await?.map(|link| link.item_id);
        }
        if let (None, Some(branch)) = (&id, delivery.subject.branch()) {
            let identity = BranchIdentity { host: host.to_owned(), project_id: delivery.project_id, source_branch: branch.to_owned() };
            id = self.ports.items.head(&identity).await?.map(|head| head.item_id);
        }
        let Some(id) = id else { return Ok(None) };
        Ok(self.ports.items.item(&id).await?.filter(Item::is_active))
    }

    async fn archive_delivery(&self, id: &ItemId, digest: &Digest, body: &[u8]) -> Result<Stored, Failure> {
        self.ports.archive.put_new(&format!("deliveries/{id}/{digest}.json"), body.to_vec()).await
    }

    async fn append(&self, item: &Item, entry: InboxEntry) -> Result<Ingested, Failure> {
        let now = self.ports.clock.now();
        let digest = entry.digest.clone();
        let repeated = item.recent.contains(&digest);
        match self.change(&item.id, &Change::Append { entry: Box::new(entry), now }).await {
            Ok(_) if repeated => Ok(Ingested::Repeated),
            Ok(_) => Ok(Ingested::Stored),
            Err(ChangeError::Refused(Some(row))) if row.is_active() && is_full(&row) => self.overflow(&row, digest).await,
            Err(ChangeError::TooLarge) => self.overflow(item, digest).await,
            Err(ChangeError::Refused(_)) => Ok(Ingested::Unresolved),
            Err(ChangeError::Failed(failure)) => Err(failure),
        }
    }

    async fn overflow(&self, item: &Item, digest: Digest) -> Result<Ingested, Failure> {
        let look_again = self.types.get(&item.item_type).map(|t| (t.look_again(), Dimension::needed()));
        let enqueue = Enqueue { dims: look_again.into_iter().collect(), now: self.ports.clock.now() };
        match self.change(&item.id, &Change::Overflow { digest, enqueue }).await {
            Ok(_) => Ok(Ingested::Overflowed),
            Err(ChangeError::Refused(_)) => Ok(Ingested::Unresolved),
            Err(ChangeError::TooLarge) => Err(Failure::bug("the item's row is full")),
            Err(ChangeError::Failed(failure)) => Err(failure),
        }
    }
}

fn is_full(row: &Item) -> bool {
    row.inbox.len() >= INBOX_LIMIT || row.recent.len() >= RECENT_LIMIT
}

/// 16 bytes of SHA-256, as hex.
fn digest(delivery_id: &str) -> Digest {
    Digest::new(&collie_core::files::sha256_hex(delivery_id.as_bytes())[..32])
}
