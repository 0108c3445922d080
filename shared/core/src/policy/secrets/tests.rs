//! The rules against samples, against texts made from the rules themselves, and against the obvious way to apply them.

use super::rules::{SOURCE, rust_syntax, syntax};
use super::*;
use proptest::prelude::*;
use regex_automata::meta::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};
use std::collections::BTreeSet;

fn rules_of(text: &str) -> Vec<&'static str> {
    find(text.as_bytes(), None).into_iter().map(|secret| secret.rule).collect()
}

/// Split in two, so that scanners of this repository do not find the samples either.
fn samples() -> [(&'static str, String); 13] {
    let run = |n| "Aa1b2C3d4E5f6G7h8Kq9".chars().cycle().take(n).collect::<String>();
    let key = |kind: &str| format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----", run(80));
    [
        ("private-key", key("PRIVATE KEY")),
        ("private-key", key("RSA PRIVATE KEY")),
        ("private-key", key("PGP PRIVATE KEY BLOCK")),
        ("gitlab-pat", format!("{}-{}", "glpat", run(20))),
        ("aws-access-token", format!("{}{}", "AKIA", "QRSTUV2WXYZ3BCDE")),
        ("github-pat", format!("{}_{}", "ghp", run(36))),
        ("github-fine-grained-pat", format!("{}_{}", "github_pat", run(82))),
        ("slack-bot-token", format!("{}-{}", "xoxb", "1234567890-0987654321-AbCdEfGhIj")),
        ("gcp-api-key", format!("{}{}", "AIza", run(35))),
        ("stripe-access-token", format!("{}_{}", "sk_live", run(24))),
        ("npm-access-token", format!("{}_{}", "npm", run(36))),
        ("vault-service-token", format!("{}.{}", "hvs", run(95))),
        ("openshift-user-token", format!("{}~{}", "sha256", run(43))),
    ]
}

#[test]
fn well_known_tokens_are_found() {
    for (rule, secret) in samples() {
        assert_eq!(rules_of(&format!("first\nkey = '{secret}'\n")), [rule], "{rule}");
        let found = find(format!("first\nkey = '{secret}'\n").as_bytes(), Some("node_modules/a.png"));
        assert_eq!(found, [Secret { rule, lines: vec![2] }]);
    }
}

#[test]
fn a_private_key_that_is_cut_short_is_one() {
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
        let text = format!("first\n-----BEGIN {kind}-----\nMIIE\n");
        assert_eq!(find_all(text.as_bytes(), None), [Secret { rule: "private-key", lines: vec![2] }], "{kind}");
    }
    let (_, whole) = samples()[1].clone();
    assert_eq!(find_all(whole.as_bytes(), None), [Secret { rule: "private-key", lines: vec![1] }]);
    assert_eq!(find_all(b"-----BEGIN PUBLIC KEY-----", None), []);
}

#[test]
fn a_value_behind_a_telling_name_is_found_by_its_variety() {
    let found =
        ["password = 'kT9x!'", "db_password: \"x7Kp2mQv9LwZ4tRb\"", "api_key=8f3a1c9e7b2d5f60a4c8", "auth_token = \"aaaaaaaaaaaaaaaa1\""];
    assert_eq!(found.map(|text| rules_of(text).len()), [0, 1, 1, 0]);
    assert_eq!(rules_of("api_key=8f3a1c9e7b2d5f60a4c8"), [GENERIC]);
}

