//! What file content may hold.
//!
//! 1. Size: per file and per request.
//! 2. Binary content, where configured (a NUL byte, or bytes that are not UTF-8).
//! 3. Hidden characters in text: reordering marks and characters that show nothing, so that a reviewer reads what a
//!    compiler reads (CVE-2021-42574). A byte order mark at the very start is allowed. A file counts as binary here
//!    only by git's own test (a NUL among the first 8000 bytes): one stray byte must not switch the check off.
//! 4. Secrets ([`super::secrets`]), less what the project's configuration knows to be none, and the project's forbidden text.
//!
//! Upholds INV-12: a violation names the kind of a find and its line, never the bytes.

use super::chars::{is_bidi, is_invisible};
use super::config::{Config, ConfigError, Forbidden, Rule, SecretsAllow};
use super::path::Key;
use super::patterns::Pattern;
use super::secrets::{self, Secret};
use super::violation::Violation;
use regex::bytes::{Regex, RegexBuilder};

/// How many bytes git looks at to tell text from binary.
const GIT_PROBE_BYTES: usize = 8000;
/// A forbidden text whose automaton is larger than this is refused when configuration loads.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// Finds secrets and forbidden text.
#[derive(Debug, Clone)]
pub(super) struct Scanner {
    secrets: Rule,
    allowed: Vec<Allowed>,
    forbidden: Vec<(String, Regex)>,
}

/// Where finds of some rules are known to be none.
#[derive(Debug, Clone)]
struct Allowed {
    paths: Vec<Pattern>,
    rules: Vec<String>,
}

impl Allowed {
    fn new(entry: &SecretsAllow) -> Result<Self, Vec<ConfigError>> {
        let read: Vec<_> = entry.paths.iter().map(|path| Pattern::parse(path)).collect();
        let unknown = entry.rules.iter().filter(|rule| !secrets::is_rule(rule)).cloned().map(ConfigError::SecretRule);
        let errors: Vec<_> = read.iter().filter_map(|path| path.clone().err()).map(ConfigError::Pattern).chain(unknown).collect();
        let paths = read.into_iter().filter_map(Result::ok).collect();
        if errors.is_empty() { Ok(Self { paths, rules: entry.rules.clone() }) } else { Err(errors) }
    }

    fn covers(&self, secret: &Secret, key: &Key) -> bool {
        self.rules.iter().any(|rule| rule == secret.rule) && self.paths.iter().any(|path| path.matches(key.as_str()))
    }
}

/// One find: what it is, never what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Secret(Secret),
    Forbidden(String),
}

