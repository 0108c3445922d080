//! Which branch names a submission may use.
//!
//! Names follow `git check-ref-format --branch`, with what GitLab and loose refs add: no `refs/` prefix, no name that
//! reads as a commit id, no hidden characters, bounded length. The source is Collie's to write, so it is never the
//! target, the default branch or a protected branch. The latter two are parameters ([`BranchRules`]): configuration
//! knows some, GitLab knows all, and the same check runs again before the first write.

use super::chars::{Hidden, is_not_text};
use super::patterns::Wildcard;
use super::violation::{Violation, quote};
use serde::{Deserialize, Serialize};

/// The longest branch name in bytes.
pub const MAX_BRANCH_BYTES: usize = 1000;
/// The longest part between slashes: a file name of 255 bytes less git's `.lock`.
const MAX_PART_BYTES: usize = 250;

/// The branches Collie never writes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BranchRules {
    /// The project's default branch.
    pub default_branch: Option<String>,
    /// Protected branches as GitLab writes them; `*` matches any characters, slashes included.
    pub protected: Vec<String>,
}

impl BranchRules {
    /// Every violation of the branch rules, with pointers `/source_branch` and `/target_branch`.
    #[must_use]
    pub fn inspect(&self, source: &str, target: &str) -> Vec<Violation> {
        let names = [("/source_branch", source), ("/target_branch", target)];
        let malformed = names.into_iter().filter_map(|(path, name)| Some(bad_name(path, name, problem(name)?)));
        malformed.chain(self.forbidden_source(source, target)).collect()
    }

    fn forbidden_source(&self, source: &str, target: &str) -> Option<Violation> {
        let refuse = |code, what: &str| {
            let message = format!("{} is {what}", quote(source));
            Violation::new("/source_branch", code, message, "use a branch of your own, such as bot/<topic>")
        };
        if source == target {
            Some(refuse("source_is_target", "also the target branch"))
        } else if self.default_branch.as_deref() == Some(source) {
            Some(refuse("source_is_default", "the default branch"))
        } else if self.protected.iter().any(|name| Wildcard::new(name).matches(source)) {
            Some(refuse("source_is_protected", "a protected branch"))
        } else {
            None
        }
    }
}

fn bad_name(path: &str, name: &str, problem: &str) -> Violation {
    let hint = "use a name that `git check-ref-format --branch` accepts";
    Violation::new(path, "invalid_branch", format!("{} {problem}", quote(name)), hint)
}

type Check = (fn(&str) -> bool, &'static str);

const CHECKS: [Check; 14] = [
    (|n| n.is_empty(), "is empty"),
    (|n| n.len() > MAX_BRANCH_BYTES, "is longer than 1000 bytes"),
    (|n| n.split('/').any(|part| part.len() > MAX_PART_BYTES), "has a part longer than 250 bytes"),
    (|n| n.chars().any(is_hidden), "holds a hidden character"),
    (|n| n.contains([' ', '~', '^', ':', '?', '*', '[', '\\']), "holds a character git refuses"),
    (|n| n.contains(".."), "holds `..`"),
    (|n| n.contains("@{"), "holds `@{`"),
    (|n| n == "@" || n == "HEAD", "is reserved"),
    (|n| n.starts_with('-'), "starts with a dash"),
    (|n| n.split('/').any(str::is_empty), "has an empty part"),
    (|n| n.split('/').any(|part| part.starts_with('.')), "has a part that starts with a dot"),
    (|n| n.ends_with('.') || n.split('/').any(|part| part.ends_with(".lock")), "ends with a dot or `.lock`"),
    (|n| n.starts_with("refs/"), "starts with `refs/`"),
    (is_commit_id, "reads as a commit id"),
];

/// The first thing wrong with a branch name.
fn problem(name: &str) -> Option<&'static str> {
    CHECKS.iter().find(|(fails, _)| fails(name)).map(|(_, problem)| *problem)
}

fn is_hidden(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_not_text(c) || Hidden::of(c).is_some()
}

fn is_commit_id(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_follow_git() {
        let good = ["main", "bot/bump-openssl", "a.b/c", "ü", "x@y", "a-", "feature#1", "deadbeef", "lock", "a/@"];
        for name in good {
            assert_eq!(problem(name), None, "{name}");
        }
        let long = "x".repeat(251);
        let id = "a".repeat(40);
        let bad = [
            "",
            "a b",
            "a..b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "@",
            "a@{1}",
            "-a",
            "HEAD",
            "a\u{7f}",
            "a\nb",
            "a\u{202E}b",
            "a\u{200B}b",
            "refs/heads/a",
            long.as_str(),
            id.as_str(),
        ];
        for name in bad {
            assert!(problem(name).is_some(), "{name:?}");
        }
    }

    #[test]
    fn the_source_is_never_a_branch_of_others() {
        let rules = BranchRules { default_branch: Some("main".into()), protected: vec!["release/*".into(), "prod".into()] };
        let code = |source, target| rules.inspect(source, target).first().map(|v| v.code);
        assert_eq!(code("bot/a", "main"), None);
        assert_eq!(code("main", "main"), Some("source_is_target"));
        assert_eq!(code("main", "prod"), Some("source_is_default"));
        assert_eq!(code("prod", "main"), Some("source_is_protected"));
        assert_eq!(code("release/1/2", "main"), Some("source_is_protected"));
        assert_eq!(code("releases", "release/1"), None);
    }

    #[test]
    fn both_names_are_reported_escaped() {
        let found = BranchRules::default().inspect("a\n", "b..c");
        let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [r#"/source_branch: "a\n" holds a hidden character (invalid_branch)"#, r#"/target_branch: "b..c" holds `..` (invalid_branch)"#,]
        );
    }

    proptest! {
        #[test]
        fn an_accepted_name_is_safe_as_an_argument_and_a_ref(name in "[a-c./@{~ -]{0,8}") {
            if problem(&name).is_none() {
                prop_assert!(!name.starts_with(['-', '/', '.']) && !name.contains([' ', '~']) && !name.contains(".."));
            }
        }
    }
}
