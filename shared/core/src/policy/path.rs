//! Whether a path may be used at all, and the key two spellings of one file share.
//!
//! **Form.** The first failing check wins, in the order of [`CHECKS`]. One spelling per file: nothing is cleaned up, an
//! unclean path is refused, because a server that accepts `./x` makes every comparison of strings miss (CWE-22, CWE-41).
//!
//! **Key.** [`Key`] is what paths and patterns are compared by: joiners dropped, NFKC, case fold, trailing dots and
//! spaces dropped per segment; a second form also drops everything after `:` (NTFS streams). The bytes sent to GitLab
//! are the caller's, never the key's. The fold also takes dotless ı for i: a name refused too many, none too few.
//!
//! Deliberately left out: what only the repository knows (symlinks, submodules, existence), and look-alike letters of
//! other scripts, which are other files and are left to reviewers.

use super::chars::{is_bidi, is_control, is_ignorable, is_invisible, is_not_text};
use crate::files::Verb;
use std::fmt;
use unicode_normalization::UnicodeNormalization as _;

/// The longest path in bytes; longer ones cannot be opened on Linux.
pub const MAX_PATH_BYTES: usize = 4096;
/// The longest segment in bytes; longer ones cannot be checked out.
pub const MAX_SEGMENT_BYTES: usize = 255;

/// Why an action's verb or one of its paths is refused before any pattern is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reject {
    /// The verb is none of the five.
    InvalidAction,
    /// A move without a source.
    MissingPreviousPath,
    /// A source on a verb that has none.
    UnexpectedPreviousPath,
    /// A move onto itself.
    NoopMove,
    /// No characters at all.
    EmptyPath,
    /// Noncharacters, or the traces of a lossy decoder.
    InvalidUnicode,
    /// A control character or line separator.
    ControlChar,
    /// A mark that reorders text.
    BidiControl,
    /// A character, or a whole segment, that shows nothing.
    InvisibleChar,
    /// A backslash: a separator on Windows.
    Backslash,
    /// A leading slash or a drive letter.
    AbsolutePath,
    /// A trailing slash.
    TrailingSlash,
    /// Over [`MAX_PATH_BYTES`].
    PathTooLong,
    /// Two slashes in a row.
    EmptySegment,
    /// A `..` segment.
    TraversalSegment,
    /// A `.` segment.
    DotSegment,
    /// `%2f` or `%5c`.
    EncodedSeparator,
    /// A separator that appears under NFKC.
    UnicodeCompatSeparator,
    /// A segment that becomes dots under NFKC.
    UnicodeCompatDots,
    /// A segment over [`MAX_SEGMENT_BYTES`].
    SegmentTooLong,
    /// A segment that starts with white space.
    LeadingSpace,
    /// A segment that ends with white space or a dot.
    TrailingSpaceOrDot,
    /// A segment that some file system takes for `.git`.
    DotgitSegment,
}

impl Reject {
    /// Every reason.
    pub const ALL: [Self; 23] = [
        Self::InvalidAction,
        Self::MissingPreviousPath,
        Self::UnexpectedPreviousPath,
        Self::NoopMove,
        Self::EmptyPath,
        Self::InvalidUnicode,
        Self::ControlChar,
        Self::BidiControl,
        Self::InvisibleChar,
        Self::Backslash,
        Self::AbsolutePath,
        Self::TrailingSlash,
        Self::PathTooLong,
        Self::EmptySegment,
        Self::TraversalSegment,
        Self::DotSegment,
        Self::EncodedSeparator,
        Self::UnicodeCompatSeparator,
        Self::UnicodeCompatDots,
        Self::SegmentTooLong,
        Self::LeadingSpace,
        Self::TrailingSpaceOrDot,
        Self::DotgitSegment,
    ];

