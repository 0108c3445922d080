//! Secrets in text, by the rules of gitleaks ([`rules`]).
//!
//! 1. One pass finds every keyword of every rule ([`keywords`]).
//! 2. At each, the rules it belongs to are tried ([`seeker`]): only those are compiled.
//! 3. What a rule finds has to be varied enough (entropy), and on none of its allow-lists ([`allow`]).
//!
//! Upholds INV-12: a find is a rule's name and line numbers. Deliberately left out: asking a service whether a token is live.

mod allow;
mod keywords;
mod rules;
mod seeker;
#[cfg(test)]
mod tests;

use allow::{Allowlist, Candidate, RawAllowlist, entropy};
use keywords::Keywords;
use regex::bytes::Regex;
use rules::{Rule, Rules};
use seeker::{Progress, Seeker};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

/// How many places of one kind of secret are named.
const MOST_LINES: usize = 10;
/// The rule that goes by nothing but a name and variety; silent where another one speaks of the same line.
const GENERIC: &str = "generic-api-key";

/// The rule about private keys.
const PRIVATE_KEY: &str = "private-key";

/// With what a private key begins.
static KEY_BEGINS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----").ok());

/// None when the rules are broken, which then refuses everything; a test shows that they are not.
static DETECTOR: LazyLock<Option<Detector>> = LazyLock::new(|| Detector::new(rules::SOURCE));

/// Secrets of one kind in one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Secret {
    /// The rule's name.
    pub(super) rule: &'static str,
    /// The first lines that hold one; empty where the file's name alone says it.
    pub(super) lines: Vec<usize>,
}

/// The digest of the rules: another one, and what older rules passed has to be looked at again.
pub(super) fn rules_digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| crate::files::sha256_hex(rules::SOURCE.as_bytes()));
    DIGEST.as_str()
}

/// Whether there is a rule of that name.
pub(super) fn is_rule(id: &str) -> bool {
    DETECTOR.as_ref().is_none_or(|detector| detector.rules.iter().any(|known| known.rule.id == id))
}

/// What [`find`] finds, and private keys that are cut short: gitleaks wants 64 characters and an end, but half a key is a leak too.
pub(super) fn find_all(text: &[u8], path: Option<&str>) -> Vec<Secret> {
    let Some(detector) = DETECTOR.as_ref() else { return find(text, path) };
    let search = detector.search(text, path);
    let a_key_begins = search.has_met(PRIVATE_KEY);
    let mut found = search.conclude();
    if a_key_begins && found.iter().all(|secret| secret.rule != PRIVATE_KEY) {
        let lines = cut_keys(text);
        found.extend((!lines.is_empty()).then_some(Secret { rule: PRIVATE_KEY, lines }));
    }
    found
}

/// The lines on which a private key begins.
fn cut_keys(text: &[u8]) -> Vec<usize> {
    let (mut line, mut behind) = (1, 0);
    let mut lines = Vec::new();
    for key in KEY_BEGINS.iter().flat_map(|begins| begins.find_iter(text)).take(MOST_LINES) {
        line += text[behind..key.start()].iter().filter(|byte| **byte == b'\n').count();
        behind = key.start();
        lines.push(line);
    }
    lines.dedup();
    lines
}

/// Every kind of secret in a text, in the order of the rules; `path` is that of the file, where it is one.
pub(super) fn find(text: &[u8], path: Option<&str>) -> Vec<Secret> {
    match DETECTOR.as_ref() {
        Some(detector) => detector.find(text, path),
        None => vec![Secret { rule: "unreadable-rules", lines: vec![] }],
    }
}

struct Detector {
    rules: Vec<Known>,
    global: Lists,
    keywords: Keywords,
    /// The rules of each keyword.
    rules_of: Vec<Vec<usize>>,
}

/// A rule, and what is made of it once it is needed.
struct Known {
    rule: Rule,
    guesses: bool,
    seeker: OnceLock<Option<Seeker>>,
    paths: OnceLock<Option<Regex>>,
    lists: Lists,
}