impl Found {
    pub(super) fn at(&self, pointer: &str) -> Violation {
        match self {
            Self::Secret(secret) => Violation::new(
                pointer,
                "secret",
                format!("looks like a secret: {}{}", secret.rule, on_lines(&secret.lines)),
                "revoke it if it is real, and refer to it by name from a secret store; an operator can allow the rule for a path",
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

fn on_lines(lines: &[usize]) -> String {
    let listed: Vec<_> = lines.iter().map(ToString::to_string).collect();
    match listed.as_slice() {
        [] => String::new(),
        [line] => format!(", line {line}"),
        several => format!(", lines {}", several.join(", ")),
    }
}

impl Scanner {
    /// Compiles a project's forbidden text, and where its finds of secrets are known to be none.
    ///
    /// # Errors
    /// Each pattern that is not a regular expression, or too large, each path that is no pattern, each rule that is none.
    pub(super) fn new(config: &Config) -> Result<Self, Vec<ConfigError>> {
        let mut errors = vec![];
        let mut compile = |entry: &Forbidden| {
            let built = RegexBuilder::new(&entry.pattern).size_limit(MAX_PATTERN_BYTES).build();
            let named = built.map(|regex| (entry.name.clone(), regex));
            named.map_err(|error| errors.push(ConfigError::Forbidden { name: entry.name.clone(), problem: error.to_string() })).ok()
        };
        let forbidden = config.forbidden_text.iter().filter_map(&mut compile).collect();
        let mut allow = |entry: &SecretsAllow| Allowed::new(entry).map_err(|found| errors.extend(found)).ok();
        let allowed = config.secrets_allow.iter().filter_map(&mut allow).collect();
        if errors.is_empty() { Ok(Self { secrets: config.secrets, allowed, forbidden }) } else { Err(errors) }
    }

    /// Each kind at most once, in the order of the lists. `path` is that of the file, where the text is one.
    pub(super) fn scan(&self, bytes: &[u8], path: Option<&str>) -> Vec<Found> {
        let secrets = if self.secrets == Rule::Refuse { secrets::find_all(bytes, path) } else { vec![] };
        let key = path.map(Key::of).filter(|_| !secrets.is_empty() && !self.allowed.is_empty());
        let known = |secret: &Secret| key.as_ref().is_some_and(|key| self.allowed.iter().any(|entry| entry.covers(secret, key)));
        let forbidden = self.forbidden.iter().filter(|(_, regex)| regex.is_match(bytes));
        let named = forbidden.map(|(name, _)| Found::Forbidden(name.clone()));
        secrets.into_iter().filter(|secret| !known(secret)).map(Found::Secret).chain(named).collect()
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Self { secrets: Rule::Refuse, allowed: vec![], forbidden: vec![] }
    }
}

/// One file of a submission.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) path: &'a str,
    pub(super) pointer: &'a str,
}

/// Every violation in one file's content.
pub(super) fn inspect(file: File<'_>, config: &Config, scanner: &Scanner, out: &mut Vec<Violation>) {
    let File { bytes, path, pointer } = file;
    out.extend(too_large(bytes, pointer, config));
    if config.binary == Rule::Refuse && is_binary(bytes) {
        let hint = "send text, or have the project's policy allow binary files";
        out.push(Violation::new(pointer, "binary_content", "the content is binary", hint));
    }
    if config.hidden_characters == Rule::Refuse && !git_calls_binary(bytes) {
        out.extend(hidden(bytes, pointer));
    }
    out.extend(scanner.scan(bytes, Some(path)).iter().map(|found| found.at(pointer)));
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
    let (mut bidi, mut invisible) = (None, None);
    each_hidable(text, |at, c| match c {
        _ if is_bidi(c) => _ = bidi.get_or_insert((c, at)),
        _ if is_invisible(c) => _ = invisible.get_or_insert((c, at)),
        _ => {}
    });
    let line = |at: usize| 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
    let kinds = [("bidi_control", bidi, "reorders text"), ("invisible_char", invisible, "shows nothing")];
    kinds.into_iter().filter_map(|(code, seen, does)| seen.map(|(c, at)| hidden_at(pointer, code, (c, line(at)), does))).collect()
}

/// Bytes that are looked at in one go.
const BLOCK: usize = 64;

/// Looks at the characters that could be hidden ones, by their first two bytes; all others are passed over without being decoded, and
/// blocks without such a beginning in one go: most text of most scripts.
fn each_hidable(text: &[u8], mut look: impl FnMut(usize, char)) {
    let (blocks, _) = text.as_chunks::<BLOCK>();
    let (nexts, _) = text.get(1..).unwrap_or_default().as_chunks::<BLOCK>();
    let pairs = blocks.iter().zip(nexts).enumerate();
    let leading = pairs.filter(|(_, (block, next))| has_lead(block, next)).map(|(index, _)| index * BLOCK);
    let rest = (nexts.len() * BLOCK..text.len()).step_by(BLOCK);
    for start in leading.chain(rest) {
        let block = &text[start..text.len().min(start + BLOCK)];
        for (at, _) in (start..).zip(block).filter(|(_, byte)| LEADS[usize::from(**byte)]) {
            if begins_hidable(&text[at..]) {
                decode(text, at).into_iter().for_each(|c| look(at, c));
            }
        }
    }
}

/// Looks at every byte, and at the one after it, without a branch and with numbers for booleans, so that the compiler compares many at
/// once. Every kana begins with 0xE3, and one character that could be hidden: there the second byte tells.
fn has_lead(block: &[u8; BLOCK], next: &[u8; BLOCK]) -> bool {
    let leads = |(byte, next): (&u8, &u8)| u8::from(is_lead(*byte)) & u8::from((*byte != 0xE3) | (*next == 0x85));
    block.iter().zip(next).fold(0, |found, pair| found | leads(pair)) != 0
}

/// Whether a character that could be hidden begins with this byte.
const fn is_lead(byte: u8) -> bool {
    (byte == 0xC2) | (byte == 0xCD) | (byte == 0xD8) | (byte.wrapping_sub(0xE1) < 3) | (byte == 0xEF) | (byte == 0xF0) | (byte == 0xF3)
}

/// The same, to be looked up one by one.
const LEADS: [bool; 256] = {
    let (mut leads, mut byte) = ([false; 256], 0_u8);
    while byte < u8::MAX {
        leads[byte as usize] = is_lead(byte);
        byte += 1;
    }
    leads
};

/// Whether a character that could be hidden begins with these bytes.
fn begins_hidable(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xC2, 0xAD, ..]
            | [0xCD, 0x8F, ..]
            | [0xD8, 0x9C, ..]
            | [0xE1, 0x85 | 0x9E | 0xA0, ..]
            | [0xE2, 0x80 | 0x81, ..]
            | [0xE3, 0x85, ..]
            | [0xEF, 0xBB | 0xBE | 0xBF, ..]
            | [0xF0, 0x9B | 0x9D, ..]
            | [0xF3, 0xA0, ..]
    )
}

/// The character at a position; none where the bytes are none.
fn decode(text: &[u8], at: usize) -> Option<char> {
    let end = (at + 4).min(text.len());
    text[at..end].utf8_chunks().next()?.valid().chars().next()
}

fn hidden_at(pointer: &str, code: &'static str, (c, line): (char, usize), does: &str) -> Violation {
    let message = format!("line {line} holds U+{:04X}, which {does}", u32::from(c));
    Violation::new(pointer, code, message, "remove it, or write it as an escape of the file's language")
}

#[cfg(test)]
mod tests {
    use super::super::config::ByteSize;
    use super::*;
    use proptest::prelude::*;

