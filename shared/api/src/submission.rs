//! Reads a submission from JSON.

use crate::code::Code;
use crate::problem::Problem;
use collie_engine::submit::Submission;
use serde_json::Value;

/// Reads a submission.
///
/// # Errors
/// Every unknown, missing or ill-typed field together.
pub fn parse(_value: &Value) -> Result<Submission, Problem> {
    Err(Problem::new(Code::InvalidRequest, "nothing is read yet"))
}
