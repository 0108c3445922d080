//! The commands that talk to a server.

use super::letters::{self, Letters};
use super::progress::{Board, Look};
use super::tracking::{self, Issues, Requests};
use super::{Client, render};
use crate::error::Error;
use crate::output;
use crate::serve::{SystemClock, pause};
use crate::text;
use clap::{Args, Subcommand};
use collie_core::time::Timestamp;
use collie_engine::ports::Clock as _;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::io::Read as _;
use std::time::Duration;
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Looks that may fail in a row before `watch` gives up.
const MISSES: u32 = 10;
pub(super) const PAGE: &str = "200";

/// Where the server is and who calls.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// The API's address.
    #[arg(long, global = true, env = "COLLIE_ENDPOINT", default_value = "http://127.0.0.1:8080")]
    endpoint: String,
    /// The bearer token; `collie token` makes one.
    #[arg(long, global = true, env = "COLLIE_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
    /// Print the API's documents as they are.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// A command's own arguments, with those that all have.
#[derive(Debug, Args)]
pub(crate) struct With<T: Args> {
    #[command(flatten)]
    what: T,
    #[command(flatten)]
    access: Access,
}

/// What to ask for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Submit a work item.
    Submit(With<Submit>),
    /// Show a work item.
    Get(With<Id>),
    /// List work items, newest first.
    List(With<Filter>),
    /// Follow a work item to its end; exits with 0 when it was completed.
    Watch(With<Watch>),
    /// Say why a work item is not merged yet, and when it is looked at next.
    Explain(With<Id>),
    /// Show what was done for a work item, and what it cost.
    Timeline(With<Id>),
    /// Bring a failed, cancelled or blocked work item back.
    Retry(With<Retry>),
    /// End a work item.
    Cancel(With<Cancel>),
    /// List CI issues of a queue, or show when one was opened and closed.
    Issues(With<Issues>),
    /// Show a request of a queue: its build, what happened to it, and what it meant for issues.
    Requests(With<Requests>),
    /// Look at messages that queues gave up, send them again, or put an end to them; for admins.
    Dlq(With<Letters>),
}

impl Command {
    /// Where it goes.
    pub(crate) const fn access(&self) -> &Access {
        match self {
            Self::Submit(With { access, .. })
            | Self::Get(With { access, .. })
            | Self::List(With { access, .. })
            | Self::Watch(With { access, .. })
            | Self::Explain(With { access, .. })
            | Self::Timeline(With { access, .. })
            | Self::Retry(With { access, .. })
            | Self::Cancel(With { access, .. })
            | Self::Issues(With { access, .. })
            | Self::Requests(With { access, .. })
            | Self::Dlq(With { access, .. }) => access,
        }
    }
}

/// A work item.
#[derive(Debug, Args)]
pub(crate) struct Id {
    /// The work item.
    id: String,
}

/// What to submit.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// A file with the submission as JSON; `-` is standard input.
    file: String,
    /// Check it and say what it would do; write nothing.
    #[arg(long)]
    validate: bool,
}

/// What to follow.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The work item.
    id: String,
    /// Give up after this time.
    #[arg(long, value_parser = text::duration)]
    timeout: Option<Duration>,
}

/// What to bring back.
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The work item.
    id: String,
    /// Allow commits of others on its branch to be overwritten, once.
    #[arg(long)]
    overwrite: bool,
}

/// What to end.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The work item.
    id: String,
    /// Why; shown to those who ask.
    #[arg(long)]
    reason: Option<String>,
    /// Leave its merge request open.
    #[arg(long)]
    keep_mr: bool,
}

/// Which work items to list.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only this phase: active, completed, failed or cancelled.
    #[arg(long)]
    phase: Option<String>,
    /// Only this type.
    #[arg(long)]
    item_type: Option<String>,
    /// Only this project.
    #[arg(long)]
    project: Option<String>,
    /// Only this source branch.
    #[arg(long)]
    source_branch: Option<String>,
    /// Only this caller.
    #[arg(long)]
    caller: Option<String>,
    /// How many.
    #[arg(long)]
    limit: Option<u32>,
    /// Where the page before ended.
    #[arg(long)]
    cursor: Option<String>,
}

