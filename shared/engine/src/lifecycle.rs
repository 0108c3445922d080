//! Callers end items and bring them back (INV-7): cancel and retry.

use crate::Engine;
use crate::access::{Caller, actor};
use crate::ports::ChangeError;
use collie_core::access::Denied;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_core::item::{AuditEntry, CancelRequest, Item, Phase, StateChange, Trigger};
use collie_core::queue::{Cancel, Change, Enqueue, Retry, is_cancellable, is_retryable};
use collie_core::time::Timestamp;
use std::time::Duration;

const ROUNDS: u32 = 5;

/// Why an item was not moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such item.
    #[error("there is no such work item")]
    NotFound,
    /// There is one, and the caller may not see it: to them it looks like none.
    #[error("there is no such work item for this caller")]
    Hidden,
    /// The item's phase does not allow it.
    #[error("the work item is {0}")]
    WrongPhase(&'static str),
    /// A newer life of the branch exists.
    #[error("a newer work item has taken over the branch")]
    Superseded,
    /// It is being cancelled.
    #[error("the work item is being cancelled")]
    CancelPending,
    /// The caller may see it, and not do this with it.
    #[error(transparent)]
    Forbidden(Denied),
    /// Others kept moving the item.
    #[error("others are changing this work item")]
    Contended,
    /// The row would grow beyond its limit.
    #[error("the work item's row is full")]
    TooLarge,
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Engine {
    /// Asks for an item to be ended. An active one is ended by its lease holder, once its merge request is closed; a failed
    /// one is cancelled at once.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn cancel(&self, caller: &Caller, id: &ItemId, reason: Option<String>, close_mr: bool) -> Result<Item, Error> {
        let request = CancelRequest { by: caller.identity.clone(), reason: reason.map(shorten), close_mr };
        for _ in 0..ROUNDS {
            let item = self.movable_item(caller, id, false).await?;
            if item.is_active() && item.cancel_requested.is_some() {
                return Err(Error::CancelPending);
            }
            if !is_cancellable(&item) {
                return Err(Error::WrongPhase(item.phase.as_str()));
            }
            let now = self.ports.clock.now();
            let audit = caller_audit(&item.id, item.rev + 1, "cancel_requested", &caller.identity, item.phase, now);
            let change = Cancel { rev: item.rev, token: self.ports.ids.token(), request: request.clone(), now, audit };
            if let Some(item) = self.move_item(id, &Change::Cancel(Box::new(change))).await? {
                return Ok(item);
            }
        }
        Err(Error::Contended)
    }

    /// Brings a failed, cancelled or blocked item back. With `overwrite`, commits of others on the branch may be replaced once.
    ///
    /// # Errors
    /// [`Error`] says why not.
    pub async fn retry(&self, caller: &Caller, id: &ItemId, overwrite: bool) -> Result<Item, Error> {
        for _ in 0..ROUNDS {
            let item = self.movable_item(caller, id, overwrite).await?;
            if item.is_active() && item.cancel_requested.is_some() {
                return Err(Error::CancelPending);
            }
            if !is_retryable(&item) {
                return Err(Error::WrongPhase(item.phase.as_str()));
            }
            let change = self.retry_of(caller, &item, overwrite).await?;
            if let Some(item) = self.move_item(id, &Change::Retry(Box::new(change))).await? {
                return Ok(item);
            }
        }
        Err(Error::Contended)
    }

    async fn retry_of(&self, caller: &Caller, item: &Item, overwrite: bool) -> Result<Retry, Error> {
        let head = self.ports.items.head(&item.branch).await?.filter(|head| head.item_id == item.id).ok_or(Error::Superseded)?;
        let now = self.ports.clock.now();
        let (wanted, dims) = self.type_of(item)?.retried(item, overwrite)?;
        Ok(Retry {
            rev: item.rev,
            head,
            token: self.ports.ids.token(),
            wanted,
            enqueue: Enqueue { dims, now },
            audit: caller_audit(&item.id, item.rev + 1, "retried", &caller.identity, Phase::Active, now),
        })
    }

    /// Reads an item that the caller may see. What they may not see looks like what is missing.
    pub(crate) async fn visible_item(&self, caller: &Caller, id: &ItemId) -> Result<Item, Error> {
        let item = self.ports.items.item(id).await?.ok_or(Error::NotFound)?;
        if self.may_see(caller, &item).await? { Ok(item) } else { Err(Error::Hidden) }
    }

    /// Reads an item that the caller may move.
    async fn movable_item(&self, caller: &Caller, id: &ItemId, overwrite: bool) -> Result<Item, Error> {
        let item = self.visible_item(caller, id).await?;
        match self.denied(caller, &item, overwrite).await? {
            Some(denied) => Err(Error::Forbidden(denied)),
            None => Ok(item),
        }
    }

    /// Moves an item and wakes it; none where someone else was faster.
    async fn move_item(&self, id: &ItemId, change: &Change) -> Result<Option<Item>, Error> {
        match self.change(id, change).await {
            Ok(item) => {
                self.ring(id, Duration::ZERO).await;
                Ok(Some(item))
            }
            Err(ChangeError::Refused(_)) => Ok(None),
            Err(ChangeError::TooLarge) => Err(Error::TooLarge),
            Err(ChangeError::Failed(failure)) => Err(failure.into()),
        }
    }
}

/// The audit entry of a caller's write; its id is the item's and the revision it makes.
pub(crate) fn caller_audit(id: &ItemId, rev: u64, event: &str, identity: &str, phase: Phase, now: Timestamp) -> AuditEntry {
    AuditEntry {
        id: format!("{id}/rev/{rev}"),
        ts: now,
        event_type: event.to_owned(),
        actor: actor(identity),
        old_state: None,
        new_state: Some(StateChange { phase, action: None }),
        trigger: Trigger { source: "api".into(), action: None, reason: None, error: None },
        metadata: None,
    }
}

fn shorten(reason: String) -> String {
    reason.chars().filter(|c| !c.is_control()).take(200).collect()
}
