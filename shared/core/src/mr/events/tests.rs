use super::*;
use crate::id::{Digest, JobId, MrIid, PipelineId, Sha, UserId};
use crate::item::{InboxEntry, Phase};
use crate::sample::{self, COLLIE, DANA, HEAD, NOW, in_seconds};
use crate::time::Timestamp;
use proptest::prelude::*;

fn mr(action: &str, user: UserId) -> Event {
    Event::MergeRequest { at: NOW, iid: MrIid(2), action: action.into(), head: Some(Sha::new(HEAD)), oldrev: None, user }
}

fn pushed(head: &str, oldrev: &str) -> Event {
    Event::MergeRequest {
        at: NOW,
        iid: MrIid(2),
        action: "update".into(),
        head: Some(Sha::new(head)),
        oldrev: Some(Sha::new(oldrev)),
        user: COLLIE,
    }
}

fn finished(id: u64, status: &str, sha: &str, at: Timestamp) -> Event {
    Event::Pipeline { at, id: PipelineId(id), status: status.into(), sha: Sha::new(sha) }
}

fn job(id: u64, pipeline: u64, status: &str) -> Event {
    Event::Job {
        at: in_seconds(id),
        id: JobId(id),
        pipeline: PipelineId(pipeline),
        name: format!("unit {id}"),
        stage: "test".into(),
        status: status.into(),
        failure_reason: "script_failure".into(),
    }
}

fn seen(id: u64, status: &str, listed: bool) -> PipelineRef {
    PipelineRef { id: PipelineId(id), status: status.into(), sha: Sha::new(HEAD), listed }
}

fn with_pipeline(pipeline: Option<PipelineRef>) -> Item {
    Item { facts: Facts { pipeline, ..sample::facts() }.document(), ..sample::built() }
}

fn receive(item: &Item, events: impl IntoIterator<Item = Event>) -> Item {
    let entry = |(n, event)| InboxEntry { digest: Digest::new(format!("d{n}")), event };
    let inbox = events.into_iter().enumerate().map(entry).collect();
    apply_inbox(&Item { inbox, ..item.clone() }).unwrap()
}

fn failed_job(id: u64) -> FailedJob {
    FailedJob { id, name: format!("unit {id}"), stage: "test".into(), failure_reason: "script_failure".into() }
}

#[test]
fn whatever_a_person_does_to_the_merge_request_asks_for_a_reading() {
    for action in ["open", "update", "merge", "close", "reopen", "approved", "unapproved", "approval", "unapproval", "something_new"] {
        assert_eq!(effect(&sample::built(), &mr(action, DANA)), Ok(Effect::Reconcile), "{action}");
    }
}

#[test]
fn our_own_echo_is_dropped_except_a_merge_or_a_close() {
    let cases = [
        ("open", Effect::None),
        ("update", Effect::None),
        ("reopen", Effect::None),
        ("merge", Effect::Reconcile),
        ("close", Effect::Reconcile),
    ];
    for (action, want) in cases {
        assert_eq!(effect(&sample::built(), &mr(action, COLLIE)), Ok(want), "{action}");
    }
}

#[test]
fn an_echo_is_ours_only_for_the_known_merge_request() {
    let unknown = Item { facts: Facts { mr: None, ..sample::facts() }.document(), ..sample::built() };
    assert_eq!(effect(&unknown, &mr("update", COLLIE)), Ok(Effect::Reconcile));
    let other = Event::MergeRequest { at: NOW, iid: MrIid(3), action: "update".into(), head: None, oldrev: None, user: COLLIE };
    assert_eq!(effect(&sample::built(), &other), Ok(Effect::Reconcile));
}

#[test]
fn an_echo_of_our_push_over_a_commit_that_we_did_not_make_is_not_dropped() {
    let facts = Facts { builds: vec![sample::build(1, Some("aaaa")), sample::build(2, Some(HEAD))], ..sample::facts() };
    let item = Item { facts: facts.document(), ..sample::built() };
    let overwrote = |sha| Effect::Overwrote(Sha::new(sha));
    let cases = [
        (HEAD, "aaaa", Effect::None),
        (HEAD, "ffff", overwrote("ffff")),
        ("ffff", HEAD, Effect::Reconcile),
        ("ffff", "eeee", Effect::Reconcile),
    ];
    for (head, oldrev, want) in cases {
        assert_eq!(effect(&item, &pushed(head, oldrev)), Ok(want), "{oldrev} -> {head}");
    }
}

