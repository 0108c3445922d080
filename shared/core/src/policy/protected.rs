//! Which paths of good form a project keeps for people.
//!
//! A form of the key ([`super::path::Key`]) is blocked when
//! 1. one of the project's `protect` patterns hits it, whatever `allow` says, or
//! 2. a default ([`DEFAULTS`]) hits it and none of the project's `allow` patterns does.
//!
//! So `allow` opens defaults and never what the project itself protects; the form checks cannot be opened at all. No
//! grant bypasses this, admin included. What a project's CI includes is known to GitLab only: it is added before the
//! push ([`PathRules::protecting`]). `.gitignore` and `.gitattributes` are ordinary files; projects may protect them.

use super::path::{Key, Reject, check_form, check_previous, parse_verb};
use super::patterns::{Error, Pattern};

/// What is protected in every project.
pub const DEFAULTS: [&str; 16] = [
    // CI: the entry file and the usual places of what it includes.
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    "/.gitlab-ci/**",
    "/.gitlab/**",
    // Code owners, at each place GitLab reads them from.
    "/CODEOWNERS",
    "docs/CODEOWNERS",
    ".gitlab/CODEOWNERS",
    ".gitmodules",
    // Collie's own.
    ".collie.yml",
    ".collie.yaml",
    "/.collie/**",
    // The short names under which Windows also finds the files above.
    "gitlab~*",
    "gitmod~*",
    "gi7eba~*",
    "codeow~*",
    "collie~*",
];

/// Where GitLab reads code owners from; the first file that there is counts, and the others are as if they were not.
const CODE_OWNERS: [&str; 3] = ["CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"];

/// What the rules say to one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Nothing against it.
    Allow,
    /// A pattern protects one of its paths.
    Block {
        /// The pattern as written.
        pattern: &'a str,
    },
    /// The verb or one of its paths has bad form.
    Reject(Reject),
}

/// The patterns of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRules {
    defaults: Vec<Pattern>,
    protect: Vec<Pattern>,
    allow: Vec<Pattern>,
}

impl PathRules {
    /// The defaults with a project's additions and exceptions.
    ///
    /// # Errors
    /// Every pattern that cannot work.
    pub fn new<S: AsRef<str>>(protect: &[S], allow: &[S]) -> Result<Self, Vec<Error>> {
        let mut errors = vec![];
        let mut parse = |list: &[S]| -> Vec<Pattern> {
            let read = list.iter().map(|source| Pattern::parse(source.as_ref()));
            read.filter_map(|pattern| pattern.map_err(|error| errors.push(error)).ok()).collect()
        };
        let rules = Self { protect: parse(protect), allow: parse(allow), ..Self::default() };
        if errors.is_empty() { Ok(rules) } else { Err(errors) }
    }

    /// Only these patterns, without the defaults: for trying a block list out.
    ///
    /// # Errors
    /// Every pattern that cannot work.
    pub fn only<S: AsRef<str>>(protect: &[S]) -> Result<Self, Vec<Error>> {
        Ok(Self { defaults: vec![], ..Self::new(protect, &[])? })
    }

    /// These rules with more protected paths, such as the files a project's CI includes; each counts from the root.
    ///
    /// # Errors
    /// Every path that cannot work as a pattern.
    pub fn protecting<S: AsRef<str>>(&self, paths: &[S]) -> Result<Self, Vec<Error>> {
        let anchored: Vec<_> = paths.iter().map(|path| format!("/{}", path.as_ref().trim_start_matches('/'))).collect();
        let mut rules = self.clone();
        rules.protect.extend(Self::only(&anchored)?.protect);
        Ok(rules)
    }

    /// The pattern that protects a path, if one does.
    #[must_use]
    pub fn blocking(&self, key: &Key) -> Option<&str> {
        key.forms().find_map(|form| self.blocking_form(form)).map(Pattern::as_str)
    }

