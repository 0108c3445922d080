//! Registration and the order of jobs: callers admit at once, ring in any order or never, and a worker runs the oldest job.

use crate::{Judged, fixture};
use collie_core::issue::call;
use collie_core::issue::id::RequestId;
use collie_core::issue::row::{QueueHead, Row, RowKey, Set, UriClaim};
use collie_core::issue::table::{Edit, Range, Table};
use stateright::{Model, Property};

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The job is written after its request.
    JobApart,
    /// A worker runs the job that its message names.
    OwnJobOnly,
    /// A uri is not claimed.
    UriNotClaimed,
}

impl Mutant {
    /// All of them; each must be caught.
    pub const ALL: [Self; 3] = [Self::JobApart, Self::OwnJobOnly, Self::UriNotClaimed];
}

/// Where a caller is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Caller {
    /// Reads whether the uri is known.
    Ask(&'static str),
    /// Reads the head.
    Look(&'static str),
    /// Writes on the head that it read.
    Admit(&'static str, Option<QueueHead>),
    /// Writes the job, where a mutant has left it out.
    Register(RequestId, Box<Edit>),
    /// Rings.
    Ring(RequestId),
    /// Has its answer.
    Answered,
}

/// Callers, messages and rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    table: Table,
    callers: Vec<Caller>,
    messages: Vec<RequestId>,
    tracked: Vec<RequestId>,
    broken: Option<&'static str>,
}

impl Judged for State {
    fn broken(&self) -> Option<&str> {
        self.broken
    }
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// This caller's next effect.
    Call(usize),
    /// This message is delivered.
    Deliver(usize),
    /// The schedule rings for a job that nobody rang for.
    Wake,
}

/// The model: three callers, two of them with the same uri.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The rule that is left out.
    pub mutant: Option<Mutant>,
}

fn oldest(table: &Table) -> Option<RequestId> {
    let page = table.range(&Range::first(Set::Jobs, 1));
    page.rows.into_iter().find_map(|(_, row)| match row {
        Row::Job(job) => Some(job.request),
        _ => None,
    })
}

impl Registration {
    fn call(&self, state: &mut State, index: usize) {
        state.callers[index] = match state.callers[index].clone() {
            Caller::Ask(uri) => match fixture::row::<UriClaim>(&state.table, &RowKey::uri(uri)) {
                Some(_) => Caller::Answered,
                None => Caller::Look(uri),
            },
            Caller::Look(uri) => Caller::Admit(uri, fixture::row(&state.table, &RowKey::head())),
            Caller::Admit(uri, head) => self.admit(&mut state.table, uri, head.as_ref()),
            Caller::Register(request, edit) => {
                let _ = state.table.write(&[*edit]);
                Caller::Ring(request)
            }
            Caller::Ring(request) => {
                state.messages.push(request);
                Caller::Answered
            }
            Caller::Answered => Caller::Answered,
        };
    }

    fn admit(&self, table: &mut Table, uri: &'static str, head: Option<&QueueHead>) -> Caller {
        let Ok((id, mut edits)) = call::admit(head, uri, fixture::NOW) else { return Caller::Answered };
        if self.mutant == Some(Mutant::UriNotClaimed) {
            edits.retain(|edit| edit.key().set != Set::Uris);
        }
        let job = edits.iter().position(|edit| edit.key().set == Set::Jobs).filter(|_| self.mutant == Some(Mutant::JobApart));
        let apart = job.map(|at| edits.remove(at));
        match (table.write(&edits), apart) {
            (Err(_), _) => Caller::Ask(uri),
            (Ok(()), Some(job)) => Caller::Register(id, Box::new(job)),
            (Ok(()), None) => Caller::Ring(id),
        }
    }

    /// Runs a job, and keeps the message while its own job is there.
    fn deliver(&self, state: &mut State, index: usize) {
        let own = state.messages[index];
        let is_there = |table: &Table| table.get(&RowKey::job(own)).is_some();
        let job = if self.mutant == Some(Mutant::OwnJobOnly) { Some(own).filter(|_| is_there(&state.table)) } else { oldest(&state.table) };
        if let Some(job) = job {
            let _ = state.table.write(&[Edit::Remove(RowKey::job(job))]);
            state.tracked.push(job);
        }
        if !is_there(&state.table) {
            state.messages.remove(index);
        }
    }
}

fn judge(state: &State) -> Option<&'static str> {
    if !state.tracked.is_sorted() {
        return Some("an older request is tracked after a newer one");
    }
    let uris: Vec<_> =
        state.table.rows().filter_map(|(_, row)| if let Row::Request(request) = row { Some(&request.uri) } else { None }).collect();
    (uris.iter().any(|uri| uris.iter().filter(|other| other == &uri).count() > 1)).then_some("one uri has two requests")
}

impl Model for Registration {
    type State = State;
    type Action = Turn;

    fn init_states(&self) -> Vec<State> {
        let callers = ["x", "y", "x"].map(Caller::Ask).to_vec();
        vec![State { table: Table::default(), callers, messages: Vec::new(), tracked: Vec::new(), broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Turn>) {
        if state.broken.is_some() {
            return;
        }
        actions.extend((0..state.callers.len()).filter(|index| state.callers[*index] != Caller::Answered).map(Turn::Call));
        actions.extend((0..state.messages.len()).map(Turn::Deliver));
        actions.extend(oldest(&state.table).filter(|_| state.messages.is_empty()).map(|_| Turn::Wake));
    }

    fn next_state(&self, last: &State, turn: Turn) -> Option<State> {
        let mut state = last.clone();
        match turn {
            Turn::Call(index) => self.call(&mut state, index),
            Turn::Deliver(index) => self.deliver(&mut state, index),
            Turn::Wake => state.messages.extend(oldest(&state.table)),
        }
        state.broken = judge(&state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule is broken", |_, state: &State| state.broken.is_none()),
            Property::eventually("every job ends", |_, state: &State| {
                let answered = state.callers.iter().all(|caller| *caller == Caller::Answered);
                answered && oldest(&state.table).is_none()
            }),
        ]
    }
}
