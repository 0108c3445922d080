//! The file's JSON Schema, for editors and for checks before a deployment.
//!
//! Written by hand, a function for each section: the parser reports every problem with its place, which types that a derive
//! describes do not, and it is the parser that decides. A test holds the two together, key by key and in both directions.

mod access;

use serde_json::{Value, json};

/// The schema of the whole file (JSON Schema 2020-12).
#[must_use]
pub fn schema() -> Value {
    let mut root = mapping(json!({
        "service": described(slug(), "the name on labels and in note markers"),
        "handled_types": {"type": "array", "items": {"enum": ["mr", "issue"]}, "description": "item types that are worked on here"},
        "connections": {"type": "object", "additionalProperties": connection(), "description": "GitLab instances by name"},
        "projects": {"type": "array", "items": project()},
        "queues": {"type": "object", "additionalProperties": queue(), "description": "tracked lines of builds, by name"},
        "limits": limits(),
        "rules": access::rules(),
        "clusters": access::clusters(),
        "issuers": access::issuers(),
        "oauth_proxy": {"type": "boolean", "default": false, "description": "whether an OAuth proxy protects GET /v1/me"},
    }));
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Collie's configuration file");
    root
}

fn connection() -> Value {
    mapping(json!({
        "url": {"type": "string", "format": "uri"},
        "token": secret(),
        "hook_secret": described(secret(), "what the instance's hooks carry"),
        "concurrency": {"type": "integer", "minimum": 1, "default": 10, "description": "requests that may be under way at once"},
    }))
}

fn project() -> Value {
    let mut project = mapping(json!({
        "path": {"type": "string", "pattern": "^[^/~]+(/[^/~]+)+$"},
        "id": {"type": "integer", "minimum": 1, "description": "required on AWS; `collie config check --resolve` finds it"},
        "connection": {"type": "string", "default": "main"},
        "token": described(secret(), "in place of the connection's"),
        "merge": {"enum": ["direct", "train"], "default": "direct"},
        "pipelines": {"enum": ["required", "none"], "default": "required"},
        "policy": policy(),
        "ci_retry": {"type": "array", "items": retry_rule()},
    }));
    project["required"] = json!(["path"]);
    project
}

fn queue() -> Value {
    let queue = mapping(json!({
        "project": described(json!({"type": "string"}), "the path of a configured project"),
        "ref": described(json!({"type": "string"}), "the branch or tag whose builds are tracked"),
        "detector": {"enum": ["none", "gitlab"], "default": "none", "description": "who finds builds and issues: callers, or Collie"},
        "repair": {"enum": ["none", "work_item"], "default": "none", "description": "what is done about what opened"},
        "max_hold": {"type": "string", "pattern": "^[0-9]+[smh]$", "default": "24h", "description": "how long a build may take"},
    }));
    required(queue, json!(["project", "ref"]))
}

fn policy() -> Value {
    mapping(json!({
        "protect": described(strings(), "paths to protect besides the defaults"),
        "allow": described(strings(), "paths to take out of the defaults; never opens what `protect` names"),
        "max_actions": {"type": "integer", "minimum": 0, "default": 1000},
        "max_bytes": described(size(), "of all files together; 20MB where it is not said"),
        "max_file_bytes": described(size(), "of one file"),
        "binary": described(rule(), "files with a NUL byte, or that are no UTF-8; allowed where it is not said"),
        "secrets": described(rule(), "what looks like a secret; refused where it is not said"),
        "secrets_allow": {"type": "array", "items": known_secrets()},
        "hidden_characters": described(rule(), "characters that reorder text or show nothing; refused where it is not said"),
        "forbidden_text": {"type": "array", "items": forbidden()},
        "branches": mapping(json!({
            "default_branch": {"type": ["string", "null"]},
            "protected": described(strings(), "branches that are never a source; `*` matches anything"),
        })),
    }))
}

fn known_secrets() -> Value {
    let entry = mapping(json!({
        "paths": described(strings(), "path patterns"),
        "rules": described(strings(), "rules of which a find is none there, by the names that findings show"),
    }));
    required(entry, json!(["paths", "rules"]))
}

