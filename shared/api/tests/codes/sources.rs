//! The codes that stand in the sources: where a failure or an error of a request is made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a code is given to something, and the place of the code among the arguments.
const MAKERS: [(&str, usize); 4] = [("Failure::new(", 1), ("Failure::rejected(", 0), ("failure::of(", 1), ("FieldError::new(", 1)];

/// The workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every code, with a file that has it.
pub(crate) fn codes() -> BTreeMap<String, String> {
    let elsewhere = [("internal", "Failure::bug"), ("configuration_refused", "a log line of the shell")];
    let mut codes = BTreeMap::from(elsewhere.map(|(code, place)| (code.to_owned(), place.to_owned())));
    for file in ["shared", "functions"].iter().flat_map(|directory| files(&root().join(directory))) {
        let text = std::fs::read_to_string(&file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let found = MAKERS.iter().flat_map(|(maker, place)| codes_of(product, maker, *place));
        codes.extend(found.map(|code| (code, file.display().to_string())));
    }
    codes
}

/// The Rust files below a directory that are part of the product.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_test = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "tests" || stem == "target");
    let source = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs") && !is_test(path));
    source.chain(directories.iter().filter(|path| !is_test(path)).flat_map(|path| self::files(path))).collect()
}

fn codes_of<'t>(text: &'t str, maker: &'t str, place: usize) -> impl Iterator<Item = String> + 't {
    let calls = text.match_indices(maker).map(move |(at, _)| &text[at + maker.len()..]);
    calls.filter_map(move |rest| code(arguments(rest).get(place)?, text))
}

/// The code that an argument is: a literal, or a constant of the same file. Anything else was made elsewhere.
fn code(argument: &str, text: &str) -> Option<String> {
    let constant = || text.split_once(&format!("const {argument}: &str = ")).map(|(_, value)| value);
    let literal = if argument.starts_with('"') { Some(argument) } else { constant() }?;
    literal.strip_prefix('"')?.split_once('"').map(|(code, _)| code.to_owned())
}

/// The arguments of a call, from behind its opening parenthesis.
fn arguments(rest: &str) -> Vec<&str> {
    let (mut depth, mut start, mut in_text, mut before) = (0, 0, false, ' ');
    let mut found = Vec::new();
    for (at, c) in rest.char_indices() {
        match c {
            '"' if before != '\\' => in_text = !in_text,
            _ if in_text => {}
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' if depth > 0 => depth -= 1,
            ',' | ')' if depth == 0 => {
                found.push(rest[start..at].trim());
                start = at + 1;
                if c == ')' {
                    return found;
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

#[test]
fn codes_are_found_as_literals_and_as_constants_and_nothing_else_is_one() {
    let text = r#"const FAILED: &str = "a_b";
        Failure::new(Class::Transient { answered: false }, FAILED, "words, of (course)"); Failure::rejected(
            "c_d", format!("{x}, y")); Failure::new(class, failure.code, "e"); Failure::new(f(g, h), "i_j", "k")"#;
    let found = |maker, place| codes_of(text, maker, place).collect::<Vec<_>>();
    assert_eq!((found("Failure::new(", 1), found("Failure::rejected(", 0)), (vec!["a_b".into(), "i_j".into()], vec!["c_d".into()]));
    let known = codes();
    for code in ["worker_died", "no_executor", "forge_unreachable", "archive_failed", "secret_unreadable", "unknown_field", "internal"] {
        assert!(known.contains_key(code), "{code}");
    }
}
