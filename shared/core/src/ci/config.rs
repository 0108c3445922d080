//! Reads a project's `ci_retry` section: once, with all problems at once, each with the place it is at.
//!
//! ```yaml
//! - name: runner-gone
//!   match: {all: [{failure_reason: [runner_system_failure, stuck_or_timeout_failure]}, {not: {job_name: "/^deploy/"}}]}
//!   delays: [0s, 3m, 10m]
//! ```
//! A text between slashes is a pattern. What can match everything by accident is refused: empty nodes, lists, texts and patterns,
//! and a window of no lines. So is what could cost more than linear time or much memory.

use super::matcher::{Check, Field, JobFields, Matcher, Pattern, Verdict};
use super::plan::Judgement;
use super::trace::Trace;
use crate::time::duration;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Lines of a log that a message is looked for in, where a node does not say.
pub const TAIL_LINES: usize = 300;
/// The keys of a rule.
const RULE_KEYS: [&str; 3] = ["name", "match", "delays"];
/// Rules of one project.
const MAX_RULES: usize = 50;
/// Nodes of one rule.
const MAX_NODES: usize = 200;
/// Nodes within nodes.
const MAX_DEPTH: usize = 16;
/// Retries of one job.
const MAX_DELAYS: usize = 10;
/// The longest wait before one retry.
const MAX_DELAY: Duration = Duration::from_secs(24 * 3600);
/// Bytes of one text or pattern.
const MAX_TEXT: usize = 1000;
/// Bytes of one compiled pattern, and of the engine's cache at work.
const MAX_COMPILED: usize = 1 << 20;

/// The rules of a project, first rule first. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct RetryRules(Arc<[RetryRule]>);

/// One rule.
#[derive(Debug, Clone)]
pub struct RetryRule {
    name: String,
    matcher: Matcher,
    delays: Vec<Duration>,
}

/// What is wrong with a section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))]
pub struct ConfigError {
    /// Every problem.
    pub problems: Vec<Problem>,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, below the section: `[0].match.message`.
    pub at: String,
    /// What.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

impl RetryRules {
    /// Reads a section.
    ///
    /// # Errors
    /// [`ConfigError`] lists every problem.
    pub fn parse(section: &Value) -> Result<Self, ConfigError> {
        let mut reader = Reader::default();
        let rules = reader.rules(section);
        reader.conclude(Self(rules.into()))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rule of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RetryRule> {
        self.0.iter().find(|rule| rule.name == name)
    }

    /// Which rule names a job: the first that does, and none before it that could.
    #[must_use]
    pub fn judge(&self, job: &JobFields<'_>, trace: Option<&Trace>) -> Judgement {
        for rule in self.0.iter() {
            match rule.matcher.evaluate(job, trace) {
                Verdict::NoMatch => {}
                Verdict::Match => return Judgement::Rule(rule.name.clone()),
                Verdict::NeedsTrace => return Judgement::NeedsTrace,
                Verdict::Undecided => return Judgement::Undecided,
            }
        }
        Judgement::NoRule
    }
}

impl RetryRule {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The wait before each retry; there are no more than these.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }
}

/// Reads one tree alone.
///
/// # Errors
/// [`ConfigError`] lists every problem.
pub fn matcher(tree: &Value) -> Result<Matcher, ConfigError> {
    let mut reader = Reader::default();
    let matcher = reader.node("match", tree, 0);
    reader.conclude(matcher)
}

#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
    nodes: usize,
}

impl Reader {
    fn conclude<T>(self, value: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() { Ok(value) } else { Err(ConfigError { problems: self.problems }) }
    }

    fn note(&mut self, at: &str, what: impl Into<String>) {
        self.problems.push(Problem { at: at.to_owned(), what: what.into() });
    }

