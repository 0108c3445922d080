//! What a caller may write into a title, a description, labels and a commit message.
//!
//! Refused, because GitLab or Collie would act on it:
//! 1. hidden characters ([`super::chars`]), and text over the limits below;
//! 2. directives that skip CI: a merge would then rest on no pipeline (INV-2);
//! 3. Collie's own trailer: it marks commits as ours;
//! 4. draft prefixes of a title or of a commit's first line (GitLab turns a request into a draft for either): a draft
//!    is asked for by its flag;
//! 5. more than [`MAX_MENTIONS`] mentions, or one of everybody: each mails people;
//! 6. secrets and forbidden text, as in files ([`super::content`]).
//!
//! Quick actions are not refused but made inert ([`neutralise_quick_actions`]), because a path at the start of a line
//! is ordinary prose. The caller of the forge applies that; inspection leaves the text as it is.

use super::chars::{Hidden, is_not_text};
use super::content::Scanner;
use super::violation::Violation;
use regex::Regex;
use std::sync::LazyLock;

/// GitLab's own limit for titles and labels.
pub const MAX_TITLE_CHARS: usize = 255;
/// The longest label.
pub const MAX_LABEL_CHARS: usize = 255;
/// How many labels one request may carry.
pub const MAX_LABELS: usize = 20;
/// The longest description.
pub const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// The longest commit message.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// How many people one text may mention.
pub const MAX_MENTIONS: usize = 10;

/// GitLab honours `ci` and `skip` in either order with a space, `-` or `_`; the rest is margin for its next version.
static SKIP_CI: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)\[\s*(?:ci[\s_-]*skip|(?:skip|no)[\s_-]*ci)\s*\]").ok());

/// Git allows white space before the colon of a trailer.
static TRAILER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)collie-build\s*:").ok());

/// A title prefix that makes a draft.
static DRAFT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)^\s*(?:draft\s*:|\[\s*draft\s*\]|\(\s*draft\s*\))").ok());

/// What GitLab also takes for a draft, in the first line of a commit.
static AUTOSQUASH: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)(?:fixup|squash|amend)!\s").ok());

/// A pattern that failed to compile hits everything, so that nothing slips through; a test shows that none does.
fn hits(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    LazyLock::force(pattern).as_ref().is_none_or(|regex| regex.is_match(text))
}

/// The texts of one submission.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) labels: &'a [String],
    pub(super) commit_message: Option<&'a str>,
}

/// One text on its way through the rules.
struct Field<'a, 'out> {
    pointer: String,
    text: &'a str,
    out: &'out mut Vec<Violation>,
}

/// Every violation of the text rules.
pub(super) fn inspect(texts: Texts<'_>, scanner: &Scanner, out: &mut Vec<Violation>) {
    Field::new("/title", texts.title, out).title(scanner, texts.commit_message.is_none());
    Field::new("/description", texts.description, out).description(scanner);
    if texts.labels.len() > MAX_LABELS {
        let message = format!("{} labels, more than {MAX_LABELS}", texts.labels.len());
        out.push(Violation::new("/labels", "too_many_labels", message, "send fewer labels"));
    }
    for (index, label) in texts.labels.iter().enumerate() {
        Field::new(format!("/labels/{index}"), label, out).label(scanner);
    }
    if let Some(message) = texts.commit_message {
        Field::new("/commit_message", message, out).commit_message(scanner);
    }
}

impl<'a, 'out> Field<'a, 'out> {
    fn new(pointer: impl Into<String>, text: &'a str, out: &'out mut Vec<Violation>) -> Self {
        Self { pointer: pointer.into(), text, out }
    }

    fn refuse(&mut self, code: &'static str, message: impl Into<String>, hint: &str) {
        self.out.push(Violation::new(self.pointer.as_str(), code, message, hint));
    }

    fn title(mut self, scanner: &Scanner, is_commit_message: bool) {
        self.not_blank();
        self.at_most_chars(MAX_TITLE_CHARS);
        self.one_line();
        self.shown();
        self.not_draft();
        if is_commit_message {
            self.not_autosquash();
        }
        self.directives();
        self.secrets(scanner);
    }