#[test]
fn a_commit_that_our_push_replaced_is_remembered_once_and_a_verified_one_is_not() {
    let lost = |item: &Item| Facts::of(item).unwrap().lost.map(|lost| (lost.sha.as_str().to_owned(), lost.restored));
    let overwrote = receive(&sample::built(), [pushed(HEAD, "ffff"), pushed(HEAD, "ffff")]);
    assert_eq!((lost(&overwrote), overwrote.dimension(&dims::reconcile()).is_needed()), (Some(("ffff".into(), false)), true));
    let mut facts = Facts::of(&overwrote).unwrap();
    facts.lost.as_mut().unwrap().restored = true;
    let again = receive(&Item { facts: facts.document(), ..overwrote }, [pushed(HEAD, "ffff")]);
    assert_eq!(lost(&again), Some(("ffff".into(), true)));
    let mut facts = sample::facts();
    facts.pushes_over(1, &Sha::new("ffff"));
    assert_eq!(lost(&receive(&Item { facts: facts.document(), ..sample::built() }, [pushed(HEAD, "ffff")])), None);
    facts.builds.push(sample::build(2, None));
    let unrecorded = Item { facts: facts.document(), ..sample::built() };
    assert_eq!(lost(&receive(&unrecorded, [pushed("a new head", "eeee")])), Some(("eeee".into(), false)));
}

#[test]
fn only_a_finished_pipeline_and_a_failed_job_ask_for_something() {
    let item = sample::built();
    for status in ["created", "pending", "running", "manual", "scheduled", "waiting_for_resource", "preparing", "canceling", ""] {
        assert_eq!(effect(&item, &finished(90, status, HEAD, NOW)), Ok(Effect::None), "{status}");
    }
    for status in ["success", "failed", "canceled", "skipped"] {
        let want = Effect::PipelineFinished(seen(90, status, false));
        assert_eq!(effect(&item, &finished(90, status, HEAD, NOW)), Ok(want), "{status}");
    }
    for status in ["created", "pending", "running", "success", "canceled", "skipped", "manual"] {
        assert_eq!(effect(&item, &job(5, 90, status)), Ok(Effect::None), "{status}");
    }
    assert_eq!(effect(&item, &job(5, 90, "failed")), Ok(Effect::JobFailed(failed_job(5))));
}

#[test]
fn a_failed_job_counts_for_the_known_pipeline_and_for_newer_ones_that_may_be_the_head_by_now() {
    let cases = [(None, 90, true), (Some(90), 90, true), (Some(90), 91, true), (Some(90), 89, false)];
    for (known, pipeline, counts) in cases {
        let item = with_pipeline(known.map(|id| seen(id, "failed", true)));
        let want = if counts { Effect::JobFailed(failed_job(5)) } else { Effect::None };
        assert_eq!(effect(&item, &job(5, pipeline, "failed")), Ok(want), "{known:?} {pipeline}");
    }
}

#[test]
fn an_effect_needs_facts_that_can_be_read() {
    let item = Item { facts: Default::default(), ..sample::item() };
    assert_eq!(effect(&item, &job(5, 90, "failed")).unwrap_err().class, crate::error::Class::Bug);
}

#[test]
fn a_reading_is_asked_for_at_once_however_far_it_was_deferred() {
    let mut item = sample::built();
    item.dims.insert(dims::reconcile(), Dimension::deferred(in_seconds(1800), "re-check"));
    let next = receive(&item, [mr("approved", DANA)]);
    assert_eq!(next.dimension(&dims::reconcile()), Dimension::needed());
    item.dims.insert(dims::reconcile(), Dimension::needed());
    assert_eq!(next, Item { last_event_at: Some(NOW), ..item });
}

#[test]
fn an_echo_moves_nothing_but_the_time_of_the_last_event() {
    let item = sample::built();
    assert_eq!(receive(&item, [mr("update", COLLIE)]), Item { last_event_at: Some(NOW), ..item });
    let newer = Item { last_event_at: Some(in_seconds(9)), ..sample::built() };
    assert_eq!(receive(&newer, [mr("update", COLLIE)]), newer);
}

#[test]
fn a_finished_pipeline_of_the_verified_head_becomes_a_fact_and_one_of_another_commit_only_a_reading() {
    let next = receive(&sample::built(), [finished(90, "success", HEAD, NOW)]);
    assert_eq!(Facts::of(&next).unwrap().pipeline, Some(seen(90, "success", false)));
    assert_eq!(next.dimension(&dims::reconcile()), Dimension::needed());
    let other = receive(&sample::built(), [finished(90, "success", "ffff", NOW)]);
    assert_eq!(other.facts, sample::built().facts);
    assert_eq!(other.dimension(&dims::reconcile()), Dimension::needed());
}

#[test]
fn a_repeated_delivery_does_not_forget_that_the_jobs_of_a_pipeline_were_listed() {
    let listed = with_pipeline(Some(seen(90, "failed", true)));
    assert_eq!(receive(&listed, [finished(90, "failed", HEAD, NOW)]).facts, listed.facts);
    let again = receive(&listed, [finished(90, "success", HEAD, NOW)]);
    assert_eq!(Facts::of(&again).unwrap().pipeline, Some(seen(90, "success", false)));
}

#[test]
fn failed_jobs_are_recorded_once_each_beside_those_already_known() {
    let first = receive(&sample::built(), [job(5, 90, "failed")]);
    let next = receive(&first, [job(6, 90, "failed"), job(5, 90, "failed")]);
    assert_eq!(failed_jobs(&next), [failed_job(5), failed_job(6)]);
    let dimension = next.dimension(&dims::ci_retry());
    assert_eq!((dimension.is_actionable(NOW), dimension.why()), (true, "jobs have failed"));
    assert_eq!(next.dimension(&dims::reconcile()), Dimension::done());
    assert_eq!(failed_jobs(&sample::built()), []);
}

