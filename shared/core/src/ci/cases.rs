//! Logs as runners write them, and what matchers have to say of them. `cases/cases.json` holds the tuples by their ids;
//! small logs are stored beside it, large ones are made here.

use super::config::matcher;
use super::matcher::{JobFields, Verdict};
use super::trace::Trace;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Deserialize)]
struct Cases {
    logs: Vec<LogCase>,
    configurations: Vec<ConfigCase>,
}

#[derive(Deserialize)]
struct LogCase {
    id: String,
    log: String,
    failure_reason: String,
    #[serde(rename = "match")]
    tree: Value,
    expect: String,
    reads_log: Option<bool>,
}

#[derive(Deserialize)]
struct ConfigCase {
    id: String,
    #[serde(rename = "match")]
    tree: Value,
    expect: String,
    because: Option<String>,
}

/// How many there are.
const COUNT: usize = 42;

fn cases() -> Cases {
    serde_json::from_str(include_str!("cases/cases.json")).unwrap()
}

const END: &str = "\u{1b}[31;1mERROR: Job failed: exit code 1\n\u{1b}[0;m";

fn window() -> Vec<u8> {
    let line = |n| if n == 500 { "dial tcp 192.0.2.7:443: i/o timeout\n".to_owned() } else { format!("line {n:04} ok\n") };
    let lines: String = (1..1000).map(line).collect();
    (lines + "ERROR: Job failed: exit code 1\n").into_bytes()
}

fn progress() -> Vec<u8> {
    let percent: String = (0..5000).map(|n| format!("\r{:4}%", n % 101)).collect();
    let retries: String = (0..2000).map(|n| format!("\rretry {n}")).collect();
    format!("Downloading\n{percent}\r 100%\nerror: failed to fetch: 503 Service Unavailable\n{retries}\n{END}").into_bytes()
}

fn letters() -> Vec<u8> {
    let start = "✗ läuft nicht: Verbindung verloren 💥\nraw ".as_bytes();
    let rest = format!(" bytes \0 here\n└── 失敗: runner 切断\n{}\n{END}", "💥".repeat(3000));
    [start, b"\xff\xfe\x80", rest.as_bytes()].concat()
}

fn size_capped() -> Vec<u8> {
    let noise: String = (0..3000).map(|n| format!("noise {n:06}\n")).collect();
    let end = "Job's log exceeded limit of 4194304 bytes.\nJob execution will continue but no more output will be collected.";
    format!("{noise}\u{1b}[33;1m{end}\n\u{1b}[0;m").into_bytes()
}

fn long_lines() -> Vec<u8> {
    format!("{}!\n{}\n{END}", "a".repeat(60_000), "x".repeat(200_000)).into_bytes()
}

/// 48 MiB with a line of 8 MiB close to the end.
fn huge() -> Vec<u8> {
    let mut log = Vec::with_capacity(49 << 20);
    let block: Vec<u8> = (0..1000).flat_map(|n| format!("ok {n:08} cache hit for module {:04}\n", n % 200).into_bytes()).collect();
    while log.len() < 40 << 20 {
        log.extend_from_slice(&block);
    }
    log.resize(log.len() + (8 << 20), b'z');
    log.extend_from_slice(format!("\nremote: GitLab is not responding (502)\n{END}").as_bytes());
    log
}

fn log(name: &str) -> Vec<u8> {
    match name {
        "colours" => include_bytes!("cases/colours.log").to_vec(),
        "sections" => include_bytes!("cases/sections.log").to_vec(),
        "line-breaks" => include_bytes!("cases/line-breaks.log").to_vec(),
        "stamps" => include_bytes!("cases/stamps.log").to_vec(),
        "literal-or-pattern" => include_bytes!("cases/literal-or-pattern.log").to_vec(),
        "only-markers" => include_bytes!("cases/only-markers.log").to_vec(),
        "echoed" => include_bytes!("cases/echoed.log").to_vec(),
        "links" => include_bytes!("cases/links.log").to_vec(),
        "empty" => Vec::new(),
        "window" => window(),
        "progress" => progress(),
        "letters" => letters(),
        "size-capped" => size_capped(),
        "long-lines" => long_lines(),
        "huge" => huge(),
        other => panic!("there is no log {other:?}"),
    }
}

/// RTY-06: time stamps, colours, section marks and rewritten lines are taken away before a matcher reads, whole characters at a time.
#[test]
fn every_log_says_what_it_has_to() {
    let mut wrong = Vec::new();
    for case in cases().logs {
        let (matcher, raw) = (matcher(&case.tree).unwrap(), log(&case.log));
        let job = JobFields { job_name: "unit", stage: "test", failure_reason: &case.failure_reason, status: "failed" };
        let said = matcher.evaluate(&job, Some(&Trace::settled(&raw)));
        let want = if case.expect == "match" { Verdict::Match } else { Verdict::NoMatch };
        if said != want {
            wrong.push(format!("{}: {said:?}, not {}", case.id, case.expect));
        }
        if let Some(reads) = case.reads_log {
            assert_eq!(matcher.evaluate(&job, None) == Verdict::NeedsTrace, reads, "{}", case.id);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_configuration_is_read_or_refused_as_it_has_to_be() {
    for case in cases().configurations {
        let read = matcher(&case.tree);
        assert_eq!(read.is_err(), case.expect == "refused", "{}: {read:?}", case.id);
        if let (Err(error), Some(because)) = (read, case.because) {
            assert!(error.problems.iter().all(|problem| problem.what.contains(&because)), "{}: {error}", case.id);
        }
    }
    let slash = matcher(&serde_json::json!({"message": "/"})).unwrap();
    let job = JobFields { job_name: "unit", stage: "test", failure_reason: "script_failure", status: "failed" };
    assert_eq!(slash.evaluate(&job, Some(&Trace::settled(b"a/b"))), Verdict::Match);
}

#[test]
fn patterns_that_blow_up_a_backtracking_engine_are_answered_at_all() {
    let trace = Trace::settled(&long_lines());
    let job = JobFields { job_name: "unit", stage: "test", failure_reason: "script_failure", status: "failed" };
    let cases = [
        ("/(a+)+$/", Verdict::NoMatch),
        ("/(a|a)*b/", Verdict::Match),
        ("/(x+x+)+y/", Verdict::NoMatch),
        ("/^(a|aa)+$/", Verdict::NoMatch),
    ];
    for (pattern, want) in cases {
        let matcher = matcher(&serde_json::json!({"message": pattern})).unwrap();
        assert_eq!(matcher.evaluate(&job, Some(&trace)), want, "{pattern}");
    }
}

#[test]
fn every_case_is_there_once() {
    let cases = cases();
    let ids: Vec<_> = cases.logs.into_iter().map(|case| case.id).chain(cases.configurations.into_iter().map(|case| case.id)).collect();
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (COUNT, COUNT));
}
