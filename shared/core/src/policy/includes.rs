//! The files that a CI definition includes from its own repository: whoever may change them may change what CI runs.
//!
//! Reads `include` of a `.gitlab-ci.yml` (`include: path`, a list, `local:` entries). Files of other projects, remote files,
//! templates and components are not in this repository. A path with a variable is taken for every path it could be.

use serde_norway::Value;

/// The local files that a CI definition includes, as path patterns without a leading slash. What is no YAML includes nothing.
#[must_use]
pub fn local_includes(definition: &[u8]) -> Vec<String> {
    let Ok(Value::Mapping(root)) = serde_norway::from_slice(definition) else { return Vec::new() };
    let mut found = Vec::new();
    match root.get("include") {
        Some(Value::Sequence(entries)) => entries.iter().for_each(|entry| collect(entry, &mut found)),
        Some(entry) => collect(entry, &mut found),
        None => {}
    }
    found
}

/// Whether a file of this name can be part of a CI definition; GitLab includes YAML files only.
#[must_use]
pub fn can_be_included(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".yml", ".yaml"].iter().any(|end| path.ends_with(end))
}

fn collect(entry: &Value, found: &mut Vec<String>) {
    match entry {
        Value::String(text) if !text.contains("://") => found.push(pattern(text)),
        Value::Mapping(entry) => {
            if let Some(Value::String(text)) = entry.get("local") {
                found.push(pattern(text));
            }
        }
        _ => {}
    }
}

/// The path from the root, with `*` in place of each variable.
fn pattern(path: &str) -> String {
    let (mut out, mut rest) = (String::new(), path.trim_start_matches('/'));
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        out.push_str("**");
        rest = after.strip_prefix('{').map_or_else(
            || after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
            |braced| braced.split_once('}').map_or("", |(_, rest)| rest),
        );
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_files_are_found_in_every_form_of_include() {
        let cases: [(&str, &[&str]); 7] = [
            ("include: /ci/build.yml", &["ci/build.yml"]),
            ("include: [ci/a.yml, 'https://example.com/b.yml']", &["ci/a.yml"]),
            ("include: {local: ci/*.yml}", &["ci/*.yml"]),
            (
                "include:\n  - local: a.yml\n  - project: x/y\n    file: z.yml\n  - template: T.yml\n  - remote: https://e.com/r.yml",
                &["a.yml"],
            ),
            ("include: {local: 'ci/${KIND}/x.yml'}", &["ci/**/x.yml"]),
            ("stages: [a]\njob: {script: [!reference [x, script]]}", &[]),
            ("{", &[]),
        ];
        for (definition, want) in cases {
            assert_eq!(local_includes(definition.as_bytes()), want, "{definition}");
        }
    }

    #[test]
    fn only_yaml_can_be_included() {
        assert!(can_be_included("ci/Build.YML") && can_be_included("x.yaml"));
        assert!(!can_be_included("README.md") && !can_be_included("yml"));
    }
}
