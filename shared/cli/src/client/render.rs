//! What people see of the API's documents.

use crate::text::{plain, table};
use serde_json::Value;

/// The text at a JSON pointer: text as it is, numbers and flags in JSON's words, nothing for what is not there.
pub(crate) fn at(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => plain(text),
        Some(other) => plain(&other.to_string()),
    }
}

/// The rows of a list at a JSON pointer.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// A work item.
pub(crate) fn item(item: &Value) -> Vec<String> {
    let branches = joined([at(item, "/detail/source_branch"), at(item, "/detail/target_branch")], " → ");
    let facts = [
        ("id", at(item, "/id")),
        ("phase", phase(item)),
        ("project", at(item, "/detail/project")),
        ("branch", branches),
        ("title", at(item, "/detail/title")),
        ("merge request", at(item, "/detail/mr_url")),
        ("task", joined([at(item, "/detail/queue"), at(item, "/detail/task")], ": ")),
        ("issue", at(item, "/detail/issue_url")),
        ("head", at(item, "/detail/branch_sha")),
        ("pipeline", at(item, "/detail/head_pipeline_id")),
        ("caller", at(item, "/caller_identity")),
        ("generation", at(item, "/generation")),
        ("attempts", at(item, "/attempts")),
        ("blocked", blocked(item)),
        ("last error", last_error(item)),
        ("created", at(item, "/created_at")),
        ("updated", at(item, "/updated_at")),
    ];
    let mut lines = table(
        &facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| vec![name.to_owned(), value]).collect::<Vec<_>>(),
    );
    lines.extend(headed("dimensions", list(item, "/dimensions").iter().map(dimension).collect()));
    lines.extend(headed("files", list(item, "/detail/actions").iter().map(file).collect()));
    lines
}

/// A heading with rows under it; nothing where there are no rows.
pub(super) fn headed(heading: &str, rows: Vec<Vec<String>>) -> Vec<String> {
    let heading = (!rows.is_empty()).then(|| format!("\n{heading}"));
    heading.into_iter().chain(table(&rows).into_iter().map(|line| format!("  {line}"))).collect()
}

/// The phase with its result.
pub(crate) fn phase(item: &Value) -> String {
    match at(item, "/result") {
        result if result.is_empty() => at(item, "/phase"),
        result => format!("{}: {result}", at(item, "/phase")),
    }
}

/// Why an item is blocked.
pub(crate) fn blocked(value: &Value) -> String {
    joined([at(value, "/blocked/reason"), at(value, "/blocked/detail")], ": ")
}

/// An item's last error.
pub(crate) fn last_error(value: &Value) -> String {
    joined([at(value, "/last_error/code"), at(value, "/last_error/message")], ": ")
}

pub(super) fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

/// A dimension's name with its variant.
pub(crate) fn dimension_name(dimension: &Value) -> String {
    joined([at(dimension, "/dimension"), at(dimension, "/variant")], "|")
}

/// Whether a dimension is done, waits or is to be done now.
pub(crate) fn dimension_state(dimension: &Value) -> &'static str {
    let needed = matches!(dimension.get("status"), Some(Value::Bool(true))) || at(dimension, "/status") == "true";
    match (needed, at(dimension, "/pending_until").is_empty()) {
        (false, _) => "done",
        (true, true) => "needed",
        (true, false) => "waits",
    }
}

fn dimension(dimension: &Value) -> Vec<String> {
    let until = at(dimension, "/pending_until");
    let until = if until.is_empty() { until } else { format!("until {until}") };
    let why = joined([at(dimension, "/detail/why"), at(dimension, "/why")], "");
    vec![dimension_name(dimension), dimension_state(dimension).to_owned(), until, why]
}

fn file(action: &Value) -> Vec<String> {
    let path = joined([at(action, "/previous_path"), at(action, "/file_path")], " → ");
    let size = at(action, "/size");
    vec![at(action, "/action"), path, if size.is_empty() { size } else { format!("{size} bytes") }]
}

/// A page of work items.
pub(crate) fn items(page: &Value) -> Vec<String> {
    let row = |item: &Value| {
        let branch = joined([at(item, "/detail/project"), at(item, "/detail/source_branch")], "@");
        vec![at(item, "/id"), phase(item), branch, at(item, "/detail/title")]
    };
    let mut lines = table(&list(page, "/items").iter().map(row).collect::<Vec<_>>());
    lines.extend(more(page));
    if lines.is_empty() { vec!["no work items".to_owned()] } else { lines }
}

pub(super) fn more(page: &Value) -> Option<String> {
    let cursor = at(page, "/next_cursor");
    (!cursor.is_empty()).then(|| format!("more: --cursor {cursor}"))
}

/// An explanation.
pub(crate) fn explanation(explained: &Value) -> Vec<String> {
    let facts = [
        ("phase", at(explained, "/phase")),
        ("blocked", blocked(explained)),
        ("next action", at(explained, "/next_action")),
        ("next look at", at(explained, "/next_look_at")),
        ("last error", last_error(explained)),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| vec![name.to_owned(), value]);
    let waiting = |w: &Value| vec![dimension_name(w), at(w, "/why"), at(w, "/until")];
    let blocker = |b: &Value| vec![at(b, "/code"), at(b, "/detail"), at(b, "/source"), at(b, "/seen_at")];
    let mut lines = table(&facts.collect::<Vec<_>>());
    lines.extend(headed("waits for", list(explained, "/waiting_on").iter().map(waiting).collect()));
    lines.extend(headed("not merged because", list(explained, "/merge_blockers").iter().map(blocker).collect()));
    lines
}

