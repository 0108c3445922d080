//! What answers, and missing answers, mean to writers and readers of issue tracking's rows.

use crate::failures::{Answer, CONTENDED, UNKNOWN, UNREAD, cancelled, error, kind, losing_answers, scripted_client};
use crate::fixture::NOW;
use crate::stores::{TABLE, emulator};
use crate::tracked::{build_id, checkpoint, create, mark, open_build, queue, request, unit};
use collie_core::error::{Class, Failure};
use collie_core::issue::row::{Build, Outcome, Row, RowKey, Set};
use collie_core::issue::table::{Belief, BuildChange, Edit, Page, Range};
use collie_dynamo::DynamoTracking;
use collie_engine::cost::Meter;
use collie_engine::ports::{TrackingRows, Written};
use serde_json::json;

async fn scripted(answers: Vec<Answer>) -> DynamoTracking {
    DynamoTracking::new(scripted_client(answers).await, TABLE.into())
}

fn moved() -> Edit {
    Edit::replace(RowKey::checkpoint(), checkpoint(2), Some(1))
}

/// One edit of each way in which one is sent, and several.
fn writes() -> [Vec<Edit>; 3] {
    let mark = create((RowKey::open(&unit("a")), mark(&unit("a"))));
    [vec![moved()], vec![Edit::Remove(RowKey::job(request(1)))], vec![moved(), mark]]
}

async fn failed(answers: Vec<Answer>, edits: &[Edit]) -> Failure {
    scripted(answers).await.write(&queue(), edits).await.unwrap_err()
}

#[tokio::test]
async fn a_write_without_an_answer_may_have_happened() {
    for edits in writes() {
        for answer in [None, error(500, "InternalServerError"), error(503, "ServiceUnavailable")] {
            assert_eq!(kind(&failed(vec![answer.clone()], &edits).await), UNKNOWN, "{answer:?} to {edits:?}");
        }
    }
}

#[tokio::test]
async fn a_busy_row_is_tried_five_times_and_costs_nothing() {
    let busy = || cancelled(&["None", "TransactionConflict"]);
    for (edits, answer) in writes().iter().zip([error(400, "ThrottlingException"), error(400, "TransactionConflictException"), busy()]) {
        let meter = Meter::default();
        assert_eq!(kind(&meter.scope(failed(vec![answer.clone(); 5], edits)).await), CONTENDED, "{edits:?}");
        assert_eq!(meter.write_units(), 0);
        let answers = vec![answer.clone(), answer, Some((200, json!({})))];
        assert_eq!(scripted(answers).await.write(&queue(), edits).await, Ok(Written::Yes), "{edits:?}");
    }
}

#[tokio::test]
async fn a_transaction_is_sent_again_where_its_token_is_taken_or_at_work() {
    let [.., several] = writes();
    for code in ["TransactionInProgressException", "IdempotentParameterMismatchException"] {
        let answers = vec![error(400, code), Some((200, json!({})))];
        assert_eq!(scripted(answers).await.write(&queue(), &several).await, Ok(Written::Yes), "{code}");
    }
}

#[tokio::test]
async fn a_conflict_beside_a_refused_belief_is_sent_again() {
    let [.., several] = writes();
    let mixed = cancelled(&["ConditionalCheckFailed", "TransactionConflict"]);
    let refused = cancelled(&["None", "ConditionalCheckFailed"]);
    let answers = vec![mixed.clone(), refused];
    assert_eq!(scripted(answers).await.write(&queue(), &several).await, Ok(Written::Refused));
    let answers = vec![mixed, Some((200, json!({})))];
    assert_eq!(scripted(answers).await.write(&queue(), &several).await, Ok(Written::Yes));
}

#[tokio::test]
async fn a_read_without_an_answer_did_not_happen() {
    let range = Range::first(Set::Jobs, 1);
    for (answer, expected) in [(None, UNREAD), (error(500, "InternalServerError"), UNREAD), (error(400, "ThrottlingException"), CONTENDED)]
    {
        let read = scripted(vec![answer.clone()]).await.read(&queue(), &RowKey::checkpoint()).await;
        assert_eq!(kind(&read.unwrap_err()), expected, "{answer:?}");
        assert_eq!(kind(&scripted(vec![answer.clone()]).await.range(&queue(), &range).await.unwrap_err()), expected, "{answer:?}");
    }
}

