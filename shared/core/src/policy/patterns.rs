//! Block patterns, as an operator writes them.
//!
//! * A pattern is compared through the same key as a path ([`super::path`]): case, spelling and joiners do not matter.
//! * `*` stays inside a segment; `**` as a segment crosses any number of them, none included; `**.yml` is `**/*.yml`.
//! * A slash other than at the end anchors the pattern at the root, as does a leading `/` or `./`; a pattern without
//!   one hits at any depth (as in gitignore files).
//! * A match covers everything below it, and `a/**` covers `a` itself: a file in place of a protected folder removes it.
//! * `?`, brackets and braces are literal. There is no negation: `allow` is a list of its own.
//!
//! A pattern that could never match is refused when it is read, because a silently dead rule protects nothing.
//! Matching takes time linear in the path for a given pattern.

use super::chars::{Hidden, is_not_text};
use super::path::segment_key;
use super::violation::quote;

/// Why a pattern is refused when configuration loads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {}: {reason}", quote(.pattern))]
pub struct Error {
    /// The pattern as written.
    pub pattern: String,
    /// Why it cannot work.
    pub reason: &'static str,
}

/// Text with `*` wildcards that match any run of characters, split at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wildcard(Vec<String>);

impl Wildcard {
    pub(super) fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_owned).collect())
    }

    /// The first piece starts the text, the last ends it, the others follow each other in between.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        let Some(mut tail) = text.strip_prefix(first.as_str()) else { return false };
        let Some((last, middle)) = rest.split_last() else { return tail.is_empty() };
        for piece in middle {
            let Some((_, after)) = tail.split_once(piece.as_str()) else { return false };
            tail = after;
        }
        tail.ends_with(last.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    AnyDepth,
    Segment(Wildcard),
}

/// One block pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    source: String,
    parts: Vec<Part>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When the pattern could never match a path of good form.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let refuse = |reason| Error { pattern: source.to_owned(), reason };
        if source.chars().any(|c| is_not_text(c) || c == '\t' || c == '\n' || Hidden::of(c).is_some()) {
            return Err(refuse("holds a hidden character, which no accepted path has"));
        }
        if source.contains('\\') {
            return Err(refuse("holds a backslash: separate with slashes; there is no escape"));
        }
        let parts = parse_parts(source).map_err(refuse)?;
        Ok(Self { source: source.to_owned(), parts })
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether one form of a path's key, or a folder above it, is hit.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        let mut alive = vec![false; self.parts.len() + 1];
        self.reach(&mut alive, 0);
        alive[self.parts.len()] || key.split('/').any(|segment| self.step(&mut alive, segment))
    }

    /// Marks a position, and those behind it that need no segment.
    fn reach(&self, alive: &mut [bool], from: usize) {
        alive[from] = true;
        for at in from..self.parts.len() {
            if self.parts[at] != Part::AnyDepth {
                return;
            }
            alive[at + 1] = true;
        }
    }

    /// Consumes a segment; true once the whole pattern is used up. Positions are looked at from the end, so that each
    /// is read before an earlier one marks it for the next segment.
    fn step(&self, alive: &mut [bool], segment: &str) -> bool {
        for at in (0..self.parts.len()).rev() {
            let was_alive = std::mem::take(&mut alive[at]);
            match &self.parts[at] {
                Part::AnyDepth if was_alive => self.reach(alive, at),
                Part::Segment(wildcard) if was_alive && wildcard.matches(segment) => {
                    self.reach(alive, at + 1);
                }
                _ => {}
            }
        }
        alive[self.parts.len()]
    }
}

fn parse_parts(source: &str) -> Result<Vec<Part>, &'static str> {
    let body = source.strip_suffix('/').unwrap_or(source);
    let anchored = body.contains('/');
    let body = body.strip_prefix("./").or_else(|| body.strip_prefix('/')).unwrap_or(body);
    if body.is_empty() {
        return Err("names nothing");
    }
    let mut parts = if anchored { vec![] } else { vec![Part::AnyDepth] };
    for segment in body.split('/') {
        push_segment(&mut parts, segment)?;
    }
    Ok(parts)
}

fn push_segment(parts: &mut Vec<Part>, segment: &str) -> Result<(), &'static str> {
    if segment.is_empty() {
        return Err("has an empty segment");
    }
    let deep = segment.starts_with("**");
    if deep && parts.last() != Some(&Part::AnyDepth) {
        parts.push(Part::AnyDepth);
    }
    if segment == "**" {
        return Ok(());
    }
    let key = segment_key(segment);
    if key.is_empty() || segment == "." || segment == ".." {
        return Err("has a segment of dots or spaces, which no accepted path has");
    }
    parts.push(Part::Segment(Wildcard::new(&key)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::path::Key;
    use proptest::prelude::*;

    fn hits(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(Key::of(path).as_str())
    }

    #[test]
    fn patterns_hit_what_they_say() {
        let cases = [
            ("secrets/", "a/secrets/x", true),
            ("secrets", "secretsX", false),
            ("/secrets", "a/secrets", false),
            ("./secrets", "secrets/x", true),
            ("./secrets", "a/secrets", false),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/b/c", false),
            ("a/**/c", "a/b/b/c/d", true),
            ("a/**/c", "a/c", true),
            ("a/**/b/**/c", "a/x/b/y/b/z/c", true),
            ("a/**/b/**/c", "a/x/b/y/z", false),
            ("**", "anything/at/all", true),
            ("a/**.yml", "a/b/c.yml", true),
            ("a/**.yml", "a/c.yml", true),
            ("*.p*m", "x/key.pem", true),
            ("*.p*m", "x/key.pemx", false),
            ("ab*ba", "aba", false),
            ("a?c", "abc", false),
            ("{a,b}", "a", false),
            ("ſecret", "SECRET/x", true),
            ("docs/*", "docs", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(hits(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_match_is_refused() {
        for dead in ["", "/", "./", "a//b", "a/../b", "a/./b", "..", "...", "a\\b", "a\u{200B}b", "a\n"] {
            assert!(Pattern::parse(dead).is_err(), "{dead:?}");
        }
        let error = Pattern::parse("a//b").unwrap_err();
        assert_eq!(error.to_string(), "pattern \"a//b\": has an empty segment");
    }

    proptest! {
        #[test]
        fn a_literal_pattern_hits_its_own_path_and_all_below(
            path in "[a-z]{1,3}(/[a-z]{1,3}){0,3}", below in "(/[a-z]{1,3}){0,2}",
        ) {
            let pattern = format!("/{path}");
            let deeper = format!("{path}{below}");
            let sibling = format!("{path}x");
            prop_assert!(hits(&pattern, &deeper));
            prop_assert!(!hits(&pattern, &sibling));
        }

        #[test]
        fn wildcards_agree_with_the_obvious_definition(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            prop_assert_eq!(Wildcard::new(&pattern).matches(&text), naive(pattern.as_bytes(), text.as_bytes()));
        }
    }

    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            Some((byte, rest)) => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }
}
