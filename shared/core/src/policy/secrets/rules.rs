//! The rule set: gitleaks' own file, as it is published, read once.
//!
//! The file's expressions are those of Go, which this makes readable for Rust's engine ([`rust_syntax`]). Both take time
//! linear in the text. How a rule is looked for is decided here too ([`Place`]), from the rule's own expression.

use super::allow::RawAllowlist;
use regex::bytes::Regex;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use serde::Deserialize;

/// The rules, to the letter those of gitleaks v8.30.1; a test holds the file to its published digest.
pub(super) const SOURCE: &str = include_str!("gitleaks.toml");

/// With what rules begin that look for `name = value`; the name alone decides, so that it is looked for and the rest is not.
const NAME_PREFIX: &str = r"[\w.-]{0,50}?";

/// How far an unbounded expression is followed.
const FAR: usize = 8 * 1024;

/// The file.
#[derive(Debug, Deserialize)]
pub(super) struct Rules {
    /// What is no secret whatever rule finds it.
    pub(super) allowlist: RawAllowlist,
    pub(super) rules: Vec<Rule>,
}

/// One rule, as the file has it: most are never compiled, since a text holds the keywords of few.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) id: String,
    /// The expression; empty where the path alone decides.
    #[serde(default)]
    pub(super) regex: String,
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    /// What a find has to have more of.
    #[serde(default)]
    pub(super) entropy: f64,
    #[serde(default)]
    pub(super) allowlists: Vec<RawAllowlist>,
    /// Files it is for; all where there is none.
    pub(super) path: Option<String>,
    /// The group that holds the secret; 0: the first one that took part.
    #[serde(rename = "secretGroup", default)]
    pub(super) group: usize,
}

/// Where a find of a rule lies as seen from one of its keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It begins with the keyword and is at most so long.
    Begins {
        /// Bytes.
        longest: usize,
    },
    /// It begins with the keyword; how long it is is not bounded.
    BeginsOpen,
    /// The keyword is anywhere in the text and no part of it.
    Anywhere,
    /// It holds the keyword somewhere.
    Around {
        /// Bytes looked at before the keyword.
        before: usize,
        /// Bytes looked at from the keyword on.
        after: usize,
    },
}

impl Rules {
    /// Reads the file; none where it cannot be read, which a test excludes.
    pub(super) fn read(source: &str) -> Option<Self> {
        toml::from_str(source).ok()
    }
}

impl Rule {
    /// Whether it goes by the name before a value, rather than by the form of the value.
    pub(super) fn guesses(&self) -> bool {
        self.regex.contains(NAME_PREFIX)
    }

    /// What is looked for: of a name only its telling end.
    pub(super) fn expression(&self) -> String {
        rust_syntax(&self.regex).replace(NAME_PREFIX, "")
    }

    /// Where that lies; none where the expression cannot be read, which a test excludes.
    pub(super) fn place(&self) -> Option<Place> {
        place(&self.expression(), &self.keywords)
    }

    /// The files it is for, as an expression.
    pub(super) fn paths(&self) -> Option<Regex> {
        Regex::new(self.path.as_deref()?).ok()
    }
}

/// Go takes a brace for itself where it cannot be a count; here it has to be escaped.
pub(super) fn rust_syntax(go: &str) -> String {
    let (mut out, mut escaped, mut in_class) = (String::with_capacity(go.len()), false, false);
    for (at, c) in go.char_indices() {
        if c == '{' && !escaped && !in_class && !is_count(&go[at + 1..]) {
            out.push('\\');
        }
        out.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = go[..at].ends_with("[^"),
            _ => {}
        }
    }
    out
}

fn is_count(rest: &str) -> bool {
    let counts = rest.split_once('}').map(|(counts, _)| counts).unwrap_or_default();
    counts.starts_with(|c: char| c.is_ascii_digit()) && counts.bytes().all(|b| b.is_ascii_digit() || b == b',')
}

/// Bytes rather than characters: `\w`, `\b` and case are those of ASCII, as in Go.
pub(super) fn syntax() -> regex_automata::util::syntax::Config {
    regex_automata::util::syntax::Config::new().unicode(false).utf8(false)
}

fn place(expression: &str, keywords: &[String]) -> Option<Place> {
    let hir = parse(expression)?;
    let longest = hir.properties().maximum_len();
    let begins = begins_with(&parse(&expression.replace("(?i)", "").replace("(?i:", "(?:"))?, keywords);
    let plain = expression.to_lowercase().replace('\\', "");
    Some(match longest {
        Some(longest) if begins => Place::Begins { longest },
        None if begins => Place::BeginsOpen,
        _ if !keywords.iter().any(|keyword| plain.contains(keyword)) => Place::Anywhere,
        Some(longest) => Place::Around { before: longest, after: longest },
        None => Place::Around { before: 512, after: FAR },
    })
}

fn parse(expression: &str) -> Option<Hir> {
    regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(expression).ok()
}

/// Whether all that an expression finds begins with a keyword. Keywords know no case, so the expression's flags do not count.
fn begins_with(hir: &Hir, keywords: &[String]) -> bool {
    let beginnings = Extractor::new().kind(ExtractKind::Prefix).limit_total(2000).extract(hir);
    let begins = |text: &[u8]| keywords.iter().any(|keyword| text.to_ascii_lowercase().starts_with(keyword.as_bytes()));
    beginnings.literals().is_some_and(|all| !all.is_empty() && all.iter().all(|literal| begins(literal.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_published_one_and_every_rule_of_it_can_be_read() {
        let digest = "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf";
        assert_eq!(crate::files::sha256_hex(SOURCE.as_bytes()), digest);
        let read = Rules::read(SOURCE).unwrap();
        assert_eq!(read.rules.len(), 222);
        let guessing = read.rules.iter().filter(|rule| rule.guesses()).count();
        assert_eq!(guessing, 101);
    }

    #[test]
    fn most_rules_are_looked_for_where_a_keyword_begins() {
        let read = Rules::read(SOURCE).unwrap();
        let at = |wanted: fn(&Place) -> bool| read.rules.iter().filter(|rule| wanted(&rule.place().unwrap())).count();
        assert_eq!(at(|place| matches!(place, Place::Begins { .. })), 188);
        assert_eq!(at(|place| matches!(place, Place::BeginsOpen)), 14);
        let around: Vec<_> = read.rules.iter().filter(|r| matches!(r.place(), Some(Place::Around { .. }))).map(|r| r.id.as_str()).collect();
        assert_eq!(around.len(), 15, "{around:?}");
        let anywhere: Vec<_> = read.rules.iter().filter(|r| r.place() == Some(Place::Anywhere)).map(|r| r.id.as_str()).collect();
        assert_eq!(
            anywhere,
            ["airtable-personnal-access-token", "facebook-access-token", "lob-api-key", "pkcs12-file", "slack-config-access-token"]
        );
    }

    #[test]
    fn braces_that_count_nothing_are_escaped() {
        let cases = [
            (r"^\$(?:\d+|{\d+})$", r"^\$(?:\d+|\{\d+})$"),
            (r"^\${(?:[A-Z_]+)}$", r"^\$\{(?:[A-Z_]+)}$"),
            (r"[^{]{2,3}x{4}y{5,}", r"[^{]{2,3}x{4}y{5,}"),
            (r"\{{[^]{]}", r"\{\{[^]{]}"),
        ];
        for (go, rust) in cases {
            assert_eq!(rust_syntax(go), rust);
        }
    }
}
