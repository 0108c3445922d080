//! CI issues and requests of a queue, as people read them.

use super::Client;
use super::commands::PAGE;
use super::render::{at, headed, joined, list, more};
use crate::error::Error;
use crate::text::table;
use clap::{Args, Subcommand};
use collie_core::time::Timestamp;
use serde_json::{Value, json};

/// Which issues to show.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Issues {
    #[command(subcommand)]
    one: Option<OneIssue>,
    #[command(flatten)]
    list: Option<IssueList>,
}

/// Which issues to list.
#[derive(Debug, Args)]
pub(crate) struct IssueList {
    /// The queue.
    queue: String,
    /// Only these: open, closed or all.
    #[arg(long, default_value = "open", value_parser = ["open", "closed", "all"])]
    status: String,
    /// Only tasks that begin so.
    #[arg(long)]
    task_prefix: Option<String>,
    /// How many.
    #[arg(long)]
    limit: Option<u32>,
    /// Where the page before ended.
    #[arg(long)]
    cursor: Option<String>,
}

/// What to show of one issue.
#[derive(Debug, Subcommand)]
pub(crate) enum OneIssue {
    /// Show when an issue was opened and closed.
    History {
        /// The queue.
        queue: String,
        /// The task.
        task: String,
        /// The unit; the whole task where it is left out.
        #[arg(default_value = "")]
        unit: String,
    },
}

/// Which request to show.
#[derive(Debug, Args)]
pub(crate) struct Requests {
    #[command(subcommand)]
    one: OneRequest,
}

/// What to show of a request.
#[derive(Debug, Subcommand)]
pub(crate) enum OneRequest {
    /// Show a request.
    Show {
        /// The queue.
        queue: String,
        /// The request's number.
        id: String,
    },
}

/// The documents that answer the question about issues.
pub(crate) async fn issues(client: &Client, what: Issues) -> Result<Value, Error> {
    match (what.one, what.list) {
        (Some(OneIssue::History { queue, task, unit }), _) => {
            let query = [("task", task), ("unit", unit)];
            let path = queue_path(&queue)?;
            let issue = client.get(&format!("{path}/issue"), &query).await?;
            let history = all(client, &format!("{path}/issue/history"), &query).await?;
            Ok(json!({ "issue": issue, "items": history, "next_cursor": null }))
        }
        (None, Some(list)) => client.get(&format!("{}/issues", queue_path(&list.queue)?), &list.query()).await,
        (None, None) => Err(Error::Usage("name a queue".to_owned())),
    }
}

impl IssueList {
    fn query(&self) -> Vec<(&'static str, String)> {
        let status = (self.status != "all").then(|| self.status.clone());
        let limit = self.limit.map(|limit| limit.to_string());
        let all = [("status", status), ("task_prefix", self.task_prefix.clone()), ("limit", limit), ("cursor", self.cursor.clone())];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A request's history, with all that it meant for issues.
pub(crate) async fn request(client: &Client, what: Requests) -> Result<Value, Error> {
    let OneRequest::Show { queue, id } = what.one;
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::Usage(format!("{id:?} is no number of a request")));
    }
    let path = format!("{}/requests/{id}", queue_path(&queue)?);
    let mut document = client.get(&format!("{path}/history"), &[]).await?;
    let first = client.get(&format!("{path}/issues"), &[("limit", "1".to_owned())]).await?;
    document["coverage"] = first["coverage"].clone();
    document["issues"] = json!(all(client, &format!("{path}/issues"), &[]).await?);
    Ok(document)
}

/// All rows of a list, page after page.
async fn all(client: &Client, path: &str, query: &[(&'static str, String)]) -> Result<Vec<Value>, Error> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let paging = [("limit", Some(PAGE.to_owned())), ("cursor", cursor)];
        let paging = paging.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let page = client.get(path, &query.iter().cloned().chain(paging).collect::<Vec<_>>()).await?;
        items.extend_from_slice(list(&page, "/items"));
        cursor = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            return Ok(items);
        }
    }
}

/// The path of a queue; what is no name never becomes part of a path.
fn queue_path(queue: &str) -> Result<String, Error> {
    let plain = !queue.is_empty() && queue.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if plain { Ok(format!("queues/{queue}")) } else { Err(Error::Usage(format!("{queue:?} is no name of a queue"))) }
}

/// A page of issues, or one with its history.
pub(crate) fn show_issues(document: &Value, now: Timestamp) -> Vec<String> {
    if document.get("issue").is_some() {
        return show_history(document, now);
    }
    let heading = ["task", "unit", "status", "since build", "changed", "link"].map(str::to_owned).to_vec();
    let row = |issue: &Value| {
        let age = age(issue, "/changed_at", now);
        vec![at(issue, "/task_id"), unit(issue), at(issue, "/status"), at(issue, "/first_seen_build_id"), age, at(issue, "/first_seen_url")]
    };
    let rows: Vec<_> = list(document, "/items").iter().map(row).collect();
    if rows.is_empty() && at(document, "/next_cursor").is_empty() {
        return vec!["no issues".to_owned()];
    }
    let mut lines = table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>());
    lines.extend(more(document));
    lines
}