#[test]
fn what_merely_resembles_a_secret_is_not_one() {
    let texts = [
        "glpat-xxxx",
        "AKIA-like",
        "BEGIN PUBLIC KEY",
        "task-anthem",
        "ghp_short",
        "sha256:abc",
        "token = ${{ secrets.DEPLOY_TOKEN_2024 }}",
        "password = os.environ['DB_PASSWORD']",
        "primary_key = customer_order_id_2024_v17",
        "AKIAIOSFODNN7EXAMPLE",
        "keyboard: qwertz-1a2b3c4d5e6f7g8h",
    ];
    for text in texts {
        assert_eq!(rules_of(text), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn each_place_of_a_kind_is_named_up_to_ten() {
    let token = |n: usize| format!("{}-{}{n:02}", "glpat", "Aa1b2C3d4E5f6G7h8K");
    let text: String = (1..=14).map(|n| format!("a\nb {}\n", token(n))).collect();
    let found = find(text.as_bytes(), None);
    assert_eq!(found, [Secret { rule: "gitlab-pat", lines: (1..=10).map(|n| 2 * n).collect() }]);
}

#[test]
fn a_path_excuses_a_guess_but_never_a_token() {
    let guess = "api_key=8f3a1c9e7b2d5f60a4c8";
    let kinds = |text: &str, path| find(text.as_bytes(), Some(path)).into_iter().map(|s| s.rule).collect::<Vec<_>>();
    assert_eq!((kinds(guess, "src/a.rs"), kinds(guess, "web/package-lock.json")), (vec![GENERIC], vec![]));
    let (rule, token) = samples()[3].clone();
    assert_eq!(kinds(&token, "web/package-lock.json"), [rule]);
    assert_eq!(kinds("no text", "keys/server.P12"), ["pkcs12-file"]);
    assert_eq!(kinds(&format!("{token} # gitleaks:allow"), "a"), [rule]);
}

#[test]
fn a_word_that_is_no_part_of_the_token_may_be_anywhere_in_the_text() {
    let token = |n| format!("{}{}.{}", "pat", "Ab3dEf5hIj7lMn", format!("{n}f0e1d2c3b4a5968").repeat(4));
    let text = format!("{}\n{}{}\n# for airtable\n{}", token(1), "word ".repeat(400), token(2), token(3));
    let found = find(text.as_bytes(), None);
    assert_eq!(found, [Secret { rule: "airtable-personnal-access-token", lines: vec![1, 2, 4] }]);
}

#[test]
fn every_rule_and_every_list_can_be_compiled() {
    let Rules { rules, allowlist } = Rules::read(SOURCE).unwrap();
    assert!(Allowlist::of(&allowlist).is_some());
    for rule in rules.iter().filter(|rule| !rule.regex.is_empty()) {
        assert!(Seeker::of(rule).is_some() && rule.allowlists.iter().all(|list| Allowlist::of(list).is_some()), "{}", rule.id);
        assert_eq!(rule.path.is_some(), rule.paths().is_some(), "{}", rule.id);
    }
}

#[test]
fn files_of_some_kinds_have_rules_of_their_own() {
    let text = "kind: Secret\nmetadata: {name: a}\ndata:\n  password: a1Zr9Kq2Lm4Xw8Pt0Yv6\n";
    let kinds = |path| find(text.as_bytes(), Some(path)).into_iter().map(|s| s.rule).collect::<Vec<_>>();
    assert!(kinds("deploy/a.yaml").contains(&"kubernetes-secret-yaml"), "{:?}", kinds("deploy/a.yaml"));
    assert!(!kinds("deploy/a.txt").contains(&"kubernetes-secret-yaml"));
}

/// What the rule file says, applied without haste: each expression, whole, over the whole text.
struct Naive {
    rules: Vec<(usize, Regex)>,
}

impl Naive {
    fn new() -> Self {
        #[derive(serde::Deserialize)]
        struct File {
            rules: Vec<Entry>,
        }
        #[derive(serde::Deserialize)]
        struct Entry {
            #[serde(default)]
            regex: String,
        }
        let file: File = toml::from_str(SOURCE).unwrap();
        let compile = |go: &str| Regex::builder().syntax(syntax()).build(&rust_syntax(go)).unwrap();
        let rules = file.rules.iter().enumerate().filter(|(_, rule)| !rule.regex.is_empty());
        Self { rules: rules.map(|(at, rule)| (at, compile(&rule.regex))).collect() }
    }

    fn find(&self, text: &[u8]) -> BTreeSet<&'static str> {
        let detector = DETECTOR.as_ref().unwrap();
        let search = Search { detector, text, path: None, progress: vec![], found: vec![] };
        let lower = String::from_utf8_lossy(text).to_ascii_lowercase();
        let mut found = vec![];
        for (at, regex) in &self.rules {
            let known = &detector.rules[*at];
            let rule = &known.rule;
            if rule.path.is_some() || !rule.keywords.iter().any(|keyword| lower.contains(keyword)) {
                continue;
            }
            for captures in regex.captures_iter(text) {
                let matched = captures.get_match().unwrap().range();
                let first = (1..captures.group_len()).find_map(|group| captures.get_group(group));
                let chosen = if rule.group > 0 { captures.get_group(rule.group) } else { first };
                let secret = chosen.map_or(matched.clone(), |span| span.range());
                if search.is_secret(known, matched, secret.clone()) {
                    let line = 1 + text[..secret.start].iter().filter(|byte| **byte == b'\n').count();
                    found.push((rule.id.as_str(), Some(line)));
                }
            }
        }
        grouped(found).into_iter().map(|secret| secret.rule).collect()
    }
}

/// A source of numbers that is the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most.max(1)
    }

    /// A text that an expression finds, but for its conditions on what stands around it.
    fn text_of(&mut self, hir: &Hir, out: &mut Vec<u8>) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => out.extend_from_slice(&literal.0),
            HirKind::Class(Class::Bytes(class)) => {
                let seen = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
                let bytes: Vec<u8> = class.iter().flat_map(|range| range.start()..=range.end()).filter(seen).collect();
                let any = if bytes.is_empty() { b'\n' } else { bytes[self.below(bytes.len())] };
                out.push(any);
            }
            HirKind::Class(Class::Unicode(class)) => {
                let first = class.iter().next().unwrap().start();
                out.extend_from_slice(first.to_string().as_bytes());
            }
            HirKind::Repetition(repetition) => {
                let more = repetition.max.map_or(3, |max| max - repetition.min).min(3) as usize;
                for _ in 0..repetition.min as usize + self.below(more + 1) {
                    self.text_of(&repetition.sub, out);
                }
            }
            HirKind::Capture(capture) => self.text_of(&capture.sub, out),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.text_of(part, out)),
            HirKind::Alternation(parts) => {
                let chosen = self.below(parts.len());
                self.text_of(&parts[chosen], out);
            }
        }
    }
}

