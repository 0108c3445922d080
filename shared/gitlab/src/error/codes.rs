//! The public codes of this adapter's failures; the table in the crate's README says what each means.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $code;)*

        /// Every code.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

codes! {
    /// Nothing was sent, or a read got no answer.
    FORGE_UNREACHABLE = "forge_unreachable";
    /// A read was answered with 408 or 5xx.
    FORGE_UNAVAILABLE = "forge_unavailable";
    /// A write got no answer, a broken one or 5xx.
    FORGE_UNANSWERED = "forge_unanswered";
    /// Something else holds the lock that the call needs.
    FORGE_BUSY = "forge_busy";
    /// The instance takes no writes for now.
    FORGE_READ_ONLY = "forge_read_only";
    /// Too many requests.
    FORGE_THROTTLED = "forge_throttled";
    /// Too many requests, and no word on how long to wait.
    FORGE_THROTTLED_UNTIMED = "forge_throttled_untimed";
    /// The credential does not work, or not for this.
    FORGE_AUTH = "forge_auth";
    /// The credential's user may not merge this.
    MAY_NOT_MERGE = "may_not_merge";
    /// What the call is about does not exist.
    FORGE_GONE = "forge_gone";
    /// No connection to the host is configured.
    FORGE_UNKNOWN_HOST = "forge_unknown_host";
    /// Refused for a reason that only its text tells.
    FORGE_REFUSED = "forge_refused";
    /// An answer that nobody foresaw.
    FORGE_UNCLASSIFIED = "forge_unclassified";
    /// Sent elsewhere, which is never followed.
    REDIRECTED = "redirected";
    /// The request is larger than the instance takes.
    TOO_LARGE = "too_large";
    /// The answer is larger than Collie takes.
    ANSWER_TOO_LARGE = "answer_too_large";
    /// The listing has more pages than Collie reads or GitLab shows.
    TOO_MANY_PAGES = "too_many_pages";
    /// The branch is protected, or the role too low to push.
    BRANCH_PROTECTED = "branch_protected";
    /// The branch to be made exists.
    BRANCH_EXISTS = "branch_exists";
    /// Another push won.
    BRANCH_MOVED = "branch_moved";
    /// GitLab takes no branch of this name.
    BAD_BRANCH_NAME = "bad_branch_name";
    /// A file to be made exists.
    FILE_EXISTS = "file_exists";
    /// A file to be changed does not exist.
    FILE_MISSING = "file_missing";
    /// A file to be changed has changed.
    FILE_CHANGED = "file_changed";
    /// A file to be made would replace a directory.
    DIRECTORY_EXISTS = "directory_exists";
    /// GitLab takes no file of this path.
    BAD_PATH = "bad_path";
    /// The commit to start from does not exist.
    STALE_START = "stale_start";
    /// A merge request for the same branches is open.
    MR_EXISTS = "mr_exists";
    /// The merge request cannot be as asked.
    MR_REFUSED = "mr_refused";
    /// GitLab's cached list of branches lacks the source branch.
    BRANCH_NOT_VISIBLE = "branch_not_visible";
    /// The merge request cannot be merged now; its `detailed_merge_status` tells why.
    NOT_MERGEABLE = "not_mergeable";
    /// The head is not the commit that was to be merged.
    HEAD_MOVED = "head_moved";
    /// The job was retried before, or is not retried at all; an answer of the port, not a failure of it.
    JOB_NOT_RETRYABLE = "job_not_retryable";
    /// The note held nothing but quick actions.
    NOTE_NOT_MADE = "note_not_made";
}
