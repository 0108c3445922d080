//! Cursor, row, recovery and a newer request: workers and recoveries of two requests over at least two keys, in every order, each
//! crashing or freezing anywhere.
//!
//! What never changes (requests, builds, reports) lies outside the state; reading it is no step of its own. What is derived from the
//! history is the model [`crate::projection`].

mod invariant;
mod mutant;

pub use mutant::Mutant;

use crate::Judged;
use crate::fixture::{self, NOW, limits};
use collie_core::issue::delivery::{Delivery, Verdict};
use collie_core::issue::id::RequestId;
use collie_core::issue::key::IssueKey;
use collie_core::issue::program::{Answer, Effect, Program};
use collie_core::issue::recovery::{Recovered, Recovery};
use collie_core::issue::row::{Event, Issue, Outcome, Row, RowKey, Set};
use collie_core::issue::table::{Edit, Table};
use stateright::{Model, Property};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Who works on which request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A worker of the older request.
    Old,
    /// A worker of the newer request.
    New,
    /// A recovery of the older request.
    RecoverOld,
    /// A recovery of the newer request.
    RecoverNew,
    /// A hook that edits the metadata of issue `a`.
    Edit,
}

/// What is known before, what each build reports, and who is there.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// For people.
    pub name: &'static str,
    /// Open before.
    pub open: &'static [&'static str],
    /// Closed before.
    pub closed: &'static [&'static str],
    /// What the older build reports.
    pub old: &'static [&'static str],
    /// How the older build ends.
    pub outcome: Outcome,
    /// What the newer build reports.
    pub new: &'static [&'static str],
    /// Who is there.
    pub roles: &'static [Role],
    /// Whether, at every state, everyone may have crashed: what is there then must be enough for those who come next.
    pub all_crash: bool,
}

/// A program of either kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Work {
    /// A worker's.
    Deliver(Delivery),
    /// A recovery's.
    Recover(Recovery),
    /// A hook's edit.
    Edit(Edition),
    /// None any more.
    Gone,
}

/// Where a hook's edit is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Edition {
    /// Reads the row.
    Read,
    /// Writes it on the version that was read.
    Write(Box<Issue>),
    /// There was no row, or it is written, or refused.
    Over,
}

/// Someone who works.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Actor {
    /// Who.
    pub role: Role,
    /// Where the program is.
    pub work: Work,
    /// What a mutant has done ahead of its turn, or has put off.
    pub debt: mutant::Debt,
}

/// Everything that moves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Rows that change.
    pub table: Table,
    /// Who is there.
    pub actors: Vec<Actor>,
    /// The last transition of each issue.
    pub last: BTreeMap<IssueKey, (RequestId, Event)>,
    /// The rule that was broken.
    pub broken: Option<String>,
}

impl Judged for State {
    fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

/// The effect of this actor happens. One that crashed, or froze, has no more turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn(usize);

/// The model.
#[derive(Debug, Clone)]
pub struct Tracking {
    scenario: Scenario,
    mutant: Option<Mutant>,
    /// Rows that do not change.
    base: Table,
    start: Table,
    old: RequestId,
    new: RequestId,
}

impl Tracking {
    /// The model of a scenario.
    #[must_use]
    pub fn new(scenario: Scenario, mutant: Option<Mutant>) -> Option<Self> {
        let mut table = Table::default();
        let before: Vec<_> = scenario.open.iter().chain(scenario.closed).copied().collect();
        for reports in [&before[..], scenario.open] {
            let request = fixture::built(&mut table, reports, Outcome::Failed)?;
            fixture::track(&mut table, request);
        }
        let old = fixture::built(&mut table, scenario.old, scenario.outcome)?;
        let new = fixture::built(&mut table, scenario.new, Outcome::Failed)?;
        let (mut base, mut start) = (Table::default(), Table::default());
        for (key, row) in table.rows() {
            match (&key.set, row) {
                (Set::Checkpoint | Set::Jobs | Set::Open, _) => start.force(key.clone(), Some(row.clone())),
                (_, Row::Issue(issue)) => start.force(key.clone(), Some(with_metadata(issue).into())),
                (Set::Requests | Set::Build(_) | Set::BuildIssues(_), _) => base.force(key.clone(), Some(row.clone())),
                _ => {}
            }
        }
        Some(Self { scenario, mutant, base, start, old, new })
    }

