//! What a rule finds and is no secret: placeholders, words, names of files.
//!
//! Callers choose paths. So a list that goes by the path counts only for rules that guess ([`super::rules::Rule::guesses`]),
//! which would otherwise refuse every lock file; a token of a known form is refused in whatever file it is. Comments in the
//! text that tell a scanner to look away (`gitleaks:allow`) do not count at all.

use super::rules::rust_syntax;
use aho_corasick::AhoCorasick;
use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

/// An allow-list as the file writes it.
#[derive(Debug, Deserialize)]
pub(super) struct RawAllowlist {
    #[serde(default)]
    condition: String,
    #[serde(rename = "regexTarget", default)]
    target: String,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Secret,
    Match,
    Line,
}

/// What one rule allows.
#[derive(Debug)]
pub(super) struct Allowlist {
    all_needed: bool,
    target: Target,
    regexes: Option<RegexSet>,
    paths: Option<RegexSet>,
    stopwords: Option<AhoCorasick>,
}

/// A find on its way through the lists.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) secret: &'a [u8],
    pub(super) matched: &'a [u8],
    pub(super) line: &'a [u8],
    /// The file's path, where it may count.
    pub(super) path: Option<&'a str>,
}

impl Allowlist {
    pub(super) fn of(raw: &RawAllowlist) -> Option<Self> {
        let set = |list: &[String]| {
            let unicode_free = RegexSetBuilder::new(list.iter().map(|go| rust_syntax(go))).unicode(false).build().ok()?;
            Some((!list.is_empty()).then_some(unicode_free))
        };
        let words = || AhoCorasick::builder().ascii_case_insensitive(true).build(&raw.stopwords).ok();
        Some(Self {
            all_needed: raw.condition.eq_ignore_ascii_case("and"),
            target: match raw.target.as_str() {
                "match" => Target::Match,
                "line" => Target::Line,
                _ => Target::Secret,
            },
            regexes: set(&raw.regexes)?,
            paths: set(&raw.paths)?,
            stopwords: if raw.stopwords.is_empty() { None } else { Some(words()?) },
        })
    }

    /// Whether a find is none.
    pub(super) fn allows(&self, found: Candidate<'_>) -> bool {
        let text = match self.target {
            Target::Secret => found.secret,
            Target::Match => found.matched,
            Target::Line => found.line,
        };
        let checks = [
            self.regexes.as_ref().map(|set| set.is_match(text)),
            self.stopwords.as_ref().map(|words| words.is_match(found.secret)),
            self.paths.as_ref().map(|set| found.path.is_some_and(|path| set.is_match(path.as_bytes()))),
        ];
        let mut given = checks.into_iter().flatten();
        if self.all_needed { given.all(|holds| holds) } else { given.any(|holds| holds) }
    }
}

/// The bits of information in one byte of a text, by how often each value occurs in it.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let share = |count: u32| f64::from(count) / length;
    counts.into_iter().filter(|count| *count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_grows_with_variety() {
        assert!(entropy(b"") == 0.0 && entropy(b"aaaa") == 0.0);
        assert!((entropy(b"abab") - 1.0).abs() < 1e-9 && (entropy(b"abcdefgh") - 3.0).abs() < 1e-9);
    }
}
