//! The small rows: merge request links, host waits and timelines. A refused condition is what their callers want.

use super::DynamoItems;
use super::error::Trouble;
use crate::attribute;
use crate::expression::Write;
use crate::key::Key;
use crate::row::{self, Row};
use crate::units;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use collie_core::error::Failure;
use collie_core::id::{BranchIdentity, ItemId, MrIid};
use collie_core::item::{HostWait, MrLink, TimelineEntry};
use collie_core::rate::Bucket;
use collie_engine::cost;

/// How long a bucket that nobody draws from stays.
const BUCKET_KEPT_SECONDS: u64 = 24 * 3600;

impl DynamoItems {
    pub(super) async fn write_link(&self, branch: &BranchIdentity, iid: MrIid, link: &MrLink) -> Result<(), Failure> {
        let mut write = Write::default();
        let (generation, new) = (write.data_name("generation"), write.value(&link.generation));
        let (owner, me) = (write.name("item_id"), write.value(&link.item_id));
        write.require(format!("attribute_not_exists(pk) OR {generation} < {new} OR {owner} = {me}"));
        self.write_unless_refused(&Key::mr(&branch.host, branch.project_id, iid), write, &row::of(link)).await
    }

    pub(super) async fn write_wait(&self, host: &str, wait: &HostWait) -> Result<(), Failure> {
        let mut write = Write::default();
        let (until, new) = (write.name("until"), write.value(&wait.until));
        write.require(format!("attribute_not_exists(pk) OR {until} < {new}"));
        self.write_unless_refused(&Key::wait(host), write, &row::of(wait)).await
    }

    /// Takes the place of exactly the bucket that was read. Expires when it would long be full again.
    pub(super) async fn write_bucket(&self, key: &str, old: Option<Bucket>, new: Bucket) -> Result<bool, Failure> {
        let mut write = Write::default();
        match old {
            None => write.require("attribute_not_exists(pk)"),
            Some(old) => {
                write.require_equal("parts", &old.parts);
                write.require_equal("at", &old.at);
            }
        }
        let mut row = row::of(&new);
        row.insert("exp".to_owned(), (new.at.as_millis() / 1000 + BUCKET_KEPT_SECONDS).into());
        self.write_where(&Key::rate(key), write, &row).await
    }

    pub(super) async fn write_timeline(&self, id: &ItemId, entry: &TimelineEntry) -> Result<(), Failure> {
        let mut write = Write::default();
        write.require("attribute_not_exists(pk)");
        self.write_unless_refused(&Key::log(id, entry), write, &row::of_timeline(entry)).await
    }

    async fn write_unless_refused(&self, key: &Key, write: Write, row: &Row) -> Result<(), Failure> {
        self.write_where(key, write, row).await.map(|_| ())
    }

    /// False where the condition does not hold.
    pub(super) async fn write_where(&self, key: &Key, mut write: Write, row: &Row) -> Result<bool, Failure> {
        write.set_row(row);
        cost::write_units(units::of_size(units::row_size(key, row)));
        let request = self.client.update_item().table_name(&self.table).set_key(Some(attribute::of_key(key)));
        let answer = request
            .update_expression(write.update_expression())
            .condition_expression(write.condition_expression())
            .set_expression_attribute_names(Some(write.names()))
            .set_expression_attribute_values(write.values())
            .send()
            .await;
        answer.map(|_| true).or_else(accept_refusal)
    }
}

fn accept_refusal<E: ProvideErrorMetadata>(error: SdkError<E, HttpResponse>) -> Result<bool, Failure> {
    if error.code() == Some("ConditionalCheckFailedException") { Ok(false) } else { Err(Trouble::of(&error).of_write()) }
}
