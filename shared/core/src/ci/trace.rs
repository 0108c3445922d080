//! A job's log as patterns see it.
//!
//! In this order: 1. CRLF is a line break. 2. Section markers go. 3. The runner's 32-byte time stamp goes; one that ends in `+`
//! glues its line to the line before. 4. Terminal control sequences go. 5. Of a line that was rewritten by carriage returns the
//! last piece that holds something counts. 6. Bytes that are no UTF-8 become `U+FFFD`, last, so that a letter that the runner cut
//! in two is one letter again. 7. Empty lines at the end go.
//!
//! Each byte is looked at a bounded number of times, whatever the log holds. Nothing is inferred: a log that lacks its end is
//! merely not complete.

/// How much of a log is read, from its end.
pub const MAX_BYTES: usize = 4 << 20;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// How the last line of a log begins to which nothing will be added.
const ENDINGS: [&str; 3] = ["ERROR: Job failed", "Job succeeded", "Job execution will continue but no more output"];

/// A log, cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    text: String,
    complete: bool,
}

impl Trace {
    /// Cleans up the end of a log. `cut` says that there was more before it; the line that was cut open is left out, unless it is
    /// the only one. `settled` says that the job ended so long ago that nothing will be added.
    #[must_use]
    pub fn of_tail(raw: &[u8], cut: bool, settled: bool) -> Self {
        let from = raw.len().saturating_sub(MAX_BYTES);
        let tail = if cut || from > 0 { without_open_line(&raw[from..]) } else { raw };
        let text = clean(tail);
        let last = text.rsplit('\n').next().unwrap_or_default();
        let complete = settled || ENDINGS.iter().any(|ending| last.starts_with(ending));
        Self { text, complete }
    }

    /// Cleans up a whole log to which nothing will be added.
    #[must_use]
    pub fn settled(raw: &[u8]) -> Self {
        Self::of_tail(raw, false, true)
    }

    /// The last lines; all of them where there are fewer.
    #[must_use]
    pub fn tail(&self, lines: usize) -> &str {
        match self.text.rmatch_indices('\n').nth(lines.saturating_sub(1)) {
            Some((at, _)) if lines > 0 => &self.text[at + 1..],
            _ if lines == 0 => "",
            _ => &self.text,
        }
    }

    /// Whether it holds nothing, so that nothing matches it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether nothing will be added to it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

fn without_open_line(raw: &[u8]) -> &[u8] {
    let after = raw.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
    after.filter(|&after| after < raw.len()).map_or(raw, |after| &raw[after..])
}

fn clean(raw: &[u8]) -> String {
    let mut text = String::with_capacity(raw.len());
    let (mut line, mut piece, mut is_open) = (Vec::new(), Vec::new(), false);
    for physical in raw.split(|&byte| byte == b'\n') {
        piece.clear();
        drop_markers(physical.strip_suffix(b"\r").unwrap_or(physical), &mut piece);
        let (body, is_glued) = without_stamp(&piece);
        if is_open && !is_glued {
            finish(&mut line, &mut text);
        }
        line.extend_from_slice(body);
        is_open = true;
    }
    finish(&mut line, &mut text);
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// Adds a line, as a terminal would leave it, to the text.
fn finish(line: &mut Vec<u8>, text: &mut String) {
    drop_controls(line);
    let shown = line.rsplit(|&byte| byte == b'\r').find(|piece| !piece.is_empty()).unwrap_or_default();
    text.push_str(&String::from_utf8_lossy(shown));
    text.push('\n');
    line.clear();
}

/// Copies a line without its section markers.
fn drop_markers(line: &[u8], into: &mut Vec<u8>) {
    let mut rest = line;
    while let Some(at) = rest.iter().position(|&byte| byte == b's') {
        let (before, from) = rest.split_at(at);
        into.extend_from_slice(before);
        touched(at);
        match marker(from) {
            Some(length) => rest = &from[length..],
            None => {
                into.push(b's');
                rest = &from[1..];
            }
        }
    }
    into.extend_from_slice(rest);
    touched(rest.len());
}

/// How long the section marker is with which a text begins: `section_start:<time>:<name>[<options>]`, CR, and the erasing of the line.
fn marker(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"section_")?;
    let rest = rest.strip_prefix(b"start:").or_else(|| rest.strip_prefix(b"end:"))?;
    let rest = after(rest, |byte| byte.is_ascii_digit())?.strip_prefix(b":")?;
    let rest = after(rest, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))?;
    let rest = match rest.strip_prefix(b"[") {
        Some(options) => after(options, |byte| !matches!(byte, b'[' | b']' | b'\r')).unwrap_or(options).strip_prefix(b"]")?,
        None => rest,
    };
    let rest = rest.strip_prefix(b"\r")?;
    let rest = rest.strip_prefix(b"\x1b[0K").unwrap_or(rest);
    Some(text.len() - rest.len())
}