#[test]
fn texts_made_from_each_rule_are_found_as_the_rule_file_says() {
    let (naive, detector, mut dice) = (Naive::new(), DETECTOR.as_ref().unwrap(), Dice(7));
    let mut missed = vec![];
    for (at, _) in &naive.rules {
        let rule = &detector.rules[*at].rule;
        let hir = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(&rule.expression()).unwrap();
        let mut was_found = false;
        for _ in 0..20 {
            let mut text = b"a b\n\"".to_vec();
            dice.text_of(&hir, &mut text);
            text.extend_from_slice(b"\"\nend\n");
            let found: BTreeSet<_> = find(&text, None).into_iter().map(|secret| secret.rule).collect();
            assert_eq!(found, naive.find(&text), "{}: {:?}", rule.id, String::from_utf8_lossy(&text));
            was_found |= found.contains(rule.id.as_str());
        }
        missed.extend((!was_found).then_some(rule.id.as_str()));
    }
    let about_files = ["freemius-secret-key", "hashicorp-tf-password", "kubernetes-secret-yaml", "nuget-config-password"];
    let of_a_whole_line = ["sidekiq-sensitive-url"];
    let named_elsewhere = ["airtable-personnal-access-token", "facebook-access-token"];
    let of_a_paragraph = ["slack-webhook-url"];
    let mut expected = [about_files.as_slice(), &of_a_whole_line, &named_elsewhere, &of_a_paragraph].concat();
    expected.sort_unstable();
    assert_eq!(missed, expected);
}

/// Pieces of which texts are made that are full of beginnings of secrets.
fn piece() -> impl Strategy<Value = String> {
    let words: Vec<String> = DETECTOR.as_ref().unwrap().rules.iter().flat_map(|known| known.rule.keywords.clone()).collect();
    prop_oneof![
        3 => proptest::sample::select(words),
        2 => proptest::sample::select(vec!["=", ": ", "\"", "'", "\n", " ", "_", "-", ".", "=>", "ey", "AKIA", "\\n"]).prop_map(str::to_owned),
        2 => "[a-zA-Z0-9]{10,45}",
        1 => "[a-f0-9]{32}|[0-9]{10}|[A-Z2-7]{16}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_text_is_read_as_the_rule_file_says(pieces in proptest::collection::vec(piece(), 0..60)) {
        static NAIVE: LazyLock<Naive> = LazyLock::new(Naive::new);
        let text = pieces.concat();
        let found: BTreeSet<_> = find(text.as_bytes(), None).into_iter().map(|secret| secret.rule).collect();
        prop_assert_eq!(found, NAIVE.find(text.as_bytes()));
    }

    #[test]
    fn a_search_never_fails(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = find(&bytes, Some("a.yaml"));
    }
}
