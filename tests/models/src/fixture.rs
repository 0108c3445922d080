//! Queues as callers and workers make them, in a table.

use collie_core::issue::call;
use collie_core::issue::delivery::{Delivery, Limits};
use collie_core::issue::id::{BuildId, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::program::{Answer, Effect, Program};
use collie_core::issue::row::{Analysis, Build, Outcome, QueueHead, Request, Row, RowKey};
use collie_core::issue::table::Table;
use collie_core::time::Timestamp;
use std::collections::BTreeMap;

/// Time stands still; times of one issue grow all the same.
pub const NOW: Timestamp = Timestamp::from_millis(1);

/// Bounds that nothing in a model reaches, and the smallest batch.
#[must_use]
pub fn limits() -> Limits {
    Limits { batch: 2, ..Limits::default() }
}

/// A row of a kind.
#[must_use]
pub fn row<T: TryFrom<Row>>(table: &Table, key: &RowKey) -> Option<T> {
    table.get(key).cloned().and_then(|row| T::try_from(row).ok())
}

/// The key of a unit of one task, or of a whole task where the name ends in `*`.
#[must_use]
pub fn key(name: &str) -> IssueKey {
    name.strip_suffix('*').map_or_else(|| IssueKey::new("t", name), |task| IssueKey::new(task, ""))
}

/// What a program's effect comes to on a table.
pub fn perform<D>(effect: &Effect<D>, table: &mut Table) -> Option<Answer> {
    Some(match effect {
        Effect::Read(key) => Answer::Row(table.get(key).cloned().map(Box::new)),
        Effect::Range(range) => Answer::Page(table.range(range)),
        Effect::Write(edits) => table.write(edits).map_or(Answer::Refused, |()| Answer::Written),
        Effect::Publish(_) => Answer::Published,
        Effect::Done(_) => return None,
    })
}

/// Runs a program to its end without a break.
pub fn run<P: Program>(mut program: P, table: &mut Table) -> P::Done {
    loop {
        let effect = program.effect(NOW);
        match perform(&effect, table) {
            Some(answer) => program.resume(answer, NOW),
            None => match effect {
                Effect::Done(done) => return done,
                _ => continue,
            },
        }
    }
}

/// Admits the next request with its build, its reports and its end; answers its number. Writes that cannot be refused here.
pub fn built(table: &mut Table, reports: &[&str], outcome: Outcome) -> Option<RequestId> {
    let head: Option<QueueHead> = row(table, &RowKey::head());
    let uri = format!("uri {}", head.as_ref().map_or(0, |head| head.version));
    let (id, edits) = call::admit(head.as_ref(), &uri, NOW).ok()?;
    table.write(&edits).ok()?;
    let build = BuildId::new(format!("b{id}"));
    let request: Request = row(table, &RowKey::request(id))?;
    table.write(&call::associate(&request, None, &build).ok()?).ok()?;
    let issues: BTreeMap<_, _> = reports.iter().map(|name| (key(name), None)).collect();
    table.write(&call::report(&build, &issues, NOW)).ok()?;
    let found: Build = row(table, &RowKey::build(&build))?;
    table.write(&call::end_analysis(&found, Analysis::Completed, None, NOW).ok()?).ok()?;
    let request: Request = row(table, &RowKey::request(id))?;
    table.write(&call::conclude(&request, outcome, NOW)).ok()?;
    Some(id)
}

/// Tracks a request to its end.
pub fn track(table: &mut Table, request: RequestId) {
    if let Some(job) = row(table, &RowKey::job(request)) {
        while run(Delivery::new(&job, limits()), table) == collie_core::issue::delivery::Verdict::Again {}
    }
}
