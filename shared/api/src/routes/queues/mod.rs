//! CI issues of tracked queues: what reporters write ([`report`]) and what everybody reads ([`issues`], [`requests`]).

pub(crate) mod issues;
pub(crate) mod report;
pub(crate) mod requests;

use crate::code::Code;
use crate::page::Parameters;
use crate::problem::Problem;
use crate::refusal;
use crate::state::ApiState;
use collie_core::issue::call::Refusal;
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_engine::access::Caller;
use collie_engine::tracking::calls::Error;

/// The longest task, in bytes.
const MAX_TASK: usize = 1024;
/// The longest unit, in bytes.
const MAX_UNIT: usize = 4096;

/// The queue that the caller may report to.
fn reported<'s>(state: &'s ApiState, caller: &Caller, name: &str) -> Result<&'s QueueName, Problem> {
    if !caller.grants.may_report(name) {
        return Err(Problem::new(Code::Forbidden, "this caller may not report to this queue: no grant `ci_report` names it"));
    }
    named(state, name)
}

/// The queue that the caller may read. Who may report may read what came of it.
fn shown<'s>(state: &'s ApiState, caller: &Caller, name: &str) -> Result<&'s QueueName, Problem> {
    if !caller.grants.may_read_queue(name) && !caller.grants.may_report(name) {
        return Err(Problem::new(Code::Forbidden, "this caller may not read this queue: no grant `ci_read` or `ci_report` names it"));
    }
    named(state, name)
}

fn named<'s>(state: &'s ApiState, name: &str) -> Result<&'s QueueName, Problem> {
    let queue = state.tracking.queue(name).map(|queue| &queue.name);
    queue.ok_or_else(|| Problem::new(Code::UnknownQueue, "the configuration has no such queue"))
}

/// The request in a path. What cannot be a number is one that no request has.
fn request(text: &str) -> Result<RequestId, Problem> {
    RequestId::parse(text).ok_or_else(|| of_error(Error::NoRequest))
}

/// The issue that a query names.
fn key(parameters: &mut Parameters) -> Option<IssueKey> {
    let task = parameters.required_as("task", "a task, of at most 1024 bytes", |task| is_task(task).then(|| task.to_owned()));
    let unit = parameters.take_as("unit", "a unit, of at most 4096 bytes", |unit| is_unit(unit).then(|| unit.to_owned()));
    Some(IssueKey::new(task?, unit.unwrap_or_default()))
}

fn is_task(task: &str) -> bool {
    (1..=MAX_TASK).contains(&task.len())
}

fn is_unit(unit: &str) -> bool {
    unit.len() <= MAX_UNIT
}

/// What the errors of tracking are to a caller.
fn of_error(error: Error) -> Problem {
    match error {
        Error::NoRequest => Problem::new(Code::UnknownRequest, "the queue has no such request"),
        Error::NoBuild => Problem::new(Code::UnknownBuild, "no request of the queue has this build; associate it first"),
        Error::NoIssue => Problem::new(Code::UnknownIssue, "the queue never had this issue"),
        Error::EndedAfter(taken) => {
            let detail = format!("the build's analysis has ended; {taken} of the issues were taken before");
            Problem::new(Code::AnalysisEnded, detail)
        }
        Error::Refused(refusal) => of_refusal(refusal),
        Error::Failed(failure) => refusal::of_failure(&failure),
    }
}

fn of_refusal(refusal: Refusal) -> Problem {
    let code = match refusal {
        Refusal::OtherBuild | Refusal::OtherRequest => Code::BuildMismatch,
        Refusal::RequestEnded => Code::RequestEnded,
        Refusal::AnalysisEnded => Code::AnalysisEnded,
        Refusal::OtherVersion => Code::StaleVersion,
        Refusal::QueueFull => Code::Internal,
    };
    Problem::new(code, refusal.to_string())
}
