//! Bodies of submissions, broken in every way that chance finds: each is read or refused with a place for every error.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use collie_api::submission;
use collie_core::policy::{Policy, Subject};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The fields of submissions and of their actions.
fn fields() -> Vec<&'static str> {
    [&submission::FIELDS[..], &submission::ACTION_FIELDS].concat()
}

fn word() -> impl Strategy<Value = String> {
    let known =
        ["mr", "group/app", "create", "update", "move", "chmod", "base64", "text", "block", "overwrite", "absent", "sha256:00", "a/../b"];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(str::to_owned), any::<String>()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        let key = prop_oneof![4 => proptest::sample::select(fields()).prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..10).prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn good() -> Value {
    json!({"item_type": "mr", "project": "group/app", "source_branch": "bot/a", "target_branch": "main", "title": "Bump",
        "file_actions": [{"action": "create", "file_path": "a", "content": "b"}]})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_read_or_refused(body in value(), field in proptest::sample::select(fields()), inner in value()) {
        let mut one_field = good();
        one_field[field] = inner.clone();
        let mut one_action = good();
        one_action["file_actions"][0][field] = inner;
        for body in [body, one_field, one_action] {
            match submission::parse(&body) {
                Ok(read) => {
                    let subject = Subject {
                        actions: &read.file_actions,
                        source_branch: &read.source_branch,
                        target_branch: &read.target_branch,
                        title: &read.title,
                        description: &read.description,
                        labels: &read.labels,
                        commit_message: read.commit_message.as_deref(),
                    };
                    let _ = Policy::default().inspect(&subject);
                }
                Err(problem) => {
                    prop_assert!(problem.errors.iter().all(|error| error.path.is_empty() || error.path.starts_with('/')), "{problem:?}");
                    prop_assert!(!problem.detail.is_empty() && problem.errors.iter().all(|error| !error.message.is_empty()));
                }
            }
        }
    }
}
