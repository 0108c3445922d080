//! `rules`: a list; each maps an identity of elsewhere to grants (DDR-21 to 23).

use super::{grants, is_safe};
use crate::section::{Problems, Section};
use collie_core::access::{ClaimRule, Expected, Globs, Issuer, Rule, Who};
use serde_json::Value;
use std::collections::BTreeSet;
use url::Url;

/// Claims that say who exactly is meant: a glob there means someone else too.
const EXACT: [&str; 2] = ["aud", "sub"];

/// The rules; what is wrong with them is noted. Clusters are those that are configured here.
pub(super) fn read(value: Option<Value>, clusters: &BTreeSet<String>, problems: &mut Problems) -> Vec<Rule> {
    let rows = match value.unwrap_or_default() {
        Value::Null => Vec::new(),
        Value::Array(rows) => rows,
        _ => {
            problems.note("rules", "a list is needed here");
            Vec::new()
        }
    };
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        let place = format!("rules[{index}]");
        let rule = rule(row, &place, clusters, problems);
        if let Some(name) = rule.as_ref().map(|rule| rule.name.clone()).filter(|name| !names.insert(name.clone())) {
            problems.note(&format!("{place}.name"), format!("{name:?} is the name of another rule"));
        }
        rules.extend(rule);
    }
    rules
}

fn rule(value: Value, place: &str, clusters: &BTreeSet<String>, problems: &mut Problems) -> Option<Rule> {
    let mut section = Section::of(place, value, problems);
    let name: Option<String> = section.required("name", problems);
    let who = who(&mut section, clusters, problems);
    let grants = grants::read(section.raw("grants"), &section.at("grants"), problems);
    section.finish(&[], problems);
    Some(Rule { name: name?, who: who?, grants })
}

fn who(section: &mut Section, clusters: &BTreeSet<String>, problems: &mut Problems) -> Option<Who> {
    let place = section.place().to_owned();
    let parts = ["issuer", "claims", "cluster", "groups"].map(|key| section.raw(key));
    match parts {
        [Some(issuer), Some(claims), None, None] => {
            let issuer = self::issuer(&issuer, &section.at("issuer"), clusters, problems);
            let claims = self::claims(claims, &section.at("claims"), problems);
            Some(Who::Token { issuer: issuer?, claims })
        }
        [None, None, Some(cluster), Some(groups)] => groups_of(&cluster, &groups, section, problems),
        _ => {
            problems.note(&place, "a rule has either issuer and claims, or cluster and groups");
            None
        }
    }
}

/// A provider's URL, `k8s:<cluster>`, or `k8s` for the only cluster. A cluster that is not configured is no error (DDR-26).
fn issuer(value: &Value, place: &str, clusters: &BTreeSet<String>, problems: &mut Problems) -> Option<Issuer> {
    let text = value.as_str().unwrap_or_default();
    if let Some(name) = text.strip_prefix("k8s:") {
        return Some(Issuer::Cluster(name.to_owned()));
    }
    if text == "k8s" {
        if clusters.len() > 1 {
            problems.note(place, "there are several clusters; write k8s:<name>");
        }
        return Some(Issuer::Cluster(clusters.first().cloned().unwrap_or_else(|| text.to_owned())));
    }
    let plain = |url: &Url| is_safe(url) && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if Url::parse(text).is_ok_and(|url| plain(&url)) {
        return Some(Issuer::Url(text.to_owned()));
    }
    problems.note(place, "must be the issuer's https URL, k8s, or k8s:<cluster>");
    None
}

fn claims(value: Value, place: &str, problems: &mut Problems) -> Vec<ClaimRule> {
    let entries = Section::of(place, value, problems).into_entries();
    let claims: Vec<_> = entries.map(|(name, value)| claim(name, value, place, problems)).collect();
    let has = |wanted: &str| claims.iter().any(|claim| claim.name == wanted);
    if !has("aud") {
        problems.note(&format!("{place}.aud"), "is missing: without it, tokens that were made for other services count here");
    }
    for needed in ["ref_protected", "ref_type"].into_iter().filter(|needed| has("ref") && !has(needed)) {
        let why = "is missing: the name in ref can be that of a fork's branch or of a tag";
        problems.note(&format!("{place}.{needed}"), why);
    }
    claims
}

fn claim(name: String, value: Value, place: &str, problems: &mut Problems) -> ClaimRule {
    let place = format!("{place}.{name}");
    let values = match value {
        Value::Array(values) => values,
        value => vec![value],
    };
    if values.is_empty() {
        problems.note(&place, "no value would ever do");
    }
    let mut any_of = Vec::new();
    for value in &values {
        match Expected::read(value) {
            Some(expected) if expected.is_wild() && EXACT.contains(&name.as_str()) => problems.note(&place, "takes no glob"),
            Some(expected) => any_of.push(expected),
            None => problems.note(&place, "a value is text, a whole number, true or false"),
        }
    }
    ClaimRule { name, any_of }
}

fn groups_of(cluster: &Value, groups: &Value, section: &Section, problems: &mut Problems) -> Option<Who> {
    let place = section.at("groups");
    let texts: Option<Vec<&str>> = groups.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else {
        problems.note(&place, "a list of groups is needed here");
        return None;
    };
    for group in texts.iter().filter(|group| group.starts_with("system:")) {
        problems.note(&place, format!("{group:?} is a group that the cluster itself gives"));
    }
    match cluster.as_str().filter(|name| crate::is_slug(name)) {
        Some(cluster) => Some(Who::Groups { cluster: cluster.to_owned(), groups: Globs::new(texts) }),
        None => {
            problems.note(&section.at("cluster"), "a cluster's name is needed here");
            None
        }
    }
}
