//! Random writes of issue tracking on both stores and on a plain [`Table`] at once: every answer, every row, every page and every bill
//! must be the same. A failure names its seed and step.

use crate::dice::Dice;
use crate::fixture::at;
use crate::stores::{Tracking, tracking_dynamodb, tracking_memory};
use crate::tracked::{build_id, build_issue, checkpoint, issue, open_build, queue, request, source};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Analysis, Event, Job, LogEntry, OpenMark, Outcome, QueueHead, Row, RowKey, Set, Status};
use collie_core::issue::table::{Belief, BuildChange, Edit, Range, Table};
use collie_engine::cost::Meter;
use collie_engine::ports::Written;
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 4;
const STEPS: u64 = 250;
const KEYS: [(&str, &str); 8] = [("a", ""), ("a", "b"), ("a", "#"), ("a b", "\0"), ("a%23", "c"), ("B", "b"), ("é", "ü"), ("a!", "\"")];

struct Three {
    memory: Tracking,
    dynamodb: Tracking,
    table: Table,
    dice: Dice,
    /// Kinds of edits, and whether what they were in happened.
    seen: BTreeSet<(&'static str, bool)>,
}

impl Three {
    async fn new(seed: u64) -> Self {
        let (memory, dynamodb) = (tracking_memory(), tracking_dynamodb().await);
        Self { memory, dynamodb, table: Table::default(), dice: Dice::new(seed), seen: BTreeSet::new() }
    }

    fn key(&mut self) -> IssueKey {
        let (task, unit) = self.dice.pick(&KEYS);
        IssueKey::new(task, unit)
    }

    /// Text that needs none, one or several units.
    fn text(&mut self) -> String {
        let length = self.dice.pick(&[0, 3, 40, 900, 1_500, 3_000]);
        self.dice.pick(&["x", "é", "0123456789abcdef"]).repeat(length / 4)
    }

    fn row(&mut self, version: u64) -> (RowKey, Row) {
        let (key, n) = (self.key(), self.dice.roll(3) + 1);
        match self.dice.roll(7) {
            0 => (RowKey::head(), QueueHead { latest: request(n), version }.into()),
            1 => (RowKey::checkpoint(), checkpoint(version).into()),
            2 => (RowKey::job(request(n)), Job { version, ..Job::new(request(n), at(n)) }.into()),
            3 => (RowKey::open(&key), OpenMark { key: key.clone() }.into()),
            4 => {
                let detail = self.text();
                (RowKey::build_issue(&build_id(n), &key), build_issue(&key, Some(&detail).filter(|d| !d.is_empty()).map(String::as_str)))
            }
            5 => {
                let entry = LogEntry { key: key.clone(), event: Event::Reported, source: source(n), at: at(n), first_seen: None };
                (RowKey::log(&key, &source(n), Event::Reported), entry.into())
            }
            _ => {
                let mut row = issue(&key, Status::Open, version);
                row.metadata = BTreeMap::from([("example.com/note".to_owned(), self.text())]);
                (RowKey::issue(&key), row.into())
            }
        }
    }

    fn belief(&mut self, key: &RowKey) -> Belief {
        let seen = self.table.get(key).map(Row::version);
        match (self.dice.roll(8), seen) {
            (0, _) => Belief::Anything,
            (1, _) => Belief::Absent,
            (_, None) => Belief::Absent,
            (_, Some(version)) => Belief::Version(self.dice.believe(version.unwrap_or(1))),
        }
    }

    fn change(&mut self) -> BuildChange {
        let covered = self.dice.one_in(2).then(|| BTreeSet::from(["a".to_owned(), self.text()]));
        match self.dice.roll(8) {
            0 => BuildChange::EndAnalysis { ended: self.dice.pick(&[Analysis::Completed, Analysis::Abandoned]), covered },
            1 => BuildChange::End { status: self.dice.pick(&[Outcome::Failed, Outcome::Cancelled]), at: at(9) },
            _ => BuildChange::Report,
        }
    }

