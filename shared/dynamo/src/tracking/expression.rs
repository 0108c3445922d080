//! Every [`Edit`] but a removal as one conditional update of its row; means what `is_admitted` and `apply` of `collie_core::issue::table`
//! say. A condition is about equality, which an absent row never passes, or about absence.

use super::row::{self, COLUMNS};
use crate::expression::Write;
use crate::schema::TTL_ATTRIBUTE;
use collie_core::issue::row::{Analysis, Row};
use collie_core::issue::table::{Belief, BuildChange, Edit};
use std::time::Duration;

/// The update; none where the row goes.
pub(crate) fn of_edit(edit: &Edit, kept: Duration) -> Option<Write> {
    let mut w = Write::default();
    match edit {
        Edit::Put(_, row, belief) => {
            believe(&mut w, *belief);
            set(&mut w, row, kept, |_, value| value.to_owned());
        }
        Edit::Keep(_, row) => set(&mut w, row, kept, |name, value| format!("if_not_exists({name}, {value})")),
        Edit::Change(_, change) => of_change(&mut w, change),
        Edit::Remove(_) => return None,
    }
    Some(w)
}

/// Sets the attributes of a row, each to what comes of its name and its new value.
fn set(w: &mut Write, row: &Row, kept: Duration, to: impl Fn(&str, &str) -> String) {
    let columns = w.value(&row.columns());
    w.assign(COLUMNS, &to(COLUMNS, &columns));
    if let Some(at) = row::expiry(row, kept) {
        let at = w.value(&at);
        w.assign(TTL_ATTRIBUTE, &to(TTL_ATTRIBUTE, &at));
    }
}

fn believe(w: &mut Write, belief: Belief) {
    match belief {
        Belief::Absent => w.require("attribute_not_exists(pk)"),
        Belief::Version(version) => {
            let (name, seen) = (column(w, "version"), w.value(&version));
            w.require(format!("{name} = {seen}"));
        }
        Belief::Anything => {}
    }
}

fn of_change(w: &mut Write, change: &BuildChange) {
    match change {
        BuildChange::Report => {
            require_open(w);
            add_one(w, "report_seq");
        }
        BuildChange::EndAnalysis { ended, covered } => {
            require_open(w);
            assign(w, "analysis", ended);
            match covered {
                Some(tasks) => assign(w, "covered_tasks", tasks),
                None => {
                    let name = column(w, "covered_tasks");
                    w.unset(name);
                }
            }
            add_one(w, "version");
        }
        BuildChange::End { status, at } => {
            let name = column(w, "status");
            w.require(format!("attribute_exists(pk) AND attribute_not_exists({name})"));
            assign(w, "status", status);
            assign(w, "ended_at", at);
            add_one(w, "version");
        }
    }
}

fn require_open(w: &mut Write) {
    let (name, open) = (column(w, "analysis"), w.value(&Analysis::Open));
    w.require(format!("{name} = {open}"));
}

fn assign<T: serde::Serialize>(w: &mut Write, name: &str, value: &T) {
    let (name, value) = (column(w, name), w.value(value));
    w.assign(&name, &value);
}

fn add_one(w: &mut Write, name: &str) {
    let (name, one) = (column(w, name), w.value(&1));
    w.assign(&name, &format!("{name} + {one}"));
}

/// The path of a column.
fn column(w: &mut Write, name: &str) -> String {
    format!("{COLUMNS}.{}", w.data_name(name))
}
