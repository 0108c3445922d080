//! Every code has a page, every page has a code, and a page says the truth as far as a test can know it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod sources;

use collie_api::{Code, pages};
use collie_core::item::BlockedReason;
use collie_core::mr::gate;
use collie_core::policy;
use std::collections::BTreeSet;

/// The codes that the crates export.
fn exported() -> BTreeSet<String> {
    let blocked = BlockedReason::ALL.map(|reason| serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned());
    let problems = Code::ALL.iter().map(|code| code.as_str());
    let words = problems.chain(policy::codes()).chain(collie_gitlab::codes::ALL.iter().copied()).chain(gate::CODES);
    words.map(str::to_owned).chain(blocked).collect()
}

fn with_pages() -> BTreeSet<String> {
    pages::codes().map(str::to_owned).collect()
}

#[test]
fn every_code_that_a_crate_exports_has_a_page() {
    let bare: Vec<_> = exported().difference(&with_pages()).cloned().collect();
    assert!(bare.is_empty(), "write docs/errors/<code>.md, and add it to shared/api/src/pages.rs and docs/errors/README.md: {bare:?}");
}

#[test]
fn every_code_in_the_sources_has_a_page() {
    let pages = with_pages();
    let bare: Vec<_> = sources::codes().into_iter().filter(|(code, _)| !pages.contains(code)).collect();
    assert!(bare.is_empty(), "write docs/errors/<code>.md, and add it to shared/api/src/pages.rs and docs/errors/README.md: {bare:#?}");
}

#[test]
fn every_page_has_a_code() {
    let codes: BTreeSet<_> = exported().into_iter().chain(sources::codes().into_keys()).collect();
    let left_over: Vec<_> = with_pages().difference(&codes).cloned().collect();
    assert!(left_over.is_empty(), "{left_over:?}");
}

#[test]
fn every_file_is_served_and_in_the_index() {
    let directory = sources::root().join("docs/errors");
    let names = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = names.filter(|name| name != "README.md").map(|name| name.trim_end_matches(".md").to_owned()).collect();
    assert_eq!(files, with_pages());
    let index = std::fs::read_to_string(directory.join("README.md")).unwrap();
    for code in files {
        assert_eq!(index.matches(&format!("| [`{code}`]({code}.md) | ")).count(), 1, "{code} in the index");
    }
}

#[test]
fn every_page_has_its_parts_and_its_links_lead_to_pages() {
    for code in pages::codes() {
        let page = pages::page(code).unwrap();
        assert!(page.starts_with(&format!("# `{code}`\n")), "{code}");
        for part in ["* **Where:** ", "* **Retried by itself:** ", "* **Counts as an attempt:** ", "## Example\n", "## What to do\n"] {
            assert!(page.contains(part), "{code}: {part}");
        }
        let links = page.split("](").skip(1).filter_map(|rest| rest.split_once(".md)")).map(|(link, _)| link);
        links.for_each(|link| assert!(pages::page(link).is_some(), "{code}: {link}"));
    }
}

#[test]
fn the_example_of_a_page_shows_its_code_and_that_of_a_problem_its_status_and_title() {
    for code in pages::codes() {
        let example = example(code);
        let shown = example.get("code").or_else(|| example.get("reason"));
        assert!(shown.is_none_or(|shown| shown == code), "{code}");
    }
    for code in Code::ALL {
        let example = example(code.as_str());
        let (kind, status) = (format!("/errors/{}", code.as_str()), code.status().as_u16());
        assert_eq!((&example["type"], &example["title"], &example["status"]), (&kind.into(), &code.title().into(), &status.into()));
    }
}

fn example(code: &str) -> serde_json::Value {
    let page = pages::page(code).unwrap();
    let (_, rest) = page.split_once("```json\n").unwrap();
    serde_json::from_str(rest.split_once("```").unwrap().0).unwrap_or_else(|error| panic!("{code}: {error}"))
}
