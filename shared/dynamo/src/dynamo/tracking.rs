//! Issue tracking on the table: one edit is one conditional write, several are a transaction. What was refused for now is sent again like
//! an item's change; a refused belief is an answer.

use super::ROUNDS;
use super::create::{Refusal, transact};
use super::error::{Trouble, contended, read};
use crate::attribute::{self, Attributes};
use crate::expression::Write;
use crate::key::Key;
use crate::tracking::place::{self, Place};
use crate::tracking::{KEPT, bill, check, expression, row};
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{Delete, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use collie_core::error::Failure;
use collie_core::issue::id::QueueName;
use collie_core::issue::row::{Row, RowKey, Set};
use collie_core::issue::table::{Edit, Page, Range};
use collie_engine::cost;
use collie_engine::ports::{TrackingRows, Written};
use std::time::Duration;

/// The rows of issue tracking on one DynamoDB table, which [`crate::schema`] describes.
#[derive(Debug, Clone)]
pub struct DynamoTracking {
    client: Client,
    table: String,
    kept: Duration,
}

/// What came of sending a write of one edit once, and the row as it was.
enum Sent {
    Done(Option<Attributes>),
    Refused(Option<Attributes>),
    Contended,
}

impl DynamoTracking {
    /// The store on this table.
    #[must_use]
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table, kept: KEPT }
    }

    /// The same, keeping build issues and the history of requests for this long after they were written.
    #[must_use]
    pub fn keeping(self, kept: Duration) -> Self {
        Self { kept, ..self }
    }

    async fn write_one(&self, queue: &QueueName, edit: &Edit) -> Result<Written, Failure> {
        for _ in 0..ROUNDS {
            let (old, written) = match self.send(queue, edit).await? {
                Sent::Done(old) => (old, Written::Yes),
                Sent::Refused(old) => (old, Written::Refused),
                Sent::Contended => continue,
            };
            // Only the bill depends on it: where there was no row, or one that cannot be read, the write is what it is.
            let old = old.and_then(|old| row::read(&edit.key().set, attribute::row(&old)).ok());
            cost::write_units(bill::of_one(queue, edit, old.as_ref(), self.kept));
            return Ok(written);
        }
        Err(contended())
    }

    async fn send(&self, queue: &QueueName, edit: &Edit) -> Result<Sent, Failure> {
        let key = place::key(queue, &edit.key());
        match expression::of_edit(edit, self.kept) {
            Some(write) => self.update(&key, &write).await,
            None => self.delete(&key).await,
        }
    }

    async fn update(&self, key: &Key, write: &Write) -> Result<Sent, Failure> {
        let request = self.client.update_item().table_name(&self.table).set_key(Some(attribute::of_key(key)));
        let answer = request
            .update_expression(write.update_expression())
            .set_condition_expression(write.condition())
            .set_expression_attribute_names(write.some_names())
            .set_expression_attribute_values(write.values())
            .return_values(ReturnValue::AllOld)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match answer {
            Ok(answer) => Ok(Sent::Done(answer.attributes)),
            Err(error) => not_updated(error),
        }
    }

    async fn delete(&self, key: &Key) -> Result<Sent, Failure> {
        let request = self.client.delete_item().table_name(&self.table).set_key(Some(attribute::of_key(key)));
        match request.return_values(ReturnValue::AllOld).send().await {
            Ok(answer) => Ok(Sent::Done(answer.attributes)),
            Err(error) => unless_contended(Trouble::of(&error)),
        }
    }

    async fn write_all(&self, queue: &QueueName, edits: &[Edit]) -> Result<Written, Failure> {
        for _ in 0..ROUNDS {
            let items = edits.iter().map(|edit| self.item(queue, edit)).collect::<Result<_, _>>();
            let items = items.map_err(|e| Failure::bug(format!("a write cannot be built: {e}")))?;
            // The client knows its own repetitions by a token; one that another has used is as good as a conflict.
            let written = match transact(&self.client, items, None).await? {
                None => Written::Yes,
                Some(Refusal::First(_) | Refusal::Other) => Written::Refused,
                Some(Refusal::Repeated | Refusal::Contended) => continue,
            };
            cost::write_units(bill::of_all(queue, edits, self.kept));
            return Ok(written);
        }
        Err(contended())
    }

    fn item(&self, queue: &QueueName, edit: &Edit) -> Result<TransactWriteItem, BuildError> {
        let key = Some(attribute::of_key(&place::key(queue, &edit.key())));
        let Some(write) = expression::of_edit(edit, self.kept) else {
            let delete = Delete::builder().table_name(&self.table).set_key(key).build()?;
            return Ok(TransactWriteItem::builder().delete(delete).build());
        };
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(key)
            .update_expression(write.update_expression())
            .set_condition_expression(write.condition())
            .set_expression_attribute_names(write.some_names())
            .set_expression_attribute_values(write.values())
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    async fn query(&self, place: &Place, range: &Range, start: Option<Key>) -> Result<Page, Failure> {
        let mut search = Write::default();
        search.require_equal("pk", &place.pk);
        let begin = search.value(&place.key(&range.prefix).sk);
        search.require(format!("begins_with(sk, {begin})"));
        let request = self.client.query().table_name(&self.table).consistent_read(true);
        let answer = request
            .key_condition_expression(search.conditions())
            .set_expression_attribute_names(search.some_names())
            .set_expression_attribute_values(search.values())
            .set_exclusive_start_key(start.as_ref().map(attribute::of_key))
            .limit(i32::try_from(range.limit.max(1)).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(read)?;
        let mut rows = answer.items().iter().map(|found| placed(&range.set, place, found)).collect::<Result<Vec<_>, _>>()?;
        let more = answer.last_evaluated_key.is_some() || rows.len() > range.limit;
        rows.truncate(range.limit);
        Ok(Page { rows, more })
    }
}

fn not_updated(error: SdkError<UpdateItemError, HttpResponse>) -> Result<Sent, Failure> {
    match error.as_service_error() {
        Some(UpdateItemError::ConditionalCheckFailedException(e)) => Ok(Sent::Refused(e.item().cloned())),
        _ => unless_contended(Trouble::of(&error)),
    }
}

fn unless_contended(trouble: Trouble) -> Result<Sent, Failure> {
    match trouble {
        Trouble::Contended => Ok(Sent::Contended),
        trouble => Err(trouble.of_write()),
    }
}

/// A row of a set with its place.
fn placed(set: &Set, place: &Place, found: &Attributes) -> Result<(String, Row), Failure> {
    let sk = found.get("sk").and_then(|sk| sk.as_s().ok());
    let at = sk.and_then(|sk| sk.strip_prefix(place.prefix)).ok_or_else(|| Failure::bug("a row without its sort key"))?;
    Ok((at.to_owned(), row::read(set, attribute::row(found))?))
}

#[async_trait]
impl TrackingRows for DynamoTracking {
    async fn read(&self, queue: &QueueName, key: &RowKey) -> Result<Option<Row>, Failure> {
        let request = self.client.get_item().table_name(&self.table).set_key(Some(attribute::of_key(&place::key(queue, key))));
        let found = request.consistent_read(true).send().await.map_err(read)?.item;
        found.map(|found| row::read(&key.set, attribute::row(&found))).transpose()
    }

    async fn range(&self, queue: &QueueName, range: &Range) -> Result<Page, Failure> {
        let place = Place::of(queue, &range.set);
        match &range.after {
            // Nothing that begins like this is behind it, and a query must not start outside of what it asks for.
            Some(after) if *after >= range.prefix && !after.starts_with(&range.prefix) => Ok(Page::default()),
            Some(after) if *after >= range.prefix => self.query(&place, range, Some(place.key(after))).await,
            _ => self.query(&place, range, None).await,
        }
    }

    async fn write(&self, queue: &QueueName, edits: &[Edit]) -> Result<Written, Failure> {
        check(edits)?;
        match edits {
            [] => Ok(Written::Yes),
            [edit] => self.write_one(queue, edit).await,
            edits => self.write_all(queue, edits).await,
        }
    }
}
