//! What rules say of tokens of GitLab and of users of clusters.

use super::*;
use crate::access::{Expected, Globs};
use serde_json::json;

const GITLAB: &str = "https://gitlab.example.com";

fn rule(name: &str, claims: &Value, grant: Grant) -> Rule {
    let one_or_many = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let claim = |(name, value): (&String, &Value)| ClaimRule {
        name: name.clone(),
        any_of: one_or_many(value).iter().map(|value| Expected::read(value).unwrap()).collect(),
    };
    let claims = claims.as_object().unwrap().iter().map(claim).collect();
    Rule { name: name.into(), who: Who::Token { issuer: Issuer::Url(GITLAB.into()), claims }, grants: vec![grant] }
}

fn read(project: &str) -> Grant {
    Grant::Read { projects: Globs::new([project]) }
}

/// The claims of a pipeline on the protected branch `main`, numbers as texts, changed as the case wants.
fn claims(changes: &Value) -> Map<String, Value> {
    let mut claims = json!({"iss": GITLAB, "aud": "collie", "project_id": "4242", "project_path": "infra/deps-bot", "ref": "main",
        "ref_type": "branch", "ref_protected": "true", "pipeline_source": "push", "runner_id": 12, "groups_direct": ["infra", "ops"]});
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object().unwrap().clone()
}

fn protected_main() -> Rule {
    let claims = json!({"aud": "collie", "project_path": ["infra/deps-bot"], "ref_type": "branch", "ref": "main", "ref_protected": true});
    rule("deps-bot", &claims, read("apps/**"))
}

fn ruling(rules: &[Rule], changes: &Value) -> Ruling {
    judge(rules, &Credential::Token { issuer: &Issuer::Url(GITLAB.into()), claims: &claims(changes) })
}

fn refused(changes: &Value) -> Vec<String> {
    let ruling = ruling(&[protected_main()], changes);
    assert!(ruling.grants.is_empty(), "{changes}");
    ruling.failed_claims
}

#[test]
fn a_token_that_meets_every_claim_gets_the_grants() {
    let expected = Ruling { grants: Grants::new(vec![read("apps/**")]), rules: vec!["deps-bot".into()], failed_claims: Vec::new() };
    assert_eq!(ruling(&[protected_main()], &json!({})), expected);
}

#[test]
fn jwt_08_a_branch_in_capitals_is_not_the_protected_one() {
    assert_eq!(refused(&json!({"ref": "MAIN", "ref_protected": "false"})), ["ref", "ref_protected"]);
    assert_eq!(refused(&json!({"ref": "MAIN"})), ["ref"]);
}

#[test]
fn jwt_09_a_fork_that_claims_the_branchs_name_is_not_protected() {
    assert_eq!(refused(&json!({"ref_protected": "false", "pipeline_source": "merge_request_event"})), ["ref_protected"]);
}

#[test]
fn jwt_10_a_merge_request_pipeline_and_a_tag_are_refused_by_name_of_the_claim() {
    assert_eq!(refused(&json!({"ref_protected": "false"})), ["ref_protected"]);
    assert_eq!(refused(&json!({"ref_type": "tag"})), ["ref_type"]);
}

#[test]
fn a_token_for_another_audience_learns_nothing_else() {
    assert_eq!(refused(&json!({"aud": ["other"], "ref": "x"})), ["aud"]);
}

#[test]
fn the_closest_rule_says_what_is_missing() {
    let other = rule("other", &json!({"aud": "other", "project_id": 4242}), Grant::Admin);
    let far = rule("far", &json!({"aud": "collie", "project_id": 1, "runner_id": 1}), Grant::Admin);
    let near = rule("near", &json!({"aud": "collie", "runner_id": 13}), Grant::Admin);
    let ruling = ruling(&[other, far, near], &json!({}));
    assert_eq!(ruling, Ruling { failed_claims: vec!["runner_id".into()], ..Ruling::default() });
}

#[test]
fn every_rule_that_fits_adds_its_grants() {
    let by_id = rule("by-id", &json!({"aud": ["x", "collie"], "project_id": 4242}), read("by/id"));
    let by_group = rule("by-group", &json!({"aud": "collie", "groups_direct": "ops"}), read("by/group"));
    let not = rule("not", &json!({"aud": "collie", "groups_direct": "root"}), Grant::Admin);
    let ruling = ruling(&[by_id, not, by_group], &json!({}));
    assert_eq!((ruling.grants, ruling.failed_claims), (Grants::new(vec![read("by/id"), read("by/group")]), Vec::new()));
    assert_eq!(ruling.rules, ["by-id", "by-group"]);
}

#[test]
fn a_rule_of_another_issuer_says_nothing() {
    let claims = claims(&json!({}));
    for issuer in [Issuer::Url(format!("{GITLAB}/")), Issuer::Cluster(GITLAB.into())] {
        assert_eq!(judge(&[protected_main()], &Credential::Token { issuer: &issuer, claims: &claims }), Ruling::default());
    }
}

#[test]
fn groups_count_in_their_own_cluster_and_those_of_everyone_never() {
    let who = |groups: &[&str]| Who::Groups { cluster: "prod".into(), groups: Globs::new(groups) };
    let rules = |groups| [Rule { name: "admins".into(), who: who(groups), grants: vec![Grant::Admin] }];
    let groups = ["system:authenticated".to_owned(), "platform-admins".to_owned()];
    let is_admin =
        |rules: &[Rule], cluster, groups: &[String]| judge(rules, &Credential::User { cluster, groups }).grants == Grants::admin();
    assert!(is_admin(&rules(&["platform-admins"]), "prod", &groups));
    assert!(is_admin(&rules(&["platform-*"]), "prod", &groups));
    assert!(!is_admin(&rules(&["platform-admins"]), "other", &groups));
    assert!(!is_admin(&rules(&["**"]), "prod", &groups[..1]));
    assert!(!is_admin(&rules(&["Platform-Admins"]), "prod", &groups));
}
