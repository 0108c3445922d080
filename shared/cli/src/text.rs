//! Text for a terminal: escaped, aligned, short.

use std::fmt::Write as _;
use std::time::Duration;

/// Text of others, so that it cannot move the cursor, forge lines or reorder what is read.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_hidden(c) => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Controls, line separators, and characters that reorder or hide others.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Rows under each other, columns as wide as their widest cell; the last column is as long as it is.
pub(crate) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let padded = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(padded).collect()
}

/// Reads `90s`, `15m`, `1h`, `2d` or `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("a duration is written as 90s, 15m, 1h or 2d".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "a duration begins with a number, as in 90s".to_owned())?;
    number.checked_mul(scale).map(Duration::from_millis).ok_or_else(|| "the duration is too long".to_owned())
}

/// A duration that is not zero.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let every = duration(text)?;
    if every.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(every) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_as_what_they_are() {
        let cases = [
            ("plain – ünïcode ✓", "plain – ünïcode ✓"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("one\ntwo\r", "one\\ntwo\\u{d}"),
            ("\u{202e}txt", "\\u{202e}txt"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ];
        for (text, shown) in cases {
            assert_eq!(plain(text), shown);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["ccc".to_owned(), String::new()]];
        assert_eq!(table(&rows), ["a    b", "ccc"]);
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "1", "h", "1w", "-1s", "99999999999999999999s", "18446744073709551615d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
