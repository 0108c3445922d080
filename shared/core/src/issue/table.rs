//! What may be written, and what it means: a write is a list of [`Edit`]s that happen all or not at all. This is the meaning that
//! every store must have; models and the store in memory use it as it is.

use super::id::BuildId;
use super::row::{Analysis, Build, Outcome, Row, RowKey, Set};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What a writer believes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Belief {
    /// It is not there.
    Absent,
    /// It has this version.
    Version(u64),
    /// Nothing: the row is only a shadow of another that is written with it.
    Anything,
}

/// What may happen to a build after its birth. Reports do not move its version, so that they do not keep each other out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BuildChange {
    /// Issues are reported. Refused once its analysis has ended, which freezes what absence is judged by.
    Report,
    /// Its analysis ends; once.
    EndAnalysis {
        /// Completed or abandoned.
        ended: Analysis,
        /// The tasks that the reports speak for; none for all.
        covered: Option<BTreeSet<String>>,
    },
    /// It ends; once.
    End {
        /// How.
        status: Outcome,
        /// When.
        at: Timestamp,
    },
}

impl BuildChange {
    /// Whether the change may happen.
    #[must_use]
    pub fn is_admitted(&self, build: &Build) -> bool {
        match self {
            Self::Report | Self::EndAnalysis { .. } => build.analysis == Analysis::Open,
            Self::End { .. } => build.status.is_none(),
        }
    }

    /// The build afterwards.
    pub fn apply(&self, build: &mut Build) {
        match self {
            Self::Report => build.report_seq += 1,
            Self::EndAnalysis { ended, covered } => {
                build.analysis = *ended;
                build.covered_tasks.clone_from(covered);
                build.version += 1;
            }
            Self::End { status, at } => {
                build.status = Some(*status);
                build.ended_at = Some(*at);
                build.version += 1;
            }
        }
    }
}

/// One row's part of a write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Edit {
    /// The row becomes this one, if what is believed of it holds.
    Put(RowKey, Row, Belief),
    /// The row becomes this one, unless there is one.
    Keep(RowKey, Row),
    /// The row goes. One that is not there is a success.
    Remove(RowKey),
    /// A build changes, if it may.
    Change(BuildId, BuildChange),
}

impl Edit {
    /// A new row.
    #[must_use]
    pub fn create(key: RowKey, row: impl Into<Row>) -> Self {
        Self::Put(key, row.into(), Belief::Absent)
    }

    /// A row in place of the one with this version, or of none.
    #[must_use]
    pub fn replace(key: RowKey, row: impl Into<Row>, seen: Option<u64>) -> Self {
        Self::Put(key, row.into(), seen.map_or(Belief::Absent, Belief::Version))
    }

    /// The row that it is about.
    #[must_use]
    pub fn key(&self) -> RowKey {
        match self {
            Self::Put(key, ..) | Self::Keep(key, _) | Self::Remove(key) => key.clone(),
            Self::Change(build, _) => RowKey::build(build),
        }
    }

    /// Whether it may happen to the row as it is.
    #[must_use]
    pub fn is_admitted(&self, row: Option<&Row>) -> bool {
        match (self, row) {
            (Self::Put(_, _, Belief::Absent), row) => row.is_none(),
            (Self::Put(_, _, Belief::Version(seen)), row) => row.and_then(Row::version) == Some(*seen),
            (Self::Put(_, _, Belief::Anything) | Self::Keep(..) | Self::Remove(_), _) => true,
            (Self::Change(_, change), Some(Row::Build(build))) => change.is_admitted(build),
            (Self::Change(..), _) => false,
        }
    }

    /// The row afterwards.
    #[must_use]
    pub fn apply(&self, row: Option<&Row>) -> Option<Row> {
        match (self, row) {
            (Self::Put(_, new, _), _) => Some(new.clone()),
            (Self::Keep(_, new), row) => Some(row.unwrap_or(new).clone()),
            (Self::Remove(_), _) => None,
            (Self::Change(_, change), Some(Row::Build(build))) => {
                let mut build = build.clone();
                change.apply(&mut build);
                Some(Row::Build(build))
            }
            (Self::Change(..), row) => row.cloned(),
        }
    }
}

/// Which rows of a set are wanted: from behind a place, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Range {
    /// The set.
    pub set: Set,
    /// Only places that begin so.
    pub prefix: String,
    /// Only places behind this one.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

impl Range {
    /// The first rows of a set.
    #[must_use]
    pub fn first(set: Set, limit: usize) -> Self {
        Self { set, prefix: String::new(), after: None, limit }
    }

    /// The rows behind a place.
    #[must_use]
    pub fn behind(set: Set, after: Option<String>, limit: usize) -> Self {
        Self { set, prefix: String::new(), after, limit }
    }
}

/// Rows in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Page {
    /// The rows, each with its place.
    pub rows: Vec<(String, Row)>,
    /// Whether there may be more behind them. A page without rows is then possible.
    pub more: bool,
}

/// The rows of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Table(BTreeMap<RowKey, Row>);

impl Table {
    /// A row.
    #[must_use]
    pub fn get(&self, key: &RowKey) -> Option<&Row> {
        self.0.get(key)
    }

    /// Does all edits, or none and says which was refused. No two may be about one row.
    ///
    /// # Errors
    /// The first edit whose belief does not hold.
    pub fn write(&mut self, edits: &[Edit]) -> Result<(), usize> {
        let refused = edits.iter().position(|edit| !edit.is_admitted(self.0.get(&edit.key())));
        if let Some(refused) = refused {
            return Err(refused);
        }
        for edit in edits {
            let key = edit.key();
            match edit.apply(self.0.get(&key)) {
                Some(row) => self.0.insert(key, row),
                None => self.0.remove(&key),
            };
        }
        Ok(())
    }

    /// Rows of a set.
    #[must_use]
    pub fn range(&self, range: &Range) -> Page {
        let start = RowKey { set: range.set.clone(), at: range.prefix.clone() };
        let start = match &range.after {
            Some(after) if *after >= range.prefix => Bound::Excluded(RowKey { at: after.clone(), ..start }),
            _ => Bound::Included(start),
        };
        let found =
            self.0.range((start, Bound::Unbounded)).take_while(|(key, _)| key.set == range.set && key.at.starts_with(&range.prefix));
        let mut rows: Vec<_> = found.take(range.limit + 1).map(|(key, row)| (key.at.clone(), row.clone())).collect();
        let more = rows.len() > range.limit;
        rows.truncate(range.limit);
        Page { rows, more }
    }

    /// Every row, in order.
    pub fn rows(&self) -> impl Iterator<Item = (&RowKey, &Row)> {
        self.0.iter()
    }

    /// Puts or removes a row past every belief. For models that try out what the beliefs rule out.
    pub fn force(&mut self, key: RowKey, row: Option<Row>) {
        match row {
            Some(row) => self.0.insert(key, row),
            None => self.0.remove(&key),
        };
    }
}
