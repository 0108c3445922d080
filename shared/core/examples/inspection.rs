//! How fast the pure rules read what callers and GitLab send, and how that grows with its length.
//!
//! `cargo run --release -p collie-core --example inspection` prints megabytes a second on one core. Where `valgrind` is installed
//! it also counts instructions for a text and for one twice as long, start-up taken off: linear work doubles.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement: it reads the clock and tells what it measured"
)]

use collie_core::ci::Trace;
use collie_core::event::Delivery;
use collie_core::files::{FileAction, Verb};
use collie_core::policy::{Config, Policy, Subject};
use collie_core::time::Timestamp;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// A text of a size, ready to be read as often as one likes.
type Ready = Box<dyn Fn()>;

/// What is read, and how many bytes are timed and counted.
struct Reading {
    name: &'static str,
    timed: usize,
    counted: usize,
    prepare: fn(usize) -> Ready,
}

const READINGS: [Reading; 9] = [
    Reading { name: "source-code", timed: 16 << 20, counted: 1 << 20, prepare: |size| inspect(CODE, size) },
    Reading { name: "prose", timed: 16 << 20, counted: 1 << 20, prepare: |size| inspect(PROSE, size) },
    Reading { name: "cyrillic", timed: 16 << 20, counted: 1 << 20, prepare: |size| inspect(CYRILLIC, size) },
    Reading { name: "japanese", timed: 16 << 20, counted: 1 << 20, prepare: |size| inspect(JAPANESE, size) },
    Reading { name: "json", timed: 6 << 20, counted: 1 << 20, prepare: json },
    Reading { name: "hostile", timed: 1 << 20, counted: 1 << 18, prepare: |size| inspect(HOSTILE, size) },
    Reading { name: "paths", timed: 1 << 20, counted: 1 << 16, prepare: paths },
    Reading { name: "hook", timed: 4 << 20, counted: 1 << 18, prepare: hook },
    Reading { name: "trace", timed: 4 << 20, counted: 1 << 18, prepare: trace },
];

const CODE: &str = include_str!("../src/mr/gate.rs");
const PROSE: &str = include_str!("../README.md");
const CYRILLIC: &str = "Правила читают текст один раз: ни слова не пропущено, и ни одного лишнего взгляда.\n";
const JAPANESE: &str = "規則は本文を一度だけ読む。一語も飛ばさず、余計に見ることもない。\n";
const HOSTILE: &str = "ey ey.ey key=key: secret=token= AKIA glpat- curl -H -----BEGIN PRIVATE KEY----- adobe= ghp_ xoxb-1 s. q~ ";

fn repeated(text: &str, size: usize) -> Vec<u8> {
    text.bytes().cycle().take(size).collect()
}

fn file(path: String, content: Vec<u8>) -> FileAction {
    let (previous_path, execute_filemode, expect) = (None, None, None);
    FileAction { verb: Verb::Create, file_path: path, previous_path, content: Some(content), execute_filemode, expect }
}

fn policy() -> Policy {
    let config = Config { max_actions: 1 << 20, max_bytes: collie_core::policy::ByteSize(1 << 40), ..Config::default() };
    Policy::new(config).expect("the default configuration works")
}

fn look(actions: Vec<FileAction>) -> Ready {
    let policy = policy();
    Box::new(move || judge(&policy, &actions))
}

fn judge(policy: &Policy, actions: &[FileAction]) {
    let (title, description, labels, commit_message) = ("Bump", "", &[][..], None);
    let subject = Subject { actions, source_branch: "bot/a", target_branch: "main", title, description, labels, commit_message };
    let _ = std::hint::black_box(policy.inspect(&subject));
}

fn inspect(text: &str, size: usize) -> Ready {
    look(vec![file("src/a.rs".to_owned(), repeated(text, size))])
}

/// Many actions without content.
fn paths(size: usize) -> Ready {
    let path = |n: usize| format!("src/модуль-{n}/Ünïcode/deep/er/than/most/file-{n}.rs");
    look((0..size / path(0).len()).map(|n| file(path(n), Vec::new())).collect())
}

