//! Offset and keyset paging of lists, with the headers GitLab sends and those it leaves out.

use serde_json::Value;

use crate::call::Call;
use crate::params::encode;
use crate::reply::{Answer, Reply, error};
use crate::state::State;

/// Whether a list tells its total.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Totals {
    Sent,
    Missing,
}

struct Page {
    number: usize,
    size: usize,
    rows: usize,
}

impl Page {
    fn read(call: &Call, rows: usize) -> Result<Self, Reply> {
        let read = |name: &str, default: usize| match call.params.text(name) {
            None => Ok(default),
            Some(text) => text.parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(|| no_valid_value(name)),
        };
        let page = Self { number: read("page", 1)?, size: read("per_page", 20)?.min(100), rows };
        if (page.number - 1) * page.size > 50_000 { Err(too_deep()) } else { Ok(page) }
    }

    fn start(&self) -> usize {
        ((self.number - 1) * self.size).min(self.rows)
    }

    fn end(&self) -> usize {
        (self.start() + self.size).min(self.rows)
    }

    fn last(&self) -> usize {
        self.rows.div_ceil(self.size).max(1)
    }

    fn next(&self) -> Option<usize> {
        (self.end() < self.rows).then_some(self.number + 1)
    }

    fn previous(&self) -> Option<usize> {
        (self.number > 1).then(|| self.number - 1)
    }
}

fn no_valid_value(name: &str) -> Reply {
    error(400, format!("{name} does not have a valid value"))
}

fn too_deep() -> Reply {
    error(
        405,
        "Offset pagination has a maximum allowed offset of 50000 for requests that return objects of type Project. \
         Remaining records can be retrieved using keyset pagination.",
    )
}

fn show(number: Option<usize>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// One page of `rows` by `page` and `per_page`.
pub(crate) fn paginate(state: &State, call: &Call, rows: Vec<Value>, totals: Totals) -> Answer {
    paginate_where(state, call, rows, totals, |_| true)
}

/// As `paginate`, but rows that are not `visible` are dropped after paging: short pages.
pub(crate) fn paginate_where(state: &State, call: &Call, rows: Vec<Value>, totals: Totals, visible: impl Fn(&Value) -> bool) -> Answer {
    let page = Page::read(call, rows.len())?;
    let shown: Vec<Value> = rows.into_iter().skip(page.start()).take(page.size).filter(|row| visible(row)).collect();
    let mut reply = Reply::json(200, &Value::Array(shown))
        .with_header("X-Per-Page", page.size.to_string())
        .with_header("X-Page", page.number.to_string())
        .with_header("X-Next-Page", show(page.next()))
        .with_header("X-Prev-Page", show(page.previous()));
    let counted = totals == Totals::Sent && page.rows <= 10_000;
    if counted {
        reply = reply.with_header("X-Total", page.rows.to_string()).with_header("X-Total-Pages", page.last().to_string());
    }
    Ok(reply.with_header("Link", link_header(state, call, &page, counted)))
}

fn link_header(state: &State, call: &Call, page: &Page, counted: bool) -> String {
    let first = [("prev", page.previous()), ("next", page.next()), ("first", Some(1))];
    let last = [("last", counted.then(|| page.last()))];
    let links = first.into_iter().chain(last);
    let links = links.filter_map(|(rel, number)| Some((rel, number?)));
    let links = links.map(|(rel, number)| {
        let url = with_params(state, call, &[("page", &number.to_string()), ("per_page", &page.size.to_string())]);
        format!("<{url}>; rel=\"{rel}\"")
    });
    links.collect::<Vec<_>>().join(", ")
}

/// The call's own URL with some query parameters replaced.
fn with_params(state: &State, call: &Call, set: &[(&str, &str)]) -> String {
    let keep = |pair: &&str| !set.iter().any(|(name, _)| pair.split('=').next() == Some(name));
    let kept = call.request.query().split('&').filter(|pair| !pair.is_empty()).filter(keep).map(str::to_owned);
    let new = set.iter().map(|(name, value)| format!("{name}={}", encode(value)));
    format!("{}{}?{}", state.base_url, call.request.path(), kept.chain(new).collect::<Vec<_>>().join("&"))
}

/// One keyset page: rows after `page_token`, and only `Link: rel="next"`.
pub(crate) fn keyset(state: &State, call: &Call, rows: Vec<Value>, key: &str) -> Answer {
    let size = call.params.number("per_page").and_then(|n| usize::try_from(n).ok()).unwrap_or(20).clamp(1, 100);
    let start = match call.params.text("page_token") {
        None => 0,
        Some(token) => rows.iter().position(|row| row[key] == token.as_str()).map_or(rows.len(), |at| at + 1),
    };
    let more = rows.len() > start + size;
    let page: Vec<Value> = rows.into_iter().skip(start).take(size).collect();
    let last = page.last().and_then(|row| row[key].as_str()).unwrap_or_default().to_owned();
    let reply = Reply::json(200, &Value::Array(page));
    if !more {
        return Ok(reply);
    }
    let url = with_params(state, call, &[("page_token", &last), ("pagination", "keyset")]);
    Ok(reply.with_header("Link", format!("<{url}>; rel=\"next\"")))
}
