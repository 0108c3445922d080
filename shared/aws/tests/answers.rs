//! What the adapters make of AWS's answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation ends the test")]

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use collie_aws::{Access, Buckets, Clients, Endpoints, EventBridgeNotices, Keys, S3Archive, SecretStore, SqsHolds, SqsJobs, SqsWakes};
use collie_core::error::{Class, Failure};
use collie_core::id::ItemId;
use collie_core::issue::delivery::Reason;
use collie_core::issue::hook::{Hook, Notice, Repair};
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::Event;
use collie_core::time::Timestamp;
use collie_engine::ports::{Archive as _, Jobs as _, Notices as _, Secrets, Stored, Wakes as _};
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

/// One answer for every request, and the headers of the last.
#[derive(Clone)]
struct Canned {
    status: StatusCode,
    body: &'static str,
    asked: Arc<Mutex<Vec<HeaderMap>>>,
}

async fn answer(State(canned): State<Canned>, headers: HeaderMap) -> impl IntoResponse {
    canned.asked.lock().unwrap().push(headers);
    (canned.status, canned.body)
}

/// Clients of a server that always answers so.
async fn answering(status: u16, body: &'static str) -> (Arc<Clients>, Canned) {
    let canned = Canned { status: StatusCode::from_u16(status).unwrap(), body, asked: Arc::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(canned.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (clients(endpoint), canned)
}

fn clients(endpoint: String) -> Arc<Clients> {
    let endpoint = Some(endpoint);
    let endpoints =
        Endpoints { dynamodb: None, sqs: endpoint.clone(), s3: endpoint.clone(), eventbridge: endpoint.clone(), secrets_manager: endpoint };
    let keys = Keys { id: "AKIA".into(), secret: SecretString::from("canary-key"), session: Some(SecretString::from("session")) };
    Arc::new(Clients::new(Access { region: "eu-central-1".into(), keys, endpoints }))
}

fn archive(clients: Arc<Clients>) -> S3Archive {
    S3Archive::new(clients, Buckets { content: "content".into(), audit: "audit".into() })
}

fn wakes(clients: Arc<Clients>) -> SqsWakes {
    SqsWakes::new(clients, "https://sqs.example.com/1/wakes".into())
}

async fn put(status: u16, body: &'static str) -> Result<Stored, Failure> {
    archive(answering(status, body).await.0).put_new("content/i/x", b"bytes".to_vec()).await
}

async fn send(status: u16, body: &'static str) -> Result<(), Failure> {
    wakes(answering(status, body).await.0).send(&ItemId::new("i"), Duration::ZERO).await
}

const THROTTLED: &str = r#"{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}"#;
const DENIED: &str = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not allowed"}"#;

#[tokio::test]
async fn an_object_is_put_only_where_there_is_none() {
    assert_eq!(put(200, "").await, Ok(Stored::Created));
    assert_eq!(put(412, "<Error><Code>PreconditionFailed</Code></Error>").await, Ok(Stored::Existed));
    let (clients, canned) = answering(200, "").await;
    archive(clients).put_new("2026/01/31/18/04/i-1.ndjson.gz", b"gzip".to_vec()).await.unwrap();
    let asked = canned.asked.lock().unwrap();
    let header = |name: &str| asked[0].get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert_eq!((header("if-none-match"), header("content-encoding"), header("content-type")), ("*", "gzip", "application/x-ndjson"));
    assert!(header("authorization").contains("AKIA") && header("x-amz-security-token") == "session");
}

#[tokio::test]
async fn two_writers_at_once_try_again_and_a_refusal_is_final() {
    let conflict = put(409, "<Error><Code>ConditionalRequestConflict</Code></Error>").await.unwrap_err();
    assert_eq!((conflict.class, conflict.code), (Class::Transient { answered: true }, "archive_failed"));
    let denied = put(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>").await.unwrap_err();
    assert_eq!((denied.class, denied.message.as_str()), (Class::Bug, "S3 refused a request: AccessDenied: no"));
}

#[tokio::test]
async fn an_object_that_is_not_there_is_none_and_one_that_may_not_be_read_is_a_bug() {
    let missing = archive(answering(404, "<Error><Code>NoSuchKey</Code></Error>").await.0).get("content/i/x").await;
    assert_eq!(missing, Ok(None));
    let denied = archive(answering(403, "<Error><Code>AccessDenied</Code></Error>").await.0).get("content/i/x").await;
    assert_eq!(denied.unwrap_err().class, Class::Bug);
    assert_eq!(archive(answering(200, "bytes").await.0).get("content/i/x").await, Ok(Some(b"bytes".to_vec())));
}

#[tokio::test]
async fn a_queue_that_is_busy_or_away_is_transient() {
    assert_eq!(send(400, THROTTLED).await.unwrap_err().class, Class::Transient { answered: true });
    assert_eq!(send(503, "{}").await.unwrap_err().class, Class::Transient { answered: false });
    let away = wakes(clients("http://127.0.0.1:9".into())).send(&ItemId::new("i"), Duration::ZERO).await.unwrap_err();
    assert_eq!((away.class, away.code), (Class::Transient { answered: false }, "wake_not_sent"));
}

#[tokio::test]
async fn a_queue_that_refuses_is_a_bug_and_asked_once() {
    let (clients, canned) = answering(400, DENIED).await;
    let denied = wakes(clients).send(&ItemId::new("i"), Duration::ZERO).await.unwrap_err();
    assert_eq!((denied.class, canned.asked.lock().unwrap().len()), (Class::Bug, 1));
}

#[tokio::test]
async fn a_depth_that_sqs_does_not_say_is_no_zero() {
    assert_eq!(wakes(answering(200, r#"{"Attributes":{"ApproximateNumberOfMessages":"17"}}"#).await.0).depth().await, Ok(17));
    for body in ["{}", r#"{"Attributes":{}}"#, r#"{"Attributes":{"ApproximateNumberOfMessages":"many"}}"#] {
        assert_eq!(wakes(answering(200, body).await.0).depth().await.unwrap_err().class, Class::Bug, "{body}");
    }
}

#[tokio::test]
async fn a_secret_is_text_without_its_line_end() {
    let secret = SecretStore::new(answering(200, r#"{"SecretString":"glpat-1\n"}"#).await.0, "collie/".into()).secret("gitlab/main").await;
    assert_eq!(secret.unwrap().expose_secret(), "glpat-1");
    let empty = SecretStore::new(answering(200, r#"{"SecretString":"\n"}"#).await.0, "collie/".into()).secret("gitlab/main").await;
    assert_eq!(empty.unwrap_err().to_string(), "secret_empty: the secret collie/gitlab/main holds no text");
}

fn opened() -> Notice {
    let (key, build) = (IssueKey::new("unit tests", "a::b"), BuildId::new("b1"));
    Notice::Hook(Hook { event: Event::Opened, key, build, at: Timestamp::from_millis(7) })
}

fn offered() -> Notice {
    Notice::Repair(Repair { build_id: BuildId::new("b1"), request_id: RequestId::new(1).unwrap(), pass_id: 1 })
}

/// What comes of a notice, and how often AWS was asked.
async fn published(notice: Notice, status: u16, body: &'static str) -> (Result<(), Failure>, usize) {
    let (clients, canned) = answering(status, body).await;
    let notices = EventBridgeNotices::new(clients, "bus".into(), "https://sqs.example.com/1/repairs".into());
    let result = notices.publish(&QueueName::new("app-main"), &notice).await;
    (result, canned.asked.lock().unwrap().len())
}

/// An answer of 200 is none yet.
#[tokio::test]
async fn an_event_is_put_only_where_its_own_entry_says_so() {
    assert_eq!(published(opened(), 200, r#"{"FailedEntryCount":0,"Entries":[{"EventId":"e"}]}"#).await, (Ok(()), 1));
    for body in [
        r#"{"FailedEntryCount":1,"Entries":[{"ErrorCode":"ThrottlingException","ErrorMessage":"slow down"}]}"#,
        r#"{"FailedEntryCount":1,"Entries":[{"ErrorCode":"InternalFailure","ErrorMessage":"sorry"}]}"#,
        r#"{"FailedEntryCount":1,"Entries":[]}"#,
    ] {
        let (result, asked) = published(opened(), 200, body).await;
        let failure = result.unwrap_err();
        assert_eq!((failure.class, failure.code, asked), (Class::Transient { answered: true }, "event_not_put", 3), "{body}");
    }
    let denied = r#"{"FailedEntryCount":1,"Entries":[{"ErrorCode":"NotAuthorizedForSourceException","ErrorMessage":"no"}]}"#;
    let (result, asked) = published(opened(), 200, denied).await;
    let failure = result.unwrap_err();
    assert_eq!(
        (failure.class, failure.message.as_str(), asked),
        (Class::Bug, "EventBridge refused an event: NotAuthorizedForSourceException", 1)
    );
}

#[tokio::test]
async fn a_bus_or_a_queue_that_is_busy_or_away_is_transient_for_notices_jobs_and_holds() {
    let (clients, _) = answering(503, "{}").await;
    let (queue, job) = (QueueName::new("app-main"), RequestId::new(1).unwrap());
    let jobs =
        SqsJobs::new(Arc::clone(&clients), "https://sqs.example.com/1/jobs.fifo".into(), "https://sqs.example.com/1/dead.fifo".into());
    let failures = [
        published(opened(), 503, "{}").await.0,
        published(offered(), 503, "{}").await.0,
        jobs.ring(&queue, job, "admitted").await,
        jobs.dead_letter(&queue, job, 10, Reason::Failures).await,
        SqsHolds::new(clients, "https://sqs.example.com/1/jobs.fifo".into()).hold("receipt", Duration::ZERO).await,
    ];
    let codes = failures.map(|failed| failed.map_err(|failure| (failure.class, failure.code)).unwrap_err());
    let expected = ["event_not_put", "repair_not_sent", "job_not_sent", "job_not_sent", "message_not_held"];
    assert_eq!(codes, expected.map(|code| (Class::Transient { answered: false }, code)));
}