fn forbidden() -> Value {
    let entry = mapping(json!({
        "name": {"type": "string"},
        "pattern": {"type": "string", "format": "regex", "description": "linear time: no look-around, no back-references"},
    }));
    required(entry, json!(["name", "pattern"]))
}

/// A node of the tree of matchers holds nodes: how deep is for the parser to say.
fn retry_rule() -> Value {
    let entry = mapping(json!({
        "name": {"type": "string"},
        "match": {"type": "object"},
        "delays": {"type": "array", "items": {"type": "string", "pattern": "^[0-9]+(s|m|h|d)$"}, "minItems": 1},
    }));
    required(entry, json!(["name", "match", "delays"]))
}

fn limits() -> Value {
    mapping(json!({
        "max_attempts": {"type": "integer", "minimum": 1, "default": 5, "description": "failures in a row after which an item fails"},
        "requests_per_minute": {"type": "integer", "minimum": 1, "description": "changes that one caller may ask for"},
    }))
}

fn mapping(properties: Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn required(mut mapping: Value, keys: Value) -> Value {
    mapping["required"] = keys;
    mapping
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

fn strings() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn rule() -> Value {
    json!({"enum": ["allow", "refuse"]})
}

fn size() -> Value {
    json!({"type": ["integer", "string"], "minimum": 0, "pattern": "^ *[0-9]+ *([KkMmGg]?[Bb]|[KkMmGg][Ii][Bb])? *$"})
}

fn slug() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9-]{1,40}$"})
}