    /// The stable code of this reason.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidAction => "invalid_action",
            Self::MissingPreviousPath => "missing_previous_path",
            Self::UnexpectedPreviousPath => "unexpected_previous_path",
            Self::NoopMove => "noop_move",
            Self::EmptyPath => "empty_path",
            Self::InvalidUnicode => "invalid_unicode",
            Self::ControlChar => "control_char",
            Self::BidiControl => "bidi_control",
            Self::InvisibleChar => "invisible_char",
            Self::Backslash => "backslash",
            Self::AbsolutePath => "absolute_path",
            Self::TrailingSlash => "trailing_slash",
            Self::PathTooLong => "path_too_long",
            Self::EmptySegment => "empty_segment",
            Self::TraversalSegment => "traversal_segment",
            Self::DotSegment => "dot_segment",
            Self::EncodedSeparator => "encoded_separator",
            Self::UnicodeCompatSeparator => "unicode_compat_separator",
            Self::UnicodeCompatDots => "unicode_compat_dots",
            Self::SegmentTooLong => "segment_too_long",
            Self::LeadingSpace => "leading_space",
            Self::TrailingSpaceOrDot => "trailing_space_or_dot",
            Self::DotgitSegment => "dotgit_segment",
        }
    }

    /// What is wrong, as the end of a sentence that starts with the path.
    #[must_use]
    pub const fn problem(self) -> &'static str {
        match self {
            Self::InvalidAction => "has an unknown action",
            Self::MissingPreviousPath => "is the target of a move without previous_path",
            Self::UnexpectedPreviousPath => "is a previous_path on an action that is not a move",
            Self::NoopMove => "is both source and target of the move",
            Self::EmptyPath => "is empty",
            Self::InvalidUnicode => "holds code points that are not text",
            Self::ControlChar => "holds a control character",
            Self::BidiControl => "holds a character that reorders text",
            Self::InvisibleChar => "holds an invisible character",
            Self::Backslash => "holds a backslash",
            Self::AbsolutePath => "is absolute",
            Self::TrailingSlash => "ends with a slash",
            Self::PathTooLong => "is longer than 4096 bytes",
            Self::EmptySegment => "has an empty segment",
            Self::TraversalSegment => "has a `..` segment",
            Self::DotSegment => "has a `.` segment",
            Self::EncodedSeparator => "holds a percent-encoded separator",
            Self::UnicodeCompatSeparator => "holds a character that normalises to a separator",
            Self::UnicodeCompatDots => "has a segment that normalises to dots",
            Self::SegmentTooLong => "has a segment longer than 255 bytes",
            Self::LeadingSpace => "has a segment that starts with white space",
            Self::TrailingSpaceOrDot => "has a segment that ends with white space or a dot",
            Self::DotgitSegment => "has a segment that some file systems take for `.git`",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::InvalidAction => "use create, update, delete, move or chmod, in lower case",
            Self::MissingPreviousPath => "name the file to move in previous_path",
            Self::UnexpectedPreviousPath => "leave previous_path out, or use the action move",
            Self::NoopMove => "give the move another target, or use update",
            _ => "write the path from the repository's root with single slashes and plain, visible names",
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

type Check = (fn(&str) -> bool, Reject);

/// The form checks in their binding order.
const CHECKS: [Check; 19] = [
    (|p| p.is_empty(), Reject::EmptyPath),
    (|p| p.chars().any(is_not_text), Reject::InvalidUnicode),
    (|p| p.chars().any(is_control), Reject::ControlChar),
    (|p| p.chars().any(is_bidi), Reject::BidiControl),
    (has_invisible, Reject::InvisibleChar),
    (|p| p.contains('\\'), Reject::Backslash),
    (is_absolute, Reject::AbsolutePath),
    (|p| p.ends_with('/'), Reject::TrailingSlash),
    (|p| p.len() > MAX_PATH_BYTES, Reject::PathTooLong),
    (|p| p.split('/').any(str::is_empty), Reject::EmptySegment),
    (|p| p.split('/').any(|s| s == ".."), Reject::TraversalSegment),
    (|p| p.split('/').any(|s| s == "."), Reject::DotSegment),
    (has_encoded_separator, Reject::EncodedSeparator),
    (gains_separator, Reject::UnicodeCompatSeparator),
    (|p| p.split('/').any(becomes_dots), Reject::UnicodeCompatDots),
    (|p| p.split('/').any(|s| s.len() > MAX_SEGMENT_BYTES), Reject::SegmentTooLong),
    (|p| p.split('/').any(starts_blank), Reject::LeadingSpace),
    (|p| p.split('/').any(ends_blank_or_dot), Reject::TrailingSpaceOrDot),
    (|p| p.split('/').any(is_dotgit), Reject::DotgitSegment),
];

/// Checks the form of one path.
///
/// # Errors
/// The first reason, in the order of the module's list.
pub fn check_form(path: &str) -> Result<(), Reject> {
    let failed = CHECKS.iter().find(|(fails, _)| fails(path));
    failed.map_or(Ok(()), |(_, reason)| Err(*reason))
}

/// Reads a verb as callers write it. Case counts.
///
/// # Errors
/// [`Reject::InvalidAction`] for anything but the five words.
pub fn parse_verb(word: &str) -> Result<Verb, Reject> {
    let known = Verb::ALL.into_iter().find(|verb| verb.as_str() == word);
    known.ok_or(Reject::InvalidAction)
}

/// Checks that a source is there for a move, and only there, and differs from the target.
///
/// # Errors
/// What is wrong with `previous_path`.
pub fn check_previous(verb: Verb, path: &str, previous: Option<&str>) -> Result<(), Reject> {
    match (verb, previous) {
        (Verb::Move, None) => Err(Reject::MissingPreviousPath),
        (Verb::Move, Some(source)) if source == path => Err(Reject::NoopMove),
        (Verb::Move, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(Reject::UnexpectedPreviousPath),
    }
}

/// A segment of joiners alone shows nothing either.
fn has_invisible(path: &str) -> bool {
    let unseen = |segment: &str| !segment.is_empty() && segment.chars().all(is_ignorable);
    path.chars().any(is_invisible) || path.split('/').any(unseen)
}

/// A leading slash, or a drive prefix as git sees it on Windows: a letter and a colon.
fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic())
}