    fn rules(&mut self, section: &Value) -> Vec<RetryRule> {
        let Some(rows) = section.as_array() else {
            self.note("", "a list of rules is needed here");
            return Vec::new();
        };
        if rows.len() > MAX_RULES {
            self.note("", format!("more than {MAX_RULES} rules"));
        }
        let rules: Vec<_> = rows.iter().enumerate().filter_map(|(index, row)| self.rule(&format!("[{index}]"), row)).collect();
        let mut names = BTreeSet::new();
        for rule in &rules {
            if !names.insert(rule.name.as_str()) {
                self.note("", format!("two rules are named {:?}", rule.name));
            }
        }
        rules
    }

    fn rule(&mut self, at: &str, row: &Value) -> Option<RetryRule> {
        let fields = self.mapping(at, row)?;
        for key in fields.keys().filter(|key| !RULE_KEYS.contains(&key.as_str())) {
            self.note(&format!("{at}.{key}"), "is no key of a retry rule, expected one of `name`, `match`, `delays`");
        }
        let name = self.name(&format!("{at}.name"), fields.get("name"));
        let delays = self.delays(&format!("{at}.delays"), fields.get("delays"));
        self.nodes = 0;
        let seen = self.problems.len();
        let tree = format!("{at}.match");
        let matcher = match fields.get("match") {
            Some(value) => self.node(&tree, value, 0),
            None => {
                self.note(&tree, "is missing");
                return None;
            }
        };
        for problem in &mut self.problems[seen..] {
            problem.what = format!("{} (rule {name:?})", problem.what);
        }
        Some(RetryRule { name, matcher, delays })
    }

    fn name(&mut self, at: &str, value: Option<&Value>) -> String {
        let name = value.and_then(Value::as_str).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 40 || !name.chars().all(plain) {
            self.note(at, "a name of 1 to 40 letters, digits, '-', '_' or '.' is needed");
        }
        name.to_owned()
    }

    fn delays(&mut self, at: &str, value: Option<&Value>) -> Vec<Duration> {
        let rows = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if rows.is_empty() || rows.len() > MAX_DELAYS {
            self.note(at, format!("a list of 1 to {MAX_DELAYS} delays such as [0s, 3m, 10m] is needed"));
        }
        let mut delays = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            match row.as_str().and_then(delay) {
                Some(delay) => delays.push(delay),
                None => self.note(&format!("{at}[{index}]"), "a delay is a number and s, m or h, at most 24h"),
            }
        }
        delays
    }

    fn mapping<'v>(&mut self, at: &str, value: &'v Value) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.note(at, "a mapping is needed here");
        }
        value.as_object()
    }

    fn node(&mut self, at: &str, value: &Value, depth: usize) -> Matcher {
        self.nodes += 1;
        let too_much = depth > MAX_DEPTH || self.nodes > MAX_NODES;
        if depth == MAX_DEPTH + 1 || self.nodes == MAX_NODES + 1 {
            self.note(at, format!("more than {MAX_NODES} nodes, or more than {MAX_DEPTH} within each other"));
        }
        let fields = self.mapping(at, value).filter(|_| !too_much);
        let Some(fields) = fields else { return Matcher::new(Vec::new()) };
        if fields.is_empty() {
            self.note(at, "is empty, and would match every job");
        }
        if fields.contains_key("tail_lines") && !fields.contains_key("message") {
            self.note(&format!("{at}.tail_lines"), "stands beside no message");
        }
        Matcher::new(fields.iter().filter_map(|(key, value)| self.check(at, key, value, fields, depth)).collect())
    }

    fn check(&mut self, node: &str, key: &str, value: &Value, fields: &Map<String, Value>, depth: usize) -> Option<Check> {
        let at = format!("{node}.{key}");
        Some(match key {
            "all" => Check::All(self.list(&at, value, depth)),
            "any" => Check::Any(self.list(&at, value, depth)),
            "not" if value.is_object() => Check::Not(vec![self.node(&at, value, depth + 1)]),
            "not" => Check::Not(self.list(&at, value, depth)),
            "job_name" => Check::Field(Field::JobName, self.patterns(&at, value)),
            "stage" => Check::Field(Field::Stage, self.patterns(&at, value)),
            "failure_reason" => Check::Field(Field::FailureReason, self.patterns(&at, value)),
            "status" => Check::Field(Field::Status, self.patterns(&at, value)),
            "message" => {
                let tail_lines = self.tail_lines(&format!("{node}.tail_lines"), fields.get("tail_lines"));
                Check::Message { patterns: self.patterns(&at, value), tail_lines }
            }
            "tail_lines" => return None,
            _ => {
                self.note(&at, "is no key of a matcher");
                return None;
            }
        })
    }

    fn list(&mut self, at: &str, value: &Value, depth: usize) -> Vec<Matcher> {
        let rows = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if rows.is_empty() {
            self.note(at, "a list of at least one node is needed here");
        }
        rows.iter().enumerate().map(|(index, row)| self.node(&format!("{at}[{index}]"), row, depth + 1)).collect()
    }

    fn tail_lines(&mut self, at: &str, value: Option<&Value>) -> usize {
        let Some(value) = value else { return TAIL_LINES };
        let lines = value.as_u64().and_then(|lines| usize::try_from(lines).ok()).filter(|&lines| lines > 0);
        if lines.is_none() {
            self.note(at, "a number of lines, at least 1, is needed");
        }
        lines.unwrap_or(TAIL_LINES)
    }

    fn patterns(&mut self, at: &str, value: &Value) -> Vec<Pattern> {
        let Some(rows) = value.as_array() else { return self.pattern(at, value).into_iter().collect() };
        if rows.is_empty() {
            self.note(at, "an empty list matches nothing");
        }
        rows.iter().enumerate().filter_map(|(index, row)| self.pattern(&format!("{at}[{index}]"), row)).collect()
    }

    fn pattern(&mut self, at: &str, value: &Value) -> Option<Pattern> {
        let Some(text) = value.as_str() else {
            self.note(at, "a text is needed here");
            return None;
        };
        pattern(text).map_err(|what| self.note(at, what)).ok()
    }
}