/// What follows one or more bytes of a kind.
fn after(text: &[u8], is: impl Fn(u8) -> bool) -> Option<&[u8]> {
    let length = text.iter().position(|&byte| !is(byte)).unwrap_or(text.len());
    touched(length + 1);
    (length > 0).then(|| &text[length..])
}

/// A runner's time stamp and stream tag, `2026-01-01T00:00:03.000000Z 01E+`, digit by digit.
const STAMP: &[u8; 32] = b"dddd-dd-ddTdd:dd:dd.ddddddZ xxs+";

/// A line without the runner's stamp, and whether it goes on with the line before.
fn without_stamp(line: &[u8]) -> (&[u8], bool) {
    let Some((stamp, body)) = line.split_at_checked(STAMP.len()) else { return (line, false) };
    let fits = |(&byte, &form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_hexdigit(),
        b's' => matches!(byte, b'O' | b'E'),
        b'+' => matches!(byte, b'+' | b' '),
        _ => byte == form,
    };
    if stamp.iter().zip(STAMP).all(fits) { (body, stamp.ends_with(b"+")) } else { (line, false) }
}

/// Removes terminal control sequences in place. One that has no end is ended by the line.
fn drop_controls(line: &mut Vec<u8>) {
    if !line.contains(&ESC) {
        return;
    }
    let (mut read, mut write) = (0, 0);
    while read < line.len() {
        if line[read] == ESC {
            read += sequence(&line[read..]);
        } else {
            line[write] = line[read];
            (read, write) = (read + 1, write + 1);
        }
    }
    touched(read);
    line.truncate(write);
}