fn has_encoded_separator(path: &str) -> bool {
    path.as_bytes().windows(3).any(|w| w.eq_ignore_ascii_case(b"%2f") || w.eq_ignore_ascii_case(b"%5c"))
}

/// Only called where the path itself holds no backslash.
fn gains_separator(path: &str) -> bool {
    !path.is_ascii() && path.split('/').any(|segment| segment.nfkc().any(|c| c == '/' || c == '\\'))
}

/// Dots that were not plain dots before; plain ones are left to the check for trailing dots.
fn becomes_dots(segment: &str) -> bool {
    let plain = segment.bytes().all(|b| b == b'.' || b == b' ');
    let folded = fold(segment);
    !plain && folded.contains('.') && folded.chars().all(|c| c == '.' || c == ' ')
}

fn starts_blank(segment: &str) -> bool {
    segment.trim_start_matches(is_ignorable).starts_with(char::is_whitespace)
}

/// `.git.` and `.git ` have a reason of their own, which says more.
fn ends_blank_or_dot(segment: &str) -> bool {
    let end = segment.trim_end_matches(is_ignorable);
    end.ends_with(|c: char| c == '.' || c.is_whitespace()) && !is_dotgit(segment)
}

/// `.git` in any spelling a file system takes for it: case, trailing dots and spaces, streams, joiners, short names.
fn is_dotgit(segment: &str) -> bool {
    let folded = fold(segment);
    let name = cut_stream(&folded);
    let short = name.strip_prefix("git~");
    name == ".git" || short.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Joiners dropped, NFKC, case fold; normalised again because folding can undo it. Lower, upper, lower is what full case
/// folding does with the letters that have no single partner (ẞ and ß both become `ss`).
fn fold(segment: &str) -> String {
    if segment.is_ascii() {
        return segment.to_ascii_lowercase();
    }
    let visible = segment.chars().filter(|c| !is_ignorable(*c)).nfkc();
    let folded = visible.flat_map(char::to_lowercase).flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    folded.nfkc().filter(|c| !is_ignorable(*c)).collect()
}

/// What is left of a folded segment where file systems drop streams, trailing dots and trailing spaces.
fn cut_stream(folded: &str) -> &str {
    let name = folded.split(':').next().unwrap_or_default();
    trim_tail(name)
}

fn trim_tail(folded: &str) -> &str {
    folded.trim_end_matches(['.', ' '])
}

/// The key of one segment of a path or pattern.
pub(super) fn segment_key(segment: &str) -> String {
    trim_tail(&fold(segment)).to_owned()
}

/// What two spellings of one file share. Computed for comparison only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    full: String,
    cut: Option<String>,
}

