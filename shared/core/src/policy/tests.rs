use super::*;
use crate::files::{ContentHash, Expect, Verb};
use proptest::prelude::*;

fn action(verb: Verb, path: &str) -> FileAction {
    let content = matches!(verb, Verb::Create | Verb::Update).then(|| b"x\n".to_vec());
    FileAction {
        verb,
        file_path: path.into(),
        previous_path: None,
        content,
        execute_filemode: (verb == Verb::Chmod).then_some(true),
        expect: None,
    }
}

fn moved(from: &str, to: &str) -> FileAction {
    FileAction { previous_path: Some(from.into()), ..action(Verb::Move, to) }
}

fn subject(actions: &[FileAction]) -> Subject<'_> {
    Subject {
        actions,
        source_branch: "bot/a",
        target_branch: "main",
        title: "Change a",
        description: "",
        labels: &[],
        commit_message: None,
    }
}

fn found(actions: &[FileAction]) -> Vec<(String, &'static str)> {
    let violations = Policy::default().inspect(&subject(actions)).err().unwrap_or_default();
    violations.into_iter().map(|violation| (violation.path, violation.code)).collect()
}

fn assert_found(actions: &[FileAction], expected: &[(&str, &'static str)]) {
    let expected: Vec<_> = expected.iter().map(|(path, code)| ((*path).to_owned(), *code)).collect();
    assert_eq!(found(actions), expected);
}

#[test]
fn an_ordinary_change_passes_with_its_hash_and_version() {
    let actions = [action(Verb::Create, "a"), action(Verb::Delete, "b"), moved("c", "d"), action(Verb::Chmod, "e")];
    let policy = Policy::default();
    let inspected = policy.inspect(&subject(&actions)).unwrap();
    assert_eq!(inspected.get().actions(), actions);
    assert_eq!(inspected.content_hash(), &ContentHash::of(&inspected.get().records()));
    assert_eq!(inspected.policy_version(), policy.version());
}

#[test]
fn every_violation_is_reported_at_its_place() {
    let actions = [
        action(Verb::Update, ".gitlab-ci.yml"),
        moved("./a", "../b"),
        FileAction { content: Some(b"\xe2\x80\xae".to_vec()), ..action(Verb::Create, "ok") },
    ];
    let subject =
        Subject { source_branch: "a b", title: "Draft: x [skip ci]", commit_message: Some("Collie-Build: x"), ..subject(&actions) };
    let violations = Policy::default().inspect(&subject).unwrap_err();
    let places: Vec<_> = violations.iter().map(|v| (v.path.as_str(), v.code)).collect();
    assert_eq!(
        places,
        [
            ("/file_actions/0/file_path", "protected_path"),
            ("/file_actions/1/file_path", "traversal_segment"),
            ("/file_actions/1/previous_path", "dot_segment"),
            ("/file_actions/2/content", "bidi_control"),
            ("/source_branch", "invalid_branch"),
            ("/title", "draft_prefix"),
            ("/title", "skip_ci"),
            ("/commit_message", "reserved_trailer"),
        ]
    );
    assert_eq!(
        violations[0],
        Violation {
            path: "/file_actions/0/file_path".into(),
            code: "protected_path",
            message: r#"".gitlab-ci.yml" is protected by ".gitlab-ci.yml""#.into(),
            hint: "leave this file to the project's maintainers".into(),
        }
    );
}

/// PTH-01: the code owners' file is protected at each of its three places.
#[test]
fn pth_01_code_owners_are_protected_wherever_gitlab_reads_them() {
    for path in ["CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"] {
        assert_found(&[action(Verb::Create, path)], &[("/file_actions/0/file_path", "protected_path")]);
    }
}

/// PTH-02: one spelling per file, or the comparison misses it.
#[test]
fn pth_02_unclean_spellings_are_refused() {
    assert_found(&[action(Verb::Create, "./.gitlab-ci.yml")], &[("/file_actions/0/file_path", "dot_segment")]);
    assert_found(&[action(Verb::Create, "x/../.gitlab-ci.yml")], &[("/file_actions/0/file_path", "traversal_segment")]);
    assert_found(&[moved("./.gitlab-ci.yml", "a")], &[("/file_actions/0/previous_path", "dot_segment")]);
}

/// PTH-04: what other file systems take for `.git`.
#[test]
fn pth_04_look_alikes_of_the_git_directory_are_refused() {
    for path in [".GIT/x", "git~1/x", ".git./x", ".git::$INDEX_ALLOCATION/x", ".g\u{200c}it/x"] {
        let codes: Vec<_> = found(&[action(Verb::Create, path)]).into_iter().map(|(_, code)| code).collect();
        assert!(matches!(codes.as_slice(), ["dotgit_segment" | "invisible_char"]), "{path:?}: {codes:?}");
    }
}

#[test]
fn a_violation_is_json_as_the_api_shows_it() {
    let violations = Policy::default().inspect(&subject(&[action(Verb::Create, "a\n")])).unwrap_err();
    let shown = serde_json::to_value(&violations).unwrap();
    assert_eq!(
        shown,
        serde_json::json!([{
            "path": "/file_actions/0/file_path",
            "code": "control_char",
            "message": "\"a\\n\" holds a control character",
            "hint": "write the path from the repository's root with single slashes and plain, visible names",
        }])
    );
}

#[test]
fn each_verb_has_its_fields() {
    let with = |verb, content: Option<&[u8]>, mode| FileAction {
        content: content.map(<[u8]>::to_vec),
        execute_filemode: mode,
        ..action(verb, "a")
    };
    let content = "/file_actions/0/content";
    let mode = "/file_actions/0/execute_filemode";
    assert_found(&[with(Verb::Create, None, Some(true))], &[]);
    assert_found(&[with(Verb::Update, None, None)], &[(content, "missing_content")]);
    assert_found(&[with(Verb::Update, Some(b""), None)], &[]);
    assert_found(&[with(Verb::Update, Some(b""), Some(true))], &[(mode, "unexpected_execute_filemode")]);
    assert_found(&[with(Verb::Delete, Some(b""), None)], &[(content, "unexpected_content")]);
    assert_found(&[with(Verb::Chmod, Some(b""), None)], &[(content, "unexpected_content"), (mode, "missing_execute_filemode")]);
    let moved_with_bytes = FileAction { content: Some(vec![]), ..moved("a", "b") };
    assert_found(&[moved_with_bytes], &[]);
}

#[test]
fn a_source_belongs_to_a_move_and_to_nothing_else() {
    let previous = "/file_actions/0/previous_path";
    assert_found(&[action(Verb::Move, "a")], &[(previous, "missing_previous_path")]);
    assert_found(&[moved("a", "a")], &[(previous, "noop_move")]);
    assert_found(&[moved("", "a")], &[(previous, "empty_path")]);
    let stray = FileAction { previous_path: Some(".gitlab-ci.yml".into()), ..action(Verb::Create, "a") };
    assert_found(&[stray], &[(previous, "unexpected_previous_path")]);
    assert_found(&[moved(".gitlab-ci.yml", "a")], &[(previous, "protected_path")]);
}

#[test]
fn two_actions_on_one_path_are_refused_in_any_spelling() {
    assert_found(
        &[action(Verb::Create, "a/B"), moved("A/b", "c"), action(Verb::Delete, "C")],
        &[("/file_actions/1/previous_path", "duplicate_path"), ("/file_actions/2/file_path", "duplicate_path")],
    );
    let twice = [action(Verb::Create, "é"), action(Verb::Chmod, "e\u{301}")];
    let violations = Policy::default().inspect(&subject(&twice)).unwrap_err();
    assert_eq!(violations[0].message, r#""e\u{301}" is the same file as /file_actions/0/file_path"#);
    assert_found(&[moved("README.md", "Readme.md")], &[]);
}

#[test]
fn counts_and_sizes_have_limits() {
    assert_found(&[], &[("/file_actions", "no_actions")]);
    let config = Config { max_actions: 1, max_bytes: ByteSize(3), ..Config::default() };
    let policy = Policy::new(config).unwrap();
    let violations = policy.inspect(&subject(&[action(Verb::Create, "a"), action(Verb::Create, "b")])).unwrap_err();
    let messages: Vec<_> = violations.iter().map(|v| (v.code, v.message.as_str())).collect();
    assert_eq!(messages, [("too_many_actions", "2 file actions, more than 1"), ("request_too_large", "4 bytes of content, more than 3"),]);
    assert!(policy.inspect(&subject(&[action(Verb::Create, "a")])).is_ok());
}

#[test]
fn an_expected_hash_is_hex() {
    let expecting = |hash: &str| FileAction { expect: Some(Expect::Sha256(hash.into())), ..action(Verb::Update, "a") };
    assert_found(&[expecting(&"0a".repeat(32))], &[]);
    assert_found(&[expecting(&"0A".repeat(32))], &[("/file_actions/0/expect", "invalid_expect")]);
    assert_found(&[expecting("")], &[("/file_actions/0/expect", "invalid_expect")]);
}

#[test]
fn the_version_changes_with_the_configuration_and_only_with_it() {
    let default = Policy::default();
    assert_eq!(Policy::new(Config::default()).unwrap().version(), default.version());
    let other = Config { allow: vec![".gitlab/issue_templates/**".into()], ..Config::default() };
    assert_ne!(Policy::new(other).unwrap().version(), default.version());
    let included = default.protecting(&["ci/build.yml"]).unwrap();
    assert_eq!(included.version(), default.version());
    assert!(included.inspect(&subject(&[action(Verb::Create, "ci/build.yml")])).is_err());
}

#[test]
fn all_problems_of_a_configuration_are_reported_together() {
    let config = Config {
        protect: vec!["a//b".into()],
        allow: vec!["..".into()],
        forbidden_text: vec![Forbidden { name: "x".into(), pattern: "(".into() }],
        ..Config::default()
    };
    assert_eq!(Policy::new(config).unwrap_err().len(), 3);
}

#[test]
fn the_proof_does_not_print_file_content() {
    let secret = FileAction { content: Some(b"zebra".to_vec()), ..action(Verb::Create, "a") };
    let inspected = Policy::default().inspect(&subject(&[secret])).unwrap();
    let bytes = format!("{:?}", b"zebra");
    assert!(!format!("{inspected:?}").contains("zebra") && !format!("{inspected:?}").contains(&bytes));
}

fn any_action() -> impl Strategy<Value = FileAction> {
    let verb = proptest::sample::select(Verb::ALL.to_vec());
    let path = prop_oneof![any::<String>(), "[a-c./:~%\u{200D}．]{0,6}".prop_map(String::from)];
    let content = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20));
    (verb, path.clone(), proptest::option::of(path), content, any::<Option<bool>>()).prop_map(
        |(verb, file_path, previous_path, content, execute_filemode)| FileAction {
            verb,
            file_path,
            previous_path,
            content,
            execute_filemode,
            expect: None,
        },
    )
}

proptest! {
    #[test]
    fn inspection_is_total_repeatable_and_changes_nothing(
        actions in proptest::collection::vec(any_action(), 0..6),
        texts in any::<[String; 5]>(),
        labels in any::<Vec<String>>(),
    ) {
        let [source_branch, target_branch, title, description, message] = &texts;
        let commit_message = Some(message.as_str());
        let subject =
            Subject { actions: &actions, source_branch, target_branch, title, description, labels: &labels, commit_message };
        let policy = Policy::default();
        let first = policy.inspect(&subject);
        prop_assert_eq!(&first, &policy.inspect(&subject));
        match first {
            Ok(inspected) => prop_assert_eq!(inspected.get().actions(), actions),
            Err(violations) => for violation in violations {
                prop_assert!(violation.path.starts_with('/') && !violation.code.is_empty());
                prop_assert!(violation.message.chars().all(|c| !c.is_control()));
            }
        }
    }

    #[test]
    fn no_passed_change_touches_a_protected_key(actions in proptest::collection::vec(any_action(), 1..4)) {
        let policy = Policy::new(Config { protect: vec!["a".into()], ..Config::default() }).unwrap();
        if let Ok(inspected) = policy.inspect(&subject(&actions)) {
            for record in inspected.get().records() {
                for path in record.paths() {
                    prop_assert!(Key::of(path).as_str().split('/').all(|segment| segment != "a"));
                }
            }
        }
    }
}
