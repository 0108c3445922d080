//! What the errors of use cases are to a caller (`design.md` §5, API side).

use crate::code::Code;
use crate::fields::Errors;
use crate::problem::{FieldError, Problem};
use collie_core::error::{Class, Failure};
use collie_core::policy::Violation;
use collie_engine::access::Caller;
use collie_engine::{lifecycle, submit};

/// A store that did not do as it was told. What it said is for operators.
pub(crate) fn of_failure(failure: &Failure) -> Problem {
    let (code, detail) = match failure.class {
        Class::Throttled { .. } => (Code::Throttled, "send the same request again later"),
        Class::Conflict => (Code::Contended, "send the same request again"),
        Class::Transient { .. } | Class::Indeterminate | Class::Unauthorized => {
            (Code::Unavailable, "the store does not answer; the same request may be sent again")
        }
        Class::Rejected | Class::Gone | Class::Bug => (Code::Internal, "this is not your fault; report the request's id"),
    };
    Problem::new(code, detail).caused_by(failure)
}

/// Every broken rule.
pub(crate) fn of_violations(violations: Vec<Violation>, mut broken: Errors) -> Problem {
    broken.extend(violations.into_iter().map(FieldError::from));
    of_errors(broken)
}

/// The rules that were broken while reading.
pub(crate) fn of_errors(broken: Errors) -> Problem {
    broken.problem(Code::Policy).err().unwrap_or_else(|| Problem::new(Code::Policy, "rules are broken"))
}

/// Why a submission was not taken. `broken` are rules that were broken before.
pub(crate) fn of_submit(error: submit::Error, caller: &Caller, broken: Errors) -> Problem {
    match error {
        submit::Error::UnknownProject => unknown_project(caller, "/project"),
        submit::Error::UnhandledType(_) => {
            let error =
                FieldError::new("/item_type", "unhandled_item_type", "is not handled here", "ask the operators, or send it elsewhere");
            Problem::new(Code::UnhandledItemType, "this deployment does not handle items of this type").with_errors(vec![error])
        }
        submit::Error::Forbidden(denied) => Problem::new(Code::Forbidden, denied.to_string()),
        submit::Error::Policy(violations) => of_violations(violations, broken),
        submit::Error::CancelPending => cancel_pending(),
        submit::Error::Contended => contended("others keep changing this work item"),
        submit::Error::TooLarge => contended("the work item has too much to take in; a run of it makes room"),
        submit::Error::Failed(failure) => of_failure(&failure),
    }
}

/// Why an item was not read or moved; `ended` is the code where its phase is in the way.
pub(crate) fn of_lifecycle(error: lifecycle::Error, ended: Code) -> Problem {
    match error {
        lifecycle::Error::NotFound => not_found(),
        lifecycle::Error::Hidden => not_found().hiding(),
        lifecycle::Error::WrongPhase(phase) => Problem::new(ended, format!("the work item is {phase}")),
        lifecycle::Error::Superseded => Problem::new(Code::Superseded, "a newer work item has taken over the branch; retry that one"),
        lifecycle::Error::CancelPending => cancel_pending(),
        lifecycle::Error::Forbidden(denied) => Problem::new(Code::Forbidden, denied.to_string()),
        lifecycle::Error::Contended => contended("others keep changing this work item"),
        lifecycle::Error::TooLarge => contended("the work item has too much to take in; a run of it makes room"),
        lifecycle::Error::Failed(failure) => of_failure(&failure),
    }
}

/// Why an item was not read.
pub(crate) fn of_read(error: lifecycle::Error) -> Problem {
    of_lifecycle(error, Code::Internal)
}

/// Admins learn that a project is not configured; others only that they may not use it.
pub(crate) fn unknown_project(caller: &Caller, path: &str) -> Problem {
    if !caller.is_admin() {
        return Problem::new(Code::Forbidden, "this caller may not use this project");
    }
    let error = FieldError::new(path, "unknown_project", "is not configured", "add the project to the configuration");
    Problem::new(Code::UnknownProject, "the project is not configured").with_errors(vec![error])
}

fn not_found() -> Problem {
    Problem::new(Code::NotFound, "there is no such work item, or it is another caller's")
}

fn cancel_pending() -> Problem {
    Problem::new(Code::CancelPending, "wait until the work item is cancelled")
}

fn contended(detail: &str) -> Problem {
    Problem::new(Code::Contended, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Caller {
        Caller::own_items("local|alice")
    }

    #[test]
    fn a_busy_item_may_be_tried_again_soon() {
        let problems = [
            of_submit(submit::Error::Contended, &alice(), Errors::default()),
            of_submit(submit::Error::TooLarge, &alice(), Errors::default()),
            of_lifecycle(lifecycle::Error::Contended, Code::NotRetryable),
            of_lifecycle(lifecycle::Error::TooLarge, Code::NotRetryable),
        ];
        for problem in problems {
            assert_eq!((problem.code, problem.code.status().as_u16(), problem.code.retry_after()), (Code::Contended, 503, Some(1)));
        }
    }

    #[test]
    fn a_flood_of_violations_is_cut() {
        let violation = Violation { path: "/file_actions/0".into(), code: "empty_path", message: "m".into(), hint: "h".into() };
        let problem = of_violations(vec![violation; 1200], Errors::default());
        assert_eq!((problem.errors.len(), problem.detail.as_str()), (1000, "1200 errors; see errors"));
    }
}
