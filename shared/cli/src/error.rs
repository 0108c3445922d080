//! How a command fails, and the exit code that says so.

use serde_json::Value;
use std::process::ExitCode;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line or a file it names cannot be used.
    Usage(String),
    /// It was tried and did not work.
    Failed(String),
    /// The server refused, with this problem document.
    Refused(Value),
    /// The server cannot be reached.
    Unreachable(String),
}

impl Error {
    /// 1 refused or failed, 2 usage, 3 not reachable.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) | Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
        })
    }
}
