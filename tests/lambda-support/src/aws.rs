//! As much of SQS, S3, EventBridge and Secrets Manager as the functions use, on one address.

use crate::serve;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A message that was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The queue's name.
    pub queue: String,
    /// Its group, in a FIFO queue.
    pub group: Option<String>,
    /// What it is known by when it is sent again, in a FIFO queue.
    pub deduplication_id: Option<String>,
    /// Its body.
    pub body: Value,
    /// Its delay.
    pub delay_seconds: i64,
}

/// A message that was hidden for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// The queue's name.
    pub queue: String,
    /// By what the receipt is known.
    pub receipt_handle: String,
    /// For how long, in seconds.
    pub seconds: i64,
}

/// An event that a bus has taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    /// The bus.
    pub bus: String,
    /// Who says so.
    pub source: String,
    /// What kind of event it is.
    pub detail_type: String,
    /// What happened.
    pub detail: Value,
}

/// An object that was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its `Content-Type`.
    pub content_type: String,
    /// Its `Content-Encoding`.
    pub content_encoding: String,
}

#[derive(Default)]
struct Held {
    sent: Vec<Sent>,
    hidden: Vec<Hidden>,
    put: Vec<Put>,
    /// Why the bus takes nothing.
    bus_refuses: Option<String>,
    waiting: usize,
    objects: BTreeMap<String, Object>,
    /// Documents that keep their versions, by `/bucket/key`, oldest first.
    documents: BTreeMap<String, Vec<String>>,
    secrets: BTreeMap<String, String>,
}

type Shared = Arc<Mutex<Held>>;

/// The running stub.
#[derive(Clone)]
pub struct Aws {
    /// Where it is.
    pub endpoint: String,
    held: Shared,
}

impl Aws {
    /// Starts it, with these secrets.
    pub async fn start(secrets: &[(&str, &str)]) -> Self {
        let secrets = secrets.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let held: Shared = Arc::new(Mutex::new(Held { secrets, ..Held::default() }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&held));
        Self { endpoint: format!("http://{}", serve(router).await), held }
    }

    /// Puts another text into a secret, as a rotation does.
    pub fn set_secret(&self, id: &str, text: &str) {
        self.held.lock().unwrap().secrets.insert(id.to_owned(), text.to_owned());
    }

    /// Takes the messages that were sent so far.
    pub fn take_sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.held.lock().unwrap().sent)
    }

    /// Takes the messages that were hidden so far.
    pub fn take_hidden(&self) -> Vec<Hidden> {
        std::mem::take(&mut self.held.lock().unwrap().hidden)
    }

    /// Takes the events that the bus has taken so far.
    pub fn take_events(&self) -> Vec<Put> {
        std::mem::take(&mut self.held.lock().unwrap().put)
    }

    /// From now on, the bus refuses each entry with this code; none for taking them again.
    pub fn set_bus_refuses(&self, code: Option<&str>) {
        self.held.lock().unwrap().bus_refuses = code.map(str::to_owned);
    }

    /// The ids of the items that were rung for so far, sorted; takes the messages.
    pub fn take_rung(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.take_sent().iter().map(|sent| sent.body["item_id"].as_str().expect("an id").to_owned()).collect();
        ids.sort();
        ids
    }

    /// Says how many messages SQS counts in the queue.
    pub fn set_waiting(&self, waiting: usize) {
        self.held.lock().unwrap().waiting = waiting;
    }

    /// Puts another version of a document, at `/bucket/key`, as an operator does.
    pub fn put_version(&self, path: &str, text: &str) {
        self.held.lock().unwrap().documents.entry(path.to_owned()).or_default().push(text.to_owned());
    }

    /// All objects, by `/bucket/key`.
    pub fn objects(&self) -> BTreeMap<String, Object> {
        self.held.lock().unwrap().objects.clone()
    }
}

async fn answer(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let mut held = shared.lock().unwrap();
    match header(&headers, "x-amz-target").rsplit_once('.') {
        Some((_, operation)) => held.call(operation, &serde_json::from_slice(&body).expect("JSON")),
        None if method == Method::PUT => held.put(uri.path(), &headers, &body),
        None if method == Method::GET => held.version(&uri, &headers).unwrap_or_else(|| held.get(uri.path())),
        None => StatusCode::NOT_IMPLEMENTED.into_response(),
    }
}

impl Held {
    fn call(&mut self, operation: &str, input: &Value) -> Response {
        match operation {
            "SendMessage" => self.send(input),
            "ChangeMessageVisibility" => self.hide(input),
            "PutEvents" => self.put_events(input),
            "GetQueueAttributes" => done(&json!({"Attributes": {"ApproximateNumberOfMessages": self.waiting.to_string()}})),
            "GetSecretValue" => self.secret(input["SecretId"].as_str().unwrap_or_default()),
            _ => StatusCode::NOT_IMPLEMENTED.into_response(),
        }
    }