    /// The places of code owners that are open while others are protected: a file there can take the place of a protected one (PTH-01).
    #[must_use]
    pub fn half_open_code_owners(&self) -> Vec<&'static str> {
        let (open, closed): (Vec<_>, Vec<_>) = CODE_OWNERS.into_iter().partition(|place| self.blocking(&Key::of(place)).is_none());
        if closed.is_empty() { Vec::new() } else { open }
    }

    fn blocking_form(&self, form: &str) -> Option<&Pattern> {
        let hit = |list: &'_ [Pattern]| list.iter().position(|pattern| pattern.matches(form));
        if let Some(at) = hit(&self.protect) {
            return self.protect.get(at);
        }
        let at = hit(&self.defaults)?;
        if hit(&self.allow).is_some() { None } else { self.defaults.get(at) }
    }

    /// Judges one action as a caller writes it: shape, then the form of both paths, then the patterns.
    #[must_use]
    pub fn judge(&self, action: &str, file_path: &str, previous_path: Option<&str>) -> Verdict<'_> {
        if let Err(reason) = check_action(action, file_path, previous_path) {
            return Verdict::Reject(reason);
        }
        let paths = std::iter::once(file_path).chain(previous_path);
        let blocked = paths.map(Key::of).find_map(|key| self.blocking(&key));
        blocked.map_or(Verdict::Allow, |pattern| Verdict::Block { pattern })
    }
}

impl Default for PathRules {
    fn default() -> Self {
        let defaults = DEFAULTS.iter().filter_map(|source| Pattern::parse(source).ok()).collect();
        Self { defaults, protect: vec![], allow: vec![] }
    }
}

