//! Claims of GitLab's ID tokens, as jobs get them: numbers as texts, forks, tags, merge request pipelines.

use crate::support::{NOW, Pair, World};
use collie_auth::AuthError;
use serde_json::{Value, json};

/// The rule of the documentation.
fn documented() -> Value {
    json!({"aud": "collie", "project_path": ["infra/deps-bot"], "ref_type": "branch", "ref": "main", "ref_protected": true})
}

/// An ID token of a push to the protected branch `main`.
fn pushed(world: &World) -> Value {
    json!({
        "namespace_id": "301", "namespace_path": "infra", "project_id": "4242", "project_path": "infra/deps-bot",
        "user_id": "501", "user_login": "dana", "user_email": "dana@example.com", "user_identities": [],
        "pipeline_id": "90001", "pipeline_source": "push", "job_id": "700002", "ref": "main", "ref_type": "branch",
        "ref_path": "refs/heads/main", "ref_protected": "true", "groups_direct": ["infra"], "runner_id": 12,
        "runner_environment": "self-hosted", "sha": "a4bf10d93a2d136f1db911b6f1c03d26d835a44f", "project_visibility": "private",
        "ci_config_ref_uri": "gitlab.example.com/infra/deps-bot//.gitlab-ci.yml@refs/heads/main",
        "jti": "235b3a54-b797-45c7-ae9a-f72d7bc6ef5b", "iss": world.issuer.url, "iat": NOW - 5, "nbf": NOW - 10, "exp": NOW + 3600,
        "sub": "project_path:infra/deps-bot:ref_type:branch:ref:main", "aud": "collie",
    })
}

/// The claims by which a token with changes is refused; none where it is not.
async fn failed(world: &World, changes: &Value) -> Option<Vec<String>> {
    let mut claims = pushed(world);
    changes.as_object().unwrap().iter().for_each(|(name, value)| claims[name] = value.clone());
    match world.ask(&Pair::ed25519("k1", 1).sign(&claims)).await {
        Ok(_) => None,
        Err(AuthError::NoRule { failed_claims, .. }) => Some(failed_claims),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_push_to_the_protected_branch_is_let_in() {
    let world = World::with_rule(&documented()).await;
    assert_eq!(failed(&world, &json!({})).await, None);
    assert_eq!(failed(&world, &json!({"environment": "production", "environment_protected": "true"})).await, None);
}

#[tokio::test]
async fn jwt_08_a_branch_named_main_in_capitals_is_not_let_in() {
    let world = World::with_rule(&documented()).await;
    assert_eq!(failed(&world, &json!({"ref": "MAIN", "ref_protected": "false"})).await, Some(vec!["ref".into(), "ref_protected".into()]));
}

#[tokio::test]
async fn jwt_09_a_fork_pipeline_that_names_the_victims_branch_is_not_let_in() {
    let world = World::with_rule(&documented()).await;
    let fork = json!({"ref_protected": "false", "pipeline_source": "merge_request_event", "ref_path": "refs/merge-requests/2/head"});
    assert_eq!(failed(&world, &fork).await, Some(vec!["ref_protected".into()]));
}

#[tokio::test]
async fn jwt_10_a_merge_request_pipeline_and_a_tag_are_told_the_name_of_the_claim() {
    let world = World::with_rule(&documented()).await;
    let merge_request = json!({"pipeline_source": "merge_request_event", "ref_protected": "false"});
    assert_eq!(failed(&world, &merge_request).await, Some(vec!["ref_protected".into()]));
    assert_eq!(failed(&world, &json!({"ref_type": "tag", "ref_path": "refs/tags/main"})).await, Some(vec!["ref_type".into()]));
}

#[tokio::test]
async fn numbers_are_compared_as_texts_and_lists_by_any_element() {
    let world = World::with_rule(&json!({"aud": "collie", "project_id": 4242, "runner_id": "12", "groups_direct": "infra"})).await;
    assert_eq!(failed(&world, &json!({})).await, None);
    assert_eq!(failed(&world, &json!({"project_id": "42420"})).await, Some(vec!["project_id".into()]));
    assert_eq!(failed(&world, &json!({"groups_direct": ["other"]})).await, Some(vec!["groups_direct".into()]));
}
