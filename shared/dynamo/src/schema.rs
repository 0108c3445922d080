//! The table's definition, for local stores and tests; on AWS the template in `infra` creates the same.

use crate::row::{self, LIST_PROJECT};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType,
    TimeToLiveSpecification,
};
use collie_core::error::{Class, Failure};

/// The sparse index of items to be looked at: `due_shard`, `due_at`.
pub const DUE_INDEX: &str = "due";
/// The index of a project's items: `list_project`, `pk`.
pub const LIST_INDEX: &str = "list";
/// The attribute that holds when a row may be removed, in seconds since the Unix epoch.
pub const TTL_ATTRIBUTE: &str = "exp";

/// Fields by which the list index filters without reading rows.
const LIST_FIELDS: [&str; 4] = ["phase", "item_type", "branch", "caller_identity"];

/// Creates the table, its indexes and its expiry; one that is there already is left as it is.
///
/// # Errors
/// A [`Failure`] where the store refuses or does not answer.
pub async fn create_table(client: &Client, name: &str) -> Result<(), Failure> {
    let request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let request = request
        .set_attribute_definitions(Some(attributes().map_err(bug)?))
        .set_key_schema(Some(keys("pk", "sk").map_err(bug)?))
        .set_global_secondary_indexes(Some(indexes().map_err(bug)?));
    match request.send().await {
        Err(error) if error.code() == Some("ResourceInUseException") => Ok(()),
        Err(error) => Err(unanswered(error.code())),
        Ok(_) => expire_rows(client, name).await,
    }
}

async fn expire_rows(client: &Client, name: &str) -> Result<(), Failure> {
    let expiry = TimeToLiveSpecification::builder().attribute_name(TTL_ATTRIBUTE).enabled(true).build().map_err(bug)?;
    let request = client.update_time_to_live().table_name(name).time_to_live_specification(expiry);
    request.send().await.map(|_| ()).map_err(|error| unanswered(error.code()))
}

fn unanswered(code: Option<&str>) -> Failure {
    Failure::new(Class::Transient { answered: false }, "store_unanswered", format!("no table: {}", code.unwrap_or("no answer")))
}

fn bug(error: BuildError) -> Failure {
    Failure::bug(format!("the table's definition is incomplete: {error}"))
}

fn attributes() -> Result<Vec<AttributeDefinition>, BuildError> {
    let text = ["pk", "sk", LIST_PROJECT].map(|name| (name, ScalarAttributeType::S));
    let number = ["due_shard", "due_at"].map(|name| (name, ScalarAttributeType::N));
    let all = text.into_iter().chain(number);
    all.map(|(name, kind)| AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build()).collect()
}

fn keys(partition: &str, sort: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    let parts = [(partition, KeyType::Hash), (sort, KeyType::Range)];
    parts.into_iter().map(|(name, kind)| KeySchemaElement::builder().attribute_name(name).key_type(kind).build()).collect()
}

fn indexes() -> Result<Vec<GlobalSecondaryIndex>, BuildError> {
    let keys_only = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
    let fields = LIST_FIELDS.map(|field| row::attribute(field).to_owned()).to_vec();
    let list = Projection::builder().projection_type(ProjectionType::Include).set_non_key_attributes(Some(fields)).build();
    Ok(vec![index(DUE_INDEX, keys("due_shard", "due_at")?, keys_only)?, index(LIST_INDEX, keys(LIST_PROJECT, "pk")?, list)?])
}

fn index(name: &str, keys: Vec<KeySchemaElement>, projection: Projection) -> Result<GlobalSecondaryIndex, BuildError> {
    GlobalSecondaryIndex::builder().index_name(name).set_key_schema(Some(keys)).projection(projection).build()
}