    fn description(mut self, scanner: &Scanner) {
        self.at_most_bytes(MAX_DESCRIPTION_BYTES);
        self.shown();
        self.directives();
        self.secrets(scanner);
    }

    fn commit_message(mut self, scanner: &Scanner) {
        self.not_blank();
        self.at_most_bytes(MAX_MESSAGE_BYTES);
        self.shown();
        self.not_draft();
        self.not_autosquash();
        self.directives();
        self.secrets(scanner);
    }

    fn label(mut self, scanner: &Scanner) {
        self.not_blank();
        self.at_most_chars(MAX_LABEL_CHARS);
        self.one_line();
        self.shown();
        if self.text.contains(',') {
            self.refuse("label_comma", "the label holds a comma, which GitLab splits at", "send two labels");
        }
        self.secrets(scanner);
    }

    fn not_blank(&mut self) {
        if self.text.trim().is_empty() {
            self.refuse("blank_text", "the text is empty or white space", "write something");
        }
    }

    fn at_most_chars(&mut self, limit: usize) {
        let count = self.text.chars().count();
        if count > limit {
            self.refuse("text_too_long", format!("{count} characters, more than {limit}"), "shorten it");
        }
    }

    fn at_most_bytes(&mut self, limit: usize) {
        let count = self.text.len();
        if count > limit {
            self.refuse("text_too_long", format!("{count} bytes, more than {limit}"), "shorten it");
        }
    }

    fn one_line(&mut self) {
        if self.text.contains(['\n', '\t']) {
            self.refuse("control_char", "the text holds a line feed or tab", "write one line without tabs");
        }
    }

    /// The first hidden character; a carriage return is part of a Windows line end.
    fn shown(&mut self) {
        let text = self.text.replace("\r\n", "\n");
        if let Some((c, kind)) = text.chars().find_map(|c| Some((c, Hidden::of(c)?))) {
            let message = format!("the text holds the hidden character U+{:04X}", u32::from(c));
            self.refuse(kind.code(), message, "remove characters a reader cannot see");
        } else if text.chars().any(is_not_text) {
            let message = "the text holds code points that are not text";
            self.refuse("invalid_unicode", message, "send valid UTF-8 without replacement characters");
        }
    }

    fn not_draft(&mut self) {
        let first = self.text.trim_start().lines().next().unwrap_or_default();
        if hits(&DRAFT, first) {
            self.refuse("draft_prefix", "the text starts with a draft prefix", "remove it and set `draft` to true");
        }
    }

    fn not_autosquash(&mut self) {
        let first = self.text.trim_start().lines().next().unwrap_or_default();
        if hits(&AUTOSQUASH, &format!("{first} ")) {
            let message = "the first line asks for a squash, which GitLab takes for a draft";
            self.refuse("draft_prefix", message, "remove `fixup!`, `squash!` or `amend!`");
        }
    }

    fn directives(&mut self) {
        if hits(&SKIP_CI, self.text) {
            self.refuse("skip_ci", "the text holds a directive that skips CI", "remove the directive");
        }
        if hits(&TRAILER, self.text) {
            let message = "the text holds the trailer `Collie-Build:`, which Collie writes itself";
            self.refuse("reserved_trailer", message, "remove the trailer");
        }
        let mentions = Mentions::in_text(self.text);
        if mentions.count > MAX_MENTIONS {
            let message = format!("{} mentions, more than {MAX_MENTIONS}", mentions.count);
            self.refuse("mention_storm", message, "mention fewer people, or write names without @");
        } else if mentions.everybody {
            let message = "the text mentions everybody in the project";
            self.refuse("mention_storm", message, "mention single people");
        }
    }

    fn secrets(&mut self, scanner: &Scanner) {
        for found in scanner.scan(self.text.as_bytes(), None) {
            self.out.push(found.at(&self.pointer));
        }
    }
}