    fn edit(&mut self) -> Edit {
        let version = self.dice.roll(1_000) + 1;
        match self.dice.roll(9) {
            0 => Edit::Remove(self.row(version).0),
            1 => {
                let n = self.dice.roll(3) + 1;
                Edit::Put(
                    RowKey::build(&build_id(n)),
                    open_build(n).into(),
                    if self.dice.one_in(3) { Belief::Anything } else { Belief::Absent },
                )
            }
            2 | 3 => Edit::Change(build_id(self.dice.roll(3) + 1), self.change()),
            4 | 5 => {
                let (key, row) = self.row(version);
                Edit::Keep(key, row)
            }
            _ => {
                let (key, row) = self.row(version);
                let belief = self.belief(&key);
                Edit::Put(key, row, belief)
            }
        }
    }

    /// One edit, or several of which no two are about the same row.
    fn edits(&mut self) -> Vec<Edit> {
        let count = self.dice.pick(&[1, 1, 1, 2, 3, 8]);
        let edits: BTreeMap<_, _> = (0..count).map(|_| self.edit()).map(|edit| (edit.key(), edit)).collect();
        edits.into_values().collect()
    }

    async fn write(&mut self, edits: &[Edit], what: &str) {
        let expected = if self.table.write(edits).is_ok() { Written::Yes } else { Written::Refused };
        let (one, other) = (Meter::default(), Meter::default());
        assert_eq!(one.scope(self.memory.write(&queue(), edits)).await, Ok(expected), "{what}");
        assert_eq!(other.scope(self.dynamodb.write(&queue(), edits)).await, Ok(expected), "{what}");
        assert_eq!(one.write_units(), other.write_units(), "{what}: units of {edits:?}");
        for edit in edits {
            self.seen.insert((name(edit), expected == Written::Yes));
            let row = self.table.get(&edit.key()).cloned();
            assert_eq!(self.memory.read(&queue(), &edit.key()).await, Ok(row.clone()), "{what}");
            assert_eq!(self.dynamodb.read(&queue(), &edit.key()).await, Ok(row), "{what}");
        }
    }

    async fn compare_a_page(&mut self, what: &str) {
        let (key, n) = (self.key(), self.dice.roll(3) + 1);
        let set =
            self.dice.pick(&[Set::Jobs, Set::Issues, Set::Open, Set::BuildIssues(build_id(n)), Set::Log(key.clone()), Set::Checkpoint]);
        let prefix = self.dice.pick(&["", "", "a", "a!", "0", "é"]).to_owned();
        let after = self.dice.one_in(2).then(|| key.encoded().to_owned());
        let range = Range { set, prefix, after, limit: self.dice.pick(&[1, 2, 5, 50]) };
        let expected = self.table.range(&range);
        for store in [&self.memory, &self.dynamodb] {
            let page = store.range(&queue(), &range).await.unwrap();
            assert_eq!(page.rows, expected.rows, "{what}: {range:?}");
            assert!(page.more || !expected.more, "{what}: {range:?}");
        }
    }
}

fn name(edit: &Edit) -> &'static str {
    match edit {
        Edit::Put(_, _, Belief::Absent) => "create",
        Edit::Put(_, _, Belief::Version(_)) => "replace",
        Edit::Put(_, _, Belief::Anything) => "put",
        Edit::Keep(..) => "keep",
        Edit::Remove(_) => "remove",
        Edit::Change(_, BuildChange::Report) => "report",
        Edit::Change(_, BuildChange::EndAnalysis { .. }) => "end analysis",
        Edit::Change(_, BuildChange::End { .. }) => "end",
    }
}

#[tokio::test]
async fn stores_and_table_agree_on_random_writes() {
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        let mut three = Three::new(seed).await;
        for step in 0..STEPS {
            let what = format!("seed {seed}, step {step}");
            let edits = three.edits();
            three.write(&edits, &what).await;
            three.compare_a_page(&what).await;
        }
        seen.extend(three.seen);
    }
    let edits = ["create", "replace", "put", "keep", "remove", "report", "end analysis", "end"];
    let answers = edits.iter().flat_map(|edit| [true, false].map(|answer| (*edit, answer)));
    let missing: Vec<_> = answers.filter(|answer| !seen.contains(answer)).collect();
    assert_eq!(missing, [], "the sequences are too short to meet these");
}
