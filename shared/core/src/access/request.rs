//! What a caller asks for, as far as grants are about it.

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// To submit this work, or to move an item that is this work.
    Submit(Work<'a>),
    /// To see an item that is this work.
    Read(Work<'a>),
    /// To report builds and issues of a queue.
    CiReport(&'a str),
    /// To read builds and issues of a queue.
    CiRead(&'a str),
    /// To provision the hooks of a project on a connection.
    Integrations {
        /// The connection's slug.
        connection: &'a str,
        /// The project's path.
        project: &'a str,
    },
    /// To see and move the poller of a project.
    Poll(&'a str),
    /// What only admins may.
    Admin,
}

/// A submission, or an item with what its submission said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work<'a> {
    /// The item type.
    pub item_type: &'a str,
    /// The project's path.
    pub project: &'a str,
    /// The branch that is pushed to.
    pub source_branch: &'a str,
    /// The branch that is merged into.
    pub target_branch: &'a str,
    /// The labels.
    pub labels: Labels<'a>,
    /// Whether Collie merges it.
    pub auto_merge: bool,
    /// Whether what others did is overwritten.
    pub overwrite: bool,
    /// Whether it is another caller's.
    pub of_others: bool,
}

/// The labels of some work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels<'a> {
    /// These.
    Known(&'a [String]),
    /// Not known: only a grant of every label covers them.
    Unknown,
}