    fn found(bytes: &[u8], config: &Config) -> Vec<Violation> {
        let scanner = Scanner::new(config).unwrap();
        let mut out = vec![];
        inspect(File { bytes, path: "a.txt", pointer: "/c" }, config, &scanner, &mut out);
        out
    }

    fn codes(bytes: &[u8]) -> Vec<&'static str> {
        found(bytes, &Config::default()).into_iter().map(|violation| violation.code).collect()
    }

    /// Split in two, so that scanners of this repository do not find it either.
    fn token() -> String {
        format!("{}-{}", "glpat", "Aa1b2C3d4E5f6G7h8Kq9")
    }

    #[test]
    fn a_secret_is_named_by_rule_and_line_and_never_shown() {
        let violations = found(format!("a\nkey = '{0}'\nb\n{0}\n", token()).as_bytes(), &Config::default());
        let shown: Vec<_> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["/c: looks like a secret: gitlab-pat, lines 2, 4 (secret)"]);
        assert!(!format!("{violations:?}").contains(&token()));
    }

    #[test]
    fn an_operator_can_allow_a_rule_for_a_path_and_only_that() {
        let allow = |path: &str, rule: &str| Config {
            secrets_allow: vec![SecretsAllow { paths: vec![path.into()], rules: vec![rule.into()] }],
            ..Config::default()
        };
        let count = |config: &Config| found(token().as_bytes(), config).len();
        assert_eq!(count(&allow("*.TXT", "gitlab-pat")), 0);
        assert_eq!(count(&allow("*.md", "gitlab-pat")), 1);
        assert_eq!(count(&allow("*.txt", "github-pat")), 1);
        let wrong = Scanner::new(&allow("a//b", "gitlab-path")).unwrap_err();
        let told: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["pattern \"a//b\": has an empty segment", "secrets_allow: there is no rule \"gitlab-path\" for secrets"]);
    }

    #[test]
    fn secrets_are_found_in_binary_content_too_and_can_be_allowed() {
        let bytes = [&b"\0\xff"[..], token().as_bytes()].concat();
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
    fn forbidden_text_that_is_no_pattern_is_named() {
        let bad = ["(", "a{1000}{1000}"].map(|pattern| Forbidden { name: pattern.into(), pattern: pattern.into() });
        let errors = Scanner::new(&Config { forbidden_text: bad.into(), ..Config::default() }).unwrap_err();
        let named = |error: &ConfigError| matches!(error, ConfigError::Forbidden { name, .. } if name == "(" || name == "a{1000}{1000}");
        assert!(errors.len() == 2 && errors.iter().all(named), "{errors:?}");
    }

    /// What is found without any short cut: every character that is one, and whether it is hidden.
    fn hidden_plainly(bytes: &[u8]) -> Vec<(usize, char)> {
        let (mut at, mut found) = (0, vec![]);
        for chunk in bytes.utf8_chunks() {
            found.extend(chunk.valid().char_indices().map(|(offset, c)| (at + offset, c)));
            at += chunk.valid().len() + chunk.invalid().len();
        }
        found.retain(|(_, c)| is_bidi(*c) || is_invisible(*c));
        found
    }

    fn hidden_fast(bytes: &[u8]) -> Vec<(usize, char)> {
        let mut found = vec![];
        each_hidable(bytes, |at, c| found.extend((is_bidi(c) || is_invisible(c)).then_some((at, c))));
        found
    }

    #[test]
    fn every_hidden_character_is_looked_at_wherever_it_stands_in_a_block() {
        for c in ('\0'..=char::MAX).filter(|c| is_bidi(*c) || is_invisible(*c)) {
            for at in [0, 1, BLOCK - 4, BLOCK - 3, BLOCK - 2, BLOCK - 1, BLOCK] {
                let text = format!("{}{c}{}", "я".repeat(at / 2) + &"a".repeat(at % 2), "a".repeat(BLOCK));
                assert_eq!(hidden_fast(text.as_bytes()), [(at, c)], "{c:?} at {at}");
            }
        }
    }

    #[test]
    fn work_grows_with_the_text_and_ordinary_text_is_passed_over() {
        let looks = |text: &str| {
            let mut looks = 0;
            each_hidable(text.as_bytes(), |_, _| looks += 1);
            looks
        };
        assert_eq!(looks(&"Правила, 規則、ルール «é» 👩".repeat(100)), 0);
        let quoted = |times: usize| looks(&"“\u{200D}” \u{FE0F}\u{202E}".repeat(times));
        assert_eq!((quoted(100), quoted(200)), (400, 800));
    }

    /// Bytes that are often no characters, and pieces of characters that are hidden.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let near = ["\u{AD}", "\u{34F}", "\u{61C}", "\u{115F}", "\u{200B}", "\u{202E}", "\u{2066}", "\u{3164}", "\u{FEFF}", "\u{FFA0}"];
        let far = ["\u{1BCA0}", "\u{1D173}", "\u{E0001}", "«", "—", "、", "я", "é", "a", "\u{200D}", "\u{FFFD}"];
        let known = proptest::sample::select([&near[..], &far[..]].concat()).prop_map(|text| text.as_bytes().to_vec());
        let cut = (known.clone(), 0usize..4).prop_map(|(bytes, kept)| bytes.into_iter().take(kept).collect());
        let piece = prop_oneof![4 => known, 2 => cut, 1 => proptest::collection::vec(any::<u8>(), 0..4), 1 => Just(vec![b'a'; 61])];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn the_fast_way_finds_what_a_plain_scan_finds(bytes in bytes()) {
            prop_assert_eq!(hidden_fast(&bytes), hidden_plainly(&bytes));
        }

        #[test]
        fn inspection_never_fails(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = codes(&bytes);
        }
    }
}
