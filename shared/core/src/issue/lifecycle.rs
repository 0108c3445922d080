//! What one build means for one issue.
//!
//! 1. A row that the build has processed is left alone.
//! 2. Reported: an absent or closed issue opens; an open one is marked as processed.
//! 3. Not reported, while finalizing: an open issue closes if the build speaks for its task; every other row is marked as processed.
//!
//! Marking rows that do not change is what stops a worker that read the row before and writes after: finishing a key always moves its
//! version.
//!
//! Does not decide which keys are looked at, nor whether the build may close at all: that is the pass.

use super::id::Source;
use super::key::IssueKey;
use super::row::{Event, Issue, OpenMark, RowKey, Status};
use super::table::{Belief, Edit};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a build says of an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// It was reported.
    Reported,
    /// It was not, and the build speaks for its task: it is gone.
    Absent,
    /// It was not, and that says nothing.
    Silent,
}

/// The row as it is to be; none where it stays as it is.
#[must_use]
pub fn decide(key: &IssueKey, row: Option<&Issue>, word: Word, by: &Source, now: Timestamp) -> Option<Issue> {
    let Some(row) = row else {
        return (word == Word::Reported).then(|| opening(key, by, now));
    };
    if row.processed == *by {
        return None;
    }
    let mut next = Issue { processed: by.clone(), version: row.version + 1, ..row.clone() };
    match (word, row.status) {
        (Word::Reported, Status::Closed) => {
            change(&mut next, Status::Open, by, now);
            next.first_seen = by.clone();
        }
        (Word::Absent, Status::Open) => change(&mut next, Status::Closed, by, now),
        _ => {}
    }
    Some(next)
}

/// The row of an issue that was not known.
#[must_use]
pub fn opening(key: &IssueKey, by: &Source, now: Timestamp) -> Issue {
    let (changed_by, first_seen, processed) = (by.clone(), by.clone(), by.clone());
    Issue {
        key: key.clone(),
        status: Status::Open,
        changed_by,
        changed_at: now,
        first_seen,
        processed,
        metadata: BTreeMap::new(),
        version: 1,
    }
}

/// Times of one issue grow, so that its history sorts.
fn change(next: &mut Issue, status: Status, by: &Source, now: Timestamp) {
    next.status = status;
    next.changed_by = by.clone();
    next.changed_at = now.max(next.changed_at.after(Duration::from_millis(1)));
}

/// What a row says that a build did to it; the same however often it is asked.
#[must_use]
pub fn event_of(row: &Issue, word: Word, by: &Source) -> Option<Event> {
    if row.changed_by == *by {
        return Some(if row.status == Status::Open { Event::Opened } else { Event::Closed });
    }
    (row.processed == *by && row.status == Status::Open && word == Word::Reported).then_some(Event::Reported)
}