impl Filter {
    fn query(self) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| limit.to_string());
        let all = [
            ("phase", self.phase),
            ("item_type", self.item_type),
            ("project", self.project),
            ("source_branch", self.source_branch),
            ("caller", self.caller),
            ("limit", limit),
            ("cursor", self.cursor),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Runs a command.
pub(crate) async fn run(command: Command) -> Result<(), Error> {
    let access = command.access();
    let token = access.token.clone().ok_or_else(|| Error::Usage("--token or COLLIE_TOKEN is needed".to_owned()))?;
    let client = Client::new(&access.endpoint, token)?;
    let print = Print { json: access.json };
    match command {
        Command::Submit(c) => print.submitted(&submit(&client, &c.what).await?),
        Command::Get(c) => print.show(&client.get(&item_path(&c.what.id, "")?, &[]).await?, render::item),
        Command::List(c) => print.show(&client.get("work-items", &c.what.query()).await?, render::items),
        Command::Watch(c) => return watch(&client, &c.what, print.json).await,
        Command::Explain(c) => print.show(&client.get(&item_path(&c.what.id, "/explain")?, &[]).await?, render::explanation),
        Command::Timeline(c) => print.timeline(&timeline(&client, &c.what.id).await?),
        Command::Retry(c) => print.moved(&retry(&client, &c.what).await?),
        Command::Cancel(c) => print.moved(&cancel(&client, c.what).await?),
        Command::Issues(c) => print.rows(&tracking::issues(&client, c.what).await?, tracking::show_issues),
        Command::Dlq(c) => print.rows(&letters::ask(&client, c.what).await?, letters::show),
        Command::Requests(c) => print.rows(&tracking::request(&client, c.what).await?, tracking::show_request),
    }
    Ok(())
}

/// The path of an item; what is no id never becomes part of a path.
fn item_path(id: &str, rest: &str) -> Result<String, Error> {
    let plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if plain { Ok(format!("work-items/{id}{rest}")) } else { Err(Error::Usage(format!("{id:?} is no id of a work item"))) }
}

async fn submit(client: &Client, what: &Submit) -> Result<Value, Error> {
    let body = read(&what.file).map_err(|error| Error::Usage(format!("{}: {error}", what.file)))?;
    client.post(if what.validate { "work-items/validate" } else { "work-items" }, body).await
}

fn read(file: &str) -> std::io::Result<Vec<u8>> {
    if file != "-" {
        return std::fs::read(file);
    }
    let mut body = Vec::new();
    std::io::stdin().lock().read_to_end(&mut body)?;
    Ok(body)
}

async fn retry(client: &Client, what: &Retry) -> Result<Value, Error> {
    let body = if what.overwrite { json!({ "overwrite": true }) } else { json!({}) };
    client.post(&item_path(&what.id, "/retry")?, body.to_string().into_bytes()).await
}

async fn cancel(client: &Client, what: Cancel) -> Result<Value, Error> {
    let mut body = json!({ "close_mr": !what.keep_mr });
    if let Some(reason) = what.reason {
        body["reason"] = json!(reason);
    }
    client.post(&item_path(&what.id, "/cancel")?, body.to_string().into_bytes()).await
}

/// The whole timeline, page after page.
pub(crate) async fn timeline(client: &Client, id: &str) -> Result<Vec<Value>, Error> {
    let path = item_path(id, "/timeline")?;
    let (mut entries, mut query) = (Vec::new(), vec![("limit", PAGE.to_owned())]);
    loop {
        let page = client.get(&path, &query).await?;
        entries.extend_from_slice(render::list(&page, "/entries"));
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(cursor) => query = vec![("limit", PAGE.to_owned()), ("cursor", cursor.to_owned())],
            None => return Ok(entries),
        }
    }
}

async fn watch(client: &Client, what: &Watch, json: bool) -> Result<(), Error> {
    item_path(&what.id, "")?;
    let mut board = (!json).then(Board::new);
    let last = follow(client, what, &mut board).await?;
    drop(board);
    if json {
        output::document(&last.item);
    }
    if last.is_completed() { Ok(()) } else { Err(Error::Failed(format!("work item {}: {}", what.id, render::phase(&last.item)))) }
}

/// Looks until the item has ended. A server that is away for a moment is waited for.
async fn follow(client: &Client, what: &Watch, board: &mut Option<Board>) -> Result<Look, Error> {
    let (begun, mut misses) = (Instant::now(), 0);
    loop {
        match Look::take(client, &what.id).await {
            Ok(look) => {
                misses = 0;
                board.iter_mut().for_each(|board| board.show(&look.facts));
                if look.is_over() {
                    return Ok(look);
                }
            }
            Err(Error::Unreachable(_)) if misses < MISSES => misses += 1,
            Err(error) => return Err(error),
        }
        if what.timeout.is_some_and(|most| begun.elapsed() > most) {
            return Err(Error::Failed(format!("work item {} has not ended yet", what.id)));
        }
        pause(LOOK_EVERY).await;
    }
}

/// Prints documents for people or for programs.
struct Print {
    json: bool,
}

impl Print {
    fn show(&self, document: &Value, human: fn(&Value) -> Vec<String>) {
        if self.json { output::document(document) } else { human(document).iter().for_each(output::line) }
    }

    /// Documents whose ages are told.
    fn rows(&self, document: &Value, human: fn(&Value, Timestamp) -> Vec<String>) {
        if self.json { output::document(document) } else { human(document, SystemClock.now()).iter().for_each(output::line) }
    }

    fn timeline(&self, entries: &[Value]) {
        if self.json {
            output::document(&json!({ "entries": entries, "next_cursor": null }));
        } else {
            render::timeline(entries).iter().for_each(output::line);
        }
    }

    fn submitted(&self, answer: &Value) {
        self.show(answer, |answer| match answer.get("work_item") {
            Some(item) => vec![format!("{} {}", render::at(answer, "/outcome"), render::at(item, "/id"))],
            None => would(answer),
        });
    }

    /// The item after a retry or a cancellation, whether it comes by itself or within an answer.
    fn moved(&self, answer: &Value) {
        self.show(answer, |answer| {
            let item = answer.get("work_item").unwrap_or(answer);
            vec![format!("{} {}", render::at(item, "/id"), render::phase(item))]
        });
    }
}

/// What a checked submission would do.
fn would(answer: &Value) -> Vec<String> {
    let calls = render::list(answer, "/calls").iter().map(|call| format!("  {}", render::at(call, "")));
    std::iter::once(format!("would be {}", render::at(answer, "/would"))).chain(calls).collect()
}