impl Key {
    /// The key of a path; total, but only meaningful for a path of good form.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let folded: Vec<_> = path.split('/').map(fold).collect();
        let join = |part: fn(&str) -> &str| folded.iter().map(|s| part(s)).collect::<Vec<_>>().join("/");
        let cut = folded.iter().any(|s| s.contains(':')).then(|| join(cut_stream));
        Self { full: join(trim_tail), cut }
    }

    /// The whole key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// Every form that is compared with patterns: the whole key, and the one without streams where they differ.
    pub fn forms(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.full.as_str()).chain(self.cut.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_failing_check_names_the_reason() {
        let long = "d/".repeat(2048) + "x";
        let cases = [
            ("", Reject::EmptyPath),
            ("a\u{FFFD}\n", Reject::InvalidUnicode),
            ("a\u{FFFF}", Reject::InvalidUnicode),
            ("a\n\u{202E}", Reject::ControlChar),
            ("a\u{2028}b", Reject::ControlChar),
            ("\u{202E}\u{200B}", Reject::BidiControl),
            ("a\u{200B}\\", Reject::InvisibleChar),
            ("a/\u{200D}/b", Reject::InvisibleChar),
            ("/a\\", Reject::Backslash),
            ("/a/", Reject::AbsolutePath),
            ("c:x", Reject::AbsolutePath),
            ("a//", Reject::TrailingSlash),
            (long.as_str(), Reject::PathTooLong),
            ("a//../.", Reject::EmptySegment),
            ("./../%2f", Reject::TraversalSegment),
            ("./%2f", Reject::DotSegment),
            ("a%2Fb", Reject::EncodedSeparator),
            ("a%5cb", Reject::EncodedSeparator),
            ("a／b", Reject::UnicodeCompatSeparator),
            ("℀", Reject::UnicodeCompatSeparator),
            ("a＼b", Reject::UnicodeCompatSeparator),
            ("‥/b", Reject::UnicodeCompatDots),
            (".\u{200D}./b", Reject::UnicodeCompatDots),
            ("a/ b ", Reject::LeadingSpace),
            ("a/\u{3000}b", Reject::LeadingSpace),
            ("a/b\u{A0}", Reject::TrailingSpaceOrDot),
            ("a/b.\u{200D}", Reject::TrailingSpaceOrDot),
            ("...", Reject::TrailingSpaceOrDot),
            ("a./.git./b", Reject::TrailingSpaceOrDot),
            (".git./b", Reject::DotgitSegment),
            (".GIT", Reject::DotgitSegment),
            ("a/GIT~1/b", Reject::DotgitSegment),
            (".git::$INDEX_ALLOCATION/x", Reject::DotgitSegment),
            ("．git/x", Reject::DotgitSegment),
        ];
        for (path, reason) in cases {
            assert_eq!(check_form(path), Err(reason), "{path:?}");
        }
    }

    #[test]
    fn ordinary_names_pass() {
        for path in ["a", ".gitignore", "git~x", "a…b", "to be continued…", "❤️.md", "a:b", "a%20b", "a/b.c/d e"] {
            let expected = if path == "a:b" { Err(Reject::AbsolutePath) } else { Ok(()) };
            assert_eq!(check_form(path), expected, "{path:?}");
        }
        assert_eq!(check_form("docs/a:b"), Ok(()));
    }

    #[test]
    fn spellings_of_one_file_share_a_key() {
        let pairs = [
            ("A/B", "a/b"),
            ("straße", "STRASSE"),
            ("straße", "STRAẞE"),
            ("u\u{308}ber", "ÜBER"),
            ("u\u{200D}\u{308}ber", "über"),
            ("a. /b", "a/b"),
            ("．x", ".x"),
            ("ΟΔΟΣ", "οδος"),
        ];
        for (a, b) in pairs {
            assert_eq!(Key::of(a), Key::of(b), "{a:?} {b:?}");
        }
        let stream = Key::of("a/b.yml:x/c");
        assert_eq!(stream.forms().collect::<Vec<_>>(), ["a/b.yml:x/c", "a/b.yml/c"]);
    }

    #[test]
    fn folding_one_character_twice_is_folding_it_once() {
        for c in '\0'..=char::MAX {
            let once = fold(c.encode_utf8(&mut [0; 4]));
            assert_eq!(fold(&once), once, "{c:?}");
        }
    }

    #[test]
    fn only_known_letters_fold_to_ascii_ones_beside_full_width_and_styled_forms() {
        let foreign = "іаеосрхᎪ".chars().filter(|c| fold(&c.to_string()).is_ascii());
        assert_eq!(foreign.collect::<String>(), "");
    }

    proptest! {
        #[test]
        fn the_key_of_a_key_is_itself(path in any::<String>()) {
            let key = Key::of(&path);
            let again = Key::of(key.as_str());
            prop_assert_eq!(again.as_str(), key.as_str());
        }

        #[test]
        fn a_good_path_has_a_key_of_good_segments(path in "[ -~é\u{200D}．…‥]{1,12}") {
            prop_assume!(check_form(&path).is_ok());
            for segment in Key::of(&path).as_str().split('/') {
                prop_assert!(!segment.is_empty() && segment != "." && segment != "..");
            }
        }
    }
}
