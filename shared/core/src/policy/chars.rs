//! Which code points a reader cannot see, or sees in the wrong order.
//!
//! One classification for paths, branches, caller text and file content, so that the rules agree with each other.
//! Look-alike letters of other scripts are deliberately left to reviewers: they are visible.

/// C0, DEL and C1 controls, and the two Unicode line separators, which break diff and log lines as a line feed does.
pub(super) fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Marks that reorder the text around them ("Trojan Source").
pub(super) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Code points that show nothing and that no script or emoji needs.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}' | '\u{200B}'
        | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E00FF}' | '\u{E01F0}'..='\u{E0FFF}')
}

/// Joiners and variation selectors: needed by emoji and by several scripts, so allowed, but dropped when comparing.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{200C}' | '\u{200D}' | '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}'
        | '\u{E0100}'..='\u{E01EF}')
}

/// Noncharacters, and the replacement character that a lossy decoder leaves where the real name was.
pub(super) fn is_not_text(c: char) -> bool {
    let code = u32::from(c);
    c == '\u{FFFD}' || (0xFDD0..=0xFDEF).contains(&code) || code & 0xFFFE == 0xFFFE
}

/// What a hidden character does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// A control.
    Control,
    /// A reordering mark.
    Bidi,
    /// A character that shows nothing.
    Invisible,
}

impl Hidden {
    /// The class of one character, if it is hidden. Line feed, tab and joiners are not.
    pub(super) fn of(c: char) -> Option<Self> {
        match c {
            '\n' | '\t' => None,
            _ if is_control(c) => Some(Self::Control),
            _ if is_bidi(c) => Some(Self::Bidi),
            _ if is_invisible(c) => Some(Self::Invisible),
            _ => None,
        }
    }

    /// The public code of this class.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Control => "control_char",
            Self::Bidi => "bidi_control",
            Self::Invisible => "invisible_char",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_code_and_ordinary_text_has_none() {
        let cases = [
            ('\u{7}', Some("control_char")),
            ('\u{85}', Some("control_char")),
            ('\u{2028}', Some("control_char")),
            ('\u{202E}', Some("bidi_control")),
            ('\u{200B}', Some("invisible_char")),
            ('\u{E0041}', Some("invisible_char")),
            ('\u{200D}', None),
            ('\u{FE0F}', None),
            ('\n', None),
            ('é', None),
            ('ש', None),
        ];
        for (c, expected) in cases {
            assert_eq!(Hidden::of(c).map(Hidden::code), expected, "{c:?}");
        }
    }

    #[test]
    fn the_classes_do_not_overlap() {
        for c in '\0'..=char::MAX {
            let classes = [is_control(c), is_bidi(c), is_invisible(c), is_ignorable(c)];
            assert!(classes.iter().filter(|hit| **hit).count() <= 1, "{c:?}");
        }
    }
}
