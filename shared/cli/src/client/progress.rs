//! Live progress of a work item: what changed since the last look, as lines, or as a board that stays on a terminal.

use super::Client;
use super::render::{at, blocked, dimension_name, dimension_state, last_error, list, phase};
use crate::error::Error;
use crate::output;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;
use tokio::time::Instant;

/// What is known of an item: rows of a name and a value, in the order in which they are shown.
pub(crate) type Facts = Vec<(&'static str, String)>;

/// An item at one look.
pub(crate) struct Look {
    pub(crate) item: Value,
    pub(crate) facts: Facts,
}

impl Look {
    /// Reads an item and why it waits.
    pub(crate) async fn take(client: &Client, id: &str) -> Result<Self, Error> {
        let item = client.get(&format!("work-items/{id}"), &[]).await?;
        let explained = client.get(&format!("work-items/{id}/explain"), &[]).await?;
        let facts = facts(&item, &explained);
        Ok(Self { item, facts })
    }

    /// Whether the item has ended.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(at(&self.item, "/phase").as_str(), "active" | "")
    }

    /// Whether it ended as wanted.
    pub(crate) fn is_completed(&self) -> bool {
        at(&self.item, "/phase") == "completed"
    }
}

fn facts(item: &Value, explained: &Value) -> Facts {
    let each = |rows: &[Value], show: fn(&Value) -> String| rows.iter().map(show).collect::<Vec<_>>().join(", ");
    let dimension = |d: &Value| format!("{} {}", dimension_name(d), dimension_state(d));
    let waiting = |w: &Value| format!("{} ({})", at(w, "/why"), dimension_name(w));
    let blocker = |b: &Value| match at(b, "/detail") {
        detail if detail.is_empty() => at(b, "/code"),
        detail => detail,
    };
    vec![
        ("phase", phase(item)),
        ("merge request", at(item, "/detail/mr_url")),
        ("dimensions", each(list(item, "/dimensions"), dimension)),
        ("does next", at(explained, "/next_action")),
        ("waits for", each(list(explained, "/waiting_on"), waiting)),
        ("not yet merged", each(list(explained, "/merge_blockers"), blocker)),
        ("blocked", blocked(item)),
        ("last error", last_error(item)),
    ]
}

/// Shows facts as they change.
pub(crate) struct Board {
    since: Instant,
    shown: BTreeMap<&'static str, String>,
    bars: Option<(MultiProgress, BTreeMap<&'static str, ProgressBar>)>,
}

impl Board {
    /// A board that stays where the output is a terminal, and lines elsewhere.
    pub(crate) fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(|| (MultiProgress::new(), BTreeMap::new()));
        Self { since: Instant::now(), shown: BTreeMap::new(), bars }
    }

    /// Shows what is new.
    pub(crate) fn show(&mut self, facts: &Facts) {
        for (name, value) in facts {
            let known = self.shown.get(name).map_or("", String::as_str);
            if known != value {
                self.shown.insert(name, value.clone());
                self.fact(name, value);
            }
        }
    }

    /// How long it took, in seconds.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    fn fact(&mut self, name: &'static str, value: &str) {
        let shown = if value.is_empty() { "–" } else { value };
        match &mut self.bars {
            None => output::line(format!("{:>6.1}s  {name:<14}  {shown}", self.since.elapsed().as_secs_f64())),
            Some((board, bars)) => bars.entry(name).or_insert_with(|| bar(board, name)).set_message(shown.to_owned()),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let bars = self.bars.take().map(|(_, bars)| bars).unwrap_or_default();
        bars.values().for_each(ProgressBar::abandon);
    }
}

fn bar(board: &MultiProgress, name: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix:14} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = board.add(ProgressBar::new_spinner().with_style(style).with_prefix(name));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
