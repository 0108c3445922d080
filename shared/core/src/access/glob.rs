//! Globs over project paths, branches, labels and claims: `*` is any text without a slash, `**` is any text. Everything else
//! stands for itself, case included, and the whole text has to match.

use serde::{Serialize, Serializer};

/// One glob, as an operator writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    source: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Char(char),
    /// `*`
    Within,
    /// `**`
    Across,
}

impl Glob {
    /// Reads a glob. Every text is one.
    #[must_use]
    pub fn new(source: &str) -> Self {
        let mut parts = Vec::new();
        for c in source.chars() {
            match (c, parts.last()) {
                ('*', Some(Part::Within | Part::Across)) => drop(parts.splice(parts.len() - 1.., [Part::Across])),
                ('*', _) => parts.push(Part::Within),
                (c, _) => parts.push(Part::Char(c)),
            }
        }
        Self { source: source.to_owned(), parts }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether it stands for more than itself.
    #[must_use]
    pub fn is_wild(&self) -> bool {
        self.source.contains('*')
    }

    /// Whether it is the glob that matches every text.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.parts == [Part::Across]
    }

    /// Whether the whole text matches. Takes time linear in the text for a given glob: all positions move on together.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut alive = vec![false; self.parts.len() + 1];
        self.reach(&mut alive, 0);
        for c in text.chars() {
            let mut next = vec![false; alive.len()];
            for (at, part) in self.parts.iter().enumerate().filter(|(at, _)| alive[*at]) {
                match part {
                    Part::Char(own) if *own == c => self.reach(&mut next, at + 1),
                    Part::Within if c != '/' => self.reach(&mut next, at),
                    Part::Across => self.reach(&mut next, at),
                    _ => {}
                }
            }
            alive = next;
        }
        alive[self.parts.len()]
    }

    /// Marks a position, and those behind it that wildcards reach with no text.
    fn reach(&self, alive: &mut [bool], from: usize) {
        let wild = self.parts[from..].iter().take_while(|part| !matches!(part, Part::Char(_))).count();
        alive[from..=from + wild].fill(true);
    }
}

impl Serialize for Glob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

/// A list of globs, of which one has to match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Globs(Vec<Glob>);

impl Globs {
    /// The globs of these texts.
    pub fn new<T: AsRef<str>>(sources: impl IntoIterator<Item = T>) -> Self {
        Self(sources.into_iter().map(|source| Glob::new(source.as_ref())).collect())
    }

    /// Everything.
    #[must_use]
    pub fn any() -> Self {
        Self::new(["**"])
    }

    /// Whether one of them matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|glob| glob.matches(text))
    }

    /// Whether one of them matches every text.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.iter().any(Glob::is_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stays_between_slashes_and_two_do_not() {
        let cases = [
            ("main", "main", true),
            ("main", "MAIN", false),
            ("main", "main2", false),
            ("", "", true),
            ("*", "", true),
            ("*", "main", true),
            ("*", "bot/x", false),
            ("bot/*", "bot/x", true),
            ("bot/*", "bot/x/y", false),
            ("bot/*", "bot/", true),
            ("bot/*", "robot/x", false),
            ("bot/**", "bot/x/y", true),
            ("bot/**", "bot", false),
            ("**", "a/b/c", true),
            ("***", "a/b", true),
            ("a**z", "a/y/z", true),
            ("a*z", "a/z", false),
            ("*/app", "group/app", true),
            ("*/app", "group/sub/app", false),
            ("**/app", "group/sub/app", true),
            ("release-*.x", "release-1.2.x", true),
            ("release-*.x", "release-1/2.x", false),
            ("?[a]", "?[a]", true),
            ("?", "a", false),
            ("ü*", "üx", true),
        ];
        for (glob, text, matches) in cases {
            assert_eq!(Glob::new(glob).matches(text), matches, "{glob} on {text}");
        }
    }

    #[test]
    fn many_stars_on_a_long_text_end_soon() {
        let glob = Glob::new(&"a*".repeat(100));
        assert!(!glob.matches(&format!("{}/", "a".repeat(5000))));
    }
}
