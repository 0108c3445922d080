//! A protocol as a value: a program says which one effect comes next and is told what came of it. The engine runs programs on a store,
//! models run the same programs in every order, and a crash is a program that is dropped.

use super::hook::Notice;
use super::row::{Row, RowKey};
use super::table::{Edit, Page, Range};
use super::walk::Alarm;
use crate::time::Timestamp;

/// What a program does next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect<D> {
    /// Reads a row, consistently.
    Read(RowKey),
    /// Reads rows of a set, consistently.
    Range(Range),
    /// Writes all or nothing.
    Write(Vec<Edit>),
    /// Tells others, at least once.
    Publish(Notice),
    /// Nothing more.
    Done(D),
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The row, if there is one.
    Row(Option<Box<Row>>),
    /// The rows.
    Page(Page),
    /// It is written.
    Written,
    /// A belief did not hold; nothing is written.
    Refused,
    /// It is published.
    Published,
}

impl Answer {
    /// The row of a kind, where that is what was read.
    #[must_use]
    pub fn row<T: TryFrom<Row>>(self) -> Option<T> {
        match self {
            Self::Row(Some(row)) => T::try_from(*row).ok(),
            _ => None,
        }
    }

    /// Whether a write happened.
    #[must_use]
    pub fn is_written(&self) -> bool {
        *self == Self::Written
    }

    /// The rows of a kind, each with its place, and whether there may be more.
    #[must_use]
    pub fn page<T: TryFrom<Row>>(self) -> (Vec<(String, T)>, bool) {
        match self {
            Self::Page(page) => (page.rows.into_iter().filter_map(|(at, row)| Some((at, T::try_from(row).ok()?))).collect(), page.more),
            _ => (Vec::new(), false),
        }
    }
}

/// A protocol, somewhere on its way.
pub trait Program {
    /// What it ends with.
    type Done;

    /// What it does next.
    fn effect(&self, now: Timestamp) -> Effect<Self::Done>;

    /// Goes on with what came of the effect.
    fn resume(&mut self, answer: Answer, now: Timestamp);

    /// What must not happen, and did.
    fn alarm(&self) -> Option<Alarm> {
        None
    }
}