    fn work(&self, role: Role) -> Work {
        let deliver = |request| Work::Deliver(Delivery { request, registered_at: NOW, limits: limits(), stage: first_stage() });
        match role {
            Role::Old => deliver(self.old),
            Role::New => deliver(self.new),
            Role::RecoverOld => Work::Recover(Recovery::new(self.old)),
            Role::RecoverNew => Work::Recover(Recovery::new(self.new)),
            Role::Edit => Work::Edit(Edition::Read),
        }
    }

    fn actor(&self, role: Role) -> Actor {
        let mut actor = Actor { role, work: self.work(role), debt: mutant::Debt::None };
        self.settle(&mut actor);
        actor
    }

    /// Whether it is gone, or has done nothing since it began or waited.
    fn is_idle(&self, actor: &Actor) -> bool {
        actor.work == Work::Gone || (actor.debt == mutant::Debt::None && actor.work == self.actor(actor.role).work)
    }

    /// Goes through everything that is no step: what never changes, and what nobody else sees.
    fn settle(&self, actor: &mut Actor) {
        while let Some(answer) = self.unseen(actor) {
            actor.work.resume(answer);
        }
    }

    fn unseen(&self, actor: &Actor) -> Option<Answer> {
        if matches!(actor.debt, mutant::Debt::Mark(_)) {
            return None;
        }
        match actor.work.effect()? {
            Effect::Read(key) => match key.set {
                Set::Requests | Set::Build(_) | Set::BuildIssues(_) => Some(Answer::Row(self.base.get(&key).cloned().map(Box::new))),
                Set::Summaries | Set::RequestIssues(_) => Some(Answer::Row(None)),
                _ => None,
            },
            Effect::Range(range) => matches!(range.set, Set::BuildIssues(_)).then(|| Answer::Page(self.base.range(&range))),
            Effect::Write(edits) => {
                matches!(edits[..], [Edit::Put(RowKey { set: Set::Summaries | Set::RequestIssues(_), .. }, ..)]).then_some(Answer::Written)
            }
            Effect::Publish(_) => Some(Answer::Published),
            Effect::Done(_) => None,
        }
    }

    fn step(&self, state: &mut State, index: usize) {
        let mut actor = state.actors[index].clone();
        match actor.work.effect() {
            Some(Effect::Done(end)) => self.end(&mut actor, end),
            Some(effect) => {
                let before = state.table.clone();
                let answer = self.act(&mut actor, effect, &mut state.table);
                invariant::judge(self, &actor, &before, state);
                if let Some(answer) = answer {
                    actor.work.resume(answer);
                }
                self.after(&mut actor, &state.table);
                self.settle(&mut actor);
                actor.work.forget();
            }
            None => {}
        }
        state.actors[index] = actor;
    }

    fn end(&self, actor: &mut Actor, end: End) {
        match end {
            End::Delivered(Verdict::Hold(_) | Verdict::Again) | End::Recovered(Recovered::Again) => {
                actor.debt = mutant::Debt::None;
                actor.work = self.work(actor.role);
                self.settle(actor);
            }
            End::Delivered(_) | End::Recovered(_) | End::Edited => actor.work = Work::Gone,
        }
    }

    /// Everyone has stopped: who comes next ends both requests, and the rows are what the builds say one after the other.
    fn judge_end(&self, state: &State) -> Option<String> {
        let mut table = self.base.clone();
        state.table.rows().for_each(|(key, row)| table.force(key.clone(), Some(row.clone())));
        for request in [self.old, self.new] {
            let given_up = invariant::checkpoint(&table)
                .is_some_and(|c| c.phase == collie_core::issue::row::Phase::Abandoning && c.request == request);
            if given_up {
                fixture::run(Recovery::new(request), &mut table);
            }
            fixture::track(&mut table, request);
        }
        invariant::judge_end(self, &table)
    }
}

const fn first_stage() -> collie_core::issue::delivery::Stage {
    collie_core::issue::delivery::Stage::Request
}

fn with_metadata(issue: &Issue) -> Issue {
    Issue { metadata: BTreeMap::from([("hook/kept".to_owned(), "yes".to_owned())]), ..issue.clone() }
}

/// How either program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// A worker's.
    Delivered(Verdict),
    /// A recovery's.
    Recovered(Recovered),
    /// An edit's.
    Edited,
}

