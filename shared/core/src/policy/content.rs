//! What file content may hold.
//!
//! 1. Size: per file and per request.
//! 2. Binary content, where configured (a NUL byte, or bytes that are not UTF-8).
//! 3. Hidden characters in text: reordering marks and characters that show nothing, so that a reviewer reads what a
//!    compiler reads (CVE-2021-42574). A byte order mark at the very start is allowed. A file counts as binary here
//!    only by git's own test (a NUL among the first 8000 bytes): one stray byte must not switch the check off.
//! 4. Secrets of formats that are hardly ever anything else, and the project's forbidden text.
//!
//! Upholds INV-12: a violation names the kind of a find and its line, never the bytes. Deliberately left out: entropy
//! guesses and password-like words, which mostly refuse the wrong file.

use super::chars::{is_bidi, is_invisible};
use super::config::{Config, Forbidden, Rule};
use super::violation::Violation;
use regex::bytes::{Regex, RegexBuilder, RegexSet};
use std::sync::LazyLock;

/// How many bytes git looks at to tell text from binary.
const GIT_PROBE_BYTES: usize = 8000;
/// A forbidden text whose automaton is larger than this is refused when configuration loads.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// Kinds of secrets and how they look. Case counts; `\b` and classes are ASCII.
const SECRETS: [(&str, &str); 12] = [
    ("private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("GitLab token", r"\bgl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[0-9A-Za-z_.-]{20}"),
    ("AWS access key", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{22})"),
    ("Slack token", r"\bxox[abeoprs]-[0-9A-Za-z-]{10}"),
    ("Google API key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("Stripe key", r"\b[rs]k_live_[0-9A-Za-z]{20}"),
    ("npm token", r"\bnpm_[0-9A-Za-z]{36}\b"),
    ("PyPI token", r"\bpypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{50}"),
    ("Vault token", r"\bhvs\.[0-9A-Za-z_-]{24}"),
    ("OpenShift token", r"\bsha256~[0-9A-Za-z_-]{43}"),
    ("Anthropic key", r"\bsk-ant-[0-9A-Za-z_-]{20}"),
];

/// None when a pattern is broken, which then refuses everything; a test shows that none is.
static SECRET_SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(SECRETS.map(|(_, look)| format!("(?-u){look}"))).ok());

/// Finds secrets and forbidden text.
#[derive(Debug, Clone)]
pub(super) struct Scanner {
    secrets: Rule,
    forbidden: Vec<(String, Regex)>,
}

/// One find: what it is, never what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Secret(&'static str),
    Forbidden(String),
}

impl Found {
    pub(super) fn at(&self, pointer: &str) -> Violation {
        match self {
            Self::Secret(kind) => Violation::new(
                pointer,
                "secret",
                format!("looks like a secret: {kind}"),
                "revoke it if it is real, and refer to it by name from a secret store",
            ),
            Self::Forbidden(name) => Violation::new(
                pointer,
                "forbidden_text",
                format!("holds text this project forbids: {name}"),
                "remove the text; the project's configuration holds the pattern",
            ),
        }
    }
}

impl Scanner {
    /// Compiles a project's forbidden text.
    ///
    /// # Errors
    /// The name and problem of each pattern that is not a regular expression, or is too large.
    pub(super) fn new(secrets: Rule, forbidden: &[Forbidden]) -> Result<Self, Vec<(String, String)>> {
        let mut errors = vec![];
        let mut compile = |entry: &Forbidden| {
            let built = RegexBuilder::new(&entry.pattern).size_limit(MAX_PATTERN_BYTES).build();
            let named = built.map(|regex| (entry.name.clone(), regex));
            named.map_err(|error| errors.push((entry.name.clone(), error.to_string()))).ok()
        };
        let forbidden = forbidden.iter().filter_map(&mut compile).collect();
        if errors.is_empty() { Ok(Self { secrets, forbidden }) } else { Err(errors) }
    }

