//! Sending a change: one conditional update, or a transaction, and what their answers mean.

use super::create::{Refusal, client_token, companion_write};
use super::error::{Trouble, contended};
use super::{DynamoItems, ROUNDS};
use crate::attribute;
use crate::companion::{self, Companion};
use crate::expression::{self, Write};
use crate::key::Key;
use crate::units::{self, Footprint, ROW_LIMIT};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use collie_core::error::{Class, Failure};
use collie_core::id::{ItemId, Token};
use collie_core::item::{Item, Phase};
use collie_core::queue::{Change, Verdict};
use collie_engine::cost;
use collie_engine::ports::ChangeError;

/// What came of sending a change once.
enum Sent {
    /// It was applied; the row after it.
    Done(Item),
    /// The item's condition did not hold for this row.
    Refused(Option<Item>),
    /// The condition of a row beside the item's did not hold, or the transaction had been sent before.
    Superseded,
    /// Others kept it from happening.
    Contended,
}

/// What a row means for a change that was, or is to be, sent.
enum Judged {
    Settled(Result<Item, ChangeError>),
    Send(Item),
}

impl DynamoItems {
    /// Enqueues are judged against the row first: that tells a cancel's kind, a retry's branch and the row's size after it.
    pub(super) async fn change_item(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        let mut basis = None;
        if companion::is_enqueue(change) {
            match judge(change, self.read_item(id).await?) {
                Judged::Settled(result) => return result,
                Judged::Send(row) => basis = Some(row),
            }
        }
        for _ in 0..ROUNDS {
            match self.send(id, change, basis.as_ref()).await? {
                Sent::Done(item) => return Ok(item),
                Sent::Superseded => return self.settle(id, change).await,
                Sent::Contended => {}
                Sent::Refused(old) => match judge(change, old) {
                    Judged::Settled(result) => return result,
                    Judged::Send(row) => basis = Some(row),
                },
            }
        }
        Err(contended().into())
    }

    async fn send(&self, id: &ItemId, change: &Change, basis: Option<&Item>) -> Result<Sent, Failure> {
        let write = expression::of_change(change, basis.map_or(Phase::Active, |row| row.phase));
        let others = companion::of_change(id, change, basis.map(|row| &row.branch));
        let old = basis.map(Footprint::of).or_else(|| self.last_seen(id));
        let sent = match transaction_token(change) {
            Some(token) => self.transact(id, &write, &others, client_token(change.name(), id, token)).await?,
            None => self.update(id, &write).await?,
        };
        match &sent {
            Sent::Done(item) => {
                let new = Footprint::of(item);
                cost::write_units(units::of_change(old.unwrap_or(new), new, &others) + companion::successor_units(change));
            }
            Sent::Refused(row) => cost::write_units(units::of_refusal(row.as_ref().map(units::item_size), &others)),
            Sent::Superseded => cost::write_units(units::of_refusal(old.map(|old| old.size), &others)),
            Sent::Contended => {}
        }
        Ok(sent)
    }

    async fn update(&self, id: &ItemId, write: &Write) -> Result<Sent, Failure> {
        let request = self.client.update_item().table_name(&self.table).set_key(Some(attribute::of_key(&Key::item(id))));
        let answer = request
            .update_expression(write.update_expression())
            .condition_expression(write.condition_expression())
            .set_expression_attribute_names(Some(write.names()))
            .set_expression_attribute_values(write.values())
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match answer {
            Ok(answer) => return self.decode(answer.attributes().ok_or_else(without_row)?).map(Sent::Done),
            Err(error) => error,
        };
        if let Some(UpdateItemError::ConditionalCheckFailedException(e)) = error.as_service_error() {
            return e.item().map(|old| self.decode(old)).transpose().map(Sent::Refused);
        }
        match Trouble::of(&error) {
            Trouble::Contended => Ok(Sent::Contended),
            trouble => Err(trouble.of_write()),
        }
    }

    async fn transact(&self, id: &ItemId, write: &Write, others: &[Companion], token: String) -> Result<Sent, Failure> {
        let mut writes = vec![item_write(&self.table, id, write)?];
        for row in others {
            writes.push(companion_write(&self.table, row)?);
        }
        match self.write_all(writes, token).await? {
            None => self.read_back(id).await.map(Sent::Done),
            Some(Refusal::First(old)) => old.map(|old| self.decode(&old)).transpose().map(Sent::Refused),
            Some(Refusal::Other | Refusal::Repeated) => Ok(Sent::Superseded),
            Some(Refusal::Contended) => Ok(Sent::Contended),
        }
    }

    /// The row after a transaction that happened: without it, the caller has to send the change again.
    async fn read_back(&self, id: &ItemId) -> Result<Item, Failure> {
        let row = self.read_item(id).await.map_err(|e| Failure::new(Class::Indeterminate, e.code, e.message))?;
        row.ok_or_else(|| Failure::bug("an item is gone after its update"))
    }

    /// What the row says of a change whose other rows refused it.
    async fn settle(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        let row = self.read_back(id).await?;
        if change.has_landed(&row) { Ok(row) } else { Err(ChangeError::Refused(Some(Box::new(row)))) }
    }
}

/// The update was answered, so it happened; sent again, it is known by its mark.
fn without_row() -> Failure {
    Failure::new(Class::Indeterminate, "store_unanswered", "an update's answer has no row")
}

fn judge(change: &Change, row: Option<Item>) -> Judged {
    let Some(row) = row else {
        return Judged::Settled(Err(ChangeError::Refused(None)));
    };
    match change.judge(&row) {
        Verdict::Landed => Judged::Settled(Ok(row)),
        Verdict::Refuse => Judged::Settled(Err(ChangeError::Refused(Some(Box::new(row))))),
        Verdict::Apply if companion::is_enqueue(change) && is_too_large(change, &row) => Judged::Settled(Err(ChangeError::TooLarge)),
        Verdict::Apply => Judged::Send(row),
    }
}

fn is_too_large(change: &Change, row: &Item) -> bool {
    let mut next = row.clone();
    change.apply(&mut next);
    units::item_size(&next) > ROW_LIMIT
}

/// The mark of a change that takes a transaction.
fn transaction_token(change: &Change) -> Option<&Token> {
    match change {
        Change::Update(u) => Some(&u.token),
        Change::Retry(r) => Some(&r.token),
        Change::Commit(c) => c.successor.as_ref().map(|_| &c.token),
        _ => None,
    }
}

fn item_write(table: &str, id: &ItemId, write: &Write) -> Result<TransactWriteItem, Failure> {
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(attribute::of_key(&Key::item(id))))
        .update_expression(write.update_expression())
        .condition_expression(write.condition_expression())
        .set_expression_attribute_names(Some(write.names()))
        .set_expression_attribute_values(write.values())
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .map_err(|e| Failure::bug(format!("an update cannot be built: {e}")))?;
    Ok(TransactWriteItem::builder().update(update).build())
}
