//! What the store's answers, and missing answers, mean to its callers.

use crate::fixture::{
    NOW, append, applies, at, born, cancel, claim, commit, committed, creation_of, exit, id, landed, new_item, release, retry, update,
    updated,
};
use crate::stores::{Store, TABLE, emulator};
use aws_sdk_dynamodb::Client;
use collie_core::error::{Class, Failure};
use collie_core::item::{Item, Phase};
use collie_core::queue::{Change, Ending};
use collie_dynamo::{DynamoItems, local};
use collie_engine::ports::{ChangeError, Created};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a store that follows a script answers next; none hangs up.
pub(crate) type Answer = Option<(u16, Value)>;

/// A client of a server that gives these answers in turn, then hangs up.
pub(crate) async fn scripted_client(answers: Vec<Answer>) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answer in answers {
            let (stream, _) = listener.accept().await.unwrap();
            reply(stream, answer).await;
        }
    });
    local::client(endpoint)
}

async fn scripted(answers: Vec<Answer>) -> Store {
    Arc::new(DynamoItems::new(scripted_client(answers).await, TABLE.into()))
}

async fn reply(mut stream: TcpStream, answer: Answer) {
    read_message(&mut stream).await;
    let Some((status, body)) = answer else { return };
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close\r\n");
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
}

/// One HTTP message with its body.
async fn read_message(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = Vec::new();
    while !is_complete(&message) {
        assert!(stream.read_buf(&mut message).await.unwrap() > 0, "the other side hung up");
    }
    message
}

fn is_complete(message: &[u8]) -> bool {
    let Some(end) = message.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&message[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|n| n.trim().parse().ok());
    message.len() - end - 4 >= length.unwrap_or(0)
}

pub(crate) fn error(status: u16, code: &str) -> Answer {
    Some((status, json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "scripted"})))
}

pub(crate) fn cancelled(codes: &[&str]) -> Answer {
    let reasons: Vec<_> = codes.iter().map(|code| json!({ "Code": code })).collect();
    let name = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    Some((400, json!({"__type": name, "Message": "scripted", "CancellationReasons": reasons})))
}

async fn failed_claim(answers: Vec<Answer>) -> Failure {
    match scripted(answers).await.change(&id(1), &claim(9, NOW)).await {
        Err(ChangeError::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

pub(crate) const CONTENDED: (Class, &str) = (Class::Transient { answered: true }, "store_contended");
pub(crate) const UNKNOWN: (Class, &str) = (Class::Indeterminate, "store_unanswered");
pub(crate) const UNREAD: (Class, &str) = (Class::Transient { answered: false }, "store_unanswered");

pub(crate) fn kind(failure: &Failure) -> (Class, &'static str) {
    (failure.class, failure.code)
}

#[tokio::test]
async fn a_write_without_an_answer_may_have_happened() {
    for answer in [None, error(500, "InternalServerError"), error(503, "ServiceUnavailable"), Some((200, json!("not a row")))] {
        assert_eq!(kind(&failed_claim(vec![answer.clone()]).await), UNKNOWN, "{answer:?}");
    }
    let create = scripted(vec![None]).await.create(&creation_of(new_item(1), None)).await;
    assert_eq!(kind(&create.unwrap_err()), UNKNOWN);
}

#[tokio::test]
async fn a_read_without_an_answer_did_not_happen() {
    for answer in [None, error(500, "InternalServerError")] {
        assert_eq!(kind(&scripted(vec![answer]).await.item(&id(1)).await.unwrap_err()), UNREAD);
    }
    let throttled = scripted(vec![error(400, "ThrottlingException")]).await.item(&id(1)).await;
    assert_eq!(kind(&throttled.unwrap_err()), CONTENDED);
}

#[tokio::test]
async fn a_busy_row_is_tried_five_times() {
    for code in ["ThrottlingException", "TransactionConflictException", "ProvisionedThroughputExceededException"] {
        assert_eq!(kind(&failed_claim(vec![error(400, code); 5]).await), CONTENDED);
    }
    let busy = vec![cancelled(&["None", "TransactionConflict", "None"]); 5];
    let create = scripted(busy).await.create(&creation_of(new_item(1), None)).await;
    assert_eq!(kind(&create.unwrap_err()), CONTENDED);
}

#[tokio::test]
async fn a_creation_goes_through_once_the_conflict_is_over() {
    let answers = vec![cancelled(&["None", "None", "TransactionConflict"]), cancelled(&["ThrottlingError"]), Some((200, json!({})))];
    assert_eq!(scripted(answers).await.create(&creation_of(new_item(1), None)).await, Ok(Created::Yes));
}

/// DDB-04: a cancelled transaction lists one reason per row. A conflict among them is tried again, and the answer then settles it;
/// a failed condition alone is the answer.
#[tokio::test]
async fn ddb_04_mixed_reasons_of_a_cancelled_transaction() {
    let create = |answers| async { scripted(answers).await.create(&creation_of(new_item(1), None)).await };
    let mixed = || cancelled(&["ConditionalCheckFailed", "TransactionConflict", "None"]);
    assert_eq!(create(vec![mixed(), Some((200, json!({})))]).await, Ok(Created::Yes));
    let refused = || cancelled(&["None", "None", "ConditionalCheckFailed"]);
    assert_eq!(create(vec![mixed(), refused(), Some((200, json!({})))]).await, Ok(Created::LostRace));
    assert_eq!(create(vec![refused(), Some((200, json!({})))]).await, Ok(Created::LostRace));
}

/// DDB-08: an empty page with a key is not the last one.
#[tokio::test]
async fn ddb_08_the_schedule_finds_what_is_due_behind_empty_pages() {
    let key = |n: u64| json!({"pk": {"S": format!("item#{}", id(n))}, "sk": {"S": "item"}, "due_shard": {"N": "0"}, "due_at": {"N": "5"}});
    let empty = |n| Some((200, json!({"Items": [], "Count": 0, "LastEvaluatedKey": key(n)})));
    let last = Some((200, json!({"Items": [key(1)], "Count": 1})));
    let due = scripted(vec![empty(2), empty(3), last]).await.due(0, NOW, 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id.clone()).collect::<Vec<_>>(), [id(1)]);
}

#[tokio::test]
async fn anything_unknown_is_a_bug() {
    for answer in [error(400, "ValidationException"), error(400, "ResourceNotFoundException"), error(400, "AccessDeniedException")] {
        assert_eq!(failed_claim(vec![answer]).await.class, Class::Bug);
    }
    let create = scripted(vec![cancelled(&["None", "ValidationError"])]).await.create(&creation_of(new_item(1), None)).await;
    assert_eq!(create.unwrap_err().message, "the store refused a transaction: None, ValidationError");
}

/// A client of the emulator behind a proxy that carries every write out and loses its answer.
pub(crate) async fn losing_answers(upstream: SocketAddr) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            forward(stream, upstream).await;
        }
    });
    local::client(endpoint)
}

