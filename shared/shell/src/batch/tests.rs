use super::*;
use collie_core::error::Class;
use collie_core::time::Timestamp;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Does what bodies say, and remembers what it began and ended. Dropping a job that runs is an end too.
#[derive(Default)]
struct Told {
    begun: Mutex<Vec<String>>,
    under_way: Arc<AtomicUsize>,
}

struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Work for Told {
    type Job = String;

    fn read(&self, record: &Record) -> Result<String, Failure> {
        match record.body.as_str() {
            "not json" => Err(Failure::rejected("malformed", "not JSON")),
            "bomb" => panic!("reading panics"),
            body => Ok(body.to_owned()),
        }
    }

    async fn run(&self, job: String, _: &Invocation) -> Result<Ended, Failure> {
        let _under_way = UnderWay::new(&self.under_way);
        self.begun.lock().unwrap().push(job.clone());
        match job.as_str() {
            "panics" => panic!("running panics"),
            "waits" => return Ok(Ended::Held),
            "hangs" => Notify::new().notified().await,
            "fails" => return Err(Failure::new(Class::Transient { answered: false }, "store_unanswered", "no answer")),
            _ => tokio::task::yield_now().await,
        }
        Ok(Ended::Done)
    }
}

fn batch(records: Value) -> Batch {
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

fn of_bodies(bodies: &[&str]) -> Batch {
    batch(bodies.iter().enumerate().map(|(n, body)| json!({"messageId": format!("m{}", n + 1), "body": body})).collect())
}

async fn processed(work: &Arc<Told>, batch: Batch) -> Result<String, Unidentified> {
    let invocation = Invocation { request_id: "r".into(), deadline: Timestamp::from_millis(30_000) };
    let report = process(Arc::clone(work), batch, invocation, Duration::from_secs(28)).await?;
    Ok(serde_json::to_string(&report).unwrap())
}

#[tokio::test(start_paused = true)]
async fn of_ten_one_panics_and_one_hangs_and_exactly_these_two_are_reported() {
    let work = Arc::new(Told::default());
    let bodies = ["a", "b", "panics", "c", "d", "e", "hangs", "f", "g", "h"];
    let answer = processed(&work, of_bodies(&bodies)).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"m3"},{"itemIdentifier":"m7"}]}"#);
    assert_eq!(work.begun.lock().unwrap().len(), 10);
    assert_eq!(work.under_way.load(Ordering::SeqCst), 0, "nothing outlives the batch");
}

/// SQS-01: exactly the failed message is named.
#[tokio::test]
async fn a_failed_message_is_reported_alone() {
    let answer = processed(&Arc::default(), of_bodies(&["a", "fails", "b"])).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"m2"}]}"#);
}

/// SQS-06: what cannot be read takes no good message with it.
#[tokio::test]
async fn messages_that_cannot_be_read_are_reported_one_by_one_and_test_events_are_dropped() {
    let work = Arc::new(Told::default());
    let test_event = json!({"Records": [{"eventName": "s3:TestEvent"}]}).to_string();
    let answer = processed(&work, of_bodies(&["a", "not json", &test_event, "bomb", "b"])).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m4"}]}"#);
    let mut begun = work.begun.lock().unwrap().clone();
    begun.sort();
    assert_eq!(begun, ["a", "b"]);
}

/// SQS-01: an id that is missing or empty would have the platform repeat or drop the wrong messages.
#[tokio::test]
async fn a_record_without_an_id_fails_the_whole_batch_before_anything_is_done() {
    let work = Arc::new(Told::default());
    for nameless in [json!({"body": "x"}), json!({"messageId": "", "body": "x"}), json!({"messageId": null, "body": "x"})] {
        let records = json!([{"messageId": "m1", "body": "a"}, nameless, {"messageId": "m3", "body": "b"}]);
        assert_eq!(processed(&work, batch(records)).await, Err(Unidentified));
    }
    assert!(work.begun.lock().unwrap().is_empty());
}

#[tokio::test]
async fn messages_that_ask_for_the_same_share_one_run_and_its_outcome() {
    let work = Arc::new(Told::default());
    let answer = processed(&work, of_bodies(&["a", "fails", "a", "fails"])).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m4"}]}"#);
    assert_eq!(work.begun.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_message_that_is_in_the_batch_twice_is_reported_once() {
    let record = json!({"messageId": "m1", "body": "fails"});
    let answer = processed(&Arc::default(), batch(json!([record, record]))).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"m1"}]}"#);
}

fn of_groups(records: &[(&str, &str)]) -> Batch {
    let record = |(n, (group, body)): (usize, &(&str, &str))| json!({"messageId": format!("r{}", n + 1), "body": body, "attributes": {"MessageGroupId": group}});
    batch(records.iter().enumerate().map(record).collect())
}

/// SQS-02, for every way in which a message can fail.
#[tokio::test(start_paused = true)]
async fn a_message_that_fails_holds_the_later_ones_of_its_group_back() {
    for fails in ["fails", "waits", "panics", "hangs", "not json", "bomb"] {
        let work = Arc::new(Told::default());
        let records = [("A", "a1"), ("A", fails), ("A", "a2"), ("B", "b1"), ("A", "a3")];
        let answer = processed(&work, of_groups(&records)).await.unwrap();
        let mut failed: Vec<Value> = serde_json::from_str::<Value>(&answer).unwrap()["batchItemFailures"].as_array().unwrap().clone();
        failed.sort_by_key(|failed| failed["itemIdentifier"].to_string());
        assert_eq!(json!(failed), json!([{"itemIdentifier": "r2"}, {"itemIdentifier": "r3"}, {"itemIdentifier": "r5"}]), "{fails}");
        let begun = work.begun.lock().unwrap().clone();
        assert!(begun.contains(&"a1".into()) && begun.contains(&"b1".into()), "{fails}: {begun:?}");
        assert!(!begun.contains(&"a2".into()) && !begun.contains(&"a3".into()), "{fails}: {begun:?}");
    }
}

#[tokio::test]
async fn messages_of_a_group_run_in_their_order_and_only_neighbours_share_a_run() {
    let work = Arc::new(Told::default());
    let records = [("A", "x"), ("A", "x"), ("A", "y"), ("A", "x")];
    assert_eq!(processed(&work, of_groups(&records)).await.unwrap(), r#"{"batchItemFailures":[]}"#);
    assert_eq!(*work.begun.lock().unwrap(), ["x", "y", "x"]);
}

#[tokio::test(start_paused = true)]
async fn without_time_left_everything_that_waits_is_reported() {
    let work = Arc::new(Told::default());
    let invocation = Invocation { request_id: "r".into(), deadline: Timestamp::from_millis(0) };
    let report = process(Arc::clone(&work), of_bodies(&["hangs", "hangs"]), invocation, Duration::ZERO).await.unwrap();
    let answer = serde_json::to_value(&report).unwrap();
    assert_eq!(answer["batchItemFailures"].as_array().unwrap().len(), 2);
    assert_eq!(work.under_way.load(Ordering::SeqCst), 0);
}