    /// Each kind at most once, in the order of the lists.
    pub(super) fn scan(&self, bytes: &[u8]) -> Vec<Found> {
        let secrets = if self.secrets == Rule::Refuse { secret_kinds(bytes) } else { vec![] };
        let forbidden = self.forbidden.iter().filter(|(_, regex)| regex.is_match(bytes));
        let named = forbidden.map(|(name, _)| Found::Forbidden(name.clone()));
        secrets.into_iter().map(Found::Secret).chain(named).collect()
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Self { secrets: Rule::Refuse, forbidden: vec![] }
    }
}

fn secret_kinds(bytes: &[u8]) -> Vec<&'static str> {
    match LazyLock::force(&SECRET_SET) {
        Some(set) => set.matches(bytes).iter().filter_map(|at| SECRETS.get(at)).map(|(kind, _)| *kind).collect(),
        None => vec!["unknown, because the patterns are broken"],
    }
}

/// Every violation in one file's content.
pub(super) fn inspect(bytes: &[u8], pointer: &str, config: &Config, scanner: &Scanner, out: &mut Vec<Violation>) {
    out.extend(too_large(bytes, pointer, config));
    if config.binary == Rule::Refuse && is_binary(bytes) {
        let hint = "send text, or have the project's policy allow binary files";
        out.push(Violation::new(pointer, "binary_content", "the content is binary", hint));
    }
    if config.hidden_characters == Rule::Refuse && !git_calls_binary(bytes) {
        out.extend(hidden(bytes, pointer));
    }
    out.extend(scanner.scan(bytes).iter().map(|found| found.at(pointer)));
}

fn too_large(bytes: &[u8], pointer: &str, config: &Config) -> Option<Violation> {
    let limit = config.max_file_bytes?.0;
    let size = bytes.len() as u64;
    let message = format!("{size} bytes, more than {limit}");
    (size > limit).then(|| Violation::new(pointer, "file_too_large", message, "send a smaller file"))
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
}

fn git_calls_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(GIT_PROBE_BYTES).any(|byte| *byte == 0)
}

/// The first reordering mark and the first invisible character, with their lines.
fn hidden(bytes: &[u8], pointer: &str) -> Vec<Violation> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes);
    let (mut line, mut bidi, mut invisible) = (1u64, None, None);
    for c in text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()) {
        match c {
            '\n' => line += 1,
            _ if c.is_ascii() => {}
            _ if is_bidi(c) => _ = bidi.get_or_insert((c, line)),
            _ if is_invisible(c) => _ = invisible.get_or_insert((c, line)),
            _ => {}
        }
    }
    let kinds = [("bidi_control", bidi, "reorders text"), ("invisible_char", invisible, "shows nothing")];
    kinds.into_iter().filter_map(|(code, seen, does)| Some(hidden_at(pointer, code, seen?, does))).collect()
}

fn hidden_at(pointer: &str, code: &'static str, (c, line): (char, u64), does: &str) -> Violation {
    let message = format!("line {line} holds U+{:04X}, which {does}", u32::from(c));
    Violation::new(pointer, code, message, "remove it, or write it as an escape of the file's language")
}

#[cfg(test)]
mod tests {
    use super::super::config::ByteSize;
    use super::*;
    use proptest::prelude::*;

    fn found(bytes: &[u8], config: &Config) -> Vec<Violation> {
        let scanner = Scanner::new(config.secrets, &config.forbidden_text).unwrap();
        let mut out = vec![];
        inspect(bytes, "/c", config, &scanner, &mut out);
        out
    }

