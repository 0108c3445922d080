//! Dead letters, as operators look at them and decide about them.

use super::Client;
use super::render::{at, list, more};
use super::tracking::age;
use crate::error::Error;
use crate::text::table;
use clap::{Args, Subcommand};
use collie_core::time::Timestamp;
use serde_json::Value;

/// What to do with dead letters.
#[derive(Debug, Args)]
pub(crate) struct Letters {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List dead letters.
    List {
        /// Only these: waiting, redriven or abandoned.
        #[arg(long, value_parser = ["waiting", "redriven", "abandoned"])]
        state: Option<String>,
        /// How many.
        #[arg(long)]
        limit: Option<u32>,
        /// Where the page before ended.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show a dead letter.
    Show {
        /// The message's id.
        id: String,
    },
    /// Send a dead letter to its queue again.
    Redrive {
        /// The message's id.
        id: String,
    },
    /// Put an end to a dead letter.
    Abandon {
        /// The message's id.
        id: String,
    },
}

/// The document that answers.
pub(crate) async fn ask(client: &Client, what: Letters) -> Result<Value, Error> {
    match what.what {
        What::List { state, limit, cursor } => {
            let all = [("state", state), ("limit", limit.map(|limit| limit.to_string())), ("cursor", cursor)];
            let query: Vec<_> = all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            client.get("dead-letters", &query).await
        }
        What::Show { id } => client.get(&path(&id, "")?, &[]).await,
        What::Redrive { id } => client.post(&path(&id, "/redrive")?, b"{}".to_vec()).await,
        What::Abandon { id } => client.post(&path(&id, "/abandon")?, b"{}".to_vec()).await,
    }
}

/// The path of a letter; what is no id never becomes part of a path.
fn path(id: &str, rest: &str) -> Result<String, Error> {
    let plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if plain { Ok(format!("dead-letters/{id}{rest}")) } else { Err(Error::Usage(format!("{id:?} is no id of a dead letter"))) }
}

/// A page of letters, or one.
pub(crate) fn show(document: &Value, now: Timestamp) -> Vec<String> {
    let row = |letter: &Value| {
        let by = at(letter, "/decided_by");
        let decided = if by.is_empty() { by } else { format!("by {by} {}", age(letter, "/decided_at", now)) };
        vec![at(letter, "/id"), at(letter, "/origin"), at(letter, "/about"), age(letter, "/kept_at", now), at(letter, "/state"), decided]
    };
    let heading = ["id", "queue", "about", "kept", "state", "decided"].map(str::to_owned).to_vec();
    let letters = document.get("items").map_or_else(|| std::slice::from_ref(document), |_| list(document, "/items"));
    if letters.is_empty() && at(document, "/next_cursor").is_empty() {
        return vec!["no dead letters".to_owned()];
    }
    let mut lines = table(&std::iter::once(heading).chain(letters.iter().map(row)).collect::<Vec<_>>());
    lines.extend(more(document));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn letters_are_a_table_with_what_was_decided() {
        let now = Timestamp::parse("2026-01-31T19:00:00Z").unwrap();
        let waiting = json!({"id": "m1", "origin": "wakes", "about": "0198-item", "state": "waiting", "kept_at": "2026-01-31T18:00:00Z"});
        let sent = json!({"id": "m2", "origin": "hooks", "about": null, "state": "redriven", "kept_at": "2026-01-31T18:00:00Z",
            "decided_by": "local|root", "decided_at": "2026-01-31T18:59:00Z"});
        let expected = [
            "id  queue  about      kept     state     decided",
            "m1  wakes  0198-item  1 h ago  waiting",
            "m2  hooks             1 h ago  redriven  by local|root 1 min ago",
        ];
        assert_eq!(show(&json!({"items": [waiting, sent], "next_cursor": null}), now), expected);
        assert_eq!(show(&json!({"items": [], "next_cursor": null}), now), ["no dead letters"]);
    }
}
