//! Reads: consistent by key, and the two indexes, whose entries only say where to look.

use super::DynamoItems;
use super::ROUNDS;
use super::error::{contended, read};
use crate::attribute::{self, Attributes};
use crate::expression::Write;
use crate::key::{self, Key, LOG};
use crate::memory::{page, timeline_page};
use crate::row::{self, LIST_PROJECT};
use crate::schema::{DUE_INDEX, LIST_INDEX};
use aws_sdk_dynamodb::types::KeysAndAttributes;
use collie_core::error::Failure;
use collie_core::id::{ItemId, ProjectId};
use collie_core::item::Item;
use collie_core::time::Timestamp;
use collie_engine::ports::{DueItem, ListFilter, ListPage, TimelinePage};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// Rows that one batch may read.
const BATCH: usize = 100;

impl DynamoItems {
    async fn get(&self, key: &Key) -> Result<Option<Attributes>, Failure> {
        let request = self.client.get_item().table_name(&self.table).set_key(Some(attribute::of_key(key)));
        Ok(request.consistent_read(true).send().await.map_err(read)?.item)
    }

    pub(super) async fn read_row<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, Failure> {
        self.get(key).await?.map(|found| row::read(attribute::row(&found))).transpose()
    }

    pub(super) async fn read_item(&self, id: &ItemId) -> Result<Option<Item>, Failure> {
        self.get(&Key::item(id)).await?.map(|found| self.decode(&found)).transpose()
    }

    pub(super) async fn query_due(&self, shard: u8, until: Timestamp, limit: usize) -> Result<Vec<DueItem>, Failure> {
        let mut search = Write::default();
        search.require_equal("due_shard", &shard);
        let (due_at, until) = (search.name("due_at"), search.value(&until));
        search.require(format!("{due_at} <= {until}"));
        let found = self.query(Query { index: Some(DUE_INDEX), search, filter: None, forward: true }, limit).await?;
        Ok(found.iter().filter_map(due_item).collect())
    }

    pub(super) async fn query_timeline(&self, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Failure> {
        let mut search = Write::default();
        search.require_equal("pk", &key::item_partition(id));
        let first = after.map_or_else(|| LOG.to_owned(), |cursor| format!("{LOG}{cursor}#"));
        let (sk, first, last) = (search.name("sk"), search.value(&first), search.value("log$"));
        search.require(format!("{sk} BETWEEN {first} AND {last}"));
        let found = self.query(Query { index: None, search, filter: None, forward: true }, limit + 1).await?;
        let entries = found.iter().map(|entry| row::read(attribute::row(entry))).collect::<Result<_, _>>()?;
        Ok(timeline_page(entries, limit))
    }

    /// Candidates come from the index, newest first over all projects; what is shown is read back and filtered again.
    pub(super) async fn query_list(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Failure> {
        let mut found = Vec::new();
        let mut cursor = before.cloned();
        loop {
            let ids = self.candidates(filter, cursor.as_ref(), limit + 1).await?;
            found.extend(self.read_items(&ids).await?.into_iter().filter(|item| filter.admits(item)));
            if found.len() > limit || ids.len() <= limit {
                break;
            }
            cursor = ids.last().cloned();
        }
        found.truncate(limit + 1);
        Ok(page(found, limit))
    }

    async fn candidates(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<Vec<ItemId>, Failure> {
        let projects: BTreeSet<_> = filter.projects.iter().collect();
        let mut ids = BTreeSet::new();
        for (host, project) in projects {
            ids.extend(self.candidates_of(host, *project, filter, before, limit).await?);
        }
        Ok(ids.into_iter().rev().take(limit).collect())
    }

    async fn candidates_of(
        &self,
        host: &str,
        project: ProjectId,
        filter: &ListFilter,
        before: Option<&ItemId>,
        limit: usize,
    ) -> Result<Vec<ItemId>, Failure> {
        let mut search = Write::default();
        search.require_equal(LIST_PROJECT, &key::list_partition(host, project));
        if let Some(before) = before {
            let (pk, end) = (search.name("pk"), search.value(&key::item_partition(before)));
            search.require(format!("{pk} < {end}"));
        }
        let filter = list_filter(&mut search, filter);
        let found = self.query(Query { index: Some(LIST_INDEX), search, filter, forward: false }, limit).await?;
        Ok(found.iter().filter_map(item_of).collect())
    }

    /// The items that are there, in the order of the ids.
    async fn read_items(&self, ids: &[ItemId]) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCH) {
            items.extend(self.read_batch(batch).await?);
        }
        items.sort_by(|a, b| b.id.cmp(&a.id));
        Ok(items)
    }

    async fn read_batch(&self, ids: &[ItemId]) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::with_capacity(ids.len());
        let mut keys: Vec<_> = ids.iter().map(|id| attribute::of_key(&Key::item(id))).collect();
        for _ in 0..ROUNDS {
            let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build();
            let wanted = wanted.map_err(|e| Failure::bug(format!("a batch cannot be built: {e}")))?;
            let answer = self.client.batch_get_item().request_items(&self.table, wanted).send().await.map_err(read)?;
            for found in answer.responses().into_iter().flat_map(|tables| tables.values().flatten()) {
                items.push(self.decode(found)?);
            }
            keys = answer.unprocessed_keys.into_iter().flatten().flat_map(|(_, rest)| rest.keys).collect();
            if keys.is_empty() {
                return Ok(items);
            }
        }
        Err(contended())
    }

    pub(super) async fn query(&self, query: Query, limit: usize) -> Result<Vec<Attributes>, Failure> {
        let request = self.client.query().table_name(&self.table).set_index_name(query.index.map(str::to_owned));
        let pages = request
            .key_condition_expression(query.search.conditions())
            .set_filter_expression(query.filter)
            .set_expression_attribute_names(Some(query.search.names()))
            .set_expression_attribute_values(query.search.values())
            .scan_index_forward(query.forward)
            .consistent_read(query.index.is_none())
            .into_paginator()
            .page_size(i32::try_from(limit.max(BATCH)).unwrap_or(i32::MAX));
        let mut rows = pages.items().send();
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(row) = rows.next().await else { break };
            found.push(row.map_err(read)?);
        }
        Ok(found)
    }
}

/// One query of the table or of an index.
pub(super) struct Query {
    pub(super) index: Option<&'static str>,
    pub(super) search: Write,
    pub(super) filter: Option<String>,
    pub(super) forward: bool,
}

/// What the index itself can leave out.
fn list_filter(search: &mut Write, filter: &ListFilter) -> Option<String> {
    let mut conditions = Vec::new();
    let mut equal = |name: String, value: String| conditions.push(format!("{name} = {value}"));
    if let Some(phase) = filter.phase {
        equal(search.name("phase"), search.value(&phase));
    }
    if let Some(item_type) = &filter.item_type {
        equal(search.name("item_type"), search.value(item_type));
    }
    if let Some(caller) = &filter.caller {
        equal(search.name("caller_identity"), search.value(caller));
    }
    if let Some(branch) = &filter.source_branch {
        equal(format!("{}.{}", search.name("branch"), search.data_name("source_branch")), search.value(branch));
    }
    Some(conditions.join(" AND ")).filter(|text| !text.is_empty())
}

fn item_of(entry: &Attributes) -> Option<ItemId> {
    key::item_of_partition(entry.get("pk")?.as_s().ok()?)
}

fn due_item(entry: &Attributes) -> Option<DueItem> {
    let due_at = entry.get("due_at")?.as_n().ok()?.parse().ok().map(Timestamp::from_millis)?;
    Some(DueItem { id: item_of(entry)?, due_at })
}
