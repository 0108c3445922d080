//! Random sequences of changes on both stores at once: every answer, every row and every bill must be the same.
//!
//! Beliefs come from the current row, now and then off by one; earlier changes are sent again, as unanswered writers do.
//! The bill of a repeated write is not compared: DynamoDB may answer a repeated transaction without carrying it out.
//! A failure names its seed and step.

use crate::dice::Dice;
use crate::fixture::{
    append, at, branch, cancel, claim, commit, committed, creation_of, dimension, enqueue, exit, id, new_item, overflow, release, retry,
    update, updated,
};
use crate::stores;
use crate::stores::Store;
use collie_core::id::ItemId;
use collie_core::item::{Blocked, BlockedReason, BranchHead, Dimension, DimensionKey, Item, LastError, Phase, ResultKind};
use collie_core::queue::{Change, Creation, Ending, Verdict};
use collie_engine::cost::Meter;
use collie_engine::ports::{ChangeError, ListFilter};
use std::collections::BTreeSet;

const SEEDS: u64 = 4;
const STEPS: u64 = 200;
const BRANCHES: u64 = 3;
const PHASES: [Phase; 4] = [Phase::Active, Phase::Completed, Phase::Failed, Phase::Cancelled];

struct Pair {
    memory: Store,
    dynamodb: Store,
    dice: Dice,
    /// Seconds since the start; moves by up to a lease.
    clock: u64,
    mark: u64,
    sent: Vec<(ItemId, Change)>,
    ids: Vec<ItemId>,
    /// Changes and their answers.
    seen: BTreeSet<(&'static str, &'static str)>,
}

