//! In which order, and which of them, rows of a set are read.

use crate::fixture::NOW;
use crate::stores::Tracking;
use crate::tracked::{Queue, build_id, checkpoint, create, issue, mark, request, rows, source, unit};
use collie_core::issue::id::BuildId;
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Event, Job, LogEntry, RowKey, Set, Status};
use collie_core::issue::table::{Belief, Edit, Page, Range};

/// Task and unit of keys in their order.
const ODD: [(&str, &str); 26] = [
    ("", ""),
    ("", "\0"),
    ("\0", "x"),
    ("\u{1}", ""),
    (" ", "!"),
    ("!", ""),
    ("\"", ""),
    ("#", "#"),
    ("#23", ""),
    ("%", "#"),
    ("%23", "#"),
    ("%25", ""),
    ("A", ""),
    ("B", "a"),
    ("a", ""),
    ("a", "\0"),
    ("a", "!b"),
    ("a", "#b"),
    ("a", "B"),
    ("a", "b"),
    ("a", "b\0"),
    ("a b", "issue#"),
    ("a!b", ""),
    ("ab", "~"),
    ("é", "ü"),
    ("\u{10FFFF}", "\u{FFFF}"),
];

fn odd() -> Vec<IssueKey> {
    ODD.iter().map(|(task, unit)| IssueKey::new(*task, *unit)).collect()
}

async fn with_marks(store: Tracking, keys: &[IssueKey]) -> Queue {
    let mut queue = Queue::new(store);
    for chunk in keys.chunks(100) {
        let edits: Vec<_> = chunk.iter().rev().map(|key| create((RowKey::open(key), mark(key)))).collect();
        queue.done(&edits).await;
    }
    queue
}

pub(crate) async fn a_range_is_in_order_behind_its_place_and_within_its_prefix(store: Tracking) {
    let queue = with_marks(store, &odd()).await;
    let mut places: Vec<_> = odd().iter().map(|key| key.encoded().to_owned()).collect();
    places.extend(["", "a", "a!", "a!b", "b", "zzz", "\u{10FFFF}\u{10FFFF}"].map(str::to_owned));
    for prefix in ["", "a", "a!", "a\"20", "%", "#", "zz", "é"] {
        for after in places.iter().cloned().map(Some).chain([None]) {
            let range = Range { set: Set::Open, prefix: prefix.into(), after, limit: 4 };
            let Page { rows, more } = queue.store.range(&queue.name, &range).await.unwrap();
            let expected = queue.model.range(&range);
            assert_eq!(rows, expected.rows, "{range:?}");
            assert!(more || !expected.more, "{range:?}");
        }
    }
    for limit in [1, 2, 3, 25, 26, 27, 100] {
        assert_eq!(queue.pages(&Range::first(Set::Open, limit)).await.len(), 26);
    }
    let none = Range::first(Set::Open, 0);
    assert_eq!(queue.store.range(&queue.name, &none).await, Ok(Page { rows: Vec::new(), more: true }));
}

pub(crate) async fn keys_sort_by_their_bytes_whatever_they_hold(store: Tracking) {
    let queue = with_marks(store, &odd()).await;
    let found = queue.pages(&Range::first(Set::Open, 5)).await;
    let found: Vec<_> = found.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(found, odd().iter().map(IssueKey::encoded).collect::<Vec<_>>());
    for prefix in ["", "a", "#", "%2", "A"] {
        let range = Range { prefix: IssueKey::encoded_prefix(prefix), ..Range::first(Set::Open, 3) };
        let expected = ODD.iter().filter(|(task, _)| task.starts_with(prefix)).count();
        assert_eq!(queue.pages(&range).await.len(), expected, "{prefix}");
    }
}