/// The `@name` references of a text.
struct Mentions {
    count: usize,
    everybody: bool,
}

impl Mentions {
    /// Counts every `@` before a name and not inside a word, so that addresses such as `a@b` are none. Code spans are
    /// not parsed: where Markdown and this rule would disagree about one, a mention could hide.
    fn in_text(text: &str) -> Self {
        let mut found = Self { count: 0, everybody: false };
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let inside_word = before.is_alphanumeric() || before == '_';
            let name = &text[at + c.len_utf8()..];
            if c == '@' && !inside_word && name.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                found.count += 1;
                found.everybody |= is_everybody(name);
            }
            before = c;
        }
        found
    }
}

fn is_everybody(name: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let end = name.char_indices().find(|(_, c)| !in_name(*c)).map_or(name.len(), |(at, _)| at);
    name[..end].eq_ignore_ascii_case("all")
}

/// Makes every line that GitLab could run as a quick action inert, by a backslash before its slash.
///
/// Markdown shows `\/close` as `/close`. Lines in code fences are changed as well: what GitLab takes for a fence and
/// what Markdown does differ. GitLab drops carriage returns before it looks, so white space and hidden characters
/// before the slash do not count. Applying it twice changes nothing more.
#[must_use]
pub fn neutralise_quick_actions(text: &str) -> String {
    let mut inert = String::with_capacity(text.len() + 8);
    let mut at_line_start = true;
    for c in text.chars() {
        if at_line_start && c == '/' {
            inert.push('\\');
        }
        inert.push(c);
        at_line_start = match c {
            '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => true,
            _ => at_line_start && is_blank(c),
        };
    }
    inert
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || Hidden::of(c).is_some() || super::chars::is_ignorable(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn codes(texts: Texts<'_>) -> Vec<(String, &'static str)> {
        let mut out = vec![];
        inspect(texts, &Scanner::default(), &mut out);
        out.into_iter().map(|violation| (violation.path, violation.code)).collect()
    }

    fn plain() -> Texts<'static> {
        Texts { title: "Bump openssl", description: "", labels: &[], commit_message: Some("Bump") }
    }

    fn title(title: &str) -> Vec<&'static str> {
        codes(Texts { title, ..plain() }).into_iter().map(|(_, code)| code).collect()
    }

    fn message(message: &str) -> Vec<&'static str> {
        let found = codes(Texts { commit_message: Some(message), ..plain() });
        found.into_iter().map(|(_, code)| code).collect()
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&SKIP_CI, &TRAILER, &DRAFT, &AUTOSQUASH] {
            assert!(LazyLock::force(pattern).is_some());
        }
    }

    #[test]
    fn titles() {
        let long = "é".repeat(256);
        let cases: [(&str, &[&str]); 17] = [
            ("Bump 'openssl' to 3.5.1 👩‍💻", &[]),
            ("", &["blank_text"]),
            (" \u{3000}", &["blank_text"]),
            (&long, &["text_too_long"]),
            ("a\nb", &["control_char"]),
            ("a\rb", &["control_char"]),
            ("a\u{202E}b", &["bidi_control"]),
            ("a\u{200B}b", &["invisible_char"]),
            ("a\u{FFFD}b", &["invalid_unicode"]),
            ("Draft: x", &["draft_prefix"]),
            (" [DRAFT] x", &["draft_prefix"]),
            ("(draft) x", &["draft_prefix"]),
            ("Drafting: x", &[]),
            ("x [CI Skip]", &["skip_ci"]),
            ("x [skip-ci] [no ci]", &["skip_ci"]),
            ("skip ci", &[]),
            ("x collie-BUILD : 1", &["reserved_trailer"]),
        ];
        for (text, expected) in cases {
            assert_eq!(title(text), expected, "{text:?}");
        }
        assert!(title(&"é".repeat(255)).is_empty());
    }

    #[test]
    fn commit_messages() {
        assert!(message("Bump\r\n\r\nWhy: a\tb\n").is_empty());
        assert_eq!(message("\n draft: x"), ["draft_prefix"]);
        assert_eq!(message("fixup! x"), ["draft_prefix"]);
        assert!(message("x\n\nfixup! is git's word").is_empty());
        assert_eq!(message("x\n\nCollie-Build: k/1/1"), ["reserved_trailer"]);
        assert_eq!(message("x\n\n[ skip_ci ]"), ["skip_ci"]);
        assert_eq!(message(&"x".repeat(MAX_MESSAGE_BYTES + 1)), ["text_too_long"]);
        assert_eq!(message(" "), ["blank_text"]);
    }

    #[test]
    fn a_title_that_becomes_the_commit_message_is_held_to_its_rules() {
        let texts = Texts { title: "squash! x", commit_message: None, ..plain() };
        assert_eq!(codes(texts), [("/title".to_owned(), "draft_prefix")]);
    }

    #[test]
    fn labels() {
        let labels: Vec<_> = ["ok", "a,b", "", "a\u{2066}b"].map(str::to_owned).into();
        let expected = [("/labels/1", "label_comma"), ("/labels/2", "blank_text"), ("/labels/3", "bidi_control")];
        let found = codes(Texts { labels: &labels, ..plain() });
        assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code)));
        let many = vec!["x".to_owned(); MAX_LABELS + 1];
        assert_eq!(codes(Texts { labels: &many, ..plain() }), [("/labels".to_owned(), "too_many_labels")]);
    }

    #[test]
    fn mentions() {
        let described = |description: &str| codes(Texts { description, ..plain() }).len();
        assert_eq!(described(&"@bob ".repeat(10)), 0);
        assert_eq!(described(&"@bob ".repeat(11)), 1);
        assert_eq!(described(&"bob@example.com ".repeat(11)), 0);
        assert_eq!(described("cc @All"), 1);
        assert_eq!(described("cc @all-stars, @allison"), 0);
    }

    #[test]
    fn a_secret_in_a_text_is_refused_without_being_shown() {
        let secret = format!("glpat-{}", "a1B2c3D4e5F6g7H8i9J0");
        let mut out = vec![];
        inspect(Texts { description: &secret, ..plain() }, &Scanner::default(), &mut out);
        assert_eq!(out[0].path, "/description");
        assert_eq!(out[0].code, "secret");
        assert!(!format!("{out:?}").contains(&secret));
    }

    #[test]
    fn quick_actions_become_inert() {
        let cases = [
            ("/close", "\\/close"),
            ("a /close", "a /close"),
            ("a\n  /merge\n\t/assign @me", "a\n  \\/merge\n\t\\/assign @me"),
            ("```\n/close\n```", "```\n\\/close\n```"),
            ("a\n\r/close", "a\n\r\\/close"),
            ("\u{200B}/close", "\u{200B}\\/close"),
            ("\\/close", "\\/close"),
            ("//", "\\//"),
        ];
        for (text, inert) in cases {
            assert_eq!(neutralise_quick_actions(text), inert);
        }
    }

    proptest! {
        #[test]
        fn neutralising_twice_is_neutralising_once(text in "(/|\\\\|[ \t\r\n]|[a-z\u{200B}]){0,20}") {
            let once = neutralise_quick_actions(&text);
            prop_assert_eq!(neutralise_quick_actions(&once), once);
        }

        #[test]
        fn no_line_starts_with_a_slash_and_only_backslashes_are_added(text in any::<String>(), with in "[/\n\r ]{0,9}") {
            let text = with + &text;
            let inert = neutralise_quick_actions(&text);
            let seen_by_gitlab = inert.replace('\r', "");
            prop_assert!(seen_by_gitlab.split('\n').all(|line| !line.trim_start().starts_with('/')));
            prop_assert!(inert.split(['\n', '\r']).all(|line| !line.trim_start().starts_with('/')));
            let slashes = |text: &str| text.replace('\\', "");
            prop_assert_eq!(slashes(&inert), slashes(&text));
        }
    }
}