/// Allow-lists, compiled at the first find. Lists that cannot be compiled allow nothing.
struct Lists {
    raw: Vec<RawAllowlist>,
    ready: OnceLock<Vec<Allowlist>>,
}

impl Lists {
    const fn of(raw: Vec<RawAllowlist>) -> Self {
        Self { raw, ready: OnceLock::new() }
    }

    fn allow(&self, found: Candidate<'_>) -> bool {
        let lists = self.ready.get_or_init(|| self.raw.iter().filter_map(Allowlist::of).collect());
        lists.iter().any(|list| list.allows(found))
    }
}

impl Known {
    fn of(mut rule: Rule) -> Self {
        let lists = Lists::of(std::mem::take(&mut rule.allowlists));
        Self { guesses: rule.guesses(), rule, seeker: OnceLock::new(), paths: OnceLock::new(), lists }
    }

    fn is_for(&self, path: Option<&str>) -> bool {
        let paths = || self.paths.get_or_init(|| self.rule.paths()).as_ref();
        self.rule.path.is_none() || path.is_some_and(|path| paths().is_none_or(|paths| paths.is_match(path.as_bytes())))
    }
}

impl Detector {
    fn new(source: &str) -> Option<Self> {
        let Rules { rules, allowlist } = Rules::read(source)?;
        let mut words: Vec<&str> = rules.iter().flat_map(|rule| &rule.keywords).map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        let has = |rule: &Rule, word: &str| rule.keywords.iter().any(|keyword| keyword == word);
        let rules_of = words.iter().map(|word| (0..rules.len()).filter(|at| has(&rules[*at], word)).collect()).collect();
        let keywords = Keywords::new(&words);
        let rules = rules.into_iter().map(Known::of).collect();
        Some(Self { rules, global: Lists::of(vec![allowlist]), keywords, rules_of })
    }

    fn find(&'static self, text: &[u8], path: Option<&str>) -> Vec<Secret> {
        self.search(text, path).conclude()
    }

    fn search<'t>(&'static self, text: &'t [u8], path: Option<&'t str>) -> Search<'t> {
        let mut search = Search { detector: self, text, path, progress: vec![], found: vec![] };
        search.by_path();
        search.progress.resize_with(if text.is_empty() { 0 } else { self.rules.len() }, || None);
        self.keywords.each(text, |keyword, at| self.rules_of[keyword].iter().for_each(|rule| search.at(*rule, at)));
        search
    }
}

/// One text being searched.
struct Search<'t> {
    detector: &'static Detector,
    text: &'t [u8],
    path: Option<&'t str>,
    /// By rule.
    progress: Vec<Option<Box<Progress<'static>>>>,
    /// Rules and where their secrets begin.
    found: Vec<(usize, usize)>,
}

