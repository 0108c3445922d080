use super::*;
use crate::error::Class;
use crate::sample::{self, NOW, in_seconds};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn words_in_rows_are_those_of_the_api() {
    for phase in [Phase::Active, Phase::Completed, Phase::Failed, Phase::Cancelled] {
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
    let results = [ResultKind::Merged, ResultKind::NoChange, ResultKind::Closed, ResultKind::Cancelled, ResultKind::Resolved];
    assert_eq!(serde_json::to_value(results).unwrap(), json!(["merged", "no_change", "closed", "cancelled", "resolved"]));
    let reasons = [BlockedReason::ForeignCommits, BlockedReason::Conflict, BlockedReason::Auth, BlockedReason::MergeTrainRequired];
    assert_eq!(serde_json::to_value(reasons).unwrap(), json!(["foreign_commits", "conflict", "auth", "merge_train_required"]));
    assert_eq!(serde_json::to_value([Status::True, Status::False]).unwrap(), json!(["true", "false"]));
}

#[test]
fn a_new_submission_begins_a_new_life_only_after_a_completed_or_cancelled_one() {
    let over = [Phase::Active, Phase::Failed, Phase::Completed, Phase::Cancelled].map(Phase::is_over);
    assert_eq!(over, [false, false, true, true]);
}

#[test]
fn an_item_is_named_by_host_project_branch_and_generation() {
    let item = Item { generation: 3, ..sample::item() };
    assert_eq!(item.idempotency_key(), "mr:gitlab.example.com:4242:bot/openssl:3");
}

#[test]
fn an_absent_dimension_is_something_to_do() {
    let mut item = sample::built();
    let (known, unknown) = (crate::mr::dims::mr(), DimensionKey::new("needs_something_new"));
    item.dims.insert(known.clone(), Dimension::done());
    assert_eq!((item.dimension(&known), item.dimension(&unknown)), (Dimension::done(), Dimension::needed()));
}

#[test]
fn the_row_of_a_dimension_is_short_and_a_done_one_never_waits() {
    let deferred = Dimension::deferred(NOW, "pipeline");
    let text = r#"{"status":"true","pending_until":1769882644000,"detail":{"why":"pipeline"}}"#;
    assert_eq!(serde_json::to_string(&deferred).unwrap(), text);
    assert_eq!(serde_json::to_string(&Dimension::done()).unwrap(), r#"{"status":"false"}"#);
    let done = Dimension { pending_until: Some(in_seconds(9)), ..Dimension::done() };
    assert_eq!((done.waits_until(NOW), done.is_actionable(NOW)), (None, false));
    assert_eq!(Dimension { detail: Some(json!("text")), ..Dimension::needed() }.why(), "");
}

#[test]
fn a_last_error_is_cut_to_its_limit_between_characters() {
    let of = |message: String| LastError::of(&Failure::new(Class::Bug, "internal", message), NOW);
    assert_eq!(of("short".into()), LastError { code: "internal".into(), message: "short".into(), at: NOW });
    assert_eq!(of("x".repeat(512)).message.len(), 512);
    assert_eq!(of("x".repeat(513)).message.len(), 512);
    assert_eq!(of(format!("x{}", "ż".repeat(400))).message, format!("x{}", "ż".repeat(255)));
}

#[test]
fn a_document_gives_back_what_was_put_in_and_a_foreign_one_is_a_bug() {
    assert_eq!(Document::of(&(1, "a")).read::<(u8, String)>(), Ok((1, "a".into())));
    let failure = Document::of(&"text").read::<u64>().unwrap_err();
    assert_eq!((failure.class, failure.code), (Class::Bug, "internal"));
    assert!(failure.message.starts_with("the item's document cannot be read: "), "{}", failure.message);
    let unreadable = std::collections::BTreeMap::from([((1, 2), "a map whose keys are no text")]);
    assert_eq!(Document::of(&unreadable), Document::default());
    assert!(Document::default().read::<std::collections::BTreeMap<String, u8>>().is_err());
}

#[test]
fn an_audit_entry_leaves_out_what_is_absent() {
    let text = r#"{"id":"a1","ts":1769882644000,"event_type":"submitted","actor":"robot","trigger":{"source":"api"}}"#;
    assert_eq!(serde_json::to_string(&sample::audit("a1")).unwrap(), text);
    assert_eq!(serde_json::from_str::<AuditEntry>(text).unwrap(), sample::audit("a1"));
}

#[test]
fn a_row_that_lacks_what_is_optional_is_read() {
    let row = serde_json::to_value(sample::item()).unwrap();
    let absent = ["result", "blocked", "last_error", "outage", "cancel_requested", "retried_at", "last_event_at", "leased_until"];
    for field in absent {
        assert!(row.get(field).is_none(), "{field}");
    }
    assert_eq!(serde_json::from_value::<Item>(row).unwrap(), sample::item());
}

proptest! {
    #[test]
    fn every_row_comes_back_as_it_was(item in sample::any_item()) {
        prop_assert_eq!(serde_json::from_value::<Item>(serde_json::to_value(&item).unwrap()).unwrap(), item);
    }

    #[test]
    fn a_dimension_is_actionable_exactly_where_it_is_needed_and_does_not_wait(dimension in sample::any_dimension()) {
        let dimension = dimension.unwrap_or_default();
        prop_assert_eq!(dimension.is_actionable(NOW), dimension.is_needed() && dimension.waits_until(NOW).is_none());
        if let Some(until) = dimension.waits_until(NOW) {
            prop_assert!(until > NOW && dimension.is_actionable(until));
        }
    }

    #[test]
    fn a_key_with_a_variant_gives_both_back(name in "[a-z_]{1,20}", variant in "\\PC{0,20}") {
        let key = DimensionKey::with_variant(&name, &variant);
        prop_assert_eq!((key.name(), key.variant()), (name.as_str(), Some(variant.as_str())));
    }
}