/// `/…/` is a pattern; a single slash is a text.
fn pattern(text: &str) -> Result<Pattern, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("has more than {MAX_TEXT} bytes"));
    }
    match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some("") => Err("an empty pattern is in every text".to_owned()),
        Some(source) => compile(source).map(Pattern::Regex),
        None if text.is_empty() => Err("an empty text is in every text".to_owned()),
        None => Ok(Pattern::Literal(text.to_owned())),
    }
}

fn compile(source: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(source).multi_line(true).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => format!("/{source}/ is too large when compiled"),
        other => {
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("/{source}/ is no pattern: {reason}")
        }
    })
}

fn delay(text: &str) -> Option<Duration> {
    duration(text).filter(|delay| *delay <= MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn problems(section: Value) -> Vec<String> {
        let refused = RetryRules::parse(&section).map_or_else(|error| error.problems, |_| Vec::new());
        refused.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn the_documented_example_is_read() {
        let rules = RetryRules::parse(&json!([
            {"name": "runner-gone", "delays": ["0s", "3m", "10m"],
             "match": {"all": [{"failure_reason": ["runner_system_failure", "stuck_or_timeout_failure"]}, {"not": {"job_name": "/^deploy/"}}]}},
            {"name": "clone-timeout", "delays": ["1m", "5m"],
             "match": {"message": "/fatal: unable to access .* timed out/", "tail_lines": 200}},
        ]))
        .unwrap();
        let delays = |name: &str| rules.get(name).map(|rule| rule.delays().iter().map(Duration::as_secs).collect::<Vec<_>>());
        assert_eq!((delays("runner-gone"), delays("clone-timeout")), (Some(vec![0, 180, 600]), Some(vec![60, 300])));
        assert!(rules.get("other").is_none() && !rules.is_empty());
        let of = |job_name, failure_reason, trace: Option<&str>| {
            let job = JobFields { job_name, stage: "test", failure_reason, status: "failed" };
            rules.judge(&job, trace.map(|text| Trace::settled(text.as_bytes())).as_ref())
        };
        assert_eq!(of("unit", "runner_system_failure", None), Judgement::Rule("runner-gone".into()));
        assert_eq!(of("deploy-prod", "runner_system_failure", None), Judgement::NeedsTrace);
        assert_eq!(of("deploy-prod", "runner_system_failure", Some("x")), Judgement::NoRule);
        let timed_out = "fatal: unable to access 'https://x/': Operation timed out\n";
        assert_eq!(of("unit", "script_failure", Some(timed_out)), Judgement::Rule("clone-timeout".into()));
    }

    #[test]
    fn no_rules_are_rules() {
        assert!(RetryRules::parse(&json!([])).unwrap().is_empty() && RetryRules::default().is_empty());
    }

    #[test]
    fn every_problem_is_named_with_its_place_and_its_rule() {
        let found = problems(json!([
            {"name": "a", "delays": ["0s"], "match": {"job_name": "", "stage": "//", "colour": "red", "message": "/(?=x)y/", "tail_lines": 0}},
            {"name": "a", "delays": [], "match": {}, "when": "always"},
            {"delays": ["soon", 3, "25h"], "match": {"all": [], "any": {"stage": "x"}, "not": [{"tail_lines": 3}], "status": [7], "stage": []}},
            {"name": "c", "delays": "3m"},
            "x",
        ]));
        let want = [
            "[0].match.colour: is no key of a matcher (rule \"a\")",
            "[0].match.job_name: an empty text is in every text (rule \"a\")",
            "[0].match.tail_lines: a number of lines, at least 1, is needed (rule \"a\")",
            "[0].match.message: /(?=x)y/ is no pattern: look-around, including look-ahead and look-behind, is not supported (rule \"a\")",
            "[0].match.stage: an empty pattern is in every text (rule \"a\")",
            "[1].when: is no key of a retry rule, expected one of `name`, `match`, `delays`",
            "[1].delays: a list of 1 to 10 delays such as [0s, 3m, 10m] is needed",
            "[1].match: is empty, and would match every job (rule \"a\")",
            "[2].name: a name of 1 to 40 letters, digits, '-', '_' or '.' is needed",
            "[2].delays[0]: a delay is a number and s, m or h, at most 24h",
            "[2].delays[1]: a delay is a number and s, m or h, at most 24h",
            "[2].delays[2]: a delay is a number and s, m or h, at most 24h",
            "[2].match.all: a list of at least one node is needed here (rule \"\")",
            "[2].match.any: a list of at least one node is needed here (rule \"\")",
            "[2].match.not[0].tail_lines: stands beside no message (rule \"\")",
            "[2].match.stage: an empty list matches nothing (rule \"\")",
            "[2].match.status[0]: a text is needed here (rule \"\")",
            "[3].delays: a list of 1 to 10 delays such as [0s, 3m, 10m] is needed",
            "[3].match: is missing",
            "[4]: a mapping is needed here",
            ": two rules are named \"a\"",
        ];
        assert_eq!(found, want);
        assert_eq!(problems(json!({})), [": a list of rules is needed here"]);
    }

    #[test]
    fn trees_are_bounded_in_depth_and_in_nodes() {
        let deep = (0..20).fold(json!({"stage": "x"}), |inner, _| json!({"not": inner}));
        let wide = json!({"any": vec![json!({"stage": "x"}); 300]});
        for tree in [deep, wide] {
            let found = matcher(&tree).unwrap_err().problems;
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].what.starts_with("more than 200 nodes"));
        }
        assert!(matcher(&json!({"stage": "x".repeat(1001)})).is_err());
    }

    #[test]
    fn delays_are_read() {
        let seconds = |text| delay(text).map(|delay| delay.as_secs());
        assert_eq!(["0s", "3m", "10m", "24h", "007s"].map(seconds), [0, 180, 600, 86_400, 7].map(Some));
        for text in ["", "s", "3", "3d", "-3m", "+3m", "3 m", "1.5m", "25h", "99999999999999999999s", "3µ"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_is_total(text in "[{}\\[\\]\":,a-z/0-9 ]{0,60}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let _ = RetryRules::parse(&value);
            }
            let _ = (pattern(&text), delay(&text));
        }
    }
}