#[tokio::test]
async fn anything_unknown_is_a_bug() {
    for edits in writes() {
        assert_eq!(failed(vec![error(400, "ValidationException")], &edits).await.class, Class::Bug, "{edits:?}");
    }
    let [.., several] = writes();
    assert_eq!(failed(vec![cancelled(&["None", "ValidationError"])], &several).await.class, Class::Bug);
}

#[tokio::test]
async fn an_empty_page_may_have_more_behind_it() {
    let key = json!({"pk": {"S": "open#app-main"}, "sk": {"S": "open#a!!"}});
    let answers =
        vec![Some((200, json!({"Items": [], "Count": 0, "LastEvaluatedKey": key}))), Some((200, json!({"Items": [], "Count": 0})))];
    let store = scripted(answers).await;
    let range = Range::first(Set::Open, 10);
    assert_eq!(store.range(&queue(), &range).await, Ok(Page { rows: Vec::new(), more: true }));
    assert_eq!(store.range(&queue(), &range).await, Ok(Page { rows: Vec::new(), more: false }));
}

#[tokio::test]
async fn a_row_that_is_not_one_is_a_bug_and_no_absent_row() {
    let found = json!({"pk": {"S": "queue#app-main"}, "sk": {"S": "checkpoint"}, "d": {"M": {"version": {"N": "1"}}}});
    let read = scripted(vec![Some((200, json!({"Item": found})))]).await.read(&queue(), &RowKey::checkpoint()).await;
    let failure = read.unwrap_err();
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (Class::Bug, "a stored row of issue tracking cannot be read: missing field `phase`")
    );
    let ranged = scripted(vec![Some((200, json!({"Items": [found], "Count": 1})))]).await;
    let ranged = ranged.range(&queue(), &Range::first(Set::Checkpoint, 1)).await;
    assert_eq!(ranged.unwrap_err().class, Class::Bug);
}

/// What was not answered has happened: sent again, what has a belief is refused, and the row shows it.
#[tokio::test]
async fn a_write_that_was_not_answered_and_is_sent_again_happens_once() {
    let (client, upstream) = emulator().await;
    let store = DynamoTracking::new(client, TABLE.into());
    let lossy = DynamoTracking::new(losing_answers(upstream).await, TABLE.into());
    let beginning = [Edit::create(RowKey::checkpoint(), checkpoint(1)), Edit::create(RowKey::build(&build_id(1)), open_build(1))];
    assert_eq!(store.write(&queue(), &beginning).await, Ok(Written::Yes));
    for edits in [vec![moved()], vec![Edit::replace(RowKey::checkpoint(), checkpoint(3), Some(2)), Edit::Remove(RowKey::job(request(1)))]] {
        assert_eq!(kind(&lossy.write(&queue(), &edits).await.unwrap_err()), UNKNOWN);
        assert_eq!(store.write(&queue(), &edits).await, Ok(Written::Refused));
    }
    let row: Row = checkpoint(3).into();
    assert_eq!(store.read(&queue(), &RowKey::checkpoint()).await, Ok(Some(row)));
    let end = [Edit::Change(build_id(1), BuildChange::End { status: Outcome::Failed, at: NOW })];
    assert_eq!(kind(&lossy.write(&queue(), &end).await.unwrap_err()), UNKNOWN);
    assert_eq!(store.write(&queue(), &end).await, Ok(Written::Refused));
    let build = Build::try_from(store.read(&queue(), &RowKey::build(&build_id(1))).await.unwrap().unwrap()).unwrap();
    assert_eq!((build.version, build.report_seq), (2, 0));
    let put = [Edit::Put(RowKey::checkpoint(), checkpoint(9).into(), Belief::Anything)];
    assert_eq!(kind(&lossy.write(&queue(), &put).await.unwrap_err()), UNKNOWN);
    assert_eq!(store.write(&queue(), &put).await, Ok(Written::Yes));
}
