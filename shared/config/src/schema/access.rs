//! The part of the schema about who may call.

use super::{described, mapping, required, secret, slug, strings};
use collie_core::access::Algorithm;
use serde_json::{Value, json};

pub(super) fn rules() -> Value {
    let mut rule = mapping(json!({
        "name": {"type": "string"},
        "issuer": {"type": "string", "description": "the issuer's URL, k8s, or k8s:<cluster>"},
        "claims": {"type": "object", "description": "every claim has to fit; of a list, one value"},
        "cluster": slug(),
        "groups": described(strings(), "of which a user of the cluster needs one"),
        "grants": {"type": "array", "items": grant(), "minItems": 1},
    }));
    rule["oneOf"] = json!([{"required": ["issuer", "claims"]}, {"required": ["cluster", "groups"]}]);
    json!({"type": "array", "items": required(rule, json!(["name", "grants"])), "description": "who may do what"})
}

/// A mapping with one key.
fn grant() -> Value {
    let mut grant = mapping(json!({
        "submit": submit(),
        "read": over(&["projects"]),
        "ci_report": over(&["queues"]),
        "ci_read": over(&["queues"]),
        "integrations": over(&["connections", "projects"]),
        "poll": over(&["projects"]),
        "admin": {"const": true},
    }));
    (grant["minProperties"], grant["maxProperties"]) = (json!(1), json!(1));
    grant
}

fn submit() -> Value {
    let flag = || json!({"type": "boolean", "default": false});
    let needed = ["item_types", "projects", "source_branches", "target_branches"];
    let mut submit = over(&needed);
    submit["properties"]["labels"] = described(strings(), "labels that a submission may carry; none where it is not said");
    for name in ["auto_merge", "overwrite", "others"] {
        submit["properties"][name] = flag();
    }
    submit
}

/// Globs for each of these keys.
fn over(keys: &[&str]) -> Value {
    let globs = || json!({"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1});
    let properties = keys.iter().map(|key| ((*key).to_owned(), globs())).collect();
    required(mapping(Value::Object(properties)), json!(keys))
}

pub(super) fn clusters() -> Value {
    let cluster = mapping(json!({
        "api": {"type": "string", "format": "uri"},
        "ca_file": described(json!({"type": "string"}), "its certificate authorities; the machine's where it is not said"),
        "token": described(secret(), "of a service account, for discovery and keys"),
        "opaque_tokens": {"type": "boolean", "default": false, "description": "whether sha256~ tokens are of this cluster"},
    }));
    json!({"type": "object", "additionalProperties": required(cluster, json!(["api"])), "description": "Kubernetes clusters by name"})
}

pub(super) fn issuers() -> Value {
    let names = Algorithm::ALL.map(Algorithm::as_str);
    let issuer = mapping(json!({"algorithms": {"type": "array", "items": {"enum": names}, "minItems": 1}}));
    json!({"type": "object", "additionalProperties": required(issuer, json!(["algorithms"])), "description": "issuers by URL"})
}