    fn codes(bytes: &[u8]) -> Vec<&'static str> {
        found(bytes, &Config::default()).into_iter().map(|violation| violation.code).collect()
    }

    /// Split in two, so that scanners of this repository do not find the samples either.
    fn samples() -> [(&'static str, String); 14] {
        let run = |n| "Aa1b2C3d4E5f6G7h8".chars().cycle().take(n).collect::<String>();
        [
            ("private key", format!("-----BEGIN {}-----", "PRIVATE KEY")),
            ("private key", format!("-----BEGIN RSA {}-----", "PRIVATE KEY")),
            ("private key", format!("-----BEGIN PGP {}-----", "PRIVATE KEY BLOCK")),
            ("GitLab token", format!("{}-{}", "glpat", run(20))),
            ("AWS access key", format!("{}{}", "AKIA", "ABCDEFGHIJKLMNOP")),
            ("GitHub token", format!("{}_{}", "ghp", run(36))),
            ("GitHub token", format!("{}_{}", "github_pat", run(30))),
            ("Slack token", format!("{}-{}", "xoxb", run(20))),
            ("Google API key", format!("{}{}", "AIza", run(35))),
            ("Stripe key", format!("{}_{}", "sk_live", run(24))),
            ("npm token", format!("{}_{}", "npm", run(36))),
            ("Vault token", format!("{}.{}", "hvs", run(24))),
            ("OpenShift token", format!("{}~{}", "sha256", run(43))),
            ("Anthropic key", format!("{}-{}", "sk-ant", run(30))),
        ]
    }

    #[test]
    fn every_kind_of_secret_is_found_and_never_shown() {
        for (kind, secret) in samples() {
            let violations = found(format!("key = '{secret}'\n").as_bytes(), &Config::default());
            assert_eq!(violations.len(), 1, "{kind}");
            assert_eq!(violations[0].message, format!("looks like a secret: {kind}"));
            assert!(!format!("{violations:?}").contains(&secret));
        }
    }

    #[test]
    fn what_merely_resembles_a_secret_is_not_one() {
        for text in ["glpat-xxxx", "AKIA-like", "BEGIN PUBLIC KEY", "task-anthem", "ghp_short", "sha256:abc"] {
            assert!(codes(text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[test]
    fn secrets_are_found_in_binary_content_too_and_can_be_allowed() {
        let bytes = [&b"\0\xff"[..], samples()[3].1.as_bytes()].concat();
        assert_eq!(codes(&bytes), ["secret"]);
        let config = Config { secrets: Rule::Allow, ..Config::default() };
        assert!(found(&bytes, &config).is_empty());
    }

    #[test]
    fn hidden_characters_are_named_by_line() {
        let violations = found("a\nb \u{202E}\u{2066}c\n\u{200B}".as_bytes(), &Config::default());
        let shown: Vec<_> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "/c: line 2 holds U+202E, which reorders text (bidi_control)",
                "/c: line 3 holds U+200B, which shows nothing (invisible_char)",
            ]
        );
    }

    #[test]
    fn a_stray_byte_does_not_hide_hidden_characters_but_real_binary_is_left_alone() {
        assert_eq!(codes(b"ok \xff \xe2\x80\xae"), ["bidi_control"]);
        assert!(codes(b"\x89PNG\0 \xe2\x80\xae").is_empty());
        assert!(codes("\u{FEFF}<xml/>".as_bytes()).is_empty());
        assert_eq!(codes("a\u{FEFF}".as_bytes()), ["invisible_char"]);
        assert!(codes("👩‍💻 ❤️ שלום".as_bytes()).is_empty());
    }

    #[test]
    fn limits_and_rules_follow_the_configuration() {
        let config = Config {
            max_file_bytes: Some(ByteSize(3)),
            binary: Rule::Refuse,
            forbidden_text: vec![Forbidden { name: "ticket".into(), pattern: "(?i)internal-\\d+".into() }],
            ..Config::default()
        };
        let list = |bytes: &[u8]| found(bytes, &config).into_iter().map(|v| v.code).collect::<Vec<_>>();
        assert!(list(b"abc").is_empty());
        assert_eq!(list(b"abcd"), ["file_too_large"]);
        assert_eq!(list(b"a\0"), ["binary_content"]);
        assert_eq!(list(b"\xff"), ["binary_content"]);
        assert_eq!(list(b"see INTERNAL-42"), ["file_too_large", "forbidden_text"]);
    }

    #[test]
    fn the_secret_patterns_compile_and_bad_forbidden_text_is_named() {
        assert_eq!(LazyLock::force(&SECRET_SET).as_ref().map(RegexSet::len), Some(SECRETS.len()));
        let bad = ["(", "a{1000}{1000}"].map(|pattern| Forbidden { name: pattern.into(), pattern: pattern.into() });
        let names: Vec<_> = Scanner::new(Rule::Refuse, &bad).unwrap_err().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["(", "a{1000}{1000}"]);
    }

    proptest! {
        #[test]
        fn inspection_never_fails(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = codes(&bytes);
        }
    }
}