async fn losing(upstream: SocketAddr) -> Store {
    Arc::new(DynamoItems::new(losing_answers(upstream).await, TABLE.into()))
}

async fn forward(mut client: TcpStream, upstream: SocketAddr) {
    let request = read_message(&mut client).await;
    let mut server = TcpStream::connect(upstream).await.unwrap();
    server.write_all(&request).await.unwrap();
    let answer = read_message(&mut server).await;
    if !is_write(&request) {
        let answer = String::from_utf8(answer).unwrap().replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
        client.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn is_write(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    ["UpdateItem", "DeleteItem", "TransactWriteItems"].iter().any(|name| text.contains(&format!("DynamoDB_20120810.{name}")))
}

/// The change is carried out, its writer does not hear of it, and sends it again.
async fn unanswered(lossy: &Store, store: &Store, row: &Item, change: &Change) -> Item {
    let mut next = row.clone();
    change.apply(&mut next);
    let Err(ChangeError::Failed(failure)) = lossy.change(&row.id, change).await else { panic!("{} was answered", change.name()) };
    assert_eq!(kind(&failure), UNKNOWN, "{}", change.name());
    assert_eq!(store.item(&row.id).await, Ok(Some(next.clone())), "{}", change.name());
    landed(store, &next, change).await;
    next
}

#[tokio::test]
async fn every_change_that_was_not_answered_is_known_again() {
    let (client, upstream) = emulator().await;
    let store: Store = Arc::new(DynamoItems::new(client, TABLE.into()));
    let lossy = losing(upstream).await;
    let row = born(&store, 1).await;
    let row = unanswered(&lossy, &store, &row, &claim(9, NOW)).await;
    let row = unanswered(&lossy, &store, &row, &Change::Heartbeat { epoch: 1, until: at(100) }).await;
    let row = unanswered(&lossy, &store, &row, &committed(commit(&row, 10))).await;
    let row = unanswered(&lossy, &store, &row, &append(1)).await;
    let row = unanswered(&lossy, &store, &row, &updated(update(&row, 11))).await;
    let row = unanswered(&lossy, &store, &row, &release(&row, 12, at(1))).await;
    let row = applies(&store, &row, &claim(13, at(2))).await;
    let mut failed = commit(&row, 14);
    (failed.next.phase, failed.ending) = (Phase::Failed, Ending::Exit { due_at: None });
    let row = unanswered(&lossy, &store, &row, &committed(failed)).await;
    let head = store.head(&row.branch).await.unwrap().unwrap();
    let row = unanswered(&lossy, &store, &row, &retry(&row, head, 15)).await;
    let row = applies(&store, &row, &claim(16, at(3))).await;
    let row = unanswered(&lossy, &store, &row, &exit(&row, 17, Some(at(60)))).await;
    let row = unanswered(&lossy, &store, &row, &cancel(&row, 18)).await;
    let row = applies(&store, &row, &claim(19, at(61))).await;
    unanswered(&lossy, &store, &row, &completion(&row, 20, &store).await).await;
    assert_eq!(store.head(&row.branch).await.unwrap().unwrap().item_id, id(2));
}

async fn completion(row: &Item, mark: u64, store: &Store) -> Change {
    let mut done = commit(row, mark);
    (done.next.phase, done.ending) = (Phase::Completed, Ending::Exit { due_at: None });
    let mut next = new_item(2);
    (next.branch, next.generation) = (row.branch.clone(), 2);
    done.successor = Some(Box::new(creation_of(next, store.head(&row.branch).await.unwrap())));
    committed(done)
}

#[tokio::test]
async fn a_creation_that_was_not_answered_is_known_again() {
    let (client, upstream) = emulator().await;
    let store: Store = Arc::new(DynamoItems::new(client, TABLE.into()));
    let creation = creation_of(new_item(1), None);
    let lost = losing(upstream).await.create(&creation).await;
    assert_eq!(kind(&lost.unwrap_err()), UNKNOWN);
    assert_eq!(store.create(&creation).await, Ok(Created::Yes));
    assert_eq!(store.item(&id(1)).await, Ok(Some(creation.item)));
}