    /// A FIFO queue wants a group, and ids without blanks.
    fn send(&mut self, input: &Value) -> Response {
        let body = serde_json::from_str(input["MessageBody"].as_str().expect("a body")).expect("JSON");
        let text = |name: &str| input[name].as_str().map(str::to_owned);
        let (queue, group, deduplication_id) = (queue(input), text("MessageGroupId"), text("MessageDeduplicationId"));
        let is_id = |id: &Option<String>| id.as_ref().is_some_and(|id| id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic()));
        if queue.ends_with(".fifo") != (is_id(&group) && is_id(&deduplication_id)) {
            let error = json!({"__type": "com.amazonaws.sqs#InvalidParameterValue", "message": "group or deduplication id"});
            return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
        }
        self.sent.push(Sent { queue, group, deduplication_id, body, delay_seconds: input["DelaySeconds"].as_i64().unwrap_or(0) });
        done(&json!({"MessageId": format!("sent-{}", self.sent.len()), "MD5OfMessageBody": "0"}))
    }

    fn hide(&mut self, input: &Value) -> Response {
        let receipt_handle = input["ReceiptHandle"].as_str().expect("a receipt").to_owned();
        let seconds = input["VisibilityTimeout"].as_i64().expect("a time");
        self.hidden.push(Hidden { queue: queue(input), receipt_handle, seconds });
        done(&json!({}))
    }

    fn put_events(&mut self, input: &Value) -> Response {
        let entries = input["Entries"].as_array().expect("entries");
        if let Some(code) = &self.bus_refuses {
            let refused: Vec<_> = entries.iter().map(|_| json!({"ErrorCode": code, "ErrorMessage": "refused"})).collect();
            return done(&json!({"FailedEntryCount": refused.len(), "Entries": refused}));
        }
        let text = |entry: &Value, name: &str| entry[name].as_str().expect("text").to_owned();
        let put = entries.iter().map(|entry| Put {
            bus: text(entry, "EventBusName"),
            source: text(entry, "Source"),
            detail_type: text(entry, "DetailType"),
            detail: serde_json::from_str(&text(entry, "Detail")).expect("JSON"),
        });
        self.put.extend(put);
        let taken: Vec<_> = entries.iter().map(|_| json!({"EventId": "e"})).collect();
        done(&json!({"FailedEntryCount": 0, "Entries": taken}))
    }

    fn secret(&self, id: &str) -> Response {
        match self.secrets.get(id) {
            Some(text) => done(&json!({"Name": id, "SecretString": text})),
            None => (StatusCode::BAD_REQUEST, json!({"__type": "ResourceNotFoundException", "message": "no such secret"}).to_string())
                .into_response(),
        }
    }

    fn put(&mut self, path: &str, headers: &HeaderMap, body: &Bytes) -> Response {
        if self.objects.contains_key(path) && header(headers, "if-none-match") == "*" {
            return refused(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        let (content_type, content_encoding) = (header(headers, "content-type"), header(headers, "content-encoding"));
        let object = Object { bytes: body.to_vec(), content_type, content_encoding };
        self.objects.insert(path.to_owned(), object);
        StatusCode::OK.into_response()
    }

    /// A version of a document, or the list of them.
    fn version(&self, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        let query: Vec<_> = uri.query().unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        if query.iter().any(|(key, _)| *key == "versions") {
            return Some(self.versions(uri.path()));
        }
        let versions = self.documents.get(uri.path())?;
        let asked = query.iter().find(|(key, _)| *key == "versionId").and_then(|(_, id)| id.strip_prefix('v')?.parse().ok());
        let number: usize = asked.unwrap_or(versions.len());
        let etag = format!("\"etag-{number}\"");
        if header(headers, "if-none-match") == etag {
            return Some(StatusCode::NOT_MODIFIED.into_response());
        }
        Some(([(header::ETAG, etag)], versions.get(number - 1)?.clone()).into_response())
    }

    fn versions(&self, bucket: &str) -> Response {
        let root = format!("{}/", bucket.trim_end_matches('/'));
        let documents = self.documents.iter().filter_map(|(path, versions)| Some((path.strip_prefix(&root)?, versions.len())));
        let entry = |key: &str, n: usize| format!("<Version><Key>{key}</Key><VersionId>v{n}</VersionId></Version>");
        let listed: String = documents.flat_map(|(key, count)| (1..=count).rev().map(move |n| entry(key, n))).collect();
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListVersionsResult>{listed}</ListVersionsResult>").into_response()
    }

    fn get(&self, path: &str) -> Response {
        match self.objects.get(path) {
            Some(object) => object.bytes.clone().into_response(),
            None => refused(StatusCode::NOT_FOUND, "NoSuchKey"),
        }
    }
}

/// The name of the queue that a request is about.
fn queue(input: &Value) -> String {
    input["QueueUrl"].as_str().and_then(|url| url.rsplit('/').next()).expect("a queue").to_owned()
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn done(answer: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/x-amz-json-1.0")], answer.to_string()).into_response()
}

fn refused(status: StatusCode, code: &str) -> Response {
    (status, format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{code}</Message></Error>"))
        .into_response()
}