impl Pair {
    async fn new(seed: u64) -> Self {
        let dice = Dice::new(seed);
        Self {
            memory: stores::memory(),
            dynamodb: stores::dynamodb().await,
            dice,
            clock: 0,
            mark: 0,
            sent: Vec::new(),
            ids: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn next_mark(&mut self) -> u64 {
        self.mark += 1;
        100_000 + self.mark
    }

    /// A birth of the next item on one of few branches, on a head that may have moved.
    async fn creation(&mut self) -> Creation {
        let mut item = new_item(self.ids.len() as u64 + 1);
        item.branch = branch(self.dice.roll(BRANCHES));
        item.due_at = Some(at(self.clock));
        let head = self.memory.head(&item.branch).await.unwrap();
        item.generation = head.as_ref().map_or(1, |head| head.generation + 1);
        let version = head.as_ref().map_or(1, |head| self.dice.believe(head.version));
        creation_of(item, head.map(|head| BranchHead { version, ..head }))
    }

    async fn create(&mut self, what: &str) {
        let creation = self.creation().await;
        self.ids.push(creation.item.id.clone());
        for repeat in 0..=self.dice.roll(2) {
            let (memory, dynamodb) = (Meter::default(), Meter::default());
            let one = memory.scope(self.memory.create(&creation)).await;
            assert_eq!(one, dynamodb.scope(self.dynamodb.create(&creation)).await, "{what}");
            if repeat == 0 {
                assert_eq!(memory.write_units(), dynamodb.write_units(), "{what}: units of a creation");
            }
        }
    }

    async fn change(&mut self, what: &str) {
        let (id, change) = self.next_change().await;
        self.send(what, &id, &change).await;
        if self.dice.one_in(3) {
            self.send(what, &id, &change).await;
        }
        self.sent.push((id, change));
    }

    /// A change of one of the newest items, or one that was sent before.
    async fn next_change(&mut self) -> (ItemId, Change) {
        if self.dice.one_in(8) && !self.sent.is_empty() {
            return self.dice.pick(&self.sent[self.sent.len().saturating_sub(6)..]);
        }
        let id = self.dice.pick(&self.ids[self.ids.len().saturating_sub(5)..]);
        let row = self.memory.item(&id).await.unwrap();
        (id, self.any_change(&row.unwrap_or_else(|| new_item(999))).await)
    }

    async fn send(&mut self, what: &str, id: &ItemId, change: &Change) {
        let row = self.memory.item(id).await.unwrap();
        let (memory, dynamodb) = (Meter::default(), Meter::default());
        let one = memory.scope(self.memory.change(id, change)).await;
        let other = dynamodb.scope(self.dynamodb.change(id, change)).await;
        assert_eq!(one, other, "{what}: {change:?}");
        let answer = answer(row.as_ref(), change, &one);
        self.seen.insert((change.name(), answer));
        if answer != "landed" {
            assert_eq!(memory.write_units(), dynamodb.write_units(), "{what}: units of {}", change.name());
        }
        if let Change::Commit(c) = change
            && let Some(next) = &c.successor
            && !self.ids.contains(&next.item.id)
        {
            self.ids.push(next.item.id.clone());
        }
    }

    async fn any_change(&mut self, row: &Item) -> Change {
        let (mark, now) = (self.next_mark(), self.clock);
        let kind = if !row.is_active() && self.dice.one_in(3) { 10 } else { self.dice.roll(18) };
        match kind {
            0..=3 => claim(mark, at(now)),
            4 => Change::Heartbeat { epoch: self.dice.believe(row.lease_epoch), until: at(now + 60 + self.dice.roll(60)) },
            5 | 6 => self.commit(row, mark).await,
            7 => {
                let due_at = self.dice.one_in(2).then(|| at(now + mark % 300));
                self.believed(exit(row, mark, due_at))
            }
            8 => self.believed(release(row, mark, at(now))),
            9 => self.update(row, mark),
            10 => self.retry(row, mark).await,
            11 => cancel(row, mark),
            12..=14 => append(self.dice.roll(60)),
            _ => overflow(self.dice.roll(60)),
        }
    }

    fn believed(&mut self, mut change: Change) -> Change {
        match &mut change {
            Change::Exit { belief, .. } => self.shake(belief),
            Change::Release { epoch, commit_seq, .. } => {
                *epoch = self.dice.believe(*epoch);
                *commit_seq = self.dice.believe(*commit_seq);
            }
            Change::Commit(c) => self.shake(&mut c.belief),
            _ => {}
        }
        change
    }

    fn shake(&mut self, belief: &mut collie_core::queue::Belief) {
        belief.epoch = self.dice.believe(belief.epoch);
        belief.wake_seq = self.dice.believe(belief.wake_seq);
        belief.commit_seq = self.dice.believe(belief.commit_seq);
    }

    async fn commit(&mut self, row: &Item, mark: u64) -> Change {
        let mut c = commit(row, mark);
        c.progress = self.dice.one_in(2);
        c.next.inbox.truncate(usize::try_from(self.dice.roll(5)).unwrap());
        c.next.recent = c.next.recent.split_off(c.next.recent.len().saturating_sub(20));
        c.next.outbox.clear();
        c.next.attempts = u32::try_from(self.dice.roll(4)).unwrap();
        c.next.blocked = self.dice.one_in(3).then(|| Blocked { reason: BlockedReason::Auth, since: at(mark), detail: "é".into() });
        c.next.last_error = self.dice.one_in(3).then(|| LastError { code: "gone".into(), message: "x".into(), at: at(mark) });
        c.next.dims.insert(DimensionKey::with_variant("needs_build", "a.b#c"), Dimension::deferred(at(mark), "pipeline"));
        c.next.dims.remove(&dimension("needs_reconcile"));
        if self.dice.one_in(3) {
            c.next.phase = self.dice.pick(&PHASES);
            c.next.result = (c.next.phase == Phase::Completed).then_some(ResultKind::Merged);
            c.ending = Ending::Exit { due_at: None };
        }
        if c.next.phase == Phase::Completed && self.dice.one_in(2) {
            let mut next = self.creation().await;
            next.item.branch = row.branch.clone();
            next.replaces = self.memory.head(&row.branch).await.unwrap();
            c.successor = Some(Box::new(next));
        }
        self.believed(committed(c))
    }

    fn update(&mut self, row: &Item, mark: u64) -> Change {
        let mut u = update(row, mark);
        u.rev = self.dice.believe(u.rev);
        u.revives = row.phase == Phase::Failed || self.dice.one_in(8);
        u.enqueue = enqueue(&["needs_mr", "needs_reconcile", "needs_mr"], at(self.clock));
        updated(u)
    }

    async fn retry(&mut self, row: &Item, mark: u64) -> Change {
        let seen = BranchHead { item_id: row.id.clone(), generation: row.generation, version: 1 };
        let mut head = self.memory.head(&row.branch).await.unwrap().unwrap_or(seen);
        head.version = self.dice.believe(head.version);
        retry(row, head, mark)
    }

    /// The rows of these items and their contents are the same.
    async fn compare_items(&self, ids: &[ItemId], what: &str) {
        for id in ids {
            let (one, other) = (self.memory.item(id).await, self.dynamodb.item(id).await);
            assert_eq!(one, other, "{what}");
            let rev = one.unwrap().map_or(1, |row| row.rev);
            assert_eq!(self.memory.content(id, rev).await, self.dynamodb.content(id, rev).await, "{what}");
        }
    }

    /// Everything that can be read is the same.
    async fn compare_all(&self, what: &str) {
        self.compare_items(&self.ids, what).await;
        for n in 0..BRANCHES {
            assert_eq!(self.memory.head(&branch(n)).await, self.dynamodb.head(&branch(n)).await, "{what}");
        }
        self.compare_indexes(what).await;
    }

    async fn compare_indexes(&self, what: &str) {
        for shard in 0..4 {
            let mut found = Vec::new();
            for store in [&self.memory, &self.dynamodb] {
                let mut due = store.due(shard, at(self.clock), 1_000).await.unwrap();
                assert!(due.is_sorted_by_key(|item| item.due_at), "{what}");
                due.sort_by(|a, b| a.id.cmp(&b.id));
                found.push(due);
            }
            assert_eq!(found[0], found[1], "{what}: shard {shard}");
        }
        let identity = branch(0);
        for phase in [None, Some(Phase::Active), Some(Phase::Failed)] {
            let filter = ListFilter { projects: vec![(identity.host.clone(), identity.project_id)], phase, ..ListFilter::default() };
            assert_eq!(self.memory.list(&filter, None, 7).await, self.dynamodb.list(&filter, None, 7).await, "{what}");
            assert_eq!(self.memory.list(&filter, Some(&id(9)), 3).await, self.dynamodb.list(&filter, Some(&id(9)), 3).await, "{what}");
        }
    }
}

/// Runs one sequence and returns which answers each change got.
async fn run(seed: u64) -> BTreeSet<(&'static str, &'static str)> {
    let mut pair = Pair::new(seed).await;
    pair.create("birth").await;
    for step in 0..STEPS {
        let what = format!("seed {seed}, step {step}");
        pair.clock += pair.dice.roll(40);
        if pair.dice.one_in(20) {
            pair.create(&what).await;
        } else {
            pair.change(&what).await;
        }
        let touched: Vec<_> = pair.ids.last().into_iter().chain(pair.sent.last().map(|(id, _)| id)).cloned().collect();
        pair.compare_items(&touched, &what).await;
        if step % 50 == 49 {
            pair.compare_all(&what).await;
        }
    }
    pair.seen
}

/// The answer in a word, by the row before.
fn answer(row: Option<&Item>, change: &Change, got: &Result<Item, ChangeError>) -> &'static str {
    match (row.map(|row| change.judge(row)), got) {
        (None, _) => "absent",
        (Some(Verdict::Landed), _) => "landed",
        (Some(_), Ok(_)) => "applied",
        (Some(_), Err(_)) => "refused",
    }
}

#[tokio::test]
async fn both_stores_agree_on_random_changes() {
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        seen.extend(run(seed).await);
    }
    let changes = ["claim", "heartbeat", "commit", "exit", "release", "update", "retry", "cancel", "append", "overflow"];
    let answers = changes.iter().flat_map(|change| ["applied", "landed", "refused"].map(|answer| (*change, answer)));
    let missing: Vec<_> = answers.filter(|answer| !seen.contains(answer)).collect();
    assert_eq!(missing, [], "the sequences are too short to meet these");
}
