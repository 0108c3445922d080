//! The texts by which GitLab refuses a commit: all are status 400, so the text alone tells them apart.

use super::codes;
use collie_core::error::Class;

/// How a text is known. Starts and ends rather than parts: branch names and paths stand in the middle.
struct Row {
    start: &'static str,
    end: &'static str,
    class: Class,
    code: &'static str,
}

const fn row(start: &'static str, end: &'static str, class: Class, code: &'static str) -> Row {
    Row { start, end, class, code }
}

const ROWS: [Row; 12] = [
    row("A file with this name already exists", "", Class::Rejected, codes::FILE_EXISTS),
    row("A file with this name doesn't exist", "", Class::Rejected, codes::FILE_MISSING),
    row("The file has changed since", "", Class::Conflict, codes::FILE_CHANGED),
    row("A directory with this name already exists", "", Class::Rejected, codes::DIRECTORY_EXISTS),
    row("Path cannot include directory traversal", "", Class::Rejected, codes::BAD_PATH),
    row("You must provide a file path", "", Class::Rejected, codes::BAD_PATH),
    row("invalid path: ", "", Class::Rejected, codes::BAD_PATH),
    row("Cannot find start_sha ", "", Class::Rejected, codes::STALE_START),
    row("A branch called ", "already exists. Switch to that branch in order to make changes", Class::Conflict, codes::BRANCH_EXISTS),
    row("Something went wrong when we tried to create ", "Branch already exists", Class::Conflict, codes::BRANCH_EXISTS),
    row("Something went wrong when we tried to create ", "Branch name is invalid", Class::Rejected, codes::BAD_BRANCH_NAME),
    row("Could not update ", "Please refresh and try again.", Class::Conflict, codes::BRANCH_MOVED),
];

/// The class and the code of a commit refused with 400.
pub(super) fn refused(text: &str) -> (Class, &'static str) {
    let known = ROWS.iter().find(|row| text.starts_with(row.start) && text.ends_with(row.end));
    match known {
        Some(row) => (row.class, row.code),
        None if text.contains("protected branch") => (Class::Rejected, codes::BRANCH_PROTECTED),
        None => (Class::Rejected, codes::FORGE_REFUSED),
    }
}