/// As long as keys get, of what is longest once it is escaped.
pub(crate) async fn the_longest_keys_fit(store: Tracking) {
    let mut queue = Queue::new(store);
    for filler in ["#", "%", "x", " ", "€"] {
        let key = IssueKey::new(filler.repeat(2_000), filler.repeat(2_000));
        assert!(key.encoded().len() > 890, "{}", key.encoded().len());
        let log = LogEntry { key: key.clone(), event: Event::Opened, source: source(1), at: NOW, first_seen: None };
        let edits = [
            Edit::create(RowKey::issue(&key), issue(&key, Status::Open, 1)),
            create((RowKey::open(&key), mark(&key))),
            Edit::create(RowKey::log(&key, &source(1), Event::Opened), log),
        ];
        queue.done(&edits).await;
        queue.compare_sets(&[Set::Log(key)]).await;
    }
    queue.compare_sets(&[Set::Issues, Set::Open]).await;
}

pub(crate) async fn numbers_sort_as_numbers(store: Tracking) {
    let mut queue = Queue::new(store);
    let numbers = [1, 2, 9, 10, 11, 99, 100, 1_000_000, i64::MAX as u64];
    for n in numbers.into_iter().rev() {
        queue.done(&[Edit::create(RowKey::job(request(n)), Job::new(request(n), NOW))]).await;
    }
    let found = queue.pages(&Range::first(Set::Jobs, 2)).await;
    let found: Vec<_> = found.into_iter().map(|(_, row)| Job::try_from(row).unwrap().request.number()).collect();
    assert_eq!(found, numbers);
    let oldest = queue.store.range(&queue.name, &Range::first(Set::Jobs, 1)).await.unwrap();
    assert_eq!(oldest.rows[0].0, request(1).padded());
}

/// Every set of a queue has rows, and each shows its own alone.
pub(crate) async fn sets_of_one_queue_are_apart(store: Tracking) {
    let mut queue = Queue::new(store);
    for full in [true, false] {
        for row in rows(full) {
            let edit = Edit::Put(row.0, row.1, Belief::Anything);
            queue.done(&[edit]).await;
        }
    }
    let key = unit("a");
    let neighbours =
        [BuildId::new("gitlab/4242/3#x"), BuildId::new("gitlab/4242"), BuildId::new("gitlab/4242/3%23x"), BuildId::new("build")];
    for build in &neighbours {
        queue.done(&[create((RowKey::build_issue(build, &key), crate::tracked::build_issue(&key, None)))]).await;
    }
    let sets = rows(true).into_iter().chain(rows(false)).map(|(key, _)| key.set);
    let sets: Vec<_> = sets.chain(neighbours.map(Set::BuildIssues)).chain([Set::History(request(33)), Set::Log(key)]).collect();
    queue.compare_sets(&sets).await;
    assert_eq!(queue.pages(&Range::first(Set::BuildIssues(build_id(3)), 10)).await.len(), 2);
}

pub(crate) async fn queues_are_apart_whatever_their_names(store: Tracking) {
    let names = ["app", "app-main", "app#main", "app%23main", "app#", "app%", "app#gitlab/4242/3", "queue#app"];
    let mut queues: Vec<_> = names.iter().map(|name| Queue::named(store.clone(), name)).collect();
    for (n, queue) in (1..).zip(&mut queues) {
        queue.done(&[Edit::create(RowKey::checkpoint(), checkpoint(n))]).await;
        let own: Vec<_> = rows(n % 2 == 0).into_iter().filter(|(key, _)| key.set != Set::Checkpoint).map(create).collect();
        queue.done(&own).await;
    }
    for queue in &queues {
        queue.compare(&RowKey::checkpoint()).await;
        queue.compare_sets(&rows(true).into_iter().chain(rows(false)).map(|(key, _)| key.set).collect::<Vec<_>>()).await;
    }
}

pub(crate) async fn a_set_of_one_row_has_it_at_its_empty_place(store: Tracking) {
    let mut queue = Queue::new(store);
    queue.compare_sets(&[Set::Checkpoint, Set::Head]).await;
    queue.done(&[Edit::create(RowKey::checkpoint(), checkpoint(1))]).await;
    let found = queue.pages(&Range::first(Set::Checkpoint, 3)).await;
    assert_eq!(found, [(String::new(), checkpoint(1).into())]);
    let behind = Range::behind(Set::Checkpoint, Some(String::new()), 3);
    assert_eq!(queue.pages(&behind).await, []);
    queue.compare_sets(&[Set::Head, Set::Jobs]).await;
}
