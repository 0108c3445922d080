//! Random grants and requests, against an evaluator that was written apart from the product's: no two grants ever combine.
#![allow(clippy::unwrap_used, reason = "a test helper that fails fails its test")]

use collie_core::access::{ClaimRule, Credential, Expected, Grant, Grants, Issuer, Labels, Request, Rule, SubmitGrant, Who, Work, judge};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// A grant as plain data: lists of globs and flags.
#[derive(Debug, Clone)]
enum Plain {
    Submit { lists: [Vec<&'static str>; 5], flags: [bool; 3] },
    Read(Vec<&'static str>),
    Admin,
}

/// A submission or an item as plain data.
#[derive(Debug, Clone)]
struct Asked {
    fields: [&'static str; 4],
    labels: Vec<String>,
    flags: [bool; 3],
    reads: bool,
}

const GLOBS: [&str; 9] = ["**", "*", "a", "b", "a/*", "a/**", "**/b", "*/b", "a*"];
const TEXTS: [&str; 8] = ["a", "b", "a/b", "a/a", "a/b/b", "b/b", "ab", "b/a/b"];

/// Whether a glob matches, by trying every way to split the text.
fn naive(glob: &str, text: &str) -> bool {
    if let Some(rest) = glob.strip_prefix("**") {
        return (0..=text.len()).any(|at| naive(rest, &text[at..]));
    }
    if let Some(rest) = glob.strip_prefix('*') {
        return (0..=text.len()).take_while(|at| !text[..*at].contains('/')).any(|at| naive(rest, &text[at..]));
    }
    match (glob.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some(g), Some(t)) => g == t && naive(&glob[1..], &text[1..]),
        _ => false,
    }
}

fn any(globs: &[&str], text: &str) -> bool {
    globs.iter().any(|glob| naive(glob, text))
}

/// The independent evaluator: one grant at a time, field by field.
fn allows(grants: &[Plain], asked: &Asked) -> bool {
    for grant in grants {
        let covered = match grant {
            Plain::Admin => true,
            Plain::Read(projects) => asked.reads && any(projects, asked.fields[1]),
            Plain::Submit { lists, flags } => {
                let places = (0..4).all(|field| any(&lists[field], asked.fields[field]));
                let labels = asked.labels.iter().all(|label| any(&lists[4], label));
                let flags = (0..3).all(|flag| flags[flag] || !asked.flags[flag]);
                places && labels && flags
            }
        };
        if covered {
            return true;
        }
    }
    false
}

fn product(grants: &[Plain]) -> Grants {
    let globs = |texts: &Vec<&'static str>| collie_core::access::Globs::new(texts);
    let grant = |plain: &Plain| match plain {
        Plain::Admin => Grant::Admin,
        Plain::Read(projects) => Grant::Read { projects: globs(projects) },
        Plain::Submit { lists: [types, projects, sources, targets, labels], flags } => Grant::Submit(SubmitGrant {
            item_types: globs(types),
            projects: globs(projects),
            source_branches: globs(sources),
            target_branches: globs(targets),
            labels: globs(labels),
            auto_merge: flags[0],
            overwrite: flags[1],
            others: flags[2],
        }),
    };
    Grants::new(grants.iter().map(grant).collect())
}

fn request(asked: &Asked) -> Request<'_> {
    let work = Work {
        item_type: asked.fields[0],
        project: asked.fields[1],
        source_branch: asked.fields[2],
        target_branch: asked.fields[3],
        labels: Labels::Known(&asked.labels),
        auto_merge: asked.flags[0],
        overwrite: asked.flags[1],
        of_others: asked.flags[2],
    };
    if asked.reads { Request::Read(work) } else { Request::Submit(work) }
}

fn globs() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(select(&GLOBS[..]), 0..3)
}

fn grant() -> impl Strategy<Value = Plain> {
    let lists = [globs(), globs(), globs(), globs(), globs()];
    prop_oneof![
        8 => (lists, any_flags()).prop_map(|(lists, flags)| Plain::Submit { lists, flags }),
        2 => globs().prop_map(Plain::Read),
        1 => Just(Plain::Admin),
    ]
}

fn any_flags() -> [impl Strategy<Value = bool>; 3] {
    [prop::bool::ANY, prop::bool::ANY, prop::bool::ANY]
}

fn asked() -> impl Strategy<Value = Asked> {
    let text = || select(&TEXTS[..]);
    let labels = prop::collection::vec(text().prop_map(str::to_owned), 0..3);
    ([text(), text(), text(), text()], labels, any_flags(), prop::bool::ANY).prop_map(|(fields, labels, flags, reads)| Asked {
        fields,
        labels,
        flags,
        reads,
    })
}

/// Claims of a rule or of a token: few names and values, so that they often meet.
fn some_claims() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    prop::collection::vec((select(&["ref", "project_path", "env"][..]), select(&TEXTS[..])), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_request_is_allowed_where_one_whole_grant_covers_it(grants in prop::collection::vec(grant(), 0..4), asked in asked()) {
        prop_assert_eq!(product(&grants).covers(&request(&asked)), allows(&grants, &asked));
    }

    #[test]
    fn what_each_grant_alone_refuses_all_of_them_refuse(grants in prop::collection::vec(grant(), 0..4), asked in asked()) {
        let alone = grants.iter().any(|grant| product(std::slice::from_ref(grant)).covers(&request(&asked)));
        prop_assert_eq!(product(&grants).covers(&request(&asked)), alone);
    }

    #[test]
    fn two_sides_of_a_call_need_one_grant(grants in prop::collection::vec(grant(), 0..4), one in asked(), other in asked()) {
        let both = grants.iter().any(|grant| [&one, &other].iter().all(|side| allows(std::slice::from_ref(grant), side)));
        prop_assert_eq!(product(&grants).cover_together(&[request(&one), request(&other)]), both);
    }

    #[test]
    fn labels_that_are_not_known_are_covered_only_where_every_label_is(grants in prop::collection::vec(grant(), 0..4), asked in asked()) {
        let (Request::Submit(work) | Request::Read(work)) = request(&asked) else { unreachable!() };
        let unknown = Work { labels: Labels::Unknown, ..work };
        let unknown = if asked.reads { Request::Read(unknown) } else { Request::Submit(unknown) };
        let grants = product(&grants);
        prop_assert!(!grants.covers(&unknown) || grants.covers(&request(&asked)));
    }

    #[test]
    fn rules_add_up_the_grants_of_exactly_those_whose_claims_all_fit(
        rules in prop::collection::vec((some_claims(), grant()), 0..4), token in some_claims(), asked in asked()
    ) {
        let claims: serde_json::Map<String, Value> = token.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let issuer = Issuer::Url("https://issuer.example.com".into());
        let rule = |(wanted, grant): &(Vec<(&str, &str)>, Plain)| Rule {
            name: String::new(),
            who: Who::Token { issuer: issuer.clone(), claims: wanted.iter().map(|(name, value)| ClaimRule {
                name: (*name).to_owned(), any_of: vec![Expected::read(&json!(value)).unwrap()],
            }).collect() },
            grants: Vec::from(product(std::slice::from_ref(grant)).as_slice()),
        };
        let fits = |wanted: &[(&str, &str)]| wanted.iter().all(|(name, value)| claims.get(*name).and_then(Value::as_str) == Some(value));
        let expected: Vec<Plain> = rules.iter().filter(|(wanted, _)| fits(wanted)).map(|(_, grant)| grant.clone()).collect();
        let built: Vec<Rule> = rules.iter().map(rule).collect();
        let ruling = judge(&built, &Credential::Token { issuer: &issuer, claims: &claims });
        prop_assert_eq!(ruling.grants.covers(&request(&asked)), allows(&expected, &asked));
    }
}
