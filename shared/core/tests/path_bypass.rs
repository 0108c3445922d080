//! A million hostile paths: none that the policy takes is one that git refuses, or that some file system takes for a protected file.
//!
//! Two judges that share no code with the policy: git's own check of paths with the protections for NTFS and HFS on, asked once
//! for all paths, and a comparison of names written here, by other means.

#![allow(clippy::expect_used, clippy::print_stderr, clippy::panic, reason = "a test fails by panicking")]

use collie_core::policy::{PathRules, Verdict};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use unicode_normalization::UnicodeNormalization as _;

const PATHS: usize = 1_000_000;

/// Numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % most
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const FOLDERS: [&str; 14] =
    ["", "", "", "src/", "docs/", "Docs/", ".gitlab/", "./", "../", "a/../", "/", "a//", "do\u{200D}cs/", "\u{FF0E}gitlab/"];
const NAMES: [&str; 16] = [
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    ".gitlab",
    "CODEOWNERS",
    "docs/CODEOWNERS",
    ".gitlab/CODEOWNERS",
    ".gitmodules",
    ".collie.yml",
    ".collie/rules.yml",
    ".git/config",
    ".git",
    "git~1/hooks/x",
    "gitlab~1.yml",
    "gi7eba~1",
    "README.md",
    "src/main.rs",
];
const TAILS: [&str; 18] = [
    "",
    "",
    "",
    "",
    ".",
    " ",
    ". .",
    ":x",
    "::$INDEX_ALLOCATION",
    "/x",
    "~1",
    "%2fx",
    "\\x",
    "\u{200B}",
    "\u{200D}",
    "\u{FE0F}",
    "\u{3000}",
    "/.git/x",
];

/// One letter in another spelling; some of them fold to it, and some do not.
fn respell(c: char, dice: &mut Dice, out: &mut String) {
    match dice.below(60) {
        0 => out.extend(c.to_uppercase()),
        1 => out.extend(char::from_u32(u32::from(c) + 0xFEE0)),
        2 => out.extend([c, '\u{200C}']),
        3 => out.extend(['\u{FE0F}', c]),
        4 => out.push(match c {
            's' => 'ſ',
            'i' => 'ı',
            'k' => '\u{212A}',
            'e' => 'е',
            '.' => '․',
            '/' => '∕',
            other => other,
        }),
        5 => out.extend([c, '\u{301}']),
        6 => out.push('\u{180B}'),
        _ => out.push(c),
    }
}

fn path(dice: &mut Dice) -> String {
    let plain = format!("{}{}", dice.one_of(&FOLDERS), dice.one_of(&NAMES));
    let (mut out, wild) = (String::new(), dice.below(3) > 0);
    for c in plain.chars() {
        if wild { respell(c, dice, &mut out) } else { out.push(c) }
    }
    out + dice.one_of(&TAILS)
}

/// The name by which a file system that folds as much as any of them would know a segment.
fn known_as(segment: &str) -> String {
    let shown = segment.nfkd().filter(|c| !matches!(c, '\u{200B}'..='\u{200F}' | '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}'));
    let upper: String = shown.collect::<String>().to_uppercase().nfkc().collect();
    upper.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']).to_owned()
}

/// Whether a path names a file that is protected in every project, or one below it.
fn is_protected(path: &str) -> bool {
    let names: Vec<_> = path.split('/').map(known_as).collect();
    let anywhere = [".GITLAB-CI.YML", ".GITLAB-CI.YAML", ".GITMODULES", ".COLLIE.YML", ".COLLIE.YAML", ".GIT", "GI7EBA~1", "GIT~1"];
    let at_root = [".GITLAB", ".GITLAB-CI", ".COLLIE", "CODEOWNERS"];
    let short = ["GITLAB~", "GITMOD~", "CODEOW~", "COLLIE~"];
    names.iter().any(|name| anywhere.contains(&name.as_str()) || short.iter().any(|start| name.starts_with(start)))
        || at_root.contains(&names[0].as_str())
        || (names[0] == "DOCS" && names.get(1).is_some_and(|name| name == "CODEOWNERS"))
}

/// What git says of all of them at once; each below a folder of its own, so that none is in another's way.
fn git_refuses(paths: &BTreeSet<String>) -> Option<String> {
    let directory = std::env::temp_dir().join(format!("collie-paths-{}-{}", std::process::id(), paths.len()));
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&directory).args(["-c", "core.protectNTFS=true", "-c", "core.protectHFS=true"]).args(arguments);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    std::fs::create_dir_all(&directory).expect("a directory");
    assert!(git(&["init", "-q"]).status().expect("git is installed").success());
    let mut index = String::new();
    for (number, path) in paths.iter().enumerate() {
        write!(index, "100644 {:040x}\t{number:07}/{path}\0", 1).expect("text takes text");
    }
    let mut asked = git(&["update-index", "-z", "--index-info"]).spawn().expect("git runs");
    let mut stdin = asked.stdin.take().expect("a pipe");
    let _ = stdin.write_all(index.as_bytes());
    drop(stdin);
    let said = asked.wait_with_output().expect("git ends");
    let listed = git(&["ls-files", "-z"]).stdout(Stdio::piped()).output().expect("git lists");
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let count = listed.stdout.iter().filter(|byte| **byte == 0).count();
    (count < paths.len()).then(|| format!("{count} of {}: {said}", paths.len()))
}

#[test]
fn no_path_of_a_million_gets_past_the_policy() {
    let (rules, mut dice, mut taken) = (PathRules::default(), Dice(42), BTreeSet::new());
    for _ in 0..PATHS {
        let path = path(&mut dice);
        if rules.judge("create", &path, None) == Verdict::Allow {
            assert!(!is_protected(&path), "{path:?}");
            taken.insert(path);
        }
    }
    assert!(taken.len() > 10_000, "only {} paths were taken: the test shows nothing", taken.len());
    assert_eq!(git_refuses(&taken), None);
}

#[test]
fn both_judges_refuse_what_they_should() {
    for path in [".GitLab-CI.yml", "docs/codeowners", "a/．gitmodules", ".gitlab:x/a", "x/.git /y", "GITLAB~2"] {
        assert!(is_protected(path), "{path}");
    }
    assert!(!is_protected("src/CODEOWNERS") && !is_protected(".gitignore"));
    for path in [".git/x", "a/../b", "a//b", "./a", "git~1/x", ".g\u{200C}it/x", ".git::$INDEX_ALLOCATION/x"] {
        let said = git_refuses(&BTreeSet::from([path.to_owned()]));
        assert!(said.is_some_and(|said| said.contains(path)), "{path}");
    }
}