fn show_history(document: &Value, now: Timestamp) -> Vec<String> {
    let issue = &document["issue"];
    let facts = [
        ("task", at(issue, "/task_id")),
        ("unit", unit(issue)),
        ("status", at(issue, "/status")),
        ("since build", at(issue, "/first_seen_build_id")),
        ("link", at(issue, "/first_seen_url")),
        ("changed", age(issue, "/changed_at", now)),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| vec![name.to_owned(), value]);
    let mut lines = table(&facts.collect::<Vec<_>>());
    let entry = |entry: &Value| {
        let by = format!("by build {} of request {}", at(entry, "/build_id"), at(entry, "/request_id"));
        vec![at(entry, "/at"), at(entry, "/event"), by]
    };
    lines.extend(headed("history", list(document, "/items").iter().map(entry).collect()));
    lines
}

/// A request.
pub(crate) fn show_request(document: &Value, now: Timestamp) -> Vec<String> {
    let facts = [
        ("request", at(document, "/request_id")),
        ("uri", at(document, "/uri")),
        ("link", at(document, "/url")),
        ("build", at(document, "/build_id")),
        ("outcome", at(document, "/outcome")),
        ("admitted", age(document, "/admitted_at", now)),
        ("issues known", at(document, "/coverage")),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| vec![name.to_owned(), value]);
    let mut lines = table(&facts.collect::<Vec<_>>());
    let event = |event: &Value| {
        let suppressed = match at(event, "/suppressed").as_str() {
            "task_wide" => "nothing was closed, because a whole task failed",
            "canceled" => "nothing was closed, because the build was cancelled",
            _ => "",
        };
        vec![at(event, "/at"), at(event, "/event"), suppressed.to_owned()]
    };
    lines.extend(headed("history", list(document, "/items").iter().map(event).collect()));
    let issue = |issue: &Value| {
        let since = match at(issue, "/result").as_str() {
            "existing" => format!("since build {}", at(issue, "/first_seen_build_id")),
            _ => String::new(),
        };
        vec![at(issue, "/result"), joined([at(issue, "/task_id"), at(issue, "/unit_id")], " / "), since]
    };
    lines.extend(headed("issues", list(document, "/issues").iter().map(issue).collect()));
    lines
}

fn unit(issue: &Value) -> String {
    match at(issue, "/unit_id") {
        unit if unit.is_empty() => "(whole task)".to_owned(),
        unit => unit,
    }
}

/// How long ago, in the largest unit that says something.
pub(super) fn age(value: &Value, pointer: &str, now: Timestamp) -> String {
    let text = at(value, pointer);
    let Some(then) = Timestamp::parse(&text) else { return text };
    let seconds = now.since(then).as_secs();
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::parse("2026-01-31T19:00:00Z").unwrap()
    }

    #[test]
    fn issues_are_a_table_with_ages() {
        let issue = |task: &str, unit: &str, at: &str| {
            json!({"task_id": task, "unit_id": unit, "status": "open", "first_seen_build_id": "812", "changed_at": at,
                "first_seen_url": "https://ci/812"})
        };
        let page = json!({"items": [issue("lint", "", "2026-01-31T18:59:30Z"), issue("test", "a::b\u{1b}", "2026-01-29T18:00:00Z")], "next_cursor": "x"});
        let expected = [
            "task  unit          status  since build  changed   link",
            "lint  (whole task)  open    812          30 s ago  https://ci/812",
            "test  a::b\\u{1b}    open    812          2 d ago   https://ci/812",
            "more: --cursor x",
        ];
        assert_eq!(show_issues(&page, now()), expected);
        assert_eq!(show_issues(&json!({"items": [], "next_cursor": null}), now()), ["no issues"]);
    }

    #[test]
    fn a_request_tells_why_it_closed_nothing() {
        let document = json!({"request_id": "7", "uri": "https://gitlab.example.com/g/a/-/pipelines/812", "build_id": "812", "outcome": "failed",
            "admitted_at": "2026-01-31T17:00:00Z", "coverage": "complete",
            "items": [{"at": "2026-01-31T18:00:00Z", "event": "issues_reconciled", "suppressed": "task_wide"}],
            "issues": [{"result": "existing", "task_id": "test", "unit_id": "a", "first_seen_build_id": "800"}]});
        let expected = [
            "request       7",
            "uri           https://gitlab.example.com/g/a/-/pipelines/812",
            "build         812",
            "outcome       failed",
            "admitted      2 h ago",
            "issues known  complete",
            "\nhistory",
            "  2026-01-31T18:00:00Z  issues_reconciled  nothing was closed, because a whole task failed",
            "\nissues",
            "  existing  test / a  since build 800",
        ];
        assert_eq!(show_request(&document, now()), expected);
    }

    #[test]
    fn an_issue_shows_its_openings_and_closings() {
        let entry = |at: &str, event: &str, build: &str| json!({"at": at, "event": event, "build_id": build, "request_id": "3"});
        let document = json!({
            "issue": {"task_id": "test", "unit_id": "a", "status": "closed", "first_seen_build_id": "1", "changed_at": "2026-01-31T18:00:00Z"},
            "items": [entry("2026-01-31T17:00:00Z", "opened", "1"), entry("2026-01-31T18:00:00Z", "closed", "2")]});
        let lines = show_issues(&document, now());
        assert_eq!(
            lines[4..],
            [
                "changed      1 h ago",
                "\nhistory",
                "  2026-01-31T17:00:00Z  opened  by build 1 of request 3",
                "  2026-01-31T18:00:00Z  closed  by build 2 of request 3",
            ]
        );
    }
}