#[test]
fn a_row_records_at_most_fifty_jobs() {
    let item = receive(&sample::built(), (1..=60).map(|id| job(id, 90, "failed")));
    let ids: Vec<_> = failed_jobs(&item).iter().map(|j| j.id).collect();
    assert_eq!(ids, (1..=50).collect::<Vec<_>>());
}

#[test]
fn of_two_ends_of_one_pipeline_the_later_one_is_kept_whichever_arrives_first() {
    let (failed, success) = (finished(90, "failed", HEAD, NOW), finished(90, "success", HEAD, in_seconds(60)));
    for events in [[failed.clone(), success.clone()], [success, failed]] {
        assert_eq!(Facts::of(&receive(&sample::built(), events)).unwrap().pipeline, Some(seen(90, "success", false)));
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let at = || (0_u64..5).prop_map(in_seconds);
    let action = prop::sample::select(vec!["open", "update", "merge", "close", "approved"]);
    let sha = || prop::sample::select(vec![HEAD, "aaaa"]);
    let user = prop::sample::select(vec![COLLIE, DANA]);
    let mr = (at(), action, sha(), prop::option::of(sha()), user).prop_map(|(at, action, head, oldrev, user)| Event::MergeRequest {
        at,
        iid: MrIid(2),
        action: action.into(),
        head: Some(Sha::new(head)),
        oldrev: oldrev.map(Sha::new),
        user,
    });
    let status = || prop::sample::select(vec!["success", "failed", "running"]);
    let pipeline = (at(), 89_u64..92, status(), sha()).prop_map(|(at, id, status, sha)| finished(id, status, sha, at));
    let job = (1_u64..6, 89_u64..92, status()).prop_map(|(id, pipeline, status)| job(id, pipeline, status));
    prop_oneof![mr, pipeline, job]
}

/// Some events, and the same again in another order with some of them delivered twice.
fn any_redelivery() -> impl Strategy<Value = (Vec<Event>, Vec<Event>)> {
    prop::collection::vec(any_event(), 0..8).prop_flat_map(|events| {
        let repeated = prop::sample::subsequence(events.clone(), 0..=events.len());
        let again = repeated.prop_map({
            let events = events.clone();
            move |more| events.iter().cloned().chain(more).collect::<Vec<_>>()
        });
        (Just(events), again.prop_shuffle())
    })
}

proptest! {
    #[test]
    fn order_and_repetition_of_deliveries_change_nothing((events, again) in any_redelivery()) {
        let item = sample::built();
        prop_assert_eq!(receive(&item, events), receive(&item, again));
    }

    #[test]
    fn no_event_sets_a_phase_or_anything_else_but_dimensions_facts_and_the_time(
        item in sample::any_item(), events in prop::collection::vec(any_event(), 0..8), phase in sample::any_phase(),
    ) {
        let before = Item { phase, ..item };
        let after = receive(&before, events);
        let same = Item { dims: after.dims.clone(), facts: after.facts.clone(), last_event_at: after.last_event_at, ..before };
        prop_assert_eq!(after, same);
    }

    #[test]
    fn an_event_only_ever_makes_more_to_do(item in sample::any_item(), event in any_event()) {
        let after = receive(&item, [event]);
        for key in [dims::mr(), dims::dashboard(), dims::ci_retry(), dims::empty_check(), dims::reconcile()] {
            prop_assert!(!item.dimension(&key).is_actionable(NOW) || after.dimension(&key).is_actionable(NOW), "{}", key);
        }
    }
}

#[test]
fn the_phase_of_an_active_item_survives_every_merge_and_close_hook() {
    for action in ["merge", "close"] {
        assert_eq!(receive(&sample::built(), [mr(action, DANA)]).phase, Phase::Active);
    }
}

#[test]
fn failed_jobs_are_recorded_as_far_as_there_is_room_and_what_was_found_out_about_them_stays() {
    let long = |id| FailedJob { name: "ü".repeat(80), ..failed_job(id) };
    let jobs: Vec<_> = (1..=50).map(long).collect();
    let detail = have_failed(&jobs).detail.unwrap();
    let kept = detail["jobs"].as_array().unwrap().len();
    assert!((5..50).contains(&kept) && detail.to_string().len() <= MAX_RECORD_BYTES + 64, "{kept}");
    let judged = serde_json::json!({"runner-gone": [1]});
    let mut item = sample::built();
    let known = serde_json::json!({"why": "retry delay", "jobs": [failed_job(1)], "judged": judged});
    item.dims.insert(dims::ci_retry(), Dimension { detail: Some(known), ..Dimension::deferred(NOW, "x") });
    record_job(&mut item, failed_job(2));
    assert_eq!(failed_jobs(&item).len(), 2);
    let recorded = item.dimension(&dims::ci_retry());
    assert_eq!((recorded.is_actionable(NOW), &recorded.detail.unwrap()["judged"]), (true, &judged));
}