/// Writes a row, and with it the mark of an open issue where that comes or goes.
#[must_use]
pub fn edits(before: Option<&Issue>, next: &Issue) -> Vec<Edit> {
    let mut edits = vec![Edit::replace(RowKey::issue(&next.key), next.clone(), before.map(|row| row.version))];
    let mark = RowKey::open(&next.key);
    match (before.map(|row| row.status), next.status) {
        (None | Some(Status::Closed), Status::Open) => {
            edits.push(Edit::Put(mark, OpenMark { key: next.key.clone() }.into(), Belief::Anything));
        }
        (Some(Status::Open), Status::Closed) => edits.push(Edit::Remove(mark)),
        _ => {}
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::id::{BuildId, RequestId};
    use proptest::prelude::*;

    fn source(request: u64) -> Source {
        Source { request: RequestId::new(request).unwrap(), build: BuildId::new(format!("b{request}")) }
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn row(status: Status, changed: u64, processed: u64) -> Issue {
        let first_seen = if status == Status::Open { changed } else { 1 };
        let metadata = BTreeMap::from([("flaky/flips".to_owned(), "2".to_owned())]);
        let (changed_by, first_seen, processed) = (source(changed), source(first_seen), source(processed));
        Issue { key: IssueKey::new("t", "u"), status, changed_by, changed_at: at(50), first_seen, processed, metadata, version: 4 }
    }

    /// Status, changed by, changed at, first seen by, processed by, version; and the event.
    type Seen = (Status, u64, u64, u64, u64, u64, Option<Event>);

    fn told(before: Option<&Issue>, word: Word) -> Option<Seen> {
        let next = decide(&IssueKey::new("t", "u"), before, word, &source(3), at(60))?;
        let number = |source: &Source| source.request.number();
        let event = event_of(&next, word, &source(3));
        Some((
            next.status,
            number(&next.changed_by),
            next.changed_at.as_millis(),
            number(&next.first_seen),
            number(&next.processed),
            next.version,
            event,
        ))
    }

    #[test]
    fn the_table() {
        use Event::{Closed, Opened, Reported};
        let open = row(Status::Open, 2, 2);
        let closed = row(Status::Closed, 2, 2);
        let rows = [
            (None, Word::Reported, Some((Status::Open, 3, 60, 3, 3, 1, Some(Opened)))),
            (None, Word::Absent, None),
            (None, Word::Silent, None),
            (Some(&closed), Word::Reported, Some((Status::Open, 3, 60, 3, 3, 5, Some(Opened)))),
            (Some(&closed), Word::Absent, Some((Status::Closed, 2, 50, 1, 3, 5, None))),
            (Some(&closed), Word::Silent, Some((Status::Closed, 2, 50, 1, 3, 5, None))),
            (Some(&open), Word::Reported, Some((Status::Open, 2, 50, 2, 3, 5, Some(Reported)))),
            (Some(&open), Word::Absent, Some((Status::Closed, 3, 60, 2, 3, 5, Some(Closed)))),
            (Some(&open), Word::Silent, Some((Status::Open, 2, 50, 2, 3, 5, None))),
        ];
        for (before, word, expected) in rows {
            assert_eq!(told(before, word), expected, "{word:?} {before:?}");
        }
        for status in [Status::Open, Status::Closed] {
            for word in [Word::Reported, Word::Absent, Word::Silent] {
                assert_eq!(told(Some(&row(status, 3, 3)), word), None, "it is processed already");
            }
        }
    }

    #[test]
    fn a_transition_is_later_than_the_one_before_it_whatever_the_clock_says() {
        let closed = Issue { changed_at: at(90), ..row(Status::Closed, 2, 2) };
        let opened = decide(&closed.key, Some(&closed), Word::Reported, &source(3), at(60)).unwrap();
        assert_eq!(opened.changed_at, at(91));
    }

    #[test]
    fn the_mark_is_written_with_what_opens_and_closes_and_with_nothing_else() {
        let (open, closed) = (row(Status::Open, 2, 2), row(Status::Closed, 2, 2));
        assert!(matches!(&edits(None, &open)[..], [Edit::Put(_, _, Belief::Absent), Edit::Put(_, _, Belief::Anything)]));
        assert!(matches!(&edits(Some(&closed), &open)[..], [Edit::Put(_, _, Belief::Version(4)), Edit::Put(_, _, Belief::Anything)]));
        assert!(matches!(&edits(Some(&open), &closed)[..], [Edit::Put(_, _, Belief::Version(4)), Edit::Remove(_)]));
        assert_eq!((edits(Some(&open), &open).len(), edits(Some(&closed), &closed).len()), (1, 1));
    }

    fn any_word() -> impl Strategy<Value = Word> {
        prop_oneof![Just(Word::Reported), Just(Word::Absent), Just(Word::Silent)]
    }

    proptest! {
        #[test]
        fn over_any_history_versions_and_times_grow_transitions_alternate_and_metadata_stays(words in proptest::collection::vec((any_word(), 0_u64..100), 1..12)) {
            let key = IssueKey::new("t", "");
            let mut row: Option<Issue> = None;
            let mut last = None;
            for (n, (word, now)) in words.into_iter().enumerate() {
                let by = source(n as u64 + 1);
                let Some(mut next) = decide(&key, row.as_ref(), word, &by, at(now)) else { continue };
                prop_assert_eq!(decide(&key, Some(&next), word, &by, at(now)), None, "again, it changes nothing");
                let event = event_of(&next, word, &by);
                if let Some(event) = event.filter(|event| *event != Event::Reported) {
                    prop_assert_ne!(last.replace(event), Some(event));
                    prop_assert!(row.as_ref().is_none_or(|row| row.changed_at < next.changed_at));
                }
                prop_assert!(row.as_ref().is_none_or(|row| row.version < next.version && row.metadata == next.metadata));
                next.metadata.insert(format!("hook/{n}"), String::new());
                row = Some(next);
            }
        }
    }
}