impl Work {
    fn effect(&self) -> Option<Effect<End>> {
        match self {
            Self::Deliver(delivery) => Some(ending(delivery.effect(NOW), End::Delivered)),
            Self::Recover(recovery) => Some(ending(recovery.effect(NOW), End::Recovered)),
            Self::Edit(edition) => Some(edition.effect()),
            Self::Gone => None,
        }
    }

    fn resume(&mut self, answer: Answer) {
        match self {
            Self::Deliver(delivery) => delivery.resume(answer, NOW),
            Self::Recover(recovery) => recovery.resume(answer, NOW),
            Self::Edit(edition) => edition.resume(answer),
            Self::Gone => {}
        }
    }

    /// An alarm is a rule of its own, not a difference between states.
    fn forget(&mut self) {
        if let Self::Deliver(Delivery { stage: collie_core::issue::delivery::Stage::Walk(walk), .. }) = self {
            walk.alarm = None;
        }
    }
}

impl Edition {
    fn effect(&self) -> Effect<End> {
        match self {
            Self::Read => Effect::Read(RowKey::issue(&fixture::key("a"))),
            Self::Write(row) => {
                let set = BTreeMap::from([("hook/edited".to_owned(), "yes".to_owned())]);
                let edits = collie_core::issue::call::edit_metadata(row, row.version, &set, &[]);
                edits.map_or(Effect::Done(End::Edited), |(_, edits)| Effect::Write(edits))
            }
            Self::Over => Effect::Done(End::Edited),
        }
    }

    fn resume(&mut self, answer: Answer) {
        *self = match self {
            Self::Read => answer.row().map_or(Self::Over, |row| Self::Write(Box::new(row))),
            Self::Write(_) | Self::Over => Self::Over,
        };
    }
}

fn ending<D>(effect: Effect<D>, end: fn(D) -> End) -> Effect<End> {
    match effect {
        Effect::Read(key) => Effect::Read(key),
        Effect::Range(range) => Effect::Range(range),
        Effect::Write(edits) => Effect::Write(edits),
        Effect::Publish(notice) => Effect::Publish(notice),
        Effect::Done(done) => Effect::Done(end(done)),
    }
}

impl Model for Tracking {
    type State = State;
    type Action = Turn;

    fn init_states(&self) -> Vec<State> {
        let actors = self.scenario.roles.iter().map(|role| self.actor(*role)).collect();
        vec![State { table: self.start.clone(), actors, last: BTreeMap::new(), broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Turn>) {
        if state.broken.is_none() {
            let there = state.actors.iter().enumerate().filter(|(_, actor)| actor.work != Work::Gone);
            actions.extend(there.map(|(index, _)| Turn(index)));
        }
    }

    fn next_state(&self, last: &State, Turn(index): Turn) -> Option<State> {
        let mut state = last.clone();
        self.step(&mut state, index);
        if state == *last {
            return None;
        }
        if state.broken.is_none() && (self.scenario.all_crash || state.actors.iter().all(|actor| self.is_idle(actor))) {
            state.broken = self.judge_end(&state);
        }
        state.sort_twins();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("no rule is broken", |_, state: &State| state.broken.is_none())]
    }
}

impl State {
    /// Two of one role are the same the other way round.
    fn sort_twins(&mut self) {
        for index in 1..self.actors.len() {
            let (one, other) = (&self.actors[index - 1], &self.actors[index]);
            if one.role == other.role && fingerprint(one) > fingerprint(other) {
                self.actors.swap(index - 1, index);
            }
        }
    }
}

fn fingerprint(actor: &Actor) -> u64 {
    let mut hasher = DefaultHasher::new();
    actor.hash(&mut hasher);
    hasher.finish()
}
