//! What is derived from the history of one issue: recordings of several requests, each twice, in every order of steps.

use crate::Judged;
use crate::fixture;
use collie_core::issue::id::{BuildId, RequestId, Source};
use collie_core::issue::key::IssueKey;
use collie_core::issue::lifecycle;
use collie_core::issue::program::{Answer, Effect};
use collie_core::issue::record::{Record, Step};
use collie_core::issue::row::{Event, Finding, Issue, LogEntry, RequestIssue, Row, RowKey, Status, Summary};
use collie_core::issue::table::{Belief, Edit, Table};
use collie_core::time::Timestamp;
use stateright::{Model, Property};

/// A rule that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Rows are written whatever became of them since they were read.
    WrittenBlindly,
    /// A summary moves back to an older request.
    OrderNotChecked,
    /// What a request meant is overwritten by a weaker word.
    RankNotChecked,
    /// An entry of the history is written again.
    LogOverwritten,
}

impl Mutant {
    /// All of them; each must be caught.
    pub const ALL: [Self; 4] = [Self::WrittenBlindly, Self::OrderNotChecked, Self::RankNotChecked, Self::LogOverwritten];
}

/// The recordings and the rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    table: Table,
    records: Vec<Record>,
    broken: Option<String>,
}

impl Judged for State {
    fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }
}

/// The next effect of this recording happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn(usize);

/// The model.
#[derive(Debug, Clone)]
pub struct Projection {
    mutant: Option<Mutant>,
    records: Vec<Record>,
}

fn source(number: u64) -> Option<Source> {
    Some(Source { request: RequestId::new(number)?, build: BuildId::new(format!("b{number}")) })
}

fn record(by: u64, first_seen: u64, event: Event, at: u64) -> Option<Record> {
    let opening = lifecycle::opening(&IssueKey::new("t", "u"), &source(first_seen)?, Timestamp::from_millis(at));
    let status = if event == Event::Closed { Status::Closed } else { Status::Open };
    let row = Issue { status, changed_by: source(by)?, ..opening };
    Some(Record::new(&row, event, &source(by)?, Timestamp::from_millis(at)))
}

impl Projection {
    /// One request opens the issue and closes it, twice; the next opens it; the third meets it, by two workers at different times.
    #[must_use]
    pub fn new(mutant: Option<Mutant>) -> Option<Self> {
        let records = vec![
            record(2, 1, Event::Opened, 10)?,
            record(2, 1, Event::Closed, 20)?,
            record(2, 1, Event::Closed, 20)?,
            record(3, 3, Event::Opened, 30)?,
            record(4, 3, Event::Reported, 40)?,
            record(4, 3, Event::Reported, 41)?,
        ];
        Some(Self { mutant, records })
    }

    fn answer(&self, effect: &Effect<()>, table: &mut Table) -> Option<Answer> {
        match (self.mutant, effect) {
            (Some(Mutant::WrittenBlindly), Effect::Write(edits)) if edits.iter().all(|edit| !is_log(edit)) => force(edits, table),
            (Some(Mutant::LogOverwritten), Effect::Write(edits)) if edits.iter().all(is_log) => force(edits, table),
            (Some(mutant), Effect::Read(_)) => fixture::perform(effect, table).map(|answer| lie(mutant, answer)),
            _ => fixture::perform(effect, table),
        }
    }
}

fn is_log(edit: &Edit) -> bool {
    matches!(edit, Edit::Put(_, Row::Log(_), _))
}

fn force(edits: &[Edit], table: &mut Table) -> Option<Answer> {
    for edit in edits {
        if let Edit::Put(key, row, _) = edit {
            let _ = table.write(&[Edit::Put(key.clone(), row.clone(), Belief::Anything)]);
        }
    }
    Some(Answer::Written)
}

/// What was read, made to look older or weaker than it is.
fn lie(mutant: Mutant, answer: Answer) -> Answer {
    let Answer::Row(Some(row)) = answer else { return answer };
    let row = match (mutant, *row) {
        (Mutant::OrderNotChecked, Row::Summary(seen)) => match source(1) {
            Some(oldest) => Row::Summary(Summary { changed_by: oldest, status: Status::Open, ..seen }),
            None => Row::Summary(seen),
        },
        (Mutant::RankNotChecked, Row::RequestIssue(seen)) if seen.result == Finding::Closed => {
            Row::RequestIssue(RequestIssue { result: Finding::Existing, ..seen })
        }
        (_, row) => row,
    };
    Answer::Row(Some(Box::new(row)))
}

fn rank(table: &Table) -> (u64, bool) {
    let summary: Option<Summary> = fixture::row(table, &RowKey::summary(&IssueKey::new("t", "u")));
    summary.map_or((0, false), |s| (s.changed_by.request.number(), s.status == Status::Closed))
}

fn findings(table: &Table) -> Vec<(RowKey, Finding)> {
    let finding = |(key, row): (&RowKey, &Row)| match row {
        Row::RequestIssue(found) => Some((key.clone(), found.result)),
        _ => None,
    };
    table.rows().filter_map(finding).collect()
}

fn judge(before: &Table, after: &Table) -> Option<&'static str> {
    let entries = before.rows().filter(|(_, row)| matches!(row, Row::Log(LogEntry { .. })));
    if entries.into_iter().any(|(key, row)| after.get(key) != Some(row)) {
        return Some("S9: an entry of the history has changed");
    }
    if rank(after) < rank(before) {
        return Some("S8: the summary went back");
    }
    let weaker = findings(before).into_iter().any(|(key, was)| findings(after).into_iter().any(|(other, is)| other == key && is < was));
    weaker.then_some("what a request meant became weaker")
}

fn judge_end(table: &Table) -> Option<&'static str> {
    let words: Vec<_> = findings(table).into_iter().map(|(_, finding)| finding).collect();
    let right = rank(table) == (3, false) && words == [Finding::Closed, Finding::New, Finding::Existing];
    (!right).then_some("S8: what is derived is not what the history says")
}

impl Model for Projection {
    type State = State;
    type Action = Turn;

    fn init_states(&self) -> Vec<State> {
        vec![State { table: Table::default(), records: self.records.clone(), broken: None }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Turn>) {
        if state.broken.is_none() {
            let under_way = state.records.iter().enumerate().filter(|(_, record)| !record.is_over());
            actions.extend(under_way.map(|(index, _)| Turn(index)));
        }
    }

    fn next_state(&self, last: &State, Turn(index): Turn) -> Option<State> {
        let mut state = last.clone();
        let effect = state.records[index].effect::<()>()?;
        let answer = self.answer(&effect, &mut state.table)?;
        state.records[index].resume(answer);
        let broken = judge(&last.table, &state.table).or_else(|| {
            let ended = state.records.iter().all(|record| record.step == Step::Recorded);
            ended.then(|| judge_end(&state.table)).flatten()
        });
        state.broken = broken.map(str::to_owned);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("no rule is broken", |_, state: &State| state.broken.is_none())]
    }
}
