//! What comes from outside, broken in every way that chance finds: nothing fails but by saying so.
//!
//! The same numbers every time, so that a failure comes back. Paths have a test of their own (`path_bypass`).

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use collie_core::ci::Trace;
use collie_core::event::Delivery;
use collie_core::policy::local_includes;
use collie_core::time::Timestamp;
use proptest::prelude::*;

/// Ways to break a text.
#[derive(Debug, Clone)]
enum Break {
    Cut(usize),
    Set(usize, u8),
    Drop(usize, usize),
    Repeat(usize, usize),
    Insert(usize, &'static str),
}

fn breaks() -> impl Strategy<Value = Vec<Break>> {
    let words = ["null", "[]", "{", "\"", "-1", "1e999", "18446744073709551616", "\\ud800", "\u{0}", ":", ",", "[[[[[[[[[["];
    let one = prop_oneof![
        any::<usize>().prop_map(Break::Cut),
        any::<(usize, u8)>().prop_map(|(at, byte)| Break::Set(at, byte)),
        (any::<usize>(), 1usize..50).prop_map(|(at, count)| Break::Drop(at, count)),
        (any::<usize>(), 1usize..50).prop_map(|(at, count)| Break::Repeat(at, count)),
        (any::<usize>(), proptest::sample::select(words.to_vec())).prop_map(|(at, word)| Break::Insert(at, word)),
    ];
    proptest::collection::vec(one, 0..6)
}

fn broken(text: &[u8], breaks: &[Break]) -> Vec<u8> {
    let mut out = text.to_vec();
    for one in breaks {
        let place = |at: usize| at % (out.len() + 1);
        match *one {
            Break::Cut(at) => out.truncate(place(at)),
            Break::Set(at, byte) => {
                let at = place(at);
                out.iter_mut().skip(at).take(1).for_each(|there| *there = byte);
            }
            Break::Drop(at, count) => {
                let at = place(at);
                out.drain(at..(at + count).min(out.len()));
            }
            Break::Repeat(at, count) => {
                let at = place(at);
                let again = out[at..(at + count).min(out.len())].to_vec();
                out.splice(at..at, again);
            }
            Break::Insert(at, word) => {
                let at = place(at);
                out.splice(at..at, word.bytes());
            }
        }
    }
    out
}

fn hooks() -> Vec<Vec<u8>> {
    let samples: Vec<serde_json::Value> = serde_json::from_str(include_str!("hooks/bodies.json")).expect("the samples are JSON");
    samples.iter().map(|sample| sample["body"].to_string().into_bytes()).collect()
}

fn trace_piece() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static [u8]> = vec![
        b"\r",
        b"\n",
        b"\r\n",
        b"\x1b[0K",
        b"\x1b[",
        b"\x1b]8;;x\x07",
        b"\x1b]",
        b"section_start:1:a\r\x1b[0K",
        b"section_end:",
        b"+",
        b"\xc3",
        b"2026-01-31T18:04:05.000000Z 00O ",
        b"2026-01-31T18:04:05.000000Z 00O+",
        b"ERROR: Job failed",
        b"s",
    ];
    prop_oneof![proptest::sample::select(known).prop_map(<[u8]>::to_vec), proptest::collection::vec(any::<u8>(), 0..6)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn a_broken_hook_is_read_or_refused(hook in proptest::sample::select(hooks()), breaks in breaks()) {
        let body = broken(&hook, &breaks);
        let now = Timestamp::from_millis(1_800_000_000_000);
        let first = format!("{:?}", Delivery::parse(&body, now));
        prop_assert_eq!(first, format!("{:?}", Delivery::parse(&body, now)));
    }

    #[test]
    fn a_cleaned_trace_holds_no_control_and_nothing_that_was_not_there(pieces in proptest::collection::vec(trace_piece(), 0..40), cut: bool) {
        let raw = pieces.concat();
        let trace = Trace::of_tail(&raw, cut, true);
        let text = trace.tail(usize::MAX);
        let controls = ["\r", "\u{1b}["];
        prop_assert!(!controls.iter().any(|control| text.contains(control)) && !text.ends_with('\n'), "{text:?}");
        let kept: usize = text.chars().filter(|c| *c != char::REPLACEMENT_CHARACTER).map(char::len_utf8).sum();
        prop_assert!(kept <= raw.len(), "{text:?}");
    }

    #[test]
    fn a_broken_ci_definition_includes_something_or_nothing(breaks in breaks()) {
        let definition = b"include:\n  - local: /ci/build.yml\n  - {project: a/b, file: c.yml}\nstages: [test]\nunit: {stage: test, script: [true]}\n";
        let _ = local_includes(&broken(definition, &breaks));
    }
}
