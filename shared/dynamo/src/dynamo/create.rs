//! Transactions: births, and the rows beside an item's.

use super::DynamoItems;
use super::ROUNDS;
use super::error::{Trouble, contended, is_contended};
use crate::attribute::{self, Attributes};
use crate::companion::{self, Belief, Companion};
use crate::expression::Write;
use crate::units::{self, Footprint};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::id::{ItemId, Token};
use collie_core::queue::Creation;
use collie_engine::cost;
use collie_engine::ports::Created;

/// Why a transaction did not happen.
pub(super) enum Refusal {
    /// The condition of its first row did not hold for these attributes.
    First(Option<Attributes>),
    /// The condition of another row did not hold.
    Other,
    /// Its token was used for another request.
    Repeated,
    /// Others kept it from happening.
    Contended,
}

impl DynamoItems {
    pub(super) async fn create_item(&self, creation: &Creation) -> Result<Created, Failure> {
        let rows = companion::of_creation(creation);
        let item = &creation.item;
        for _ in 0..ROUNDS {
            let writes = rows.iter().map(|row| companion_write(&self.table, row)).collect::<Result<_, _>>()?;
            let refusal = self.write_all(writes, client_token("create", &item.id, &item.write_token)).await?;
            if !matches!(refusal, Some(Refusal::Contended)) {
                cost::write_units(units::of_rows(&rows));
            }
            match refusal {
                None => {
                    cost::write_units(Footprint::of(item).created());
                    self.remember(item);
                    return Ok(Created::Yes);
                }
                Some(Refusal::Contended) => {}
                Some(_) => return self.settle_creation(creation).await,
            }
        }
        Err(contended())
    }

    /// Whether a refused creation had landed before: the row that is there is its own, whatever became of it since.
    async fn settle_creation(&self, creation: &Creation) -> Result<Created, Failure> {
        let found = self.read_item(&creation.item.id).await?;
        let own = found.is_some_and(|row| row.write_token == creation.item.write_token);
        Ok(if own { Created::Yes } else { Created::LostRace })
    }

    /// Writes all or nothing; none where it happened.
    pub(super) async fn write_all(&self, writes: Vec<TransactWriteItem>, token: String) -> Result<Option<Refusal>, Failure> {
        transact(&self.client, writes, Some(token)).await
    }
}

/// Writes all or nothing; none where it happened. Without a token, the client makes one that is its own for every call.
pub(super) async fn transact(client: &Client, writes: Vec<TransactWriteItem>, token: Option<String>) -> Result<Option<Refusal>, Failure> {
    let request = client.transact_write_items().set_transact_items(Some(writes)).set_client_request_token(token);
    let Err(error) = request.send().await else {
        return Ok(None);
    };
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(e)) => refusal(e.cancellation_reasons()).map(Some),
        Some(TransactWriteItemsError::IdempotentParameterMismatchException(_)) => Ok(Some(Refusal::Repeated)),
        _ => match Trouble::of(&error) {
            Trouble::Contended => Ok(Some(Refusal::Contended)),
            trouble => Err(trouble.of_write()),
        },
    }
}

/// A conflict anywhere is tried again, since what failed beside it may have been about to change; then a failed condition is the
/// answer, and the first row's says more than any other's.
fn refusal(reasons: &[CancellationReason]) -> Result<Refusal, Failure> {
    let is_refused = |reason: &&CancellationReason| reason.code() == Some("ConditionalCheckFailed");
    if reasons.iter().any(|reason| reason.code().is_some_and(is_contended)) {
        return Ok(Refusal::Contended);
    }
    if let Some(first) = reasons.first().filter(is_refused) {
        return Ok(Refusal::First(first.item().cloned()));
    }
    if reasons.iter().any(|reason| is_refused(&reason)) {
        return Ok(Refusal::Other);
    }
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code().unwrap_or("no code")).collect();
    Err(Failure::bug(format!("the store refused a transaction: {}", codes.join(", "))))
}

/// The token by which DynamoDB knows a repeated request: at most 36 characters.
pub(super) fn client_token(what: &str, id: &ItemId, token: &Token) -> String {
    let mut digest = sha256_hex(format!("{what}:{id}:{token}").as_bytes());
    digest.truncate(36);
    digest
}

/// The write of a row beside the item's, on what its writer believes.
pub(super) fn companion_write(table: &str, row: &Companion) -> Result<TransactWriteItem, Failure> {
    let builder = TransactWriteItem::builder();
    let built = match &row.belief {
        Belief::Absent => put(table, row).map(|put| builder.put(put)),
        Belief::Head(seen) => {
            let mut write = Write::default();
            write.require_equal("item_id", &seen.item_id);
            write.require_equal("version", &seen.version);
            update(table, row, write).map(|update| builder.update(update))
        }
    };
    built.map(|b| b.build()).map_err(|e| Failure::bug(format!("a write cannot be built: {e}")))
}

type BuildError = aws_sdk_dynamodb::error::BuildError;

fn put(table: &str, row: &Companion) -> Result<Put, BuildError> {
    Put::builder()
        .table_name(table)
        .set_item(Some(attribute::of_row(&row.key, &row.row)))
        .condition_expression("attribute_not_exists(pk)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
}

fn update(table: &str, row: &Companion, mut write: Write) -> Result<Update, BuildError> {
    write.set_row(&row.row);
    Update::builder()
        .table_name(table)
        .set_key(Some(attribute::of_key(&row.key)))
        .update_expression(write.update_expression())
        .condition_expression(write.condition_expression())
        .set_expression_attribute_names(Some(write.names()))
        .set_expression_attribute_values(write.values())
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
}