fn check_action(action: &str, path: &str, previous: Option<&str>) -> Result<(), Reject> {
    check_previous(parse_verb(action)?, path, previous)?;
    check_form(path)?;
    previous.map_or(Ok(()), check_form)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Table {
        usual: Vec<String>,
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        id: String,
        verb: String,
        path: String,
        from: Option<String>,
        patterns: Option<Vec<String>>,
        verdict: String,
        because: String,
    }

    fn word(verdict: Verdict<'_>) -> String {
        match verdict {
            Verdict::Allow => "allow".into(),
            Verdict::Block { .. } => "block".into(),
            Verdict::Reject(reason) => format!("reject({reason})"),
        }
    }

    #[test]
    fn the_table_of_cases_holds() {
        let table: Table = serde_json::from_str(include_str!("path_cases.json")).unwrap();
        assert_eq!(table.cases.len(), 86);
        for case in &table.cases {
            let rules = PathRules::only(case.patterns.as_ref().unwrap_or(&table.usual)).unwrap();
            let verdict = rules.judge(&case.verb, &case.path, case.from.as_deref());
            assert_eq!(word(verdict), case.verdict, "{}: {}", case.id, case.because);
        }
    }

    #[test]
    fn every_default_is_a_working_pattern() {
        assert_eq!(PathRules::default().defaults.len(), DEFAULTS.len());
    }

    #[test]
    fn the_defaults_protect_what_decides_over_the_project() {
        let rules = PathRules::default();
        let blocked = [
            ".gitlab-ci.yml",
            "sub/.GitLab-CI.yml",
            ".gitlab/agents/a/config.yaml",
            ".gitlab",
            "CODEOWNERS",
            "docs/codeowners",
            ".gitlab/CODEOWNERS",
            ".gitmodules",
            "GITMOD~1",
            "gi7eba~1",
            "GITLAB~1.YML",
            ".collie.yml",
            "sub/.collie.yaml",
            ".collie/x",
            ".gitlab-ci.yml:x",
            ".gitlab:x/a",
        ];
        for path in blocked {
            assert!(rules.blocking(&Key::of(path)).is_some(), "{path}");
        }
        for path in [".gitignore", ".gitattributes", "src/CODEOWNERS", "docs/gitlab.md", ".gitlabx/a", "collie.yml"] {
            assert_eq!(rules.blocking(&Key::of(path)), None, "{path}");
        }
    }

    #[test]
    fn allow_opens_a_default_but_not_what_the_project_protects() {
        let rules = PathRules::new(&[".gitlab/ci/**"], &[".gitlab/**"]).unwrap();
        assert_eq!(rules.blocking(&Key::of(".gitlab/issue_templates/a.md")), None);
        assert_eq!(rules.blocking(&Key::of(".gitlab/ci/a.yml")), Some(".gitlab/ci/**"));
        assert_eq!(rules.blocking(&Key::of(".gitlab-ci.yml")), Some(".gitlab-ci.yml"));
    }

    #[test]
    fn pth_01_code_owners_are_open_at_all_places_or_at_none_or_it_is_said() {
        let half = |protect: &[&str], allow: &[&str]| PathRules::new(protect, allow).unwrap().half_open_code_owners();
        assert_eq!(half(&[], &[]), [""; 0]);
        assert_eq!(half(&[], &["CODEOWNERS", ".gitlab/CODEOWNERS"]), [""; 0], "without a slash, a name is open everywhere");
        assert_eq!(half(&[], &["/CODEOWNERS"]), ["CODEOWNERS"]);
        assert_eq!(half(&[], &[".gitlab/**"]), [".gitlab/CODEOWNERS"], "what opens issue templates opens it too");
        assert_eq!(half(&[".gitlab/CODEOWNERS"], &[".gitlab/**"]), [""; 0]);
        assert_eq!(half(&[".gitlab/CODEOWNERS"], &["CODEOWNERS"]), ["CODEOWNERS", "docs/CODEOWNERS"]);
        let only = PathRules::only(&[".gitlab/CODEOWNERS"]).unwrap();
        assert_eq!(only.half_open_code_owners(), ["CODEOWNERS", "docs/CODEOWNERS"], "the case as it was reported");
    }

    #[test]
    fn a_stream_of_an_allowed_name_does_not_open_the_file_behind_it() {
        let rules = PathRules::new(&[], &["docs/CODEOWNERS:*"]).unwrap();
        assert_eq!(rules.blocking(&Key::of("docs/CODEOWNERS:x")), Some("docs/CODEOWNERS"));
    }

    #[test]
    fn included_files_are_protected_from_the_root() {
        let rules = PathRules::default().protecting(&["ci/build.yml", "/templates/**.yml"]).unwrap();
        assert!(rules.blocking(&Key::of("CI/build.yml")).is_some());
        assert!(rules.blocking(&Key::of("templates/a/b.yml")).is_some());
        assert_eq!(rules.blocking(&Key::of("sub/ci/build.yml")), None);
        assert_eq!(PathRules::default().protecting(&["a//b"]).unwrap_err().len(), 1);
    }

    #[test]
    fn every_bad_pattern_is_reported() {
        assert_eq!(PathRules::new(&["a//b", "ok"], &["..", "x\\y"]).unwrap_err().len(), 3);
    }

    /// One character of a protected name in another spelling that folds to it.
    fn respell(c: char, how: u8) -> String {
        match (how % 5, c) {
            (1, _) => c.to_uppercase().collect(),
            (2, '!'..='.' | '0'..='~') => char::from_u32(u32::from(c) + 0xFEE0).into_iter().collect(),
            (3, _) => format!("{c}\u{200D}"),
            (4, _) => format!("\u{FE0F}{c}"),
            _ => c.into(),
        }
    }

    proptest! {
        #[test]
        fn no_spelling_of_a_protected_path_is_allowed(
            which in 0usize..5,
            hows in proptest::collection::vec(any::<u8>(), 40),
            tail in "(\\.| |:[a-z]{0,3}|/[a-z]{1,3}){0,3}",
        ) {
            let names = [".gitlab-ci.yml", "docs/CODEOWNERS", ".gitmodules", ".collie.yaml", ".gitlab/agents/x"];
            let spelled: String = names[which].chars().zip(hows).map(|(c, how)| respell(c, how)).collect();
            let path = spelled + &tail;
            let rules = PathRules::default();
            prop_assert_ne!(rules.judge("create", &path, None), Verdict::Allow, "{:?}", path);
        }

        #[test]
        fn a_path_that_is_allowed_shares_no_key_with_a_protected_one(path in any::<String>(), hows in any::<u64>()) {
            let protected = "Secret/é.Pem";
            let rules = PathRules::only(&[format!("/{protected}")]).unwrap();
            let candidate = if hows % 2 == 0 { protected.to_lowercase() } else { path };
            if rules.judge("update", &candidate, None) == Verdict::Allow {
                let (key, other) = (Key::of(&candidate), Key::of(protected));
                prop_assert!(key.forms().all(|form| form != other.as_str()));
            }
        }
    }
}
