//! From a wake-up to a run.

use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::id::ItemId;
use collie_engine::Engine;
use collie_engine::execute::Worker;
use collie_shell::Invocation;
use collie_shell::batch::{Ended, Record, Work};
use serde::Deserialize;

/// Runs the items that messages ring for.
pub(crate) struct Execute {
    pub(crate) engine: Engine,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wake {
    item_id: ItemId,
}

#[async_trait]
impl Work for Execute {
    type Job = ItemId;

    fn read(&self, record: &Record) -> Result<ItemId, Failure> {
        item_id(&record.body)
    }

    /// However the run ended, its wake-up is spent: what is left to do is due in the row.
    async fn run(&self, id: ItemId, invocation: &Invocation) -> Result<Ended, Failure> {
        let worker = Worker { actor: format!("execute/{}", invocation.request_id), deadline: Some(invocation.deadline) };
        let ran = self.engine.execute(&id, &worker).await?;
        tracing::info!(item = %id, ?ran, "run ended");
        Ok(Ended::Done)
    }
}

fn item_id(body: &str) -> Result<ItemId, Failure> {
    let wake: Result<Wake, _> = serde_json::from_str(body);
    let id = wake.ok().map(|wake| wake.item_id).filter(|id| is_id(id.as_str()));
    id.ok_or_else(|| Failure::rejected("malformed_wake", "a wake-up is {\"item_id\":\"…\"}"))
}

/// As long as a UUID at most, so that nothing else becomes part of a key or of a log.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 36 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_names_one_item_and_nothing_else() {
        let read = item_id(r#"{"item_id":"0197c0de-0000-7000-8000-000000000001"}"#);
        assert_eq!(read, Ok(ItemId::new("0197c0de-0000-7000-8000-000000000001")));
        let long = format!(r#"{{"item_id":"{}"}}"#, "a".repeat(37));
        for body in
            ["", "not json", "{}", "[]", r#"{"item_id":""}"#, r#"{"item_id":7}"#, r#"{"item_id":"a#b"}"#, r#"{"item_id":"a","x":1}"#, &long]
        {
            assert_eq!(item_id(body).map_err(|failure| failure.code), Err("malformed_wake"), "{body}");
        }
    }
}