fn secret() -> Value {
    json!({"type": "string", "pattern": "^secret:[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Configuration;
    use std::collections::BTreeSet;

    /// Every key that there is, with something in it that the parser takes.
    fn complete() -> Value {
        json!({
            "service": "collie",
            "handled_types": ["mr", "issue"],
            "connections": {"main": {
                "url": "https://gitlab.example.com", "token": "secret:gitlab/main", "hook_secret": "secret:gitlab/hook", "concurrency": 10,
            }},
            "projects": [{
                "path": "group/app", "id": 4711, "connection": "main", "token": "secret:gitlab/app", "merge": "train", "pipelines": "none",
                "policy": {
                    "protect": ["deploy/**"], "allow": [], "max_actions": 10, "max_bytes": "20MB", "max_file_bytes": 4096,
                    "binary": "refuse", "secrets": "refuse", "hidden_characters": "allow",
                    "secrets_allow": [{"paths": ["tests/**"], "rules": ["generic-api-key"]}],
                    "forbidden_text": [{"name": "ticket", "pattern": "INTERNAL-[0-9]+"}],
                    "branches": {"default_branch": "main", "protected": ["release/*"]},
                },
                "ci_retry": [{"name": "gone", "match": {"stage": "test"}, "delays": ["0s", "3m"]}],
            }],
            "queues": {"app-main": {"project": "group/app", "ref": "main", "detector": "gitlab", "repair": "work_item", "max_hold": "24h"}},
            "limits": {"max_attempts": 5, "requests_per_minute": 60},
            "rules": [
                {
                    "name": "deps-bot", "issuer": "https://gitlab.example.com", "claims": {"aud": "collie"},
                    "grants": [
                        {"submit": {
                            "item_types": ["mr"], "projects": ["apps/**"], "source_branches": ["bot/**"], "target_branches": ["main"],
                            "labels": ["deps"], "auto_merge": true, "overwrite": false, "others": false,
                        }},
                        {"read": {"projects": ["apps/**"]}},
                        {"ci_report": {"queues": ["app"]}},
                        {"ci_read": {"queues": ["app"]}},
                        {"integrations": {"connections": ["main"], "projects": ["apps/**"]}},
                        {"poll": {"projects": ["apps/**"]}},
                        {"admin": true},
                    ],
                },
                {"name": "admins", "cluster": "prod", "groups": ["platform-admins"], "grants": [{"admin": true}]},
            ],
            "clusters": {"prod": {
                "api": "https://api.example.com:6443", "ca_file": "ca.pem", "token": "secret:k8s/prod", "opaque_tokens": true,
            }},
            "issuers": {"https://gitlab.example.com": {"algorithms": ["RS256"]}},
            "oauth_proxy": true,
        })
    }

    /// The mappings of the schema that have fixed keys, each with where it is in the complete file; `*` is any element there.
    fn mappings(schema: &Value, at: &str, out: &mut Vec<(String, BTreeSet<String>)>) {
        if let Some(properties) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], false, "{at}");
            if schema["maxProperties"] != 1 {
                out.push((at.to_owned(), properties.keys().cloned().collect()));
            }
            properties.iter().for_each(|(key, inner)| mappings(inner, &format!("{at}/{key}"), out));
        } else if schema["additionalProperties"].is_object() {
            mappings(&schema["additionalProperties"], &format!("{at}/*"), out);
        } else if schema["items"].is_object() {
            mappings(&schema["items"], &format!("{at}/*"), out);
        }
    }

    /// The mappings at a place of the complete file, as JSON Pointers.
    fn pointers(value: &Value, place: &str, here: &str) -> Vec<String> {
        let Some((step, rest)) = place.strip_prefix('/').map(|rest| rest.split_once('/').unwrap_or((rest, ""))) else {
            return vec![here.to_owned()];
        };
        let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
        let inner: Vec<(String, &Value)> = match value {
            Value::Array(rows) => rows.iter().enumerate().map(|(n, row)| (n.to_string(), row)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), field)).collect(),
            _ => vec![],
        };
        let fitting = inner.into_iter().filter(|(key, _)| step == "*" || key == step);
        fitting.flat_map(|(key, inner)| pointers(inner, &rest, &format!("{here}/{}", key.replace('/', "~1")))).collect()
    }

    /// What the parser says that it knows where it meets a key that it does not.
    fn known_at(place: &str) -> BTreeSet<String> {
        let mut file = complete();
        let pointer = pointers(&file, place, "").remove(0);
        file.pointer_mut(&pointer).unwrap()["zebra"] = json!(1);
        let problems = Configuration::parse(&file.to_string()).unwrap_err();
        assert_eq!(problems.len(), 1, "{place}: {problems:?}");
        assert!(problems[0].contains("zebra"), "{problems:?}");
        let known = problems[0].split_once("expected").map(|(_, known)| known).unwrap_or_default();
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_complete_file_is_read_and_has_every_key_of_the_schema() {
        let file = complete();
        assert!(Configuration::parse(&file.to_string()).is_ok(), "{:?}", Configuration::parse(&file.to_string()));
        let mut found = vec![];
        mappings(&schema(), "", &mut found);
        for (place, keys) in found {
            let here = pointers(&file, &place, "");
            let there = here.iter().flat_map(|pointer| file.pointer(pointer).and_then(Value::as_object).unwrap().keys().cloned());
            assert_eq!(there.collect::<BTreeSet<_>>(), keys, "{place}");
        }
    }

    #[test]
    fn schema_and_parser_know_the_same_keys_everywhere() {
        let mut found = vec![];
        mappings(&schema(), "", &mut found);
        assert_eq!(found.len(), 19);
        for (place, keys) in found {
            assert_eq!(known_at(&place), keys, "{place}");
        }
    }

    #[test]
    fn the_parser_refuses_what_the_schema_gives_no_type_for() {
        for (place, value) in [
            ("/projects/0/merge", json!("rocket")),
            ("/projects/0/pipelines", json!("some")),
            ("/projects/0/policy/binary", json!("maybe")),
            ("/projects/0/policy/max_bytes", json!("20 apples")),
            ("/projects/0/path", json!("app")),
            ("/limits/max_attempts", json!(0)),
            ("/queues/app-main/detector", json!("oracle")),
            ("/queues/app-main/repair", json!("duct tape")),
            ("/queues/app-main/max_hold", json!("1d")),
            ("/queues/app-main/project", json!("group/other")),
            ("/service", json!("Collie")),
            ("/connections/main/token", json!("glpat-inline")),
            ("/connections/main/concurrency", json!(-1)),
        ] {
            let mut file = complete();
            if !place.starts_with("/queues") {
                file["queues"] = json!({});
            }
            *file.pointer_mut(place).unwrap() = value;
            assert_eq!(Configuration::parse(&file.to_string()).unwrap_err().len(), 1, "{place}");
        }
    }
}
