//! What the file may say of callers, and everything that it may not.

use crate::Configuration;
use collie_core::access::{Algorithm, Credential, Grants, Issuer, judge};
use serde_json::{Map, Value, json};

const EXAMPLE: &str = r#"
rules:
  - name: deps-bot
    issuer: https://gitlab.example.com
    claims: {aud: collie, project_path: [infra/deps-bot], ref_type: branch, ref: main, ref_protected: true}
    grants:
      - submit: {item_types: [mr], projects: ["apps/**"], source_branches: ["bot/**"], target_branches: [main], labels: ["deps", "auto/*"], auto_merge: true, overwrite: false}
      - read: {projects: ["apps/**"]}
  - name: admins
    cluster: prod
    groups: [platform-admins]
    grants: [admin: true]
  - name: ci
    issuer: k8s
    claims: {aud: [collie, https://collie.example.com], sub: "system:serviceaccount:ci:bot"}
    grants:
      - ci_report: {queues: [app-main]}
      - ci_read: {queues: ["**"]}
      - integrations: {connections: [main], projects: ["apps/*"]}
      - poll: {projects: ["apps/*"]}
clusters: {prod: {api: "https://api.prod.example.com:6443", ca_file: /etc/collie/prod.pem, token: secret:k8s/prod, opaque_tokens: true}}
issuers: {"https://gitlab.example.com": {algorithms: [RS256, ES384]}}
oauth_proxy: true
"#;

fn problems(text: &str) -> Vec<String> {
    Configuration::parse(text).map(|_| Vec::new()).unwrap_or_else(|problems| problems)
}

fn granted(rules: &[collie_core::access::Rule], issuer: &Issuer, claims: &Value) -> Grants {
    let claims: Map<String, Value> = claims.as_object().unwrap().clone();
    judge(rules, &Credential::Token { issuer, claims: &claims }).grants
}

#[test]
fn the_documented_rules_mean_what_they_say() {
    let access = Configuration::parse(EXAMPLE).unwrap().access;
    let gitlab = Issuer::Url("https://gitlab.example.com".into());
    let token = json!({"aud": "collie", "project_path": "infra/deps-bot", "ref_type": "branch", "ref": "main", "ref_protected": "true"});
    let grants = serde_json::to_value(granted(&access.rules, &gitlab, &token)).unwrap();
    let submit = json!({"item_types": ["mr"], "projects": ["apps/**"], "source_branches": ["bot/**"], "target_branches": ["main"],
        "labels": ["deps", "auto/*"], "auto_merge": true, "overwrite": false, "others": false});
    assert_eq!(grants, json!([{"submit": submit}, {"read": {"projects": ["apps/**"]}}]));

    let prod = Issuer::Cluster("prod".into());
    let account = json!({"aud": ["x", "collie"], "sub": "system:serviceaccount:ci:bot"});
    let grants = serde_json::to_value(granted(&access.rules, &prod, &account)).unwrap();
    let expected = json!([{"ci_report": {"queues": ["app-main"]}}, {"ci_read": {"queues": ["**"]}},
        {"integrations": {"connections": ["main"], "projects": ["apps/*"]}}, {"poll": {"projects": ["apps/*"]}}]);
    assert_eq!(grants, expected);

    let groups = ["platform-admins".to_owned()];
    assert_eq!(judge(&access.rules, &Credential::User { cluster: "prod", groups: &groups }).grants, Grants::admin());
    assert_eq!(access.issuers["https://gitlab.example.com"], [Algorithm::Rs256, Algorithm::Es384]);
    let cluster = &access.clusters["prod"];
    assert_eq!((cluster.api.as_str(), cluster.opaque_tokens), ("https://api.prod.example.com:6443/", true));
    assert_eq!(cluster.token.as_ref().map(crate::SecretName::as_str), Some("k8s/prod"));
    assert!(access.oauth_proxy);
}

#[test]
fn every_problem_of_every_rule_is_reported_with_its_place() {
    let text = r#"
rules:
  - {issuer: https://a.example.com, claims: {ref: main, sub: "x*", n: 1.5, empty: [], aud: "c*"}, cluster_: x, grants: [{read: {projects: [], users: []}}]}
  - {name: b, issuer: http://a.example.com, claims: {project_path: x}, grants: []}
  - {name: c, issuer: https://a.example.com, groups: [x], grants: [{admin: false}, {own: {}}, {read: {projects: [a]}, poll: {projects: [a]}}]}
  - {name: d, cluster: prod, groups: ["system:authenticated", ok], grants: [{submit: {item_types: [mr], projects: x}}]}
  - {name: e, cluster: Prod, groups: [x], grants: [admin: true]}
  - {name: e, cluster: prod, groups: [y], grants: [admin: true]}
  - {name: e, cluster: prod, groups: [z], grants: [admin: true]}
  - {name: f, cluster: prod, groups: x}
clusters:
  prod: {api: http://api.example.com, opaque_tokens: yes please}
  Bad_Name: {api: https://api.example.com, token: inline, extra: 1}
issuers:
  https://a.example.com: {algorithms: [none, HS256, RS256]}
  https://misspelt.example.com: {algorithms: [RS256]}
oauth_proxy: 1
"#;
    let expected = [
        "clusters.Bad_Name: a name is made of",
        "clusters.Bad_Name.token: a secret is written as",
        "clusters.Bad_Name.extra: is no key",
        "clusters.prod.api: must be https",
        "clusters.prod.opaque_tokens: invalid type",
        "rules[0].name: is missing",
        "rules[0].claims.aud: takes no glob",
        "rules[0].claims.empty: no value would ever do",
        "rules[0].claims.n: a value is text, a whole number, true or false",
        "rules[0].claims.sub: takes no glob",
        "rules[0].claims.ref_protected: is missing",
        "rules[0].claims.ref_type: is missing",
        "rules[0].grants[0].read.projects: texts are needed",
        "rules[0].grants[0].read.users: is no key",
        "rules[0].cluster_: is no key",
        "rules[1].issuer: must be the issuer's https URL",
        "rules[1].claims.aud: is missing",
        "rules[1].grants: a list of grants is needed here",
        "rules[2]: a rule has either issuer and claims, or cluster and groups",
        "rules[2].grants[0]: admin is true, or is left out",
        "rules[2].grants[1].own: is no grant",
        "rules[2].grants[2]: a grant is a mapping with one key",
        "rules[3].groups: \"system:authenticated\" is a group that",
        "rules[3].grants[0].submit.projects: invalid type",
        "rules[3].grants[0].submit.source_branches: is missing",
        "rules[3].grants[0].submit.target_branches: is missing",
        "rules[4].cluster: a cluster's name",
        "rules[6].name: \"e\" is the name of another rule",
        "rules[7].groups: a list of groups",
        "rules[7].grants: a list of grants is needed here",
        "issuers.https://a.example.com.algorithms: \"none\" is not one of",
        "issuers.https://a.example.com.algorithms: \"HS256\" is not one of",
        "oauth_proxy: invalid type",
        "issuers.https://a.example.com: no rule names",
        "issuers.https://misspelt.example.com: no rule names this issuer",
    ];
    let problems = problems(text);
    for start in expected {
        assert!(problems.iter().any(|problem| problem.starts_with(start)), "{start} in {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
}

#[test]
fn jwt_09_a_branchs_name_needs_its_protection_and_its_type() {
    let rule = |claims: &str| {
        format!("rules: [{{name: a, issuer: 'https://g.example.com', claims: {{aud: c, ref: main{claims}}}, grants: [admin: true]}}]")
    };
    assert_eq!(problems(&rule("")).len(), 2);
    assert_eq!(problems(&rule(", ref_protected: true")).len(), 1);
    assert_eq!(problems(&rule(", ref_protected: true, ref_type: branch")), Vec::<String>::new());
}

#[test]
fn clusters_that_are_not_configured_are_no_problem_and_several_have_to_be_named() {
    let rule = "rules: [{name: a, issuer: ISSUER, claims: {aud: c}, grants: [admin: true]}, {name: b, cluster: prod, groups: [x], grants: [admin: true]}]";
    for issuer in ["k8s", "'k8s:prod'"] {
        assert_eq!(problems(&rule.replace("ISSUER", issuer)), Vec::<String>::new());
    }
    let two =
        "\nclusters: {a: {api: 'https://a.example.com', opaque_tokens: true}, b: {api: 'https://b.example.com', opaque_tokens: true}}";
    let found = problems(&format!("{}{two}", rule.replace("ISSUER", "k8s")));
    assert_eq!(
        found,
        ["rules[0].issuer: there are several clusters; write k8s:<name>", "clusters: opaque_tokens is for one cluster, not for a and b"]
    );
}

#[test]
fn sources_of_identities_have_to_differ_in_what_identities_begin_with() {
    let text = r#"
rules:
  - {name: a, issuer: "https://sso.example.com/realms/a", claims: {aud: c}, grants: [admin: true]}
  - {name: b, issuer: "https://sso.example.com/realms/b", claims: {aud: c}, grants: [admin: true]}
  - {name: c, issuer: "https://prod", claims: {aud: c}, grants: [admin: true]}
  - {name: d, issuer: "https://local", claims: {aud: c}, grants: [admin: true]}
clusters: {prod: {api: "https://api.example.com"}, local: {api: "https://api.example.com"}}
"#;
    let found = problems(text);
    assert!(found[0].starts_with("clusters.local: a name"), "{found:#?}");
    let expected = [
        "rules: identities of https://local could not be told from those of local",
        "rules: identities of https://prod could not be told from those of prod",
        "rules: identities of https://sso.example.com/realms/b could not be told from those of https://sso.example.com/realms/a",
    ];
    assert_eq!(found[1..], expected);
}

#[test]
fn groups_need_the_cluster_that_knows_users() {
    let text = "rules: [{name: a, cluster: prod, groups: [x], grants: [admin: true]}]\nclusters: {prod: {api: 'https://a.example.com'}}";
    assert_eq!(problems(text), ["rules: a: prod has no opaque_tokens, so that its groups are never known"]);
}