impl Search<'_> {
    /// Rules that need nothing but the file's name.
    fn by_path(&mut self) {
        let rules = self.detector.rules.iter().enumerate();
        let named = rules.filter(|(_, known)| known.rule.regex.is_empty() && known.is_for(self.path));
        let named: Vec<_> = named.map(|(at, _)| (at, usize::MAX)).collect();
        self.found.extend(named);
    }

    /// Whether a keyword of this rule is in the text.
    fn has_met(&self, id: &str) -> bool {
        self.detector.rules.iter().zip(&self.progress).any(|(known, progress)| known.rule.id == id && progress.is_some())
    }

    fn at(&mut self, rule: usize, keyword: usize) {
        let known = &self.detector.rules[rule];
        let Some(mut progress) = self.progress[rule].take().or_else(|| self.begin(known)) else { return };
        if let Some(seeker) = known.seeker.get().and_then(Option::as_ref) {
            while let Some(matched) = seeker.seek(self.text, keyword, &mut progress) {
                let secret = progress.group(known.rule.group).unwrap_or_else(|| matched.clone());
                self.take(rule, matched, secret, &mut progress);
            }
        }
        self.progress[rule] = Some(progress);
    }

    /// The first time that a keyword of a rule is met.
    fn begin(&self, known: &'static Known) -> Option<Box<Progress<'static>>> {
        let seeker = known.seeker.get_or_init(|| Seeker::of(&known.rule)).as_ref()?;
        let mut progress = Box::new(seeker.begin());
        if !known.is_for(self.path) {
            progress.stop();
        }
        Some(progress)
    }

    fn take(&mut self, rule: usize, matched: Range<usize>, secret: Range<usize>, progress: &mut Progress<'_>) {
        if self.is_secret(&self.detector.rules[rule], matched, secret.clone()) {
            self.found.push((rule, secret.start));
            if self.found.iter().filter(|(at, _)| *at == rule).count() == MOST_LINES {
                progress.stop();
            }
        }
    }

    fn is_secret(&self, known: &Known, matched: Range<usize>, secret: Range<usize>) -> bool {
        let begins = if known.guesses { name_start(self.text, matched.start) } else { matched.start };
        let candidate = Candidate {
            secret: &self.text[secret],
            matched: &self.text[begins..matched.end],
            line: line_of(self.text, &matched),
            path: self.path.filter(|_| known.guesses),
        };
        let varied = known.rule.entropy == 0.0 || entropy(candidate.secret) > known.rule.entropy;
        varied && !self.detector.global.allow(candidate) && !known.lists.allow(candidate)
    }

    fn conclude(mut self) -> Vec<Secret> {
        self.found.sort_unstable();
        let mut lines = Lines::of(self.text);
        let mut positions: Vec<usize> = self.found.iter().map(|(_, at)| *at).filter(|at| *at != usize::MAX).collect();
        positions.sort_unstable();
        let numbers: std::collections::BTreeMap<usize, usize> = positions.into_iter().map(|at| (at, lines.number(at))).collect();
        let named = self.found.iter().map(|(rule, at)| (self.detector.rules[*rule].rule.id.as_str(), numbers.get(at).copied()));
        grouped(named.collect())
    }
}

/// Finds by rule; the generic rule's only on lines of which no other rule speaks.
fn grouped(found: Vec<(&'static str, Option<usize>)>) -> Vec<Secret> {
    let told: Vec<_> = found.iter().filter(|(rule, _)| *rule != GENERIC).map(|(_, line)| *line).collect();
    let mut out: Vec<Secret> = vec![];
    for (rule, line) in found.into_iter().filter(|(rule, line)| *rule != GENERIC || !told.contains(line)) {
        match out.last_mut() {
            Some(last) if last.rule == rule => last.lines.extend(line.filter(|line| !last.lines.contains(line))),
            _ => out.push(Secret { rule, lines: line.into_iter().collect() }),
        }
    }
    out
}

/// Where the name begins whose end a rule found, as the rule file's own expressions take it.
fn name_start(text: &[u8], at: usize) -> usize {
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    at - text[..at].iter().rev().take(50).take_while(in_name).count()
}

/// The line that holds a match, cut where it is very long.
fn line_of<'t>(text: &'t [u8], matched: &Range<usize>) -> &'t [u8] {
    const SIDE: usize = 500;
    let (from, to) = (matched.start.saturating_sub(SIDE), matched.end.saturating_add(SIDE).min(text.len()));
    let before = text[from..matched.start].iter().rposition(|byte| *byte == b'\n').map_or(from, |at| from + at + 1);
    let after = text[matched.end..to].iter().position(|byte| *byte == b'\n').map_or(to, |at| matched.end + at);
    &text[before..after]
}

/// Line numbers of positions that only grow.
struct Lines<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
}

impl<'t> Lines<'t> {
    const fn of(text: &'t [u8]) -> Self {
        Self { text, at: 0, line: 1 }
    }

    fn number(&mut self, position: usize) -> usize {
        self.line += self.text[self.at..position].iter().filter(|byte| **byte == b'\n').count();
        self.at = position;
        self.line
    }
}