/// How long the control sequence is with which a text begins.
fn sequence(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => control(text, 2, 0x20..=0x3f, 0x40..=0x7e),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string(text),
        Some(0x20..=0x2f) => control(text, 2, 0x20..=0x2f, 0x30..=0x7e),
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

/// Bytes of one range, and one of another. Where that one is missing, the sequence ends before it.
fn control(text: &[u8], from: usize, middle: std::ops::RangeInclusive<u8>, last: std::ops::RangeInclusive<u8>) -> usize {
    let end = text[from..].iter().position(|byte| !middle.contains(byte)).map_or(text.len(), |length| from + length);
    end + usize::from(text.get(end).is_some_and(|byte| last.contains(byte)))
}

/// A sequence that holds a text, such as a title or a link's target, up to BEL or `ESC \`.
fn string(text: &[u8]) -> usize {
    let is_end = |at: usize| text[at] == BEL || text[at..].starts_with(b"\x1b\\");
    match (2..text.len()).find(|&at| is_end(at)) {
        Some(at) if text[at] == BEL => at + 1,
        Some(at) => at + 2,
        None => text.len(),
    }
}

/// Counts the bytes that were looked at, for the test that this is linear.
#[cfg(test)]
fn touched(bytes: usize) {
    tests::TOUCHED.with(|count| count.set(count.get() + bytes));
}

#[cfg(not(test))]
const fn touched(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    thread_local! {
        pub(super) static TOUCHED: Cell<usize> = const { Cell::new(0) };
    }

    const STAMPED: &str = "2026-01-01T00:00:03.000000Z 01E";

    #[test]
    fn every_rule_of_the_clean_up() {
        let table: [(&[u8], &str); 18] = [
            (b"a\r\nb\r\n", "a\nb"),
            (b"a\n\n\n", "a"),
            (b"\n\na", "\n\na"),
            (b"one\rtwo\rthree\r\n", "three"),
            (b"one\r\r\n", "one"),
            (b"50%\r\x1b[K\n", "50%"),
            (b"a\x1b[31;1mb\x1b[0;mc", "abc"),
            (b"a\x1b[31\xc3\xa4", "aä"),
            (b"a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
            (b"a\x1b]0;no end\nb", "a\nb"),
            (b"a\x1b(Bb\x1bMc\x1b", "abc"),
            (b"section_start:1:x[collapsed=true]\r\x1b[0Ktext", "text"),
            (b"a section_end:12:get_sources\rb", "a b"),
            (b"section_start:1:x is no marker", "section_start:1:x is no marker"),
            (b"sections of section_start::x\r", "sections of section_start::x"),
            (b"raw \xff\xfe bytes", "raw \u{fffd}\u{fffd} bytes"),
            (b"section_start:1:prepare\r\x1b[0Ksection_end:2:prepare\r\x1b[0K\n", ""),
            (b"", ""),
        ];
        for (raw, want) in table {
            assert_eq!(clean(raw), want, "{}", raw.escape_ascii());
        }
    }

    #[test]
    fn a_stamp_goes_and_a_plus_glues_even_a_letter_that_was_cut_in_two() {
        let raw = [STAMPED, " l\u{c3}\n", STAMPED, "+out of mem\r\n", STAMPED, "+ory\n", STAMPED, " next"].concat();
        assert_eq!(clean(raw.as_bytes()), "l\u{c3}out of memory\nnext");
        let mut cut = format!("{STAMPED} l").into_bytes();
        cut.extend_from_slice(b"\xc3\n");
        cut.extend_from_slice(format!("{STAMPED}+").as_bytes());
        cut.extend_from_slice(b"\xa4uft");
        assert_eq!(clean(&cut), "läuft");
        assert_eq!(clean(format!("{STAMPED}+first").as_bytes()), "first");
        let own = format!("{STAMPED} {STAMPED} own");
        assert_eq!(clean(own.as_bytes()), format!("{STAMPED} own"), "a program's own stamp stays");
        assert_eq!(clean(b"2026-01-01T00:00:03.000000Z 01X text"), "2026-01-01T00:00:03.000000Z 01X text");
    }

    #[test]
    fn the_tail_counts_lines_after_the_clean_up() {
        let trace = Trace::settled(b"1\n2\r2b\n3\n\n");
        let tails: Vec<_> = (0..5).map(|lines| trace.tail(lines)).collect();
        assert_eq!(tails, ["", "3", "2b\n3", "1\n2b\n3", "1\n2b\n3"]);
        assert!(Trace::settled(b"\n\r\n\x1b[0m\n").is_empty());
    }

    #[test]
    fn a_line_that_was_cut_open_is_left_out_unless_it_is_the_only_one() {
        let tail = |raw: &[u8]| Trace::of_tail(raw, true, true).tail(9).to_owned();
        assert_eq!(tail(b";1mERROR\nnext\n"), "next");
        assert_eq!(tail(b"no line break"), "no line break");
        assert_eq!(tail(b"one line\n"), "one line");
        let large = [vec![b'x'; MAX_BYTES], b"\nlast".to_vec()].concat();
        assert_eq!(Trace::settled(&large).tail(9), "last");
    }

    #[test]
    fn a_log_is_complete_by_its_last_line_or_by_its_age() {
        let complete = |raw: &str, settled| Trace::of_tail(raw.as_bytes(), false, settled).is_complete();
        assert!(complete("$ make\n\x1b[31;1mERROR: Job failed: exit code 1\n\x1b[0;m", false));
        assert!(complete("x\nJob succeeded\n", false));
        assert!(complete("Job's log exceeded limit.\nJob execution will continue but no more output will be collected.\n", false));
        assert!(!complete("ERROR: Job failed\n$ cat old.log", false));
        assert!(!complete("", false));
        assert!(complete("", true) && complete("half", true));
    }

    /// Lines of what is special to the clean-up, at most one stamp each, at its start.
    fn any_log() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"\x1b".to_vec()),
            Just(b"\x1b[31".to_vec()),
            Just(b"\x1b[0m".to_vec()),
            Just(b"\x1b]8;;".to_vec()),
            Just(b"\x1b\\".to_vec()),
            Just(b"\x07".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"m".to_vec()),
            Just("ä✗".as_bytes().to_vec()),
            Just(b"\xe2\x9c".to_vec()),
            Just(b"section_start:1:x\r\x1b[0K".to_vec()),
            Just(b"section_end:1:".to_vec()),
            Just(b"[s".to_vec()),
            Just(b"text".to_vec()),
        ];
        let stamp = prop_oneof![3 => Just(""), 1 => Just(" "), 1 => Just("+")];
        let line = (stamp, prop::collection::vec(part, 0..8)).prop_map(|(stamp, parts)| {
            let stamp = if stamp.is_empty() { String::new() } else { format!("{STAMPED}{stamp}") };
            [stamp.into_bytes(), parts.concat()].concat()
        });
        prop::collection::vec(line, 0..8).prop_map(|lines| lines.join(&b'\n'))
    }

    proptest! {
        #[test]
        fn what_is_clean_stays_as_it_is(raw in any_log()) {
            let once = clean(&raw);
            prop_assert_eq!(clean(once.as_bytes()), once);
        }

        #[test]
        fn no_control_sequence_and_no_rewriting_is_left(raw in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = clean(&raw);
            let left = text.contains(['\u{1b}', '\r']);
            prop_assert!(!left);
            prop_assert!(!text.ends_with('\n'));
        }

        #[test]
        fn each_byte_is_looked_at_a_few_times_at_most(raw in any_log(), times in 1..200_usize) {
            let raw = raw.repeat(times);
            TOUCHED.with(|count| count.set(0));
            let text = clean(&raw);
            let touched = TOUCHED.with(Cell::get);
            prop_assert!(touched <= 6 * raw.len() + 6, "{touched} of {}", raw.len());
            prop_assert!(text.len() <= 3 * raw.len());
        }
    }

    #[test]
    fn texts_that_look_like_the_start_of_a_marker_cost_no_more() {
        for part in ["section_start:1:x[", "section_start:1:", "section_start:1:x", "s", "\u{1b}]", "\u{1b}[", "section_"] {
            let raw = part.repeat(20_000);
            TOUCHED.with(|count| count.set(0));
            clean(raw.as_bytes());
            assert!(TOUCHED.with(Cell::get) <= 6 * raw.len(), "{part:?}");
        }
    }
}