/// The body of a submission, from its bytes on: many small actions, and some that are long.
fn json(size: usize) -> Ready {
    let action = |n: usize| {
        let lines = if n.is_multiple_of(10) { 200 } else { 4 };
        json!({"action": "create", "file_path": format!("src/file-{n}.rs"), "content": "say(\"Grüße\");\n\t// «да»\n".repeat(lines)})
    };
    let tenth: usize = (0..10).map(|n| action(n).to_string().len()).sum();
    let actions: Vec<_> = (0..10 * size / tenth).map(action).collect();
    let (body, policy) = (json!({"item_type": "mr", "file_actions": actions}).to_string(), policy());
    Box::new(move || {
        let read: Value = serde_json::from_slice(body.as_bytes()).expect("JSON");
        let text = |action: &Value, name: &str| action[name].as_str().expect("text").to_owned();
        let action = |action: &Value| file(text(action, "file_path"), text(action, "content").into_bytes());
        judge(&policy, &read["file_actions"].as_array().expect("a list").iter().map(action).collect::<Vec<_>>());
    })
}

fn hook(size: usize) -> Ready {
    let filler = r#"{"id":1,"message":"Fix \u00e4 thing","added":["a","b"],"author":{"name":"A"}},"#.repeat(size / 80);
    let commits = filler.trim_end_matches(',');
    let body = format!(r#"{{"object_kind":"push","ref":"refs/heads/bot/a","project_id":7,"commits":[{commits}]}}"#);
    Box::new(move || drop(std::hint::black_box(Delivery::parse(body.as_bytes(), Timestamp::from_millis(0)))))
}

fn trace(size: usize) -> Ready {
    let line = "2026-01-31T18:04:05.000000Z 00O section_start:1:build[collapsed=true]\r\x1b[0K\x1b[32mCompiling\x1b[0m a\rdone\n";
    let raw = repeated(line, size);
    Box::new(move || drop(std::hint::black_box(Trace::settled(&raw))))
}

/// The best of some runs: others share the machine.
fn best(reading: &Reading) -> Duration {
    let ready = (reading.prepare)(reading.timed);
    let once = || {
        let begun = Instant::now();
        ready();
        begun.elapsed()
    };
    (0..15).map(|_| once()).min().unwrap_or_default()
}

/// Instructions of readings of a size, by another process of this program.
fn instructions(name: &str, size: usize, times: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let arguments = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = Command::new("valgrind").args(arguments).arg(program).args([name, &size.to_string(), &times.to_string()]).output().ok()?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    told.split("Collected :").nth(1)?.split_whitespace().next()?.parse().ok()
}

/// Start-up and the making of the text are the same with and without a reading, and are taken off.
fn growth(reading: &Reading) -> Option<f64> {
    let read = |size, times| instructions(reading.name, size, times);
    let net = |size| Some((read(size, 3)? - read(size, 2)?) as f64);
    Some(net(2 * reading.counted)? / net(reading.counted)?)
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [name, size, times] = arguments.as_slice() {
        let reading = READINGS.iter().find(|reading| reading.name == name).expect("a known reading");
        let ready = (reading.prepare)(size.parse().expect("a size"));
        return (0..times.parse().expect("a number")).for_each(|_: u32| ready());
    }
    let (begun, first) = (Instant::now(), inspect("first", 5));
    first();
    println!("rules are read in {:.1} ms, once in a process", begun.elapsed().as_secs_f64() * 1000.0);
    println!("{:<12} {:>8} {:>8}", "", "MB/s", "2n/n");
    for reading in READINGS {
        let speed = reading.timed as f64 / best(&reading).as_secs_f64() / 1e6;
        let ratio = growth(&reading).map_or_else(|| "?".to_owned(), |ratio| format!("{ratio:.3}"));
        println!("{:<12} {speed:>8.0} {ratio:>8}", reading.name);
    }
}