/// A timeline with what each run cost, and the total.
pub(crate) fn timeline(entries: &[Value]) -> Vec<String> {
    let heading = ["at", "step", "GitLab calls", "write units", "outcome"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(heading).chain(entries.iter().flat_map(run)).collect();
    let mut lines = table(&rows);
    let total = |pointer: &str| entries.iter().map(|entry| number(entry, pointer)).sum::<u64>();
    let (calls, units) = (total("/gitlab_calls"), total("/write_units"));
    lines.push(format!("total: {} runs, {calls} GitLab calls, {units} write units", entries.len()));
    lines
}

/// The rows of one run: its steps, then its sum and what it waits for.
fn run(entry: &Value) -> Vec<Vec<String>> {
    let step = |step: &Value| {
        let outcome = joined([at(step, "/outcome"), short_sha(step)], " ");
        vec![String::new(), at(step, "/action"), at(step, "/gitlab_calls"), String::new(), outcome]
    };
    let waits = at(entry, "/waits_for");
    let waits = if waits.is_empty() { waits } else { format!("then waits for: {waits}") };
    let sum = vec![time(entry), "run".to_owned(), at(entry, "/gitlab_calls"), at(entry, "/write_units"), waits];
    std::iter::once(sum).chain(list(entry, "/steps").iter().map(step)).collect()
}

fn short_sha(step: &Value) -> String {
    let sha: String = at(step, "/sha").chars().take(8).collect();
    if sha.is_empty() { sha } else { format!("({sha})") }
}

/// The time of day; the date is in `--json`.
fn time(entry: &Value) -> String {
    let at = at(entry, "/at");
    at.split_once('T').map_or(at.clone(), |(_, time)| time.to_owned())
}

/// A problem document: what is wrong, each violation with what to do about it.
pub(crate) fn problem(problem: &Value) -> Vec<String> {
    let (title, detail) = (at(problem, "/title"), at(problem, "/detail"));
    let mut lines = vec![format!("refused: {title} ({} {})", at(problem, "/status"), at(problem, "/code"))];
    lines.extend((!detail.is_empty()).then(|| format!("  {detail}")));
    lines.extend(list(problem, "/errors").iter().flat_map(violation));
    let request = at(problem, "/request_id");
    lines.extend((!request.is_empty()).then(|| format!("  request {request}")));
    lines
}

fn violation(error: &Value) -> Vec<String> {
    let place = joined([at(error, "/path")], "");
    let message = format!("{} ({})", at(error, "/message"), at(error, "/code"));
    let hint = at(error, "/hint");
    let first = format!("  - {}", joined([place, message], ": "));
    std::iter::once(first).chain((!hint.is_empty()).then(|| format!("    hint: {hint}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_shows_every_violation_with_its_hint_and_nothing_that_moves_the_cursor() {
        let document = json!({"title": "Policy", "status": 422, "code": "policy_violation", "detail": "2 rules", "request_id": "r1", "errors": [
            {"path": "/title", "code": "empty", "message": "is empty", "hint": "write one"},
            {"path": "/file_actions/0/file_path", "code": "bad_path", "message": "\u{1b}[2J", "hint": ""}]});
        let expected = [
            "refused: Policy (422 policy_violation)",
            "  2 rules",
            "  - /title: is empty (empty)",
            "    hint: write one",
            "  - /file_actions/0/file_path: \\u{1b}[2J (bad_path)",
            "  request r1",
        ];
        assert_eq!(problem(&document), expected);
    }

    #[test]
    fn a_timeline_shows_the_cost_of_each_run_and_the_total() {
        let step = json!({"action": "ensure_mr", "outcome": "opened !1", "gitlab_calls": 5, "sha": "0123456789"});
        let entries = [
            json!({"at": "2026-01-31T18:04:04.120Z", "steps": [step], "waits_for": "pipeline", "gitlab_calls": 5, "write_units": 9}),
            json!({"at": "2026-01-31T18:04:09.000Z", "steps": [], "waits_for": "", "gitlab_calls": 2, "write_units": 3}),
        ];
        let expected = [
            "at             step       GitLab calls  write units  outcome",
            "18:04:04.120Z  run        5             9            then waits for: pipeline",
            "               ensure_mr  5                          opened !1 (01234567)",
            "18:04:09.000Z  run        2             3",
            "total: 2 runs, 7 GitLab calls, 12 write units",
        ];
        assert_eq!(timeline(&entries), expected);
    }

    #[test]
    fn an_item_shows_what_is_there_and_leaves_out_what_is_not() {
        let shown = item(&json!({"id": "a", "phase": "completed", "result": "merged", "attempts": 0,
            "dimensions": [{"dimension": "needs_mr", "status": "false"}], "detail": {"title": "T", "actions": [
            {"action": "move", "previous_path": "a", "file_path": "b", "size": 3}]}}));
        assert!(shown.iter().any(|line| line.ends_with("completed: merged")), "{shown:#?}");
        assert!(shown.contains(&"  needs_mr  done".to_owned()), "{shown:#?}");
        assert!(shown.contains(&"  move  a → b  3 bytes".to_owned()), "{shown:#?}");
        assert!(!shown.iter().any(|line| line.starts_with("blocked")));
    }
}
